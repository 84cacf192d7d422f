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
    wants_node,
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


def r1_full() -> tuple[Snapshot, Policy]:
    """R1, with the other nodes full: five replicas where there is room for no more anywhere else."""
    return (
        a_cluster(
            a_node("w1"), a_node("w2"), a_node("w3"), pods(5, "w1"), pinned("a", "w2", "3950m"), pinned("b", "w3", "4000m")
        ),
        a_policy({"RemoveDuplicates": {}}),
    )


def r1_workloads() -> tuple[Snapshot, Policy]:
    """R1, with three workloads piled up on one of three nodes: they are spread once, and then that is that."""
    piles = [pods(4, "w1", app=app, prefix=app) for app in ("a", "b", "c")]
    return a_cluster(a_node("w1"), a_node("w2"), a_node("w3"), *piles), a_policy({"RemoveDuplicates": {}})


def r2_unusable() -> tuple[Snapshot, Policy]:
    """R2, with better nodes that are full, cordoned, NotReady or lack the required label."""
    both = {"affinity": {"nodeAffinity": {**wants_node(zone="z")["affinity"]["nodeAffinity"]}}}
    both["affinity"]["nodeAffinity"] |= would_like_node(tier="spot")["affinity"]["nodeAffinity"]
    return (
        a_cluster(
            a_node("full", labels={"tier": "spot", "zone": "z"}),
            a_node("cordoned", cordoned=True, labels={"tier": "spot", "zone": "z"}),
            a_node("lost", ready=False, labels={"tier": "spot", "zone": "z"}),
            a_node("elsewhere", labels={"tier": "spot"}),
            *(a_node(name, labels={"zone": "z"}) for name in ("od-1", "od-2")),
            pinned("load", "full", "3900m"),
            pods(3, "od-1", cpu="500m", spec=both),
        ),
        a_policy({"RemovePodsViolatingNodeAffinity": {"nodeAffinityType": [PREFERRED_AFFINITY]}}),
    )


def r2_swap() -> tuple[Snapshot, Policy]:
    """R2, where two workloads each prefer the other's full node: a slot is free, and the moves come to an end."""
    return (
        a_cluster(
            a_node("n1", labels={"tier": "one"}),
            a_node("n2", labels={"tier": "two"}),
            pods(2, "n1", app="a", cpu="1200m", spec=would_like_node(tier="two")),
            pods(2, "n2", app="b", cpu="1200m", spec=would_like_node(tier="one")),
        ),
        a_policy({"RemovePodsViolatingNodeAffinity": {"nodeAffinityType": [PREFERRED_AFFINITY]}}),
    )


def r3_two() -> tuple[Snapshot, Policy]:
    """R3, with two big pods and small ones beside them: the small ones may make room, the big ones are not bounced."""
    return (
        a_cluster(
            *(a_node(name) for name in ("n1", "n2", "n3", "n4")),
            a_pod("big-1", "n1", cpu="2600m", app="big"),
            a_pod("big-2", "n2", cpu="2600m", app="big"),
            pods(4, "n1", cpu="200m", app="small"),
        ),
        a_policy({"LowNodeUtilization": LEVEL}),
    )


def r3_deviation() -> tuple[Snapshot, Policy]:
    """R3, with targets at a distance from the mean: nodes of several sizes and one pod too big for any balance."""
    deviation = {"thresholds": {"cpu": 10}, "targetThresholds": {"cpu": 10}, "useDeviationThresholds": True}
    return (
        a_cluster(
            a_node("n1", cpu="8000m"),
            a_node("n2"),
            a_node("n3", cpu="2000m"),
            a_pod("big", "n1", cpu="3500m", app="big"),
            pods(3, "n1", cpu="400m"),
        ),
        a_policy({"LowNodeUtilization": deviation}),
    )


def r4_deviation() -> tuple[Snapshot, Policy]:
    """R4, where what packing moves is another share of a node of another size, so that the mean and the targets move."""
    deviation = {"thresholds": {"cpu": 10}, "targetThresholds": {"cpu": 10}, "useDeviationThresholds": True}
    sizes = {"n0": "8000m", "n1": "8000m", "n2": "8000m", "n3": "2000m"}
    big = {"n0": 2, "n1": 2, "n2": 2}
    return (
        a_cluster(
            *(a_node(name, cpu=cpu) for name, cpu in sizes.items()),
            *(pods(count, name, app="big", prefix="big", cpu="1500m") for name, count in big.items()),
            *(pods(count, name, app="tiny", prefix="tiny") for name, count in {"n0": 4, "n1": 3, "n2": 1, "n3": 1}.items()),
            *(a_pod(f"small-{name}", name, app="small", cpu="500m") for name in ("n1", "n2", "n3")),
            pinned("d", "n3", "100m"),
        ),
        a_policy({"LowNodeUtilization": deviation, "HighNodeUtilization": {"thresholds": {"cpu": 40}}}),
    )


