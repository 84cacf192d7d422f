"""Cases E: whether a pod fits elsewhere, node affinity, taints."""

from __future__ import annotations

import pytest

from tests.builders import REQUIRED_AFFINITY, a_cluster, a_node, a_pod, a_policy, decided, moved, pods, refusals, wants_node

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


@pytest.mark.parametrize(("args", "expected"), [({}, 0), ({"includedTaints": ["node.kubernetes.io/unschedulable"]}, 10)])
def test_e3_cordoning_is_not_draining(args: dict[str, list[str]], expected: int) -> None:
    """E3: the node controller's own taints move nothing unless they are listed (F36)."""
    snapshot = a_cluster(a_node("n1", cordoned=True), a_node("n2"), pods(10, "n1"))
    assert len(decided(snapshot, a_policy({"RemovePodsViolatingNodeTaints": args})).approved) == expected


def test_e5_one_slot_takes_one_pod() -> None:
    """E5: ten large pods and room for one: one goes, and the others are told that nothing is left."""
    snapshot = a_cluster(
        a_node("src", cpu="96", memory="192Gi", taints=["new:NoSchedule"]),
        a_node("tgt", cpu="8", memory="16Gi"),
        pods(10, "src", cpu="8", memory="16Gi"),
    )
    plan = decided(snapshot, a_policy({"RemovePodsViolatingNodeTaints": {}}))
    assert len(plan.approved) == 1
    assert list(refusals(plan).values()) == ["no-fit"] * 9
    assert "Insufficient cpu" in plan.refused[0].reason
