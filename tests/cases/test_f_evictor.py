"""Cases F: the evictor's rules, budgets and limits."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from rebalancer.decide.guards import Guards, Spent
from rebalancer.model.cap import Cap
from rebalancer.model.plan import PlacementMode
from rebalancer.placement.profile import DEFAULT
from tests.builders import (
    EVICT,
    PACKING,
    PREFER_NO_EVICTION,
    REQUIRED_AFFINITY,
    Object,
    a_budget,
    a_cluster,
    a_node,
    a_pod,
    a_policy,
    a_spread,
    decided,
    keeps_away,
    moved,
    moved_from,
    pinned,
    pods,
    refusals,
    wants_node,
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


@pytest.mark.parametrize(
    ("budgets", "code"),
    [
        ([a_budget("web", app="web", allowed=1, namespace="other")], "no-budget"),
        ([a_budget("web", app="another", allowed=1)], "no-budget"),
        ([a_budget("web", app="web", allowed=1, selector=None)], "no-budget"),
        ([a_budget("web", app="web", allowed=0)], "budget"),
        ([a_budget("web", app="web", allowed=1), a_budget("also", app="web", allowed=1)], "budgets-several"),
        ([a_budget("web", app="web", allowed=1, selector={})], None),
        ([a_budget("web", app="web", allowed=1, selector={"matchExpressions": [{"key": "app", "operator": "Exists"}]})], None),
    ],
    ids=["other namespace", "other pods", "selects nothing", "spent", "two", "whole namespace", "by expression"],
)
def test_f1_only_a_budget_over_the_pod_itself_lifts_the_protection(budgets: list[Object], code: str | None) -> None:
    """F1: budgets of other namespaces and other pods do not count; one that does is heeded besides."""
    snapshot = a_cluster(a_node("a1", zone="a"), a_node("b1", zone="b"), web_pods({"a1": 3, "b1": 1}, [a_spread()]), budgets)
    policy = a_policy(
        {"RemovePodsViolatingTopologySpreadConstraint": {}}, evictor={"podProtections": {"extraEnabled": ["PodsWithoutPDB"]}}
    )
    plan = decided(snapshot, policy)
    assert len(plan.approved) == (0 if code else 1)
    assert set(refusals(plan).values()) == ({code} if code else set())


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


@pytest.mark.parametrize("mode", [PlacementMode.FIT, PlacementMode.REQUIRED])
def test_f2_several_budgets_are_each_spent_within_a_plan(mode: PlacementMode) -> None:
    """F2: of two workloads whose budgets allow one and two, one and two go, and the others are told which budget it is."""
    snapshot = a_cluster(
        a_node("n1"),
        a_node("n2"),
        pods(4, "n1", app="a", cpu="450m"),
        pods(4, "n1", app="b", cpu="450m"),
        a_budget("a", app="a", allowed=1, healthy=4),
        a_budget("b", app="b", allowed=2, healthy=4),
    )
    policy = a_policy({"LowNodeUtilization": {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}})
    plan = decided(snapshot, policy, mode)
    assert moved(plan) == ["a-n1-0", "b-n1-0", "b-n1-1"]
    assert refusals(plan) == dict.fromkeys(["a-n1-1", "a-n1-2", "a-n1-3", "b-n1-2", "b-n1-3"], "budget")
    assert all(f"ns1/{each.pod[4]} " in each.reason for each in plan.refused)


@pytest.mark.parametrize(("value", "expected"), [("false", []), ("yes", []), ("True", []), ("true", ["p"]), ("", ["p"])])
def test_f7_only_true_and_the_empty_value_ask_for_eviction(value: str, expected: list[str]) -> None:
    """F7: with local storage, the annotation lifts the protection only as "true" or empty (F37)."""
    spec = {"volumes": [{"name": "v", "emptyDir": {}}]}
    snapshot = a_cluster(a_node("n1"), a_pod("p", "n1", annotations={EVICT: value}, spec=spec))
    assert moved(decided(snapshot, a_policy(OLD))) == expected


@pytest.mark.parametrize("mode", list(PlacementMode))
def test_f7_false_keeps_a_normal_candidate(mode: PlacementMode) -> None:
    """F7: "false" means what it says: a pod that would go otherwise stays, and the reason names the annotation."""
    pair = [a_pod("kept", "n1", annotations={EVICT: "false"}), a_pod("goes", "n1")]
    plan = decided(a_cluster(a_node("n1"), pair), a_policy(OLD), mode)
    assert (moved(plan), refusals(plan)) == (["goes"], {"kept": "evict-false"})
    assert "descheduler.alpha.kubernetes.io/evict" in plan.refused[0].reason


@pytest.mark.parametrize("value", ["False", "no", "0"])
def test_f7_a_value_without_meaning_changes_nothing(value: str) -> None:
    """F7: any other value neither lifts a check nor adds one."""
    plain = a_pod("plain", "n1", annotations={EVICT: value})
    critical = a_pod("critical", "n1", annotations={EVICT: value}, priority=2_000_000_000)
    plan = decided(a_cluster(a_node("n1"), plain, critical), a_policy(OLD))
    assert (moved(plan), refusals(plan)) == (["plain"], {"critical": "system-critical"})


def test_f8_no_eviction_can_be_mandatory() -> None:
    """F8: Mandatory keeps the annotated pod."""
    snapshot = a_cluster(a_node("n1"), a_pod("p", "n1", annotations={PREFER_NO_EVICTION: "true"}))
    plan = decided(snapshot, a_policy(OLD, evictor={"noEvictionPolicy": "Mandatory"}))
    assert (moved(plan), refusals(plan)) == ([], {"p": "prefer-no-eviction"})


def asking_twins() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Return for each strategy its arguments and what a pod looks like that it wants to move off node n1."""
    spread = {"topologySpreadConstraints": [a_spread(app="app")]}
    return {
        "LowNodeUtilization": ({"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}, {"cpu": "1200m"}),
        "HighNodeUtilization": ({"thresholds": {"cpu": 20}}, {}),
        "RemoveDuplicates": ({}, {}),
        "PodLifeTime": ({"maxPodLifeTimeSeconds": 60}, {}),
        "RemovePodsHavingTooManyRestarts": ({"podRestartThreshold": 5}, {"restarts": [7]}),
        "RemoveFailedPods": ({}, {"phase": "Failed", "ended": "Error"}),
        "RemovePodsViolatingNodeTaints": ({}, {}),
        "RemovePodsViolatingNodeAffinity": ({"nodeAffinityType": [REQUIRED_AFFINITY]}, {"spec": wants_node(role="target")}),
        "RemovePodsViolatingInterPodAntiAffinity": ({}, {"spec": keeps_away("app")}),
        "RemovePodsViolatingTopologySpreadConstraint": ({}, {"spec": spread}),
    }


@pytest.mark.parametrize("mode", list(PlacementMode))
@pytest.mark.parametrize("strategy", asking_twins())
def test_f8_otherwise_the_annotated_pod_goes_last(strategy: str, mode: PlacementMode) -> None:
    """F8: Preferred sorts last among equals, in every strategy: of two, the pod without the annotation goes."""
    args, pod = asking_twins()[strategy]
    taints = ["dedicated:NoSchedule"] if strategy == "RemovePodsViolatingNodeTaints" else []
    snapshot = a_cluster(
        a_node("n1", zone="a", taints=taints),
        a_node("n2", zone="b", labels={"role": "target"}),
        a_pod("a-stays", "n1", annotations={PREFER_NO_EVICTION: "true"}, **pod),
        a_pod("b-goes", "n1", **pod),
        [pinned("load", "n2", "2000m")] if strategy == "HighNodeUtilization" else [],
    )
    scheduler = PACKING if strategy == "HighNodeUtilization" else DEFAULT
    plan = decided(snapshot, a_policy({strategy: args}, maxNoOfPodsToEvictTotal=1), mode, scheduler=scheduler)
    assert moved(plan) == ["b-goes"]


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


@pytest.mark.parametrize(("percent", "left", "gone", "expected"), [(100, 3, 2, 3), (50, 6, 4, 1), (50, 5, 5, 0), (20, 10, 0, 2)])
def test_f12_a_later_look_of_a_run_counts_what_has_gone(percent: float, left: int, gone: int, expected: int) -> None:
    """F12: the share of a node's pods is of those that were there when the run began, gone ones included."""
    snapshot = a_cluster(a_node("n1"), a_node("n2"), pods(left, "n1"))
    guards = Guards(node=Cap(percent=percent), spent=Spent(gone, {"n1": gone}))
    assert len(decided(snapshot, a_policy(OLD), guards=guards).approved) == expected


def test_f12_numbers_of_the_policy_and_shares_of_the_settings_hold_together() -> None:
    """F12: 3 per node and 5 in all by the policy, 20 % of each node by the settings: the tighter one holds on each node."""
    snapshot = a_cluster(a_node("n1"), a_node("n2"), pods(5, "n1"), pods(20, "n2"))
    policy = a_policy(OLD, maxNoOfPodsToEvictPerNode=3, maxNoOfPodsToEvictTotal=5)
    plan = decided(snapshot, policy, guards=Guards(node=Cap(percent=20)))
    assert moved_from(plan) == {"n1": 1, "n2": 3}
