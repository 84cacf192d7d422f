"""Each strategy's own rules: below, at and above its limits, and what each argument does; placement is off."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.model.plan import PlacementMode
from rebalancer.strategies.topology_balance import surplus
from tests.builders import (
    HOSTNAME,
    REQUIRED_AFFINITY,
    ZONE,
    Object,
    a_cluster,
    a_node,
    a_pod,
    a_policy,
    a_spread,
    decided,
    keeps_away,
    moved,
    moved_from,
    pods,
    web_pods,
)


def gone(objects: list[Any], strategy: str, **args: Any) -> list[str]:
    """Return which pods one strategy moves, without any look at landings."""
    policy = a_policy({strategy: args}, evictor={"nodeFit": None})
    return moved(decided(a_cluster(*objects), policy, PlacementMode.OFF))


def from_nodes(objects: list[Any], strategy: str, **args: Any) -> dict[str, int]:
    """Return how many pods one strategy moves off each node."""
    policy = a_policy({strategy: args}, evictor={"nodeFit": None})
    return moved_from(decided(a_cluster(*objects), policy, PlacementMode.OFF))


TWO = [a_node("n1", zone="a"), a_node("n2", zone="b")]


@pytest.mark.parametrize(("age", "expected"), [(59, []), (60, []), (61, ["p"]), (-60, [])])
def test_life_time_is_strict_and_a_clock_ahead_is_young(age: float, expected: list[str]) -> None:
    """Below, at, above, and created in the future (K6, F21)."""
    assert gone([*TWO, a_pod("p", "n1", age=age)], "PodLifeTime", maxPodLifeTimeSeconds=60) == expected


def waiting(reason: str) -> Object:
    """Return a pod whose container waits for a reason."""
    pod = a_pod("p", "n1", phase="Pending")
    pod["status"]["containerStatuses"] = [{"name": "c0", "restartCount": 0, "state": {"waiting": {"reason": reason}}}]
    return pod


@pytest.mark.parametrize(
    ("pod", "args", "expected"),
    [
        (a_pod("p", "n1", phase="Pending"), {"states": ["Pending"]}, ["p"]),
        (a_pod("p", "n1"), {"states": ["Pending"]}, []),
        (waiting("CrashLoopBackOff"), {"states": ["CrashLoopBackOff"]}, ["p"]),
        (a_pod("p", "n1", ended="OOMKilled"), {"states": ["OOMKilled"]}, ["p"]),
        (a_pod("p", "n1", ended="Error"), {"exitCodes": [1]}, ["p"]),
        (a_pod("p", "n1", ended="Error"), {"exitCodes": [2]}, []),
        (a_pod("p", "n1"), {"conditions": [{"type": "Ready", "status": "True"}]}, ["p"]),
        (a_pod("p", "n1"), {"conditions": [{"type": "Ready", "status": "False"}]}, []),
        (a_pod("p", "n1"), {"states": ["Running"], "ownerKinds": {"exclude": ["ReplicaSet"]}}, []),
        (a_pod("p", "n1"), {"states": ["Running"], "ownerKinds": {"include": ["ReplicaSet"]}}, ["p"]),
        (a_pod("p", "n1"), {"states": ["Running"], "namespaces": {"exclude": ["ns1"]}}, []),
        (a_pod("p", "n1"), {"states": ["Running"], "labelSelector": {"matchLabels": {"app": "other"}}}, []),
        (a_pod("p", "n1"), {"states": ["Running"], "maxPodLifeTimeSeconds": 10**6}, []),
    ],
)
def test_life_time_looks_at_every_criterion(pod: Object, args: dict[str, Any], expected: list[str]) -> None:
    """Criteria are combined with and, the values of one list with or."""
    assert gone([*TWO, pod], "PodLifeTime", **args) == expected


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({}, ["p"]),
        ({"reasons": ["Error"]}, ["p"]),
        ({"reasons": ["OOMKilled"]}, []),
        ({"exitCodes": [1]}, ["p"]),
        ({"exitCodes": [137]}, []),
        ({"excludeOwnerKinds": ["ReplicaSet"]}, []),
        ({"minPodLifetimeSeconds": 86_400}, ["p"]),
        ({"minPodLifetimeSeconds": 86_401}, []),
    ],
)
def test_failed_pods_are_chosen_by_reason_code_owner_and_age(args: dict[str, Any], expected: list[str]) -> None:
    """A pod that failed with Error and code 1 a day ago."""
    assert gone([*TWO, a_pod("p", "n1", phase="Failed", ended="Error")], "RemoveFailedPods", **args) == expected


@pytest.mark.parametrize(
    ("taint", "args", "expected"),
    [
        ("k=v:NoSchedule", {}, ["p"]),
        ("k=v:PreferNoSchedule", {}, []),
        ("k=v:PreferNoSchedule", {"includePreferNoSchedule": True}, ["p"]),
        ("k=v:NoExecute", {"includePreferNoSchedule": True}, []),
        ("k=v:NoSchedule", {"excludedTaints": ["k"]}, []),
        ("k=v:NoSchedule", {"excludedTaints": ["k=v"]}, []),
        ("k=v:NoSchedule", {"excludedTaints": ["k=w"]}, ["p"]),
        ("k=v:NoSchedule", {"includedTaints": ["k"]}, ["p"]),
        ("k=v:NoSchedule", {"includedTaints": ["other"]}, []),
        ("k=v:NoSchedule", {"includedTaints": []}, ["p"]),
        ("node.kubernetes.io/disk-pressure:NoSchedule", {}, []),
        ("node.kubernetes.io/disk-pressure:NoSchedule", {"includedTaints": ["node.kubernetes.io/disk-pressure"]}, ["p"]),
    ],
)
def test_taints_are_upheld_by_effect_and_list(taint: str, args: dict[str, Any], expected: list[str]) -> None:
    """NoExecute never; keys and key=value; an empty list is no list (F19); the node controller's own only where listed (F36)."""
    anything = {"tolerations": [{"operator": "Exists"}]}
    objects = [a_node("n1", taints=[taint]), a_node("n2"), a_pod("p", "n1"), a_pod("tolerant", "n1", spec=anything)]
    assert gone(objects, "RemovePodsViolatingNodeTaints", **args) == expected


