"""Cases C: pods of one owner on one node."""

from __future__ import annotations

import pytest

from rebalancer.model.plan import PlacementMode
from tests.builders import a_cluster, a_node, a_policy, decided, moved, moved_from, pods

MODES = pytest.mark.parametrize("mode", [PlacementMode.FIT, PlacementMode.REQUIRED])
POLICY = a_policy({"RemoveDuplicates": {}})


@MODES
def test_c1_nodes_that_the_pods_do_not_tolerate_do_not_lower_the_average(mode: PlacementMode) -> None:
    """C1: three control-plane nodes beside three workers with four pods each: nothing goes."""
    control = [a_node(f"cp{index}", taints=["node-role.kubernetes.io/control-plane:NoSchedule"]) for index in range(3)]
    workers = [a_node(f"w{index}") for index in range(3)]
    snapshot = a_cluster(control, workers, *(pods(4, f"w{index}") for index in range(3)))
    assert moved(decided(snapshot, POLICY, mode)) == []


@MODES
def test_c2_one_usable_node_keeps_its_duplicates(mode: PlacementMode) -> None:
    """C2: with the other node cordoned nothing goes."""
    snapshot = a_cluster(a_node("w1"), a_node("w2", cordoned=True), pods(2, "w1"))
    assert moved(decided(snapshot, POLICY, mode)) == []


@MODES
def test_c3_more_replicas_than_nodes_evenly_spread_stay(mode: PlacementMode) -> None:
    """C3: four on each of three nodes is even."""
    snapshot = a_cluster(*(a_node(name) for name in ("w1", "w2", "w3")), *(pods(4, name) for name in ("w1", "w2", "w3")))
    assert moved(decided(snapshot, POLICY, mode)) == []


@MODES
def test_c3_only_what_is_above_the_average_goes(mode: PlacementMode) -> None:
    """C3: of six, four and two, two go from the first node."""
    counts = {"w1": 6, "w2": 4, "w3": 2}
    snapshot = a_cluster(*(a_node(name) for name in counts), *(pods(count, name) for name, count in counts.items()))
    assert moved_from(decided(snapshot, POLICY, mode)) == {"w1": 2}
