"""Cases H1, H4, H6 and S: what policies may say, and hazards that were read in upstream's source."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.errors import PolicyError
from rebalancer.policy import load
from tests.builders import (
    EVICT,
    REQUIRED_AFFINITY,
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


def test_h1_a_name_beside_a_value_and_a_missing_class_are_errors() -> None:
    """H1: both are refused, the class by its name."""
    with pytest.raises(PolicyError, match="only one of value and name"):
        a_policy(OLD, evictor={"priorityThreshold": {"name": "c1", "value": 1}})
    with pytest.raises(PolicyError, match="c1"):
        decided(a_cluster(a_node("n1")), a_policy(OLD, evictor={"priorityThreshold": {"name": "c1"}}))


def test_h4_a_strategy_at_the_wrong_extension_point_is_named_with_the_right_one() -> None:
    """H4: the error says to use balance."""
    document = a_document({"RemovePodsViolatingTopologySpreadConstraint": {}})
    plugins = document["profiles"][0]["plugins"]
    plugins["deschedule"] = plugins.pop("balance")
    with pytest.raises(PolicyError, match="balance"):
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


@pytest.mark.parametrize(
    ("more", "code"),
    [
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


def test_s7_a_plain_node_selector_counts_as_required() -> None:
    """S7: the node lost the label, another has it and room (F18)."""
    snapshot = a_cluster(
        a_node("n1"), a_node("n2", labels={"disk": "ssd"}), a_pod("p", "n1", spec={"nodeSelector": {"disk": "ssd"}})
    )
    policy = a_policy({"RemovePodsViolatingNodeAffinity": {"nodeAffinityType": [REQUIRED_AFFINITY]}})
    assert moved(decided(snapshot, policy)) == ["p"]