def test_anti_affinity_gives_up_the_cheapest_holder_first() -> None:
    """Of two holders of one rule on a node the lower priority goes, and then nothing is broken any more (K11)."""
    rule = keeps_away("x")
    objects = [*TWO, a_pod("dear", "n1", app="x", priority=10, spec=rule), a_pod("cheap", "n1", app="x", spec=rule)]
    assert gone(objects, "RemovePodsViolatingInterPodAntiAffinity") == ["cheap"]


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (a_pod("y", "n1", app="y"), ["x"]),
        (a_pod("y", "n1", app="y", terminating=True), []),
        (a_pod("y", "n1", app="y", phase="Succeeded"), []),
        (a_pod("y", "n1", app="y", namespace="ns2"), []),
        (a_pod("y", "n2", app="y"), []),
    ],
)
def test_what_breaks_anti_affinity(other: Object, expected: list[str]) -> None:
    """Live pods of the rule's namespaces in the same domain; neither terminating (F11) nor finished ones."""
    assert (
        gone([*TWO, a_pod("x", "n1", app="x", spec=keeps_away("y")), other], "RemovePodsViolatingInterPodAntiAffinity")
        == expected
    )


def test_a_pod_of_the_same_name_elsewhere_is_another_pod() -> None:
    """Pods are told apart by UID, not by name (F17)."""
    rule = keeps_away("y", namespaces=["ns2"])
    objects = [*TWO, a_pod("same", "n1", app="x", spec=rule), a_pod("same", "n1", app="y", namespace="ns2")]
    assert gone(objects, "RemovePodsViolatingInterPodAntiAffinity") == ["same"]


def test_anti_affinity_reaches_over_a_zone() -> None:
    """Pods on two nodes of one zone are together where the rule says zone."""
    nodes = [a_node("n1", zone="a"), a_node("n2", zone="a")]
    objects = [*nodes, a_pod("x", "n1", app="x", spec=keeps_away("y", ZONE)), a_pod("y", "n2", app="y")]
    assert gone(objects, "RemovePodsViolatingInterPodAntiAffinity") == ["x"]


