"""Cases E: whether a pod fits elsewhere, node affinity, taints."""

from __future__ import annotations

import pytest

from rebalancer.model.plan import PlacementMode
from tests.builders import (
    REQUIRED_AFFINITY,
    Object,
    a_budget,
    a_cluster,
    a_node,
    a_pod,
    a_policy,
    decided,
    moved,
    pods,
    refusals,
    wants_node,
)

AFFINITY = {"RemovePodsViolatingNodeAffinity": {"nodeAffinityType": [REQUIRED_AFFINITY]}}


def test_e1_a_pod_is_not_counted_against_itself() -> None:
    """E1: the pod fills its own node, which matches: nothing is violated."""
    snapshot = a_cluster(
        a_node("n1", cpu="1000m", labels={"disk": "ssd"}),
        a_node("n2", cpu="1000m", labels={"disk": "ssd"}),
        a_pod("p", "n1", cpu="800m", spec=wants_node(disk="ssd")),
    )
    assert moved(decided(snapshot, a_policy(AFFINITY))) == []


@pytest.mark.parametrize(("node_fit", "expected"), [(True, []), (False, ["p"])])
def test_e2_an_affinity_that_no_node_matches(node_fit: bool, expected: list[str]) -> None:
    """E2: with nodeFit the pod stays; with nodeFit false it goes, for an autoscaler to react (F35)."""
    snapshot = a_cluster(a_node("n1"), a_pod("p", "n1", spec=wants_node(zone="z9")))
    assert moved(decided(snapshot, a_policy(AFFINITY, evictor={"nodeFit": node_fit}))) == expected


@pytest.mark.parametrize("mode", list(PlacementMode))
@pytest.mark.parametrize(("node_fit", "expected"), [(True, []), (None, []), (False, ["p"])])
def test_e2_a_node_selector_that_no_node_matches(node_fit: bool | None, expected: list[str], mode: PlacementMode) -> None:
    """E2 with a plain nodeSelector: only a written ``nodeFit: false`` asks for no node, in every mode."""
    snapshot = a_cluster(a_node("n1"), a_pod("p", "n1", spec={"nodeSelector": {"disk": "ssd"}}))
    assert moved(decided(snapshot, a_policy(AFFINITY, evictor={"nodeFit": node_fit}), mode)) == expected


def test_e2_budgets_hold_where_no_node_is_asked_for() -> None:
    """E2: nodeFit false lifts no budget."""
    snapshot = a_cluster(a_node("n1"), a_pod("p", "n1", spec=wants_node(zone="z9")), a_budget("b", app="app", allowed=0))
    plan = decided(snapshot, a_policy(AFFINITY, evictor={"nodeFit": False}))
    assert (moved(plan), refusals(plan)) == ([], {"p": "budget"})


@pytest.mark.parametrize("mode", list(PlacementMode))
@pytest.mark.parametrize(("args", "expected"), [({}, 0), ({"includedTaints": ["node.kubernetes.io/unschedulable"]}, 10)])
def test_e3_cordoning_is_not_draining(args: dict[str, list[str]], expected: int, mode: PlacementMode) -> None:
    """E3: the node controller's own taints move nothing unless they are listed (F36)."""
    snapshot = a_cluster(a_node("n1", cordoned=True), a_node("n2"), pods(10, "n1"))
    assert len(decided(snapshot, a_policy({"RemovePodsViolatingNodeTaints": args}), mode).approved) == expected


NODE_CONTROLLER = ("unschedulable", "not-ready", "memory-pressure", "disk-pressure", "pid-pressure", "network-unavailable")


@pytest.mark.parametrize("taint", [f"node.kubernetes.io/{name}" for name in NODE_CONTROLLER])
@pytest.mark.parametrize(
    "args", [{}, {"includedTaints": []}, {"excludedTaints": ["x"]}, {"includePreferNoSchedule": True}], ids=str
)
def test_e3_no_taint_of_the_node_controller_counts_unless_it_is_listed(taint: str, args: Object) -> None:
    """E3: whichever taint it is, and whatever else is asked for; listed by name it counts."""
    snapshot = a_cluster(a_node("n1", taints=[f"{taint}:NoSchedule", f"{taint}:PreferNoSchedule"]), a_node("n2"), pods(3, "n1"))
    assert moved(decided(snapshot, a_policy({"RemovePodsViolatingNodeTaints": args}))) == []
    assert len(decided(snapshot, a_policy({"RemovePodsViolatingNodeTaints": {"includedTaints": [taint]}})).approved) == 3


@pytest.mark.parametrize(("args", "expected"), [({}, 3), ({"includedTaints": ["own=x"]}, 3), ({"excludedTaints": ["own"]}, 0)])
def test_e3_a_taint_of_ones_own_counts_on_a_cordoned_node_too(args: Object, expected: int) -> None:
    """E3: what somebody put there on purpose is upheld, cordoned or not."""
    snapshot = a_cluster(a_node("n1", cordoned=True, taints=["own=x:NoSchedule"]), a_node("n2"), pods(3, "n1"))
    assert len(decided(snapshot, a_policy({"RemovePodsViolatingNodeTaints": args})).approved) == expected


@pytest.mark.parametrize("mode", list(PlacementMode))
@pytest.mark.parametrize(
    ("target", "expected", "lacking"),
    [
        ({"cpu": "8", "memory": "16Gi"}, 1, "Insufficient cpu"),
        ({"cpu": "24", "memory": "64Gi"}, 3, "Insufficient cpu"),
        ({"cpu": "96", "memory": "40Gi"}, 2, "Insufficient memory"),
        ({"cpu": "96", "memory": "192Gi", "pods": 4}, 4, "Too many pods"),
        ({"cpu": "96", "memory": "192Gi"}, 10, ""),
    ],
    ids=["one slot", "three", "by memory", "by pod slots", "room for all"],
)
def test_e5_as_many_go_as_there_are_slots(target: Object, expected: int, lacking: str, mode: PlacementMode) -> None:
    """E5: ten large pods and room for some: that many go, and the others are told that no room is left on feasible nodes."""
    snapshot = a_cluster(
        a_node("src", cpu="96", memory="192Gi", taints=["new:NoSchedule"]),
        a_node("tgt", **target),
        pods(10, "src", cpu="8", memory="16Gi"),
    )
    plan = decided(snapshot, a_policy({"RemovePodsViolatingNodeTaints": {}}), mode)
    assert len(plan.approved) == expected
    assert len(plan.refused) == 10 - expected
    for refusal in plan.refused:
        assert "no capacity left on feasible nodes" in refusal.reason
        assert lacking in refusal.reason


def test_e5_two_destinations_with_one_slot_each_take_two() -> None:
    """E5: each pod is given a node of its own; what another tool is about to remove is none."""
    leaving = a_node("leaving", cpu="96", memory="192Gi", taints=["ToBeDeletedByClusterAutoscaler:NoSchedule"])
    snapshot = a_cluster(
        a_node("src", cpu="96", memory="192Gi", taints=["new:NoSchedule"]),
        a_node("t1", cpu="12", memory="64Gi"),
        a_node("t2", cpu="12", memory="64Gi"),
        leaving,
        pods(10, "src", cpu="8", memory="16Gi"),
    )
    plan = decided(snapshot, a_policy({"RemovePodsViolatingNodeTaints": {}}), PlacementMode.REQUIRED)
    assert {name for each in plan.approved for name in each.landings} == {"t1", "t2"}
    assert len(plan.approved) == 2
