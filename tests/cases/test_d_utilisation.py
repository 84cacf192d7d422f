"""Cases D: how full nodes are, and which pods relieve or pack them."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.decide.guards import Guards, Spent
from rebalancer.errors import PolicyError
from rebalancer.model.plan import PlacementMode, Plan
from rebalancer.model.snapshot import Snapshot
from tests.builders import PACKING, a_cluster, a_node, a_pod, a_policy, decided, moved, moved_from, pinned, pods


def low(thresholds: dict[str, float], targets: dict[str, float], **more: Any) -> Any:
    """Return a LowNodeUtilization policy."""
    return a_policy({"LowNodeUtilization": {"thresholds": thresholds, "targetThresholds": targets, **more}})


def high(thresholds: dict[str, float], **more: Any) -> Any:
    """Return a HighNodeUtilization policy."""
    return a_policy({"HighNodeUtilization": {"thresholds": thresholds, **more}})


def verdicts(plan: Plan) -> dict[str, str]:
    """Return how each node was classified."""
    return {each.node: each.verdict for each in plan.nodes}


def test_d1_low_takes_every_resource_and_high_any() -> None:
    """D1: a node above the threshold in pods alone is not under-used; one above a target in cpu alone is over-used."""
    snapshot = a_cluster(
        a_node("middle", pods=100),
        a_node("hot", pods=100),
        pinned("a", "middle", "1400m", memory="7864Mi"),
        pods(12, "middle", cpu=None, memory=None),
        pinned("b", "hot", "2040m", memory="1638Mi"),
    )
    plan = decided(snapshot, low({"cpu": 60, "memory": 60, "pods": 5}, {"cpu": 60, "memory": 60, "pods": 100}))
    assert verdicts(plan)["middle"] == "appropriate"
    plan = decided(snapshot, low({"cpu": 20, "memory": 20}, {"cpu": 50, "memory": 50}))
    assert verdicts(plan)["hot"] == "over"


@pytest.mark.parametrize(
    ("millicores", "verdict"), [(799, "under"), (800, "under"), (801, "appropriate"), (2000, "appropriate"), (2001, "over")]
)
def test_d1_equality_is_low_and_is_not_high(millicores: int, verdict: str) -> None:
    """D1, boundary: exactly at the low threshold counts as under-used, exactly at the target is not over-used."""
    snapshot = a_cluster(a_node("n1"), pinned("load", "n1", f"{millicores}m"))
    assert verdicts(decided(snapshot, low({"cpu": 20}, {"cpu": 50})))["n1"] == verdict


def test_d2_deviations_are_taken_from_the_mean() -> None:
    """D2: with 10, 20, 30 and 20 percent the mean is 20; within 5 points one pod of the fullest node goes."""
    counts = {"n1": 1, "n2": 2, "n3": 3, "n4": 2}
    nodes = [a_node(name, memory="10Gi") for name in counts]
    snapshot = a_cluster(nodes, *(pods(count, name, cpu=None, memory="1Gi") for name, count in counts.items()))
    plan = decided(snapshot, low({"memory": 5}, {"memory": 5}, useDeviationThresholds=True))
    assert moved_from(plan) == {"n3": 1}


def test_d4_a_node_without_the_resource_is_not_judged_by_it() -> None:
    """D4: a cpu node is not emptied because it has no gpu."""
    snapshot = a_cluster(
        a_node("g1", more={"example.com/gpu-a": "4"}),
        a_node("c1"),
        pods(3, "g1", app="train", more={"example.com/gpu-a": "1"}),
        a_pod("plain", "c1", cpu="500m"),
    )
    plan = decided(snapshot, high({"example.com/gpu-a": 40}))
    assert moved(plan) == []
    assert verdicts(plan)["c1"] == "unjudged"


@pytest.mark.parametrize(("modes", "expected"), [(["OnlyThresholdingResources"], ["train"]), ([], ["train", "web"])])
def test_d5_eviction_modes_spare_pods_without_the_resource(modes: list[str], expected: list[str]) -> None:
    """D5: with OnlyThresholdingResources only the gpu pod goes; without it both do, as upstream."""
    snapshot = a_cluster(
        a_node("g1", more={"example.com/gpu": "4"}),
        a_node("g2", more={"example.com/gpu": "8"}),
        a_pod("train", "g1", cpu="1000m", app="train", more={"example.com/gpu": "1"}),
        a_pod("web", "g1", cpu="500m", app="web"),
        pinned("busy", "g2", more={"example.com/gpu": "6"}),
    )
    assert moved(decided(snapshot, high({"example.com/gpu": 40}, evictionModes=modes))) == expected


def three_empty_nodes() -> Snapshot:
    """Return the cluster of D6."""
    names = ("n1", "n2", "n3")
    return a_cluster(*(a_node(name) for name in names), *(a_pod(f"p-{name}", name, memory="1600Mi") for name in names))


def test_d6_with_every_node_under_used_nothing_is_packed() -> None:
    """D6: as upstream, unless asked for."""
    assert moved(decided(three_empty_nodes(), high({"memory": 20}))) == []


def test_d6_the_least_used_node_is_drained_where_asked_for() -> None:
    """D6: with drainLeastUsed exactly one node is emptied in a run."""
    plan = decided(three_empty_nodes(), high({"memory": 20}, drainLeastUsed=True))
    assert moved_from(plan) == {"n1": 1}


@pytest.mark.parametrize("mode", [PlacementMode.FIT, PlacementMode.OFF])
@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"n1": 0, "n2": 2, "n3": 1}, {"n3": 1}),
        ({"n1": 0, "n2": 3, "n3": 0}, {}),
        ({"n1": 3, "n2": 1, "n3": 2}, {"n2": 1}),
        ({"n1": 0, "n2": 0, "n3": 0}, {}),
        ({"n1": 2, "n2": 2, "n3": 2}, {"n1": 2}),
    ],
    ids=["the next run", "all on one", "by usage", "nothing there", "a tie"],
)
def test_d6_run_by_run_one_more_node_is_drained(counts: dict[str, int], expected: dict[str, int], mode: PlacementMode) -> None:
    """D6: each run drains the least used node that is in use, into others that are; with one left in use it is over."""
    snapshot = a_cluster(
        *(a_node(name) for name in counts), *(pods(count, name, memory="500Mi") for name, count in counts.items())
    )
    plan = decided(snapshot, high({"memory": 20}, drainLeastUsed=True), mode, scheduler=PACKING)
    assert moved_from(plan) == expected


@pytest.mark.parametrize(
    ("counts", "begun", "expected"),
    [({"n1": 0, "n2": 3, "n3": 4}, "n1", {}), ({"n1": 2, "n2": 1, "n3": 4}, "n1", {"n1": 2})],
    ids=["drained", "half drained"],
)
def test_d6_a_later_look_of_a_run_drains_no_second_node(counts: dict[str, int], begun: str, expected: dict[str, int]) -> None:
    """D6: one node per run, over all of its looks."""
    snapshot = a_cluster(
        *(a_node(name) for name in counts), *(pods(count, name, memory="500Mi") for name, count in counts.items())
    )
    guards = Guards(spent=Spent(1, {begun: 1}))
    assert moved_from(decided(snapshot, high({"memory": 20}, drainLeastUsed=True), guards=guards)) == expected


@pytest.mark.parametrize("mode", list(PlacementMode))
def test_d6_what_the_rest_cannot_hold_stays(mode: PlacementMode) -> None:
    """D6: two nodes that are each nearly full in cpu, though not in memory: neither can be drained."""
    snapshot = a_cluster(
        *(a_node(name, cpu="200m") for name in ("n1", "n2")), *(pods(1, name, cpu="150m") for name in ("n1", "n2"))
    )
    assert moved(decided(snapshot, high({"memory": 20}, drainLeastUsed=True), mode, scheduler=PACKING)) == []


def test_d7_the_emptiest_node_is_packed_first() -> None:
    """D7: with a total limit of one, the pod of the node at 10 % goes, not one of the node at 30 %."""
    snapshot = a_cluster(
        *(a_node(name) for name in ("n1", "n2", "n3")),
        pods(3, "n1", cpu="400m"),
        pods(1, "n2", cpu="400m"),
        pinned("load", "n3", "2400m"),
    )
    policy = a_policy({"HighNodeUtilization": {"thresholds": {"cpu": 40}}}, maxNoOfPodsToEvictTotal=1)
    assert moved_from(decided(snapshot, policy)) == {"n2": 1}


@pytest.mark.parametrize("mode", [PlacementMode.FIT, PlacementMode.REQUIRED])
def test_d10_excluded_namespaces_count_as_usage_and_stay(mode: PlacementMode) -> None:
    """D10: eight pods of 450m, four of them excluded: the other four go."""
    snapshot = a_cluster(
        a_node("n1"), a_node("n2"), pods(4, "n1", cpu="450m"), pods(4, "n1", cpu="450m", namespace="keep-ns", prefix="keep")
    )
    policy = low({"cpu": 20}, {"cpu": 50}, evictableNamespaces={"exclude": ["keep-ns"]})
    plan = decided(snapshot, policy, mode)
    assert len(plan.approved) == 4
    assert all(approval.pod.startswith("ns1/") for approval in plan.approved)


def test_d10_an_exclusion_at_an_unknown_place_is_an_error() -> None:
    """D10: a key that the schema does not know is refused at the start."""
    with pytest.raises(PolicyError, match="exclude"):
        low({"cpu": 20}, {"cpu": 50}, exclude=["keep-ns"])


def test_d11_small_capacities_and_fractions() -> None:
    """D11: ten pod slots, three pods over a target of 25 %: one goes."""
    names = ("n1", "n2", "n3")
    snapshot = a_cluster(*(a_node(name, pods=10) for name in names), pods(3, "n1"), pods(1, "n3"))
    plan = decided(snapshot, low({"pods": 3}, {"pods": 25}))
    assert moved_from(plan) == {"n1": 1}
    assert verdicts(plan) == {"n1": "over", "n2": "under", "n3": "appropriate"}


def test_d12_a_key_in_the_wrong_case_is_named() -> None:
    """D12: Pods is no resource; pods is suggested."""
    with pytest.raises(PolicyError, match=r"Pods.*pods"):
        low({"cpu": 50, "Pods": 85}, {"cpu": 50, "Pods": 85})


@pytest.mark.parametrize("mode", [PlacementMode.FIT, PlacementMode.REQUIRED])
def test_d13_a_node_is_left_alone_once_it_is_fine(mode: PlacementMode) -> None:
    """D13: eight pods of 450m: four go and the node is at 45 %."""
    snapshot = a_cluster(*(a_node(name) for name in ("n1", "n2", "n3")), pods(8, "n1", cpu="450m"))
    assert moved_from(decided(snapshot, low({"cpu": 20}, {"cpu": 50}), mode)) == {"n1": 4}


def test_packing_with_a_scheduler_that_spreads_has_a_code_of_its_own() -> None:
    """A scheduler that spreads would put the pod on an emptier node, and the refusal says what is needed."""
    snapshot = a_cluster(
        *(a_node(name) for name in ("n1", "n2", "n3")),
        a_pod("p", "n1", cpu="400m", memory="1600Mi"),
        pinned("load", "n3", "2400m", memory="9600Mi"),
    )
    policy = high({"cpu": 40})
    spread = decided(snapshot, policy, PlacementMode.REQUIRED)
    assert (moved(spread), spread.refused[0].code) == ([], "scheduler-spreads")
    packed = decided(snapshot, policy, PlacementMode.REQUIRED, scheduler=PACKING)
    assert (moved(packed), set(packed.approved[0].landings)) == (["p"], {"n3"})
