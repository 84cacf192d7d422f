"""Strategies do not undo each other, and the loops that users of such tools report come to rest."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.decide.evaluate import PRECEDENCE
from rebalancer.model.plan import PlacementMode
from rebalancer.model.snapshot import Snapshot
from rebalancer.strategies.catalogue import STRATEGIES
from tests.builders import (
    HOSTNAME,
    PREFERRED_AFFINITY,
    ZONE,
    a_cluster,
    a_node,
    a_pod,
    a_policy,
    a_spread,
    decided,
    keeps_away,
    moved,
    pinned,
    pods,
    refusals,
    web_pods,
    would_like_node,
)
from tests.decide.test_properties import carried_out

UTILISATION: dict[str, Any] = {"LowNodeUtilization": {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}}}
LIKING: dict[str, Any] = {"RemovePodsViolatingNodeAffinity": {"nodeAffinityType": [PREFERRED_AFFINITY]}}
SPREADING: dict[str, Any] = {"RemovePodsViolatingTopologySpreadConstraint": {"constraints": ["DoNotSchedule", "ScheduleAnyway"]}}


def test_precedence_names_strategies_that_exist() -> None:
    """Whoever keeps something has a place in the order."""
    assert set(PRECEDENCE) <= set(STRATEGIES)
    assert {name for name, strategy in STRATEGIES.items() if strategy.keeps is not None} <= set(PRECEDENCE)


@pytest.mark.parametrize(("strategies", "goes"), [(UTILISATION, True), (UTILISATION | LIKING, False)])
def test_preferred_affinity_that_is_upheld_is_not_given_up_for_utilisation(strategies: dict[str, Any], goes: bool) -> None:
    """A pod leaves the node it prefers for a cooler one only where nobody would bring it back."""
    snapshot = a_cluster(
        a_node("n1", labels={"tier": "spot"}),
        a_node("n2"),
        a_node("n3"),
        pinned("load", "n1", "2500m"),
        a_pod("p", "n1", cpu="1000m", spec=would_like_node(1, tier="spot")),
    )
    plan = decided(snapshot, a_policy(strategies), PlacementMode.REQUIRED)
    assert moved(plan) == (["p"] if goes else [])
    if not goes:
        refusal = next(each for each in plan.refused if each.pod == "ns1/p" and each.strategy == "LowNodeUtilization")
        assert "RemovePodsViolatingNodeAffinity" in refusal.reason


def test_duplicates_are_not_made_for_utilisation() -> None:
    """A pod does not go where its siblings would then be crowded."""
    snapshot = a_cluster(
        a_node("n1"), a_node("n2"), pinned("load", "n1", "2500m"), a_pod("p", "n1", cpu="1000m"), a_pod("q", "n2", cpu="100m")
    )
    both = decided(snapshot, a_policy(UTILISATION | {"RemoveDuplicates": {}}), PlacementMode.REQUIRED)
    assert moved(both) == []
    assert refusals(both)["p"] == "no-gain"
    assert moved(decided(snapshot, a_policy(UTILISATION), PlacementMode.REQUIRED)) == ["p"]


def test_prefer_no_schedule_taints_that_are_upheld_repel_every_move() -> None:
    """Nobody is sent to a node that he would be sent away from."""
    snapshot = a_cluster(
        a_node("n1"),
        a_node("n2", taints=["old=x:PreferNoSchedule"]),
        pinned("load", "n1", "2500m"),
        a_pod("p", "n1", cpu="1000m"),
    )
    taints = {"RemovePodsViolatingNodeTaints": {"includePreferNoSchedule": True}}
    assert moved(decided(snapshot, a_policy(UTILISATION | taints), PlacementMode.REQUIRED)) == []
    assert moved(decided(snapshot, a_policy(UTILISATION), PlacementMode.REQUIRED)) == ["p"]


def loops() -> dict[str, tuple[Snapshot, dict[str, Any]]]:
    """Return clusters on which evictions were reported to go on for ever, with the policy that did it."""
    spot = a_node("spot", labels={"tier": "spot"}, taints=["spot=true:NoSchedule"])
    like = would_like_node(tier="spot")
    soft = [a_spread(ZONE, hard=False), a_spread(HOSTNAME, hard=False)]
    zoned = [a_node("a1", zone="a"), a_node("b1", zone="b"), a_node("b2", zone="b"), a_node("b3", zone="b")]
    return {
        "a workload that fits only where it is": (
            a_cluster(a_node("n1"), a_node("n2", cordoned=True), pods(4, "n1", cpu="900m")),
            UTILISATION | {"RemoveDuplicates": {}},
        ),
        "a preferred node that takes nobody": (a_cluster(spot, a_node("n1"), a_node("n2"), pods(3, "n1", spec=like)), LIKING),
        "one big pod that heats whichever node it is on": (
            a_cluster(a_node("n1"), a_node("n2"), a_pod("big", "n1", cpu="3000m")),
            UTILISATION,
        ),
        "spreading, packing and preferring at once": (
            a_cluster(a_node("n1", labels={"tier": "spot"}), a_node("n2"), a_node("n3"), pods(6, "n1", cpu="500m", spec=like)),
            UTILISATION | LIKING | {"RemoveDuplicates": {}, "HighNodeUtilization": {"thresholds": {"cpu": 20}}},
        ),
        "packing towards an emptier node": (
            a_cluster(*(a_node(name) for name in ("n1", "n2", "n3")), pods(2, "n1"), pods(1, "n2"), pinned("x", "n3", "3000m")),
            {"HighNodeUtilization": {"thresholds": {"cpu": 40}}},
        ),
        "two soft constraints that conflict": (a_cluster(zoned, web_pods({"a1": 2, "b1": 1, "b2": 1}, soft)), SPREADING),
        "protected pods that pile up": (
            a_cluster(zoned, web_pods({"a1": 3}, soft, owner="DaemonSet"), web_pods({"b1": 2}, soft)),
            SPREADING,
        ),
        "anti-affinity on the only target": (
            a_cluster(
                a_node("n1"), a_node("n2"), a_pod("y", "n2", app="y"), pods(3, "n1", app="x", cpu="1000m", spec=keeps_away("y"))
            ),
            UTILISATION | {"RemoveDuplicates": {}},
        ),
    }


@pytest.mark.parametrize("name", sorted(loops()))
def test_ten_ticks_on_a_reported_loop_come_to_rest(name: str) -> None:
    """Evictions stop, and no pod is moved twice."""
    snapshot, strategies = loops()[name]
    seen: list[str] = []
    for turn in range(10):
        plan = decided(snapshot, a_policy(strategies, evictor={"nodeFit": None}), PlacementMode.REQUIRED)
        if turn >= 5:
            assert moved(plan) == []
        seen += moved(plan)
        snapshot = carried_out(snapshot, plan, turn)
    assert len(seen) == len(set(seen))