@pytest.mark.parametrize(
    ("sizes", "skew", "fewest", "expected"),
    [
        ({"a": 3, "b": 2}, 1, None, {}),
        ({"a": 3, "b": 1}, 1, None, {"a": 1}),
        ({"a": 6, "b": 0, "c": 0}, 1, None, {"a": 4}),
        ({"a": 8, "b": 0}, 1, None, {"a": 4}),
        ({"a": 5, "b": 0}, 2, 3, {"a": 2}),
        ({"a": 5, "b": 0}, 1, 3, {"a": 1}),
        ({"a": 3, "b": 3}, 1, 3, {}),
        ({}, 1, None, {}),
    ],
)
def test_what_should_leave_each_domain(sizes: dict[str, int], skew: int, fewest: int | None, expected: dict[str, int]) -> None:
    """Upstream's arithmetic; with fewer domains than minDomains none is filled beyond maxSkew."""
    assert surplus(sizes, skew, fewest) == expected


def test_the_lowest_priority_leaves_a_crowded_domain_first() -> None:
    """F1."""
    spec = {"topologySpreadConstraints": [a_spread()]}
    objects = [*TWO, *(a_pod(f"p{priority}", "n1", app="web", priority=priority, spec=spec) for priority in (5, 1, 9))]
    assert gone(objects, "RemovePodsViolatingTopologySpreadConstraint") == ["p1"]


def test_pods_that_may_not_be_moved_count_in_their_domain() -> None:
    """Three bare pods beside two that may go: two against three is even (F2)."""
    objects = [*TWO, web_pods({"n1": 3}, [a_spread()], owner=None), web_pods({"n2": 2}, [a_spread()])]
    assert gone(objects, "RemovePodsViolatingTopologySpreadConstraint") == []


def test_match_label_keys_keep_revisions_apart() -> None:
    """Each revision is spread by itself."""
    spread = [a_spread(matchLabelKeys=["rev"])]
    objects = [
        *TWO,
        web_pods({"n1": 1}, spread, labels={"rev": "1"}, owner="ReplicaSet"),
        [a_pod("new", "n1", app="web", labels={"rev": "2"}, spec={"topologySpreadConstraints": spread})],
    ]
    assert gone(objects, "RemovePodsViolatingTopologySpreadConstraint") == []


LNU: dict[str, Any] = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}


def hot(count: int = 8, **more: Any) -> list[Any]:
    """Return n1 with so many pods of 450m beside an empty n2 and n3."""
    return [a_node("n1"), a_node("n2"), a_node("n3"), pods(count, "n1", cpu="450m", **more)]


@pytest.mark.parametrize(("number", "expected"), [(0, 4), (1, 4), (2, 0), (3, 0)])
def test_more_nodes_than_number_of_nodes_have_to_be_under_used(number: int, expected: int) -> None:
    """Two are under-used (K2)."""
    assert len(gone(hot(), "LowNodeUtilization", **LNU, numberOfNodes=number)) == expected


@pytest.mark.parametrize(("limit", "expected"), [(0, 0), (1, 1), (4, 4), (9, 4)])
def test_the_strategy_has_a_limit_of_its_own_per_node(limit: int, expected: int) -> None:
    """evictionLimits.node, and no more than is needed."""
    assert len(gone(hot(), "LowNodeUtilization", **LNU, evictionLimits={"node": limit})) == expected


def test_a_cordoned_node_is_never_under_used() -> None:
    """It is a source at most (K1)."""
    objects = [a_node("n1"), a_node("n2", cordoned=True), pods(8, "n1", cpu="450m")]
    assert gone(objects, "LowNodeUtilization", **LNU) == []


@pytest.mark.parametrize(("taints", "expected"), [(["k=v:NoSchedule"], 0), (["k=v:PreferNoSchedule"], 4)])
def test_destinations_have_to_be_tolerated(taints: list[str], expected: int) -> None:
    """A PreferNoSchedule taint does not block (F5)."""
    objects = [a_node("n1"), a_node("n2", taints=taints), pods(8, "n1", cpu="450m")]
    assert len(gone(objects, "LowNodeUtilization", **LNU)) == expected


