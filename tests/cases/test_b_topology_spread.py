"""Cases B: topology spread constraints, all of a pod's constraints together."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.model.plan import PlacementMode
from rebalancer.model.snapshot import Snapshot
from tests.builders import (
    HOSTNAME,
    ZONE,
    a_cluster,
    a_node,
    a_pod,
    a_policy,
    a_spread,
    decided,
    moved,
    moved_from,
    pinned,
    pods,
    refusals,
    tolerating,
    wants_node,
    web_pods,
)

MODES = pytest.mark.parametrize("mode", [PlacementMode.FIT, PlacementMode.REQUIRED])
BOTH = ["DoNotSchedule", "ScheduleAnyway"]
STRATEGY = "RemovePodsViolatingTopologySpreadConstraint"


def spreading(evictor: dict[str, Any] | None = None, **args: Any) -> Any:
    """Return a policy that upholds both kinds of constraints, unless told otherwise."""
    return a_policy({STRATEGY: {"constraints": BOTH, **args}}, evictor=evictor)


def zoned(counts: dict[str, dict[str, int]], spread: list[dict[str, Any]], **more: Any) -> Snapshot:
    """Return a cluster with web pods: zone to node to how many."""
    nodes = [a_node(node, zone=zone) for zone, there in counts.items() for node in there]
    return a_cluster(nodes, web_pods({node: count for there in counts.values() for node, count in there.items()}, spread, **more))


@MODES
def test_b1_a_shape_that_cannot_meet_both_constraints_stays(mode: PlacementMode) -> None:
    """B1: the zones are even and the host names cannot be; nothing moves for ever."""
    counts = {"a": {"a1": 1, "a2": 1, "a3": 1, "a4": 0, "a5": 0}, "b": {"b1": 2, "b2": 1}, "c": {"c1": 2, "c2": 1}}
    snapshot = zoned(counts, [a_spread(ZONE), a_spread(HOSTNAME, hard=False)])
    assert moved(decided(snapshot, spreading(), mode)) == []


@MODES
@pytest.mark.parametrize("hosts", [{"a1": 2, "b1": 1, "b2": 1, "b3": 0}, {"a1": 1, "b1": 1, "b2": 1, "b3": 1}])
def test_b2_two_soft_constraints_that_conflict_move_nothing(mode: PlacementMode, hosts: dict[str, int]) -> None:
    """B2: where the violations in all do not fall, nothing goes, in the state and in its mirror."""
    counts = {"a": {"a1": hosts["a1"]}, "b": {name: count for name, count in hosts.items() if name != "a1"}}
    snapshot = zoned(counts, [a_spread(ZONE, hard=False), a_spread(HOSTNAME, hard=False)])
    assert moved(decided(snapshot, spreading(), mode)) == []


@MODES
def test_b3_two_constraints_are_solved_by_the_same_moves(mode: PlacementMode) -> None:
    """B3, small: four moves, two from each node, mend zone and host name."""
    snapshot = zoned({"a": {"a1": 4, "a2": 4}, "b": {"b1": 0, "b2": 0}}, [a_spread(ZONE), a_spread(HOSTNAME)])
    assert moved_from(decided(snapshot, spreading(), mode)) == {"a1": 2, "a2": 2}


@MODES
def test_b3_the_large_shape_needs_sixteen_moves(mode: PlacementMode) -> None:
    """B3, large: sixteen nodes, 64 pods, four stay on each."""
    racks = [[6, 6, 5, 4], [6, 5, 5, 5], [0, 0, 0, 0], [6, 6, 5, 5]]
    counts = {f"r{rack}": {f"r{rack}n{node}": count for node, count in enumerate(row)} for rack, row in enumerate(racks)}
    snapshot = zoned(counts, [a_spread(ZONE), a_spread(HOSTNAME)])
    expected = {f"r{rack}n{node}": count - 4 for rack, row in enumerate(racks) for node, count in enumerate(row) if count > 4}
    assert moved_from(decided(snapshot, spreading(), mode)) == expected


@MODES
@pytest.mark.parametrize("hard", [True, False], ids=["hard", "soft"])
@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"a": {"a1": 4, "a2": 0}, "b": {"b1": 4, "b2": 0}}, {"a1": 2, "b1": 2}),
        ({"a": {"a1": 6, "a2": 6}, "b": {"b1": 0, "b2": 0}, "c": {"c1": 0, "c2": 0}}, {"a1": 4, "a2": 4}),
        ({"a": {"a1": 3, "a2": 3}, "b": {"b1": 1, "b2": 1}}, {"a1": 1, "a2": 1}),
        ({"a": {"a1": 2, "a2": 2}, "b": {"b1": 2, "b2": 1}}, {}),
        ({"a": {"a1": 2}, "b": {"b1": 2}, "c": {"c1": 2, "c2": 0}}, {"c1": 1}),
    ],
    ids=["each zone within itself", "two zones empty", "a little off", "as good as can be", "one zone within itself"],
)
def test_b3_other_shapes_need_as_few_moves_as_there_are_pods_too_many(
    mode: PlacementMode, hard: bool, counts: dict[str, dict[str, int]], expected: dict[str, int]
) -> None:
    """B3 in other shapes: both constraints are met by the pods above each node's share, and by no more of them."""
    snapshot = zoned(counts, [a_spread(ZONE, hard=hard), a_spread(HOSTNAME, hard=hard)])
    plan = decided(snapshot, spreading(), mode)
    assert moved_from(plan) == expected
    assert not {each.pod for each in plan.approved} & {each.pod for each in plan.refused}


