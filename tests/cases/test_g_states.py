"""Cases G: lifetime, restarts, failed pods, the anti-affinity strategy."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.errors import PolicyError
from rebalancer.model.plan import PlacementMode
from rebalancer.policy import load
from tests.builders import (
    DAY,
    HOSTNAME,
    PREFERRED_AFFINITY,
    REQUIRED_AFFINITY,
    ZONE,
    Object,
    a_cluster,
    a_document,
    a_node,
    a_pod,
    a_policy,
    decided,
    moved,
    pods,
    refusals,
)


def restarting(threshold: int, **more: Any) -> Any:
    """Return a policy that moves pods with so many restarts."""
    return a_policy({"RemovePodsHavingTooManyRestarts": {"podRestartThreshold": threshold, **more}})


@pytest.mark.parametrize(("including", "expected"), [(True, ["p"]), (False, [])])
def test_g1_init_restarts_count_where_asked_for(including: bool, expected: list[str]) -> None:
    """G1: two and five make seven only with init containers."""
    snapshot = a_cluster(a_node("n1"), a_pod("p", "n1", restarts=[2], init_restarts=[5]))
    assert moved(decided(snapshot, restarting(6, includingInitContainers=including))) == expected


@pytest.mark.parametrize(
    ("main", "init", "threshold", "with_init", "without"),
    [([2, 1], [3], 6, ["p"], []), ([6], [0], 6, ["p"], ["p"]), ([0], [6, 1], 7, ["p"], []), ([2], [3], 6, [], [])],
)
def test_g1_sums_over_both_kinds_of_containers(
    main: list[int], init: list[int], threshold: int, with_init: list[str], without: list[str]
) -> None:
    """G1: every container counts, init containers only where asked for, and equality is enough."""
    snapshot = a_cluster(a_node("n1"), a_pod("p", "n1", restarts=main, init_restarts=init))
    assert moved(decided(snapshot, restarting(threshold, includingInitContainers=True))) == with_init
    assert moved(decided(snapshot, restarting(threshold))) == without


@pytest.mark.parametrize(("counts", "expected"), [([50, 50, 50], ["p"]), ([100], ["p"]), ([99], [])])
def test_g2_restarts_are_summed_and_the_threshold_counts(counts: list[int], expected: list[str]) -> None:
    """G2: 150 and exactly 100 go, 99 stays."""
    snapshot = a_cluster(a_node("n1"), a_pod("p", "n1", restarts=counts))
    assert moved(decided(snapshot, restarting(100))) == expected


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"maxNoOfPodsToEvictTotal": 2}, ["n2-500", "n2-700"]),
        ({"maxNoOfPodsToEvictPerNode": 1}, ["n1-300", "n2-700"]),
        ({"maxNoOfPodsToEvictPerNamespace": 3}, ["n1-300", "n2-500", "n2-700"]),
    ],
    ids=["total", "node", "namespace"],
)
def test_g3_the_oldest_of_all_nodes_goes_first(limits: Object, expected: list[str]) -> None:
    """G3: whichever limit cuts the list, it is the young ones that are cut off."""
    ages = {"n1": (130, 200, 300), "n2": (150, 500, 700)}
    aged = [a_pod(f"{node}-{age}", node, age=age) for node, each in ages.items() for age in each]
    policy = a_policy({"PodLifeTime": {"maxPodLifeTimeSeconds": 120}}, **limits)
    assert moved(decided(a_cluster(a_node("n1"), a_node("n2"), aged), policy)) == expected


def test_g3_the_oldest_goes_first() -> None:
    """G3: under a limit of one per node the pod of 300 s goes."""
    snapshot = a_cluster(a_node("n1"), *(a_pod(f"p{age}", "n1", age=age) for age in (130, 200, 300)))
    policy = a_policy({"PodLifeTime": {"maxPodLifeTimeSeconds": 120}}, maxNoOfPodsToEvictPerNode=1)
    assert moved(decided(snapshot, policy)) == ["p300"]


@pytest.mark.parametrize("protected", [True, False])
def test_g5_a_bare_failed_pod_goes_only_without_its_protection(protected: bool) -> None:
    """G5: by default the refusal says that nobody would replace it."""
    snapshot = a_cluster(a_node("n1"), a_pod("p", "n1", owner=None, phase="Failed", ended="Error", age=120))
    evictor = {} if protected else {"podProtections": {"defaultDisabled": ["FailedBarePods"]}}
    plan = decided(snapshot, a_policy({"RemoveFailedPods": {"minPodLifetimeSeconds": 60}}, evictor=evictor))
    assert moved(plan) == ([] if protected else ["p"])
    assert not protected or (refusals(plan)["p"], "no owner" in plan.refused[0].reason) == ("no-owner", True)


@pytest.mark.parametrize(
    ("pod", "expected", "code"),
    [
        ({"phase": "Failed", "ended": "Error", "age": 60}, ["p"], None),
        ({"phase": "Failed", "ended": "Error", "age": 59}, [], None),
        ({"phase": "Running", "restarts": [9], "age": 120}, [], "bare-not-failed"),
        ({"phase": "Succeeded", "restarts": [9], "age": 120}, [], "bare-not-failed"),
    ],
    ids=["old enough", "too young", "running", "succeeded"],
)
@pytest.mark.parametrize("evictor", [{"podProtections": {"defaultDisabled": ["FailedBarePods"]}}, {"evictFailedBarePods": True}])
def test_g5_without_its_protection_only_a_failed_bare_pod_goes(
    pod: Object, expected: list[str], code: str | None, evictor: Object
) -> None:
    """G5: whichever way the protection is switched off, a bare pod that runs or succeeded stays, and the age still counts."""
    snapshot = a_cluster(a_node("n1"), a_pod("p", "n1", owner=None, **pod))
    strategies = {
        "RemoveFailedPods": {"minPodLifetimeSeconds": 60},
        "RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 5},
    }
    plan = decided(snapshot, a_policy(strategies, evictor=evictor))
    assert (moved(plan), refusals(plan)) == (expected, {"p": code} if code else {})


def a_v1alpha1(strategy: Object) -> Object:
    """Return a v1alpha1 document with RemoveFailedPods as given."""
    return {
        "apiVersion": "descheduler/v1alpha1",
        "kind": "DeschedulerPolicy",
        "strategies": {"RemoveFailedPods": strategy},
    }


@pytest.mark.parametrize(
    "document",
    [
        a_document({"RemoveFailedPods": None}),
        a_document({"RemoveFailedPods": {}}),
        a_v1alpha1({"enabled": True}),
        a_v1alpha1({"enabled": True, "params": None}),
        a_v1alpha1({"enabled": True, "params": {}}),
    ],
    ids=["no args", "empty args", "v1alpha1 enabled", "v1alpha1 null params", "v1alpha1 empty params"],
)
@pytest.mark.parametrize("ended", ["Error", None], ids=["with a reason", "without container statuses"])
def test_g7_a_strategy_without_arguments_has_its_defaults(document: Object, ended: str | None) -> None:
    """G7: RemoveFailedPods needs no arguments in either version: the failed pod with an owner goes."""
    snapshot = a_cluster(a_node("n1"), a_pod("p", "n1", phase="Failed", ended=ended))
    assert moved(decided(snapshot, load(document, source="test").policy)) == ["p"]


NEED_NOTHING = ("RemoveDuplicates", "RemovePodsViolatingInterPodAntiAffinity", "RemovePodsViolatingNodeTaints")
NEED_ARGUMENTS = {
    "LowNodeUtilization": "thresholds",
    "HighNodeUtilization": "thresholds",
    "PodLifeTime": "maxPodLifeTimeSeconds",
    "RemovePodsHavingTooManyRestarts": "podRestartThreshold",
    "RemovePodsViolatingNodeAffinity": "nodeAffinityType",
}


@pytest.mark.parametrize("args", [None, {}], ids=["no args", "empty args"])
@pytest.mark.parametrize("strategy", [*NEED_NOTHING, "RemovePodsViolatingTopologySpreadConstraint", *NEED_ARGUMENTS])
def test_g7_whoever_needs_arguments_says_which(strategy: str, args: Object | None) -> None:
    """G7: no strategy crashes without arguments: it has defaults, or the policy is refused with the name of what is missing."""
    document = a_document({strategy: args})
    if strategy in NEED_ARGUMENTS:
        with pytest.raises(PolicyError, match=NEED_ARGUMENTS[strategy]):
            load(document, source="test")
    else:
        failed = a_cluster(a_node("n1"), a_pod("p", "n1", phase="Failed", ended="Error"))
        assert moved(decided(failed, load(document, source="test").policy)) == []


def forbidding(*values: str, key: str = HOSTNAME) -> Object:
    """Return a spec with required anti-affinity to pods whose label ``key`` has one of these values."""
    selector = {"matchExpressions": [{"key": "key", "operator": "In", "values": list(values)}]}
    return {"affinity": {"podAntiAffinity": {REQUIRED_AFFINITY: [{"topologyKey": key, "labelSelector": selector}]}}}


@pytest.mark.parametrize("mode", list(PlacementMode))
@pytest.mark.parametrize(
    ("labelled", "holder", "elsewhere", "expected"),
    [
        ({"priority": 10}, {"priority": 1000}, [], ["p2"]),
        ({"labels": {"key": "another"}}, {}, [], []),
        ({"terminating": True}, {}, [], []),
        ({"phase": "Succeeded"}, {}, [], []),
        ({}, {}, [a_pod("p3", "n2", app="three", labels={"key": "value"})], []),
        ({"namespace": "ns2"}, {}, [], []),
    ],
    ids=["holder dearer", "other value", "leaving", "finished", "no better node", "other namespace"],
)
def test_g8_the_rule_decides_and_not_who_came_first(
    labelled: Object, holder: Object, elsewhere: list[Object], expected: list[str], mode: PlacementMode
) -> None:
    """G8: only a live pod that the rule selects is a conflict; then its holder goes, if another node takes it."""
    p1 = a_pod("p1", "n1", app="one", **{"labels": {"key": "value"}, **labelled})
    p2 = a_pod("p2", "n1", app="two", spec=forbidding("value"), **holder)
    snapshot = a_cluster(a_node("n1"), a_node("n2"), p1, p2, elsewhere)
    assert moved(decided(snapshot, a_policy({"RemovePodsViolatingInterPodAntiAffinity": {}}), mode)) == expected


def test_g8_a_rule_over_zones_is_broken_by_a_pod_on_another_node() -> None:
    """G8 with the zone as topology: the other pod is in the same zone, and a node of another zone is free."""
    nodes = (a_node("n1", zone="a"), a_node("n2", zone="a"), a_node("n3", zone="b"))
    p1 = a_pod("p1", "n1", app="one", labels={"key": "value"})
    p2 = a_pod("p2", "n2", app="two", spec=forbidding("value", key=ZONE))
    plan = decided(a_cluster(*nodes, p1, p2), a_policy({"RemovePodsViolatingInterPodAntiAffinity": {}}), PlacementMode.REQUIRED)
    assert (moved(plan), set(plan.approved[0].landings)) == (["p2"], {"n3"})


def test_g8_of_two_that_forbid_each_other_one_goes() -> None:
    """G8: once one of them has gone, the other one's rule is kept."""
    both = [a_pod(name, "n1", app=name, labels={"key": "value"}, spec=forbidding("value")) for name in ("p1", "p2")]
    snapshot = a_cluster(a_node("n1"), a_node("n2"), both)
    assert moved(decided(snapshot, a_policy({"RemovePodsViolatingInterPodAntiAffinity": {}}))) == ["p1"]


