"""What an evaluation remembers never shows: with a memory or without one, the plan is the same, whatever has changed in between.

The changes reach a real cache, so that buckets and nodes that did not change are the same objects in the next snapshot: that is
what a memory goes by. Excluded: the cache itself (``tests/cache``) and times (``benchmarks``).
"""

from __future__ import annotations

import gc
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from rebalancer.cache.store import Cache
from rebalancer.decide.evaluate import Memory, evaluate
from rebalancer.decide.guards import Guards
from rebalancer.model.cap import Cap
from rebalancer.model.change import Changed, Removed
from rebalancer.model.plan import PlacementMode, Plan
from rebalancer.model.snapshot import Snapshot
from rebalancer.placement.state import ClusterState
from rebalancer.policy import Policy
from tests.builders import (
    HOSTNAME,
    NOW,
    PREFERRED_AFFINITY,
    REQUIRED_AFFINITY,
    ZONE,
    Object,
    a_budget,
    a_namespace,
    a_node,
    a_pod,
    a_policy,
    a_spread,
    keeps_away,
    would_like_node,
)

STRATEGIES: dict[str, dict[str, Any]] = {
    "RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 3, "includingInitContainers": True},
    "RemovePodsViolatingNodeTaints": {},
    "RemovePodsViolatingNodeAffinity": {"nodeAffinityType": [REQUIRED_AFFINITY, PREFERRED_AFFINITY]},
    "RemovePodsViolatingInterPodAntiAffinity": {},
    "RemoveFailedPods": {},
    "RemoveDuplicates": {},
    "RemovePodsViolatingTopologySpreadConstraint": {"constraints": ["DoNotSchedule", "ScheduleAnyway"]},
    "LowNodeUtilization": {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 40}},
}

APPS: dict[str, dict[str, Any]] = {
    "plain": {"cpu": "500m"},
    "wide": {"spec": {"topologySpreadConstraints": [a_spread(ZONE, app="wide"), a_spread(HOSTNAME, hard=False, app="wide")]}},
    "apart": {"spec": keeps_away("apart")},
    "zonal": {"spec": keeps_away("zonal", ZONE)},
    "picky": {"spec": {"nodeSelector": {"disk": "ssd"}}},
    "fond": {"spec": would_like_node(disk="ssd")},
    "ordered": {"owner": "StatefulSet", "cpu": "1000m"},
    "everywhere": {"owner": "DaemonSet", "cpu": "50m"},
}


