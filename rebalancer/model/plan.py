"""What an evaluation decided: a value that can be printed, stored, compared and carried out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any


class PlacementMode(StrEnum):
    """How much is asked of the place a pod would go to.

    REQUIRED: (nearly) every landing that kube-scheduler may choose is an improvement. FIT: some node fits, with room reserved.
    OFF: only what the policy's own nodeFit asks.
    """

    REQUIRED = "required"
    FIT = "fit"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Approval:
    """A pod that may go.

    pod: ``namespace/name``. uid, node: of the pod as decided on.
    owner_uid: the workload for which it counts: the pod's owner, the Deployment where a rollout replaces it; empty for bare pods.
    profile, strategy: who asked; reason: why, as a sentence without a full stop.
    landings: node to probability (sums to 1) of where its replacement is expected; empty where none is needed or looked for.
    rollout: the Deployment whose rollout replaces the pod, its replacement first and past all budgets; empty for an eviction.
    """

    pod: str
    uid: str
    node: str
    owner_uid: str
    profile: str
    strategy: str
    reason: str
    landings: Mapping[str, float] = field(default_factory=dict)
    rollout: str = ""

    @property
    def why(self) -> str:
        """The reason, and how the pod goes where that is no eviction."""
        if not self.rollout:
            return self.reason
        return f"{self.reason}; by a rollout of Deployment {self.rollout}, its replacement first, so no budget is asked"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; ``rollout`` only where there is one."""
        return {
            "pod": self.pod,
            "uid": self.uid,
            "node": self.node,
            "profile": self.profile,
            "strategy": self.strategy,
            "reason": self.reason,
            "landings": dict(self.landings.items()),
            **({"rollout": self.rollout} if self.rollout else {}),
        }


@dataclass(frozen=True, slots=True)
class Refusal:
    """A pod that a strategy would have moved, and may not.

    code: stable, for counting (the codes are listed in ``docs/runbook.md``); reason: rule, values and threshold in a sentence.
    """

    pod: str
    uid: str
    node: str
    profile: str
    strategy: str
    code: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "pod": self.pod,
            "node": self.node,
            "profile": self.profile,
            "strategy": self.strategy,
            "code": self.code,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class NodeClass:
    """How a utilisation strategy saw one node.

    verdict: ``under``, ``over``, ``appropriate`` or ``unjudged``.
    usage_percent: requested share of allocatable by resource, in percent.
    """

    profile: str
    strategy: str
    node: str
    verdict: str
    usage_percent: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "profile": self.profile,
            "strategy": self.strategy,
            "node": self.node,
            "verdict": self.verdict,
            "requestedPercent": {name: round(share, 2) for name, share in self.usage_percent.items()},
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """Ordered approvals, refusals, and remarks.

    evaluated_at: seconds since the epoch, the ``now`` of the snapshot.
    approved: in the order in which they were decided, which is the order in which they should go.
    refused: in the order in which they were asked for; beyond 1,000 of one code only counted, in ``refused_counts``.
    refused_counts: all refusals by code.
    nodes: how utilisation strategies classified nodes.
    notes: what a reader should know: skipped strategies and why, missing kinds and what was assumed.
    """

    evaluated_at: float
    approved: tuple[Approval, ...] = ()
    refused: tuple[Refusal, ...] = ()
    refused_counts: Mapping[str, int] = field(default_factory=dict)
    nodes: tuple[NodeClass, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form: plain dicts, lists, strings and numbers."""
        moment = datetime.fromtimestamp(self.evaluated_at, UTC)
        return {
            "evaluatedAt": moment.isoformat(timespec="seconds").replace("+00:00", "Z"),
            "approved": [approval.to_dict() for approval in self.approved],
            "refused": [refusal.to_dict() for refusal in self.refused],
            "refusedCounts": dict(sorted(self.refused_counts.items())),
            "nodes": [node.to_dict() for node in self.nodes],
            "notes": list(self.notes),
        }
