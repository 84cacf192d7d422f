"""What a run decided, in the order in which it was decided; sentences are made at the end, and only for what is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from rebalancer.eligibility.objection import Objection
from rebalancer.model.plan import Approval, NodeClass, Plan, Refusal
from rebalancer.model.pod import Pod
from rebalancer.model.workload import Workload

KEPT_PER_CODE = 1000
"""Refusals of one code that a plan lists; further ones are only counted."""


@dataclass(frozen=True, slots=True)
class Refused:
    """One refusal before its sentence is made."""

    pod: Pod
    profile: str
    strategy: str
    objection: Objection

    def rendered(self) -> Refusal:
        """Return the refusal with its sentence."""
        pod = self.pod
        return Refusal(pod.key, pod.uid, pod.node or "", self.profile, self.strategy, self.objection.code, str(self.objection))


class Record:
    """Collects approvals, refusals, node classes and notes."""

    def __init__(self, *, watched_uid: str | None = None) -> None:
        """Start empty. watched_uid: everything about this pod is kept, however much there is."""
        self.approved: list[Approval] = []
        self.refused: list[Refused] = []
        self.counts: Counter[str] = Counter()
        self.nodes: list[NodeClass] = []
        self.notes: dict[str, None] = {}
        self._watched_uid = watched_uid
        self._seen: set[tuple[str, str, str, str]] = set()

    def approve(
        self, pod: Pod, profile: str, strategy: str, reason: str, landings: Mapping[str, float], rollout: Workload | None = None
    ) -> None:
        """Keep an approval. rollout: the Deployment whose rollout replaces the pod, None for an eviction."""
        owner = rollout or pod.shape.owner
        uid, name = owner.uid if owner is not None else "", rollout.name if rollout is not None else ""
        self.approved.append(Approval(pod.key, pod.uid, pod.node or "", uid, profile, strategy, reason, landings, name))

    def refuse(self, pod: Pod, profile: str, strategy: str, objection: Objection) -> None:
        """Keep a refusal; the same one is kept once."""
        key = (pod.uid, profile, strategy, objection.code)
        if key in self._seen:
            return
        self._seen.add(key)
        self.counts[objection.code] += 1
        if self.counts[objection.code] <= KEPT_PER_CODE or pod.uid == self._watched_uid:
            self.refused.append(Refused(pod, profile, strategy, objection))

    def note(self, text: str) -> None:
        """Keep a remark once."""
        self.notes[text] = None

    def plan(self, evaluated_at: float) -> Plan:
        """Return everything as a plan."""
        return Plan(
            evaluated_at,
            tuple(self.approved),
            tuple(refused.rendered() for refused in self.refused),
            dict(sorted(self.counts.items())),
            tuple(self.nodes),
            tuple(self.notes),
        )
