"""Cases F: the evictor's rules, budgets and limits."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.builders import (
    EVICT,
    PREFER_NO_EVICTION,
    a_budget,
    a_cluster,
    a_node,
    a_pod,
    a_policy,
    a_spread,
    decided,
    moved,
    pinned,
    pods,
    refusals,
    web_pods,
)

OLD = {"PodLifeTime": {"maxPodLifeTimeSeconds": 60}}


@pytest.mark.parametrize(("budget", "expected"), [(True, 1), (False, 0)])
def test_f1_pods_without_a_budget_are_protected_where_asked_for(budget: bool, expected: int) -> None:
    """F1: with a budget one web pod goes; without one none does, and the reason is that."""
    snapshot = a_cluster(
        a_node("a1", zone="a"),
        a_node("b1", zone="b"),
        web_pods({"a1": 3, "b1": 1}, [a_spread()]),
        [a_budget("web", app="web", allowed=1)] if budget else [],
    )
    policy = a_policy(
        {"RemovePodsViolatingTopologySpreadConstraint": {}}, evictor={"podProtections": {"extraEnabled": ["PodsWithoutPDB"]}}
    )
    plan = decided(snapshot, policy)
    assert len(plan.approved) == expected
    assert budget or set(refusals(plan).values()) == {"no-budget"}


def test_f2_a_budget_that_is_spent_keeps_the_pod() -> None:
    """F2: a plan heeds disruptionsAllowed 0, and says so."""
    snapshot = a_cluster(
        a_node("n1"),
        a_node("n2"),
        a_pod("solo", "n1", cpu="450m", app="solo"),
        pinned("load", "n1", "3150m"),
        a_budget("solo", app="solo", allowed=0, healthy=1),
    )
    policy = a_policy({"LowNodeUtilization": {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}})
    plan = decided(snapshot, policy)
    assert moved(plan) == []
    assert refusals(plan)["solo"] == "budget"


@pytest.mark.parametrize(("value", "expected"), [("false", []), ("yes", []), ("true", ["p"]), ("", ["p"])])
def test_f7_only_true_and_the_empty_value_ask_for_eviction(value: str, expected: list[str]) -> None:
    """F7: with local storage, the annotation lifts the protection only as "true" or empty (F37)."""
    spec = {"volumes": [{"name": "v", "emptyDir": {}}]}
    snapshot = a_cluster(a_node("n1"), a_pod("p", "n1", annotations={EVICT: value}, spec=spec))
    assert moved(decided(snapshot, a_policy(OLD))) == expected


def test_f7_the_value_false_lifts_no_check_from_a_normal_candidate() -> None:
    """F7: "false" on a pod below the age asked for changes nothing."""
    snapshot = a_cluster(a_node("n1"), a_pod("p", "n1", annotations={EVICT: "false"}, priority=2_000_000_000))
    assert refusals(decided(snapshot, a_policy(OLD)))["p"] == "system-critical"


def test_f8_no_eviction_can_be_mandatory() -> None:
    """F8: Mandatory keeps the annotated pod."""
    snapshot = a_cluster(a_node("n1"), a_pod("p", "n1", annotations={PREFER_NO_EVICTION: "true"}))
    plan = decided(snapshot, a_policy(OLD, evictor={"noEvictionPolicy": "Mandatory"}))
    assert (moved(plan), refusals(plan)) == ([], {"p": "prefer-no-eviction"})


def test_f8_otherwise_the_annotated_pod_goes_last() -> None:
    """F8: Preferred only sorts last among equals."""
    snapshot = a_cluster(
        a_node("n1"),
        a_node("n2"),
        a_pod("a-stays", "n1", cpu="1200m", annotations={PREFER_NO_EVICTION: "true"}),
        a_pod("b-goes", "n1", cpu="1200m"),
    )
    policy = a_policy({"LowNodeUtilization": {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}})
    assert moved(decided(snapshot, policy)) == ["b-goes"]


def test_f12_limits_hold_on_node_namespace_and_total() -> None:
    """F12: at most three from each node, four from ns1, five in all; each limit is noted once, and others go on beside it."""
    snapshot = a_cluster(
        a_node("n1"),
        a_node("n2"),
        pods(3, "n1", prefix="a"),
        pods(2, "n1", prefix="b", namespace="ns2"),
        pods(5, "n2", prefix="c"),
    )
    policy = a_policy(OLD, maxNoOfPodsToEvictPerNode=3, maxNoOfPodsToEvictPerNamespace=4, maxNoOfPodsToEvictTotal=5)
    plan = decided(snapshot, policy)
    assert len(plan.approved) <= 5
    assert max(Counter(each.node for each in plan.approved).values()) <= 3
    assert sum(each.pod.startswith("ns1/") for each in plan.approved) <= 4
    limits = [note for note in plan.notes if note.startswith("the limit of")]
    assert len(limits) == len(set(limits))
    assert limits


def test_f12_a_full_namespace_does_not_stop_others() -> None:
    """F12: with ns1 full, ns2 goes on on the same node."""
    snapshot = a_cluster(a_node("n1"), pods(3, "n1", prefix="a"), pods(2, "n1", prefix="b", namespace="ns2"))
    plan = decided(snapshot, a_policy(OLD, maxNoOfPodsToEvictPerNamespace=1))
    assert moved(plan) == ["a-n1-0", "b-n1-0"]