def test_g8_the_holder_of_the_rule_goes() -> None:
    """G8: the pod with the label stays, the one whose anti-affinity it breaks goes."""
    term = {
        "topologyKey": HOSTNAME,
        "labelSelector": {"matchExpressions": [{"key": "key", "operator": "In", "values": ["value"]}]},
    }
    rule = {"affinity": {"podAntiAffinity": {REQUIRED_AFFINITY: [term]}}}
    snapshot = a_cluster(
        a_node("n1"), a_node("n2"), a_pod("p1", "n1", app="one", labels={"key": "value"}), a_pod("p2", "n1", app="two", spec=rule)
    )
    assert moved(decided(snapshot, a_policy({"RemovePodsViolatingInterPodAntiAffinity": {}}))) == ["p2"]


def test_g9_soft_anti_affinity_moves_nothing() -> None:
    """G9: preferred anti-affinity is not upheld."""
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "app"}}}
    rule = {"affinity": {"podAntiAffinity": {PREFERRED_AFFINITY: [{"weight": 1, "podAffinityTerm": term}]}}}
    snapshot = a_cluster(*(a_node(name) for name in ("n1", "n2", "n3")), pods(2, "n1", spec=rule), pods(1, "n2", spec=rule))
    assert moved(decided(snapshot, a_policy({"RemovePodsViolatingInterPodAntiAffinity": {}}))) == []