def test_one_toleration_covers_several_taints() -> None:
    """A catch-all toleration is enough (F5)."""
    objects = [a_node("n1"), a_node("n2", taints=["k=v:NoSchedule", "l=w:NoSchedule"])]
    spec = {"tolerations": [{"operator": "Exists"}]}
    assert len(gone([*objects, pods(8, "n1", cpu="450m", spec=spec)], "LowNodeUtilization", **LNU)) == 4


def test_pods_that_request_nothing_of_what_is_exceeded_stay() -> None:
    """F7."""
    objects = [*hot(6), pods(3, "n1", cpu=None, prefix="idle")]
    assert all(name.startswith("app-") for name in gone(objects, "LowNodeUtilization", **LNU))


def test_terminating_pods_are_no_usage() -> None:
    """A node that is emptying itself is left alone (F11)."""
    objects = [*hot(4), pods(4, "n1", cpu="450m", prefix="going", terminating=True)]
    assert gone(objects, "LowNodeUtilization", **LNU) == []


def test_the_node_with_the_worst_overshoot_gives_first() -> None:
    """Under a total limit of one, 96 % cpu goes before 56 % with much memory (F6)."""
    objects = [
        *(a_node(name) for name in ("n1", "n2", "n3")),
        pods(4, "n1", cpu="560m", memory="2Gi"),
        pods(8, "n2", cpu="480m", memory="64Mi"),
    ]
    policy = a_policy({"LowNodeUtilization": LNU}, evictor={"nodeFit": None}, maxNoOfPodsToEvictTotal=1)
    assert moved_from(decided(a_cluster(*objects), policy, PlacementMode.OFF)) == {"n2": 1}


def test_duplicates_are_told_by_owner_and_images() -> None:
    """Another image or another owner is another kin; excluded kinds are left alone."""
    two_images = [*TWO, a_pod("p", "n1", image="one"), a_pod("q", "n1", image="two")]
    assert gone(two_images, "RemoveDuplicates") == []
    assert gone([*TWO, a_pod("p", "n1"), a_pod("q", "n1", app="other")], "RemoveDuplicates") == []
    assert len(gone([*TWO, pods(2, "n1")], "RemoveDuplicates")) == 1
    assert gone([*TWO, pods(2, "n1")], "RemoveDuplicates", excludeOwnerKinds=["ReplicaSet"]) == []


def test_a_pod_with_two_owners_goes_once_and_the_youngest_goes() -> None:
    """F20."""
    twins = [a_pod("old", "n1", age=100), a_pod("young", "n1", age=10)]
    for pod in twins:
        pod["metadata"]["ownerReferences"].append({"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "o"})
    assert gone([*TWO, *twins], "RemoveDuplicates") == ["young"]


def test_packing_needs_a_destination_and_more_sources_than_asked_for() -> None:
    """With one source and numberOfNodes 1 nothing is packed; with 0 it is."""
    objects = [
        a_node("n1"),
        a_node("n2"),
        a_pod("p", "n1", cpu="400m"),
        pods(1, "n2", cpu="3000m", owner="DaemonSet", prefix="d"),
    ]
    assert gone(objects, "HighNodeUtilization", thresholds={"cpu": 20}) == ["p"]
    assert gone(objects, "HighNodeUtilization", thresholds={"cpu": 20}, numberOfNodes=1) == []


def test_required_affinity_of_a_node_that_still_matches_is_no_reason() -> None:
    """Only a mismatch counts, and some listed node has to fit even without nodeFit."""
    spec = {"nodeSelector": {"disk": "ssd"}}
    matching = [a_node("n1", labels={"disk": "ssd"}), a_node("n2"), a_pod("p", "n1", spec=spec)]
    nowhere = [a_node("n1"), a_node("n2"), a_pod("p", "n1", spec=spec)]
    for objects in (matching, nowhere):
        assert gone(objects, "RemovePodsViolatingNodeAffinity", nodeAffinityType=[REQUIRED_AFFINITY]) == []


def test_soft_and_hard_constraints_are_told_apart() -> None:
    """By default only DoNotSchedule is upheld (K14)."""
    objects = [*TWO, web_pods({"n1": 3}, [a_spread(HOSTNAME, hard=False)])]
    strategy = "RemovePodsViolatingTopologySpreadConstraint"
    assert from_nodes(objects, strategy) == {}
    assert from_nodes(objects, strategy, constraints=["ScheduleAnyway"]) == {"n1": 1}
