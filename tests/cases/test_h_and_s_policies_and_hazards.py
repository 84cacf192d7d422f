"""Cases H1, H4, H6 and S: what policies may say, and hazards that were read in upstream's source."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.errors import PolicyError
from rebalancer.model.plan import PlacementMode
from rebalancer.parse.objects import parse_objects
from rebalancer.policy import load
from tests.builders import (
    EVICT,
    NOW,
    REQUIRED_AFFINITY,
    Object,
    a_cluster,
    a_document,
    a_node,
    a_pod,
    a_policy,
    a_priority_class,
    decided,
    moved,
    moved_from,
    pinned,
    refusals,
    wants_node,
)

OLD: dict[str, Any] = {"PodLifeTime": {"maxPodLifeTimeSeconds": 60}}


def test_h1_a_priority_class_by_name_is_looked_up() -> None:
    """H1: only pods below the class's value go."""
    snapshot = a_cluster(
        a_node("n1"),
        a_priority_class("c1", 1000),
        a_pod("below", "n1", priority=999),
        a_pod("at", "n1", priority=1000),
        a_pod("none", "n1", priority=None),
    )
    plan = decided(snapshot, a_policy(OLD, evictor={"priorityThreshold": {"name": "c1"}}))
    assert (moved(plan), refusals(plan)) == (["below", "none"], {"at": "priority"})


@pytest.mark.parametrize(("value", "expected"), [(10, ["low"]), (11, ["low", "mid"]), (-5, []), (2_000_000_000, ["low", "mid"])])
def test_h1_the_class_may_have_any_value_up_to_the_limit(value: int, expected: list[str]) -> None:
    """H1: negative values and the limit itself are values like others."""
    snapshot = a_cluster(
        a_node("n1"), a_priority_class("c1", value), a_pod("low", "n1", priority=0), a_pod("mid", "n1", priority=10)
    )
    assert moved(decided(snapshot, a_policy(OLD, evictor={"priorityThreshold": {"name": "c1"}}))) == expected


def test_h1_a_class_above_the_limit_is_an_error() -> None:
    """H1: a class of the system's own is named with its value and the limit."""
    snapshot = a_cluster(a_node("n1"), a_priority_class("c1", 2_000_001_000))
    with pytest.raises(PolicyError, match=r"c1.*2000001000.*2000000000"):
        decided(snapshot, a_policy(OLD, evictor={"priorityThreshold": {"name": "c1"}}))


def test_h1_a_name_beside_a_value_and_a_missing_class_are_errors() -> None:
    """H1: both are refused, the class by its name."""
    with pytest.raises(PolicyError, match="only one of value and name"):
        a_policy(OLD, evictor={"priorityThreshold": {"name": "c1", "value": 1}})
    with pytest.raises(PolicyError, match="c1"):
        decided(a_cluster(a_node("n1")), a_policy(OLD, evictor={"priorityThreshold": {"name": "c1"}}))


@pytest.mark.parametrize(
    ("strategy", "wrong", "right"),
    [
        ("RemovePodsViolatingTopologySpreadConstraint", "deschedule", "balance"),
        ("RemoveDuplicates", "deschedule", "balance"),
        ("RemoveDuplicates", "filter", "balance"),
        ("RemoveFailedPods", "balance", "deschedule"),
        ("RemovePodsViolatingNodeTaints", "balance", "deschedule"),
        ("DefaultEvictor", "balance", "filter"),
    ],
)
def test_h4_a_plugin_at_the_wrong_extension_point_is_named_with_the_right_one(strategy: str, wrong: str, right: str) -> None:
    """H4: the error names the plugin, where it stands and what to use."""
    document = a_document({} if strategy == "DefaultEvictor" else {strategy: {}})
    document["profiles"][0]["plugins"] = {wrong: {"enabled": [strategy]}}
    with pytest.raises(PolicyError, match=f"{strategy} cannot stand under {wrong}: use {right}"):
        load(document, source="test")


@pytest.mark.parametrize("single_node", [False, True])
def test_h6_one_ready_node_is_skipped_unless_asked_for(single_node: bool) -> None:
    """H6: with singleNode, Deschedule strategies run and Balance ones do not (K4)."""
    snapshot = a_cluster(
        a_node("n1"),
        a_node("n2", ready=False),
        a_pod("failed", "n1", phase="Failed", ended="Error"),
        *(a_pod(f"twin{index}", "n1", age=10) for index in range(3)),
    )
    plan = decided(snapshot, a_policy({"RemoveFailedPods": {}, "RemoveDuplicates": {}}, singleNode=single_node))
    assert moved(plan) == (["failed"] if single_node else [])
    assert plan.notes


H6_STRATEGIES: dict[str, Any] = {
    "RemoveFailedPods": {},
    "RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 100},
    "RemoveDuplicates": {},
    "LowNodeUtilization": {"thresholds": {"pods": 1}, "targetThresholds": {"pods": 2}},
}