def r4_profiles() -> tuple[Snapshot, Policy]:
    """R4, with four strategies that each have something to say about the same pods."""
    spread = {"topologySpreadConstraints": [a_spread(app="app", hard=False)]}
    return (
        a_cluster(
            a_node("n1", zone="a"),
            a_node("n2", zone="a"),
            a_node("n3", zone="b"),
            pods(6, "n1", cpu="400m", spec={**spread, **would_like_node(10, **{ZONE: "a"})}),
            pods(1, "n3", prefix="other", cpu="200m"),
        ),
        a_policy(
            {
                "RemoveDuplicates": {},
                "LowNodeUtilization": LEVEL,
                "HighNodeUtilization": {"thresholds": {"cpu": 20}},
                "RemovePodsViolatingTopologySpreadConstraint": BOTH_KINDS,
                "RemovePodsViolatingNodeAffinity": {"nodeAffinityType": [PREFERRED_AFFINITY]},
            }
        ),
    )


def r5_chain() -> tuple[Snapshot, Policy]:
    """R5, with four nodes that are all under-used but one: nothing is handed on from one to the next."""
    return (
        a_cluster(
            *(a_node(name) for name in ("n1", "n2", "n3", "n4")),
            *(a_pod(f"p-{name}", name, cpu="900m", app=name) for name in ("n1", "n2", "n3")),
            pinned("load", "n4", "3200m"),
        ),
        a_policy({"HighNodeUtilization": {"thresholds": {"cpu": 30}}}),
    )


def r7_three() -> tuple[Snapshot, Policy]:
    """R7, with three zones of different sizes and seven pods, hard by zone and soft by host name."""
    spread = [a_spread(ZONE), a_spread(HOSTNAME, hard=False)]
    zones = {"a1": "a", "a2": "a", "a3": "a", "a4": "a", "b1": "b", "c1": "c", "c2": "c"}
    return (
        a_cluster(
            *(a_node(name, zone=zone) for name, zone in zones.items()), web_pods({"a1": 2, "a2": 1, "b1": 2, "c1": 2}, spread)
        ),
        a_policy({"RemovePodsViolatingTopologySpreadConstraint": BOTH_KINDS}),
    )


def r8_daemons() -> tuple[Snapshot, Policy]:
    """R8, where the pods that may not move are protected in several ways and outnumber the others."""
    spread = [a_spread(ZONE), a_spread(HOSTNAME, hard=False)]
    protected = [
        pinned("daemon", "b1", labels={"app": "web"}),
        a_pod("critical", "b1", app="web", priority=2_000_000_000),
        a_pod("storage", "b2", app="web", spec={"volumes": [{"name": "v", "emptyDir": {}}]}),
    ]
    return (
        a_cluster(
            a_node("a1", zone="a"),
            a_node("b1", zone="b"),
            a_node("b2", zone="b"),
            web_pods({"a1": 2, "b1": 1, "b2": 1}, spread),
            protected,
        ),
        a_policy({"RemovePodsViolatingTopologySpreadConstraint": BOTH_KINDS}),
    )


LOOPS = (r1, r2, r3, r4, r5, r7, r8)
VARIED = (
    r1_full,
    r1_workloads,
    r2_unusable,
    r2_swap,
    r3_two,
    r3_deviation,
    r4_deviation,
    r4_profiles,
    r5_chain,
    r7_three,
    r8_daemons,
)


@pytest.mark.parametrize("scheduler", [DEFAULT, PACKING], ids=["spreading scheduler", "packing scheduler"])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("loop", [*LOOPS, *VARIED], ids=lambda each: each.__name__.upper())
def test_evictions_stop(loop: Callable[[], tuple[Snapshot, Policy]], seed: int, scheduler: SchedulerConfig) -> None:
    """Within ten ticks there is nothing left to do, whatever the scheduler picks, and no pod waits for a node."""
    snapshot, policy = loop()
    waiting = len(snapshot.unplaced)
    counts = []
    for tick in range(TICKS):
        snapshot, count = ticked(snapshot, policy, scheduler, seed, tick)
        counts.append(count)
    assert counts[TICKS // 2 :] == [0] * (TICKS - TICKS // 2), counts
    assert len(snapshot.unplaced) == waiting == 0


@pytest.mark.parametrize("scheduler", [DEFAULT, PACKING], ids=["spreading scheduler", "packing scheduler"])
@pytest.mark.parametrize("loop", [r1, r1_full, r2, r2_unusable, r3, r5], ids=lambda each: each.__name__.upper())
def test_where_no_move_helps_nothing_goes_at_all(loop: Callable[[], tuple[Snapshot, Policy]], scheduler: SchedulerConfig) -> None:
    """R1, R2, R3, R5: not even once, for there is no landing that is an improvement; each considered pod is told why."""
    snapshot, policy = loop()
    plan = decided(snapshot, policy, PlacementMode.REQUIRED, scheduler=scheduler)
    assert plan.approved == ()
    assert all(refusal.reason for refusal in plan.refused)


def test_a_real_load_that_the_scheduler_does_not_know_moves_nothing() -> None:
    """R6: a policy that asks for real load is refused, so the scheduler's view by requests and ours cannot differ."""
    with pytest.raises(PolicyError, match="load"):
        a_policy(
            {"LowNodeUtilization": {**LEVEL, "metricsUtilization": {"source": "KubernetesMetrics"}}},
            metricsProviders=[{"source": "KubernetesMetrics"}],
        )
