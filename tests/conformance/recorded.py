"""Recorded outcomes of the descheduler 0.36 on random clusters and policies, and how ours are compared with them.

A scenario is a cluster, a policy, and what the real program evicted in one dry cycle; where its order is random, other
outcomes of the same input are recorded too. We agree where our set equals one of them, or where the numbers by strategy,
node and owner do.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from rebalancer.decide.evaluate import evaluate
from rebalancer.model.plan import PlacementMode, Plan
from rebalancer.model.snapshot import Snapshot
from rebalancer.parse.objects import parse_objects
from rebalancer.policy import load, resolve_priority_classes

FOLDER = Path(__file__).parent / "upstream"

Eviction = tuple[str, str, str]
"""Pod, strategy, node."""


@dataclass(frozen=True)
class Scenario:
    """One recorded scenario. strategies: enabled, in the order of the name. outcomes: what was seen, the first cycle first."""

    name: str
    document: Mapping[str, Any]

    @property
    def strategies(self) -> tuple[str, ...]:
        """The enabled strategies."""
        return tuple(self.name.rpartition("-")[0].split("+"))

    @property
    def outcomes(self) -> list[list[Eviction]]:
        """Every outcome that was seen."""
        recorded = self.document["upstream"]
        return [
            [(each["pod"], each["strategy"], each["node"]) for each in outcome]
            for outcome in (recorded["evicted"], *recorded["alsoSeen"])
        ]

    def snapshot(self) -> Snapshot:
        """Return the cluster at the moment of the cycle."""
        parsed = parse_objects(self.document["objects"])
        assert not parsed.problems, parsed.problems
        return parsed.snapshot(datetime.fromisoformat(self.document["evaluatedAt"]).timestamp())

    def plan(self, snapshot: Snapshot) -> Plan:
        """Return our plan, with the policy's own nodeFit deciding."""
        classes = {each.name: each.value for each in snapshot.priority_classes.values()}
        policy = load(self.document["policy"], source=self.name).policy
        return evaluate(snapshot, resolve_priority_classes(policy, classes, source=self.name), placement=PlacementMode.OFF)


def names() -> list[str]:
    """Return the names of all scenarios, sorted."""
    return sorted(path.name.removesuffix(".json.gz") for path in FOLDER.glob("*.json.gz"))


@cache
def scenario(name: str) -> Scenario:
    """Read one scenario."""
    with gzip.open(FOLDER / f"{name}.json.gz") as file:
        return Scenario(name, json.load(file))


@cache
def agrees(name: str) -> bool:
    """Tell whether our plan equals one of the recorded outcomes."""
    recorded = scenario(name)
    snapshot = recorded.snapshot()
    owners = {pod.key: _owner(pod) for pod in snapshot.all_pods()}
    ours = [(each.pod, each.strategy, each.node) for each in recorded.plan(snapshot).approved]
    return any(set(seen) == set(ours) or _counts(seen, owners) == _counts(ours, owners) for seen in recorded.outcomes)


def _owner(pod: Any) -> tuple[str, ...]:
    owner = pod.shape.owner
    return (pod.namespace, owner.kind, owner.name) if owner is not None else (pod.namespace, "", pod.name)


def _counts(evictions: Iterable[Eviction], owners: Mapping[str, tuple[str, ...]]) -> Counter[tuple[str, str, tuple[str, ...]]]:
    return Counter((strategy, node, owners[pod]) for pod, strategy, node in evictions)
