"""Loops that users of descheduling tools reported: ten ticks, with a scheduler that picks among its landings, and evictions stop.

Between ticks nothing is remembered, so that each decision has to be right by itself; cooldowns are tested in ``tests/control``.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from rebalancer.errors import PolicyError
from rebalancer.model.plan import PlacementMode
from rebalancer.model.pod import Phase, Pod
from rebalancer.model.snapshot import Snapshot, snapshot_of
from rebalancer.placement.profile import DEFAULT, SchedulerConfig
from rebalancer.placement.view import PlacementView
from rebalancer.policy import Policy
from tests.builders import (
    HOSTNAME,
    PACKING,
    PREFERRED_AFFINITY,
    ZONE,
    a_cluster,
    a_node,
    a_pod,
    a_policy,
    a_spread,
    decided,
    pinned,
    pods,
    web_pods,
    would_like_node,
)

TICKS = 10
LEVEL = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}
BOTH_KINDS = {"constraints": ["DoNotSchedule", "ScheduleAnyway"]}


def with_pods(snapshot: Snapshot, found: list[Pod]) -> Snapshot:
    """Return the snapshot with other pods."""
    return snapshot_of(
        snapshot.now + 300,
        nodes=snapshot.nodes.values(),
        pods=found,
        namespaces=snapshot.namespaces.values(),
        priority_classes=snapshot.priority_classes.values(),
    )


def ticked(snapshot: Snapshot, policy: Policy, scheduler: SchedulerConfig, seed: int, tick: int) -> tuple[Snapshot, int]:
    """Evaluate once and carry the plan out; each replacement is placed while its predecessor is still there."""
    rng = random.Random(f"{seed} {tick}")
    plan = decided(snapshot, policy, PlacementMode.REQUIRED, scheduler=scheduler)
    for number, approval in enumerate(plan.approved):
        found = {pod.uid: pod for pod in snapshot.all_pods()}
        old = found.pop(approval.uid)
        landings = PlacementView(snapshot, scheduler).replace(old).landings
        node = rng.choices(sorted(landings), [landings[name] for name in sorted(landings)])[0] if landings else None
        phase = Phase.RUNNING if node else Phase.PENDING
        new = replace(old, name=f"{old.name}-{tick}", uid=f"{old.uid}-{tick}-{number}", node=node, phase=phase, ready=bool(node))
        snapshot = with_pods(snapshot, [*found.values(), new])
    return with_pods(snapshot, list(snapshot.all_pods())), len(plan.approved)


def r1() -> tuple[Snapshot, Policy]:
    """R1: two replicas share the only node that takes them; the workload would be moved every cycle, and come back."""
    return (
        a_cluster(
            a_node("w1"), a_node("w2", cordoned=True), a_node("w3", taints=["pool=x:NoSchedule"]), pods(2, "w1", prefix="app")
        ),
        a_policy({"RemoveDuplicates": {}}),
    )


def r2() -> tuple[Snapshot, Policy]:
    """R2: the preferred node is tainted, so the pod would go between two others."""
    return (
        a_cluster(
            a_node("spot-1", labels={"tier": "spot"}, taints=["spot=true:NoSchedule"]),
            a_node("od-1"),
            a_node("od-2"),
            a_pod("p", "od-1", cpu="500m", spec=would_like_node(tier="spot")),
        ),
        a_policy({"RemovePodsViolatingNodeAffinity": {"nodeAffinityType": [PREFERRED_AFFINITY]}}),
    )


def r3() -> tuple[Snapshot, Policy]:
    """R3: one big pod makes whichever node it is on hot."""
    return (
        a_cluster(a_node("n1"), a_node("n2"), a_node("n3"), a_pod("big", "n1", cpu="3000m"), pods(2, "n2", cpu="100m")),
        a_policy({"LowNodeUtilization": LEVEL}),
    )


def r4() -> tuple[Snapshot, Policy]:
    """R4: one strategy spreads and another packs on the same nodes."""
    return (
        a_cluster(a_node("n1"), a_node("n2"), a_node("n3"), pods(8, "n1", cpu="450m"), pods(1, "n2", prefix="other", cpu="200m")),
        a_policy({"LowNodeUtilization": LEVEL, "HighNodeUtilization": {"thresholds": {"cpu": 30}}}),
    )


def r5() -> tuple[Snapshot, Policy]:
    """R5: packing finds room only on another node that is under-used itself."""
    return (
        a_cluster(
            a_node("n1"),
            a_node("n2"),
            a_node("n3"),
            a_pod("p", "n1", cpu="2400m"),
            pinned("a", "n2", "800m"),
            pinned("b", "n3", "3600m"),
        ),
        a_policy({"HighNodeUtilization": {"thresholds": {"cpu": 70}}}),
    )


def r7() -> tuple[Snapshot, Policy]:
    """R7: two soft constraints that cannot both hold."""
    spread = [a_spread(ZONE, hard=False), a_spread(HOSTNAME, hard=False)]
    return (
        a_cluster(
            a_node("a1", zone="a"),
            *(a_node(name, zone="b") for name in ("b1", "b2", "b3")),
            web_pods({"a1": 2, "b1": 1, "b2": 1}, spread),
        ),
        a_policy({"RemovePodsViolatingTopologySpreadConstraint": BOTH_KINDS}),
    )


def r8() -> tuple[Snapshot, Policy]:
    """R8: a pile of pods that may not move, and movable ones that would have to make up for it."""
    spread = [a_spread(ZONE)]
    protected = [a_pod(f"bare-{number}", "b1", owner=None, labels={"app": "web"}) for number in range(3)]
    return (
        a_cluster(a_node("a1", zone="a"), a_node("b1", zone="b"), web_pods({"a1": 3, "b1": 1}, spread), protected),
        a_policy({"RemovePodsViolatingTopologySpreadConstraint": BOTH_KINDS}),
    )


@pytest.mark.parametrize("scheduler", [DEFAULT, PACKING], ids=["spreading scheduler", "packing scheduler"])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("loop", [r1, r2, r3, r4, r5, r7, r8], ids=lambda each: each.__name__.upper())
def test_evictions_stop(loop: Callable[[], tuple[Snapshot, Policy]], seed: int, scheduler: SchedulerConfig) -> None:
    """Within ten ticks there is nothing left to do, whatever the scheduler picks, and no pod waits for a node."""
    snapshot, policy = loop()
    counts = []
    for tick in range(TICKS):
        snapshot, count = ticked(snapshot, policy, scheduler, seed, tick)
        counts.append(count)
    assert counts[TICKS // 2 :] == [0] * (TICKS - TICKS // 2), counts
    assert not snapshot.unplaced


def test_a_real_load_that_the_scheduler_does_not_know_moves_nothing() -> None:
    """R6: a policy that asks for real load is refused, so the scheduler's view by requests and ours cannot differ."""
    with pytest.raises(PolicyError, match="load"):
        a_policy(
            {"LowNodeUtilization": {**LEVEL, "metricsUtilization": {"source": "KubernetesMetrics"}}},
            metricsProviders=[{"source": "KubernetesMetrics"}],
        )