@pytest.mark.parametrize("mode", [PlacementMode.FIT, PlacementMode.REQUIRED])
@pytest.mark.parametrize(
    ("nodes", "selector", "usable"),
    [
        ([a_node("n1")], "", 1),
        ([a_node("n1"), a_node("n2", ready=False)], "", 1),
        ([a_node("n1"), a_node("n2", cordoned=True)], "", 2),
        ([a_node("n1", labels={"pool": "x"}), a_node("n2")], "pool=x", 1),
        ([a_node("n1"), a_node("n2")], "pool=x", 0),
        ([a_node("n1", ready=False), a_node("n2", ready=False)], "", 0),
    ],
    ids=["one", "one Ready", "one cordoned", "one selected", "none selected", "none Ready"],
)
def test_h6_ready_nodes_within_the_selector_are_counted(
    nodes: list[Object], selector: str, usable: int, mode: PlacementMode
) -> None:
    """H6: cordoned nodes count, NotReady and unselected ones do not; on one node singleNode removes and balances nothing."""
    failed = a_pod("failed", "n1", phase="Failed", ended="Error")
    crowd = [a_pod(f"twin{index}", "n1", age=10) for index in range(5)]
    snapshot = parse_objects([*nodes, failed, *crowd]).snapshot(NOW.timestamp())
    top: dict[str, Any] = {"nodeSelector": selector} if selector else {}
    for single_node in (False, True):
        plan = decided(snapshot, a_policy(H6_STRATEGIES, singleNode=single_node, **top), mode)
        assert moved(plan) == (["failed"] if usable == 2 or (usable == 1 and single_node) else [])
        assert any("Ready nodes" in note for note in plan.notes) == (usable < 2)


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"annotations": {EVICT: "true"}, "owner": "Node"}, "static"),
        ({"annotations": {EVICT: "", "kubernetes.io/config.source": "http"}}, "static"),
        ({"annotations": {EVICT: ""}, "terminating": True, "phase": "Failed", "ended": "Error"}, "terminating"),
        ({"annotations": {EVICT: "true", "kubernetes.io/config.mirror": "x"}}, "static"),
        ({"annotations": {EVICT: "true", "kubernetes.io/config.source": "file"}}, "static"),
        ({"annotations": {EVICT: "true"}, "terminating": True}, "terminating"),
    ],
)
def test_s3_mirror_static_and_terminating_pods_always_stay(more: dict[str, Any], code: str) -> None:
    """S3: no annotation lifts these (F14)."""
    snapshot = a_cluster(a_node("n1"), a_pod("p", "n1", **more))
    plan = decided(snapshot, a_policy(OLD))
    assert (moved(plan), refusals(plan)) == ([], {"p": code})


def test_s4_nodes_are_ordered_by_their_highest_share() -> None:
    """S4: 10 % cpu with 25 % memory is emptier than 30 % cpu with 6 % memory (F39)."""
    snapshot = a_cluster(
        *(a_node(name) for name in ("n1", "n2", "n3")),
        a_pod("p1", "n1", cpu="400m", memory="4Gi"),
        a_pod("p2", "n2", cpu="1200m", memory="983Mi"),
        pinned("load", "n3", "2000m"),
    )
    policy = a_policy({"HighNodeUtilization": {"thresholds": {"cpu": 40, "memory": 40}}}, maxNoOfPodsToEvictTotal=1)
    assert moved_from(decided(snapshot, policy)) == {"n1": 1}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"cpu": "400m", "memory": "4Gi"}, {"cpu": "1200m", "memory": "983Mi"}),
        ({"cpu": "1000m", "memory": "6Gi"}, {"cpu": "1560m", "memory": "164Mi"}),
        ({"cpu": "40m", "memory": "5Gi"}, {"cpu": "1400m", "memory": "1Gi"}),
    ],
)
@pytest.mark.parametrize("swapped", [False, True])
def test_s4_neither_bytes_nor_names_decide(first: Object, second: Object, swapped: bool) -> None:
    """S4: with more memory but the lower highest share the node is the emptier one, whatever it is called."""
    emptier, fuller = ("n2", "n1") if swapped else ("n1", "n2")
    snapshot = a_cluster(
        *(a_node(name) for name in ("n1", "n2", "n3")),
        a_pod("p1", emptier, **first),
        a_pod("p2", fuller, **second),
        pinned("load", "n3", "2000m"),
    )
    policy = a_policy({"HighNodeUtilization": {"thresholds": {"cpu": 40, "memory": 40}}}, maxNoOfPodsToEvictTotal=1)
    assert moved_from(decided(snapshot, policy)) == {emptier: 1}


@pytest.mark.parametrize("mode", list(PlacementMode))
@pytest.mark.parametrize(
    ("target", "pod", "expected"),
    [
        ({"labels": {"disk": "ssd"}}, {}, ["p"]),
        ({"labels": {"disk": "ssd"}, "cpu": "50m"}, {}, []),
        ({"labels": {"disk": "ssd"}, "cordoned": True}, {}, []),
        ({"labels": {"disk": "hdd"}}, {}, []),
        ({"labels": {"disk": "ssd"}}, wants_node(zone="z"), []),
        ({"labels": {"disk": "ssd", "zone": "z"}}, wants_node(zone="z"), ["p"]),
    ],
    ids=["free", "full", "cordoned", "other value", "affinity unmet", "both met"],
)
def test_s7_a_node_selector_and_affinity_hold_together(
    target: Object, pod: Object, expected: list[str], mode: PlacementMode
) -> None:
    """S7: the pod goes where another node meets its nodeSelector, its required affinity and its requests."""
    snapshot = a_cluster(a_node("n1"), a_node("n2", **target), a_pod("p", "n1", spec={"nodeSelector": {"disk": "ssd"}, **pod}))
    policy = a_policy({"RemovePodsViolatingNodeAffinity": {"nodeAffinityType": [REQUIRED_AFFINITY]}})
    assert moved(decided(snapshot, policy, mode)) == expected


def test_s7_a_plain_node_selector_counts_as_required() -> None:
    """S7: the node lost the label, another has it and room (F18)."""
    snapshot = a_cluster(
        a_node("n1"), a_node("n2", labels={"disk": "ssd"}), a_pod("p", "n1", spec={"nodeSelector": {"disk": "ssd"}})
    )
    policy = a_policy({"RemovePodsViolatingNodeAffinity": {"nodeAffinityType": [REQUIRED_AFFINITY]}})
    assert moved(decided(snapshot, policy)) == ["p"]