@pytest.mark.parametrize("mode", [PlacementMode.FIT, PlacementMode.REQUIRED])
@pytest.mark.parametrize("strategy", ["RemovePodsViolatingInterPodAntiAffinity", "RemoveDuplicates"])
def test_g9_five_replicas_on_four_nodes_are_as_good_as_can_be(strategy: str, mode: PlacementMode) -> None:
    """G9, second part: two, one, one and one on four nodes stay, soft anti-affinity or not."""
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "app"}}}
    rule = {"affinity": {"podAntiAffinity": {PREFERRED_AFFINITY: [{"weight": 1, "podAffinityTerm": term}]}}}
    counts = {"n1": 2, "n2": 1, "n3": 1, "n4": 1}
    snapshot = a_cluster(*(a_node(name) for name in counts), *(pods(count, name, spec=rule) for name, count in counts.items()))
    assert moved(decided(snapshot, a_policy({strategy: {}}), mode)) == []


@pytest.mark.parametrize(("age", "expected"), [(3599, []), (3600, ["p"]), (-DAY, [])])
def test_failed_pods_are_left_for_an_hour(age: float, expected: list[str]) -> None:
    """Below, at and, with a clock ahead of ours, far from the default age (K6, F21)."""
    snapshot = a_cluster(a_node("n1"), a_pod("p", "n1", phase="Failed", ended="Error", age=age))
    assert moved(decided(snapshot, a_policy({"RemoveFailedPods": {}}))) == expected