class Clusters:
    """A cluster that changes at random: its objects as dicts, and a cache that hears of each change."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.cache = Cache()
        self.nodes: dict[str, Object] = {}
        self.pods: dict[str, Object] = {}
        self.serial = 0
        for app in APPS:
            self.apply(a_budget(f"b-{app}", app=app, allowed=2))
        self.apply(a_namespace("ns1"))
        for _ in range(6):
            self.node_joins()
        for _ in range(40):
            self.pod_comes()

    def apply(self, document: Object) -> None:
        """Let the cache hear of an object."""
        kind = document["kind"]
        self.cache.apply(Changed(kind, self.cache.parser(kind)(json.dumps(document).encode())))

    def node_joins(self) -> None:
        """Add a node of one of two sizes in one of two zones."""
        self.serial += 1
        name = f"n{self.random.randrange(100):02}-{self.serial}"
        labels = {"disk": self.random.choice(("ssd", "hdd"))}
        self.nodes[name] = a_node(name, zone=f"z{self.random.randrange(2)}", cpu=self.random.choice(("4", "8")), labels=labels)
        self.apply(self.nodes[name])

    def node_goes(self) -> None:
        """Remove a node; its pods are without one for a while."""
        if len(self.nodes) > 3:
            name = self.random.choice(sorted(self.nodes))
            del self.nodes[name]
            self.cache.apply(Removed("Node", "", name))

    def node_changes(self) -> None:
        """Change taints, a label, the cordon or the readiness of a node."""
        name = self.random.choice(sorted(self.nodes))
        zone, disk = f"z{self.random.randrange(2)}", self.random.choice(("ssd", "hdd"))
        change: dict[str, Any] = self.random.choice(
            (
                {"taints": ["dedicated=x:NoSchedule"]},
                {"taints": ["soft:PreferNoSchedule"]},
                {"cordoned": True},
                {"ready": False},
                {},
            )
        )
        self.nodes[name] = a_node(name, zone=zone, labels={"disk": disk}, **change)
        self.apply(self.nodes[name])

    def pod_comes(self) -> None:
        """Add a pod of one of the kinds, on a node or waiting for one."""
        self.serial += 1
        app = self.random.choice(sorted(APPS))
        node = self.random.choice([*sorted(self.nodes)] * 4 + [None])  # type: ignore[list-item]
        name = f"{app}-{self.serial}"
        self.pods[name] = a_pod(name, node, app=app, phase="Running" if node else "Pending", **APPS[app])
        self.apply(self.pods[name])

    def pod_goes(self) -> None:
        """Remove a pod."""
        if self.pods:
            name = self.random.choice(sorted(self.pods))
            del self.pods[name]
            self.cache.apply(Removed("Pod", "ns1", name))

    def pod_changes(self) -> None:
        """Let a pod terminate, fail, restart or lose its readiness."""
        name = self.random.choice(sorted(self.pods))
        app = self.pods[name]["metadata"]["labels"]["app"]
        node = self.pods[name]["spec"].get("nodeName")
        change: dict[str, Any] = self.random.choice(
            ({"terminating": True}, {"phase": "Failed"}, {"restarts": [7]}, {"ready": False}, {"annotations": {"x": "y"}})
        )
        self.pods[name] = a_pod(name, node, app=app, **{**APPS[app], **change})
        self.apply(self.pods[name])

    def eviction_is_accepted(self) -> None:
        """Take a pod for terminating before the watch says so."""
        name = self.random.choice(sorted(self.pods))
        self.cache.assume_evicted(f"ns1/{name}", f"pod-ns1-{name}", 3600.0)

    def budget_changes(self) -> None:
        """Change what a budget allows."""
        app = self.random.choice(sorted(APPS))
        self.apply(a_budget(f"b-{app}", app=app, allowed=self.random.randrange(4)))

    def nothing_changes(self) -> None:
        """Let only time pass."""

    def change(self) -> None:
        """Let one of all this happen; pods change most often."""
        rare: tuple[Callable[[], None], ...] = (
            self.node_joins,
            self.node_goes,
            self.node_changes,
            self.eviction_is_accepted,
            self.budget_changes,
            self.nothing_changes,
        )
        self.random.choice(
            (*rare, self.pod_comes, self.pod_comes, self.pod_comes, self.pod_goes, self.pod_changes, self.pod_changes)
        )()

    def snapshot(self) -> Snapshot:
        """Return the picture of now."""
        return self.cache.snapshot(NOW.timestamp())


def policy(node_fit: bool | None) -> Policy:
    """Return a policy with every strategy that the changes can concern."""
    return a_policy(STRATEGIES, evictor={"nodeFit": node_fit})


def written(plan: Plan) -> str:
    """Return the plan's bytes."""
    return json.dumps(plan.to_dict())


GUARDS = {
    "without-guards": None,
    "with-caps": Guards(node=Cap(number=2), namespace=Cap(percent=20), workload=Cap(percent=50), total=Cap(number=6)),
}


@pytest.mark.parametrize("mode", list(PlacementMode), ids=str)
@pytest.mark.parametrize("guards", GUARDS.values(), ids=GUARDS)
@pytest.mark.parametrize("seed", range(4))
def test_an_evaluation_with_a_memory_equals_one_without_over_random_changes(
    seed: int, guards: Guards | None, mode: PlacementMode
) -> None:
    """After any sequence of changes, what was remembered gives the plan that starting afresh gives, byte for byte."""
    clusters, memory = Clusters(seed), Memory()
    typed = policy(None if seed % 2 else True)
    approved = 0
    for step in range(14):
        for _ in range(clusters.random.choice((0, 1, 1, 3, 10))):
            clusters.change()
        snapshot = clusters.snapshot()
        afresh = evaluate(snapshot, typed, guards, mode)
        assert written(evaluate(snapshot, typed, guards, mode, memory=memory)) == written(afresh), f"step {step}"
        approved += len(afresh.approved)
    assert approved, "changes that give nobody a reason to move prove nothing"


def test_a_memory_may_serve_clusters_in_turn() -> None:
    """A memory that has seen another cluster, or a later state, gives no other plan."""
    memory, typed = Memory(), policy(True)
    one, other = Clusters(11), Clusters(12)
    pictures = [one.snapshot(), other.snapshot()]
    for _ in range(10):
        one.change()
    pictures.append(one.snapshot())
    for place in (0, 1, 2, 0, 2, 1, 0):
        snapshot = pictures[place]
        assert written(evaluate(snapshot, typed, memory=memory)) == written(evaluate(snapshot, typed))


def test_an_evaluation_leaves_nothing_to_the_garbage_collector() -> None:
    """The state of a run is freed by reference counting: it may run with the collector switched off."""
    snapshot, typed, memory = Clusters(5).snapshot(), policy(True), Memory()
    evaluate(snapshot, typed, memory=memory)
    gc.collect()
    gc.disable()
    try:
        assert evaluate(snapshot, typed, memory=memory).approved
        assert not [each for each in gc.get_objects() if isinstance(each, ClusterState)]
        assert gc.collect() == 0
    finally:
        gc.enable()