@MODES
def test_b4_a_full_smallest_domain_takes_nothing(mode: PlacementMode) -> None:
    """B4: where the smallest domain has no room, pods do not wander between the others."""
    snapshot = a_cluster(
        a_node("n1", zone="a", cpu="250m"),
        a_node("n2", zone="b", cpu="1000m"),
        a_node("n3", zone="c", cpu="1000m"),
        web_pods({"n1": 2, "n2": 3, "n3": 4}, [a_spread()]),
    )
    assert moved(decided(snapshot, spreading(), mode)) == []


@MODES
def test_b5_domains_that_the_pods_cannot_use_do_not_count(mode: PlacementMode) -> None:
    """B5: nodes outside the pods' required affinity are no empty domains."""
    spec = {**tolerating("app"), **wants_node(pool="app")}
    snapshot = a_cluster(
        a_node("ctl-1", taints=["ctl:NoSchedule"]),
        a_node("inf-1", taints=["inf:NoSchedule"]),
        *(a_node(name, labels={"pool": "app"}, taints=["app:NoSchedule"]) for name in ("app-1", "app-2")),
        web_pods({"app-1": 2, "app-2": 2}, [a_spread(HOSTNAME, hard=False)], spec=spec),
    )
    assert moved(decided(snapshot, spreading(), mode)) == []


def with_terminating(live: dict[str, int], dying: dict[str, int]) -> Snapshot:
    """Return two zones with live and terminating web pods."""
    spec = {"topologySpreadConstraints": [a_spread()]}
    gone = [pods(count, node, prefix="dying", app="web", spec=spec, terminating=True) for node, count in dying.items()]
    return a_cluster(a_node("a1", zone="a"), a_node("b1", zone="b"), web_pods(live, [a_spread()]), *gone)


@MODES
def test_b7_terminating_pods_do_not_count(mode: PlacementMode) -> None:
    """B7 (i): two live pods in each zone are even, whatever is terminating."""
    assert moved(decided(with_terminating({"a1": 2, "b1": 2}, {"a1": 2}), spreading(), mode)) == []


@MODES
def test_b7_terminating_pods_do_not_hide_a_skew(mode: PlacementMode) -> None:
    """B7 (ii): three against one is uneven though two are terminating on the small side; a live pod goes."""
    plan = decided(with_terminating({"a1": 3, "b1": 1}, {"b1": 2}), spreading(), mode)
    assert moved_from(plan) == {"a1": 1}
    assert not any("dying" in name for name in moved(plan))


@MODES
@pytest.mark.parametrize(("constraints", "expected"), [(BOTH, 1), (["DoNotSchedule"], 0)])
def test_b10_a_soft_zone_counts_only_where_it_is_upheld(mode: PlacementMode, constraints: list[str], expected: int) -> None:
    """B10: three pods in zone A, one in zone B: one goes from A where soft constraints are upheld."""
    counts = {"a": {"a1": 1, "a2": 1, "a3": 1}, "b": {"b1": 1, "b2": 0, "b3": 0}}
    snapshot = zoned(counts, [a_spread(ZONE, hard=False), a_spread(HOSTNAME)])
    plan = decided(snapshot, spreading(constraints=constraints), mode)
    assert len(plan.approved) == expected
    assert all(approval.node.startswith("a") for approval in plan.approved)


@MODES
def test_b11_a_zone_that_is_down_takes_nothing(mode: PlacementMode) -> None:
    """B11: with the short zone cordoned and a replica pending, the healthy pods stay."""
    snapshot = a_cluster(
        a_node("a1", zone="a"),
        a_node("b1", zone="b", cordoned=True),
        web_pods({"a1": 2}, [a_spread()]),
        a_pod("third", None, app="web", phase="Pending", spec={"topologySpreadConstraints": [a_spread()]}),
    )
    assert moved(decided(snapshot, spreading(), mode)) == []


@MODES
def test_b13_a_plan_reports_what_a_run_would_do(mode: PlacementMode) -> None:
    """B13: zone a with three, zone b with one: the plan names one eviction."""
    snapshot = zoned({"a": {"a1": 3}, "b": {"b1": 1}}, [a_spread()])
    assert moved_from(decided(snapshot, spreading(), mode)) == {"a1": 1}


@MODES
@pytest.mark.parametrize("balance_node_fit", [None, False])
def test_b14_the_second_fit_switch_is_named(mode: PlacementMode, balance_node_fit: bool | None) -> None:
    """B14: with nodeFit false, topologyBalanceNodeFit still keeps a pod that fits nowhere, and the refusal names it."""
    snapshot = a_cluster(
        a_node("a1", zone="a", labels={"pool": "x"}),
        a_node("b1", zone="b", labels={"pool": "x"}, cpu="150m"),
        web_pods({"a1": 3}, [a_spread()], spec={"nodeSelector": {"pool": "x"}}),
        web_pods({"b1": 1}, [a_spread()]),
    )
    args = {} if balance_node_fit is None else {"topologyBalanceNodeFit": balance_node_fit}
    plan = decided(snapshot, spreading({"nodeFit": False}, **args), mode)
    if balance_node_fit is False:
        assert moved_from(plan) == {"a1": 1}
    else:
        assert moved(plan) == []
        assert "topology-node-fit" in refusals(plan).values()
        assert "topologyBalanceNodeFit" in plan.refused[0].reason


@MODES
def test_a_pod_that_only_matches_the_selector_is_counted_and_stays(mode: PlacementMode) -> None:
    """B, decided: bystanders without a constraint of their own count, and are never moved."""
    snapshot = a_cluster(
        a_node("a1", zone="a"),
        a_node("b1", zone="b"),
        pods(2, "a1", prefix="bystander", app="web"),
        web_pods({"a1": 1, "b1": 0}, [a_spread()]),
        pinned("other", "b1"),
    )
    assert moved(decided(snapshot, spreading(), mode)) == ["web-a1-0"]
