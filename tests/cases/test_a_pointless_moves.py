"""Cases A: moves that come straight back, or only change which node is hot."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.model.plan import PlacementMode
from tests.builders import (
    PACKING,
    PREFERRED_AFFINITY,
    a_cluster,
    a_namespace,
    a_node,
    a_pod,
    a_policy,
    decided,
    keeps_away,
    moved,
    moved_from,
    pinned,
    pods,
    refusals,
    would_like_node,
)

MODES = pytest.mark.parametrize("mode", [PlacementMode.FIT, PlacementMode.REQUIRED])
PREFERRED = a_policy({"RemovePodsViolatingNodeAffinity": {"nodeAffinityType": [PREFERRED_AFFINITY]}})


def low_node_utilization(low: int, target: int) -> object:
    """Return LNU(cpu low/target)."""
    return a_policy({"LowNodeUtilization": {"thresholds": {"cpu": low}, "targetThresholds": {"cpu": target}}})


def liking_spot() -> dict[str, object]:
    """Return the pod of A1 and A2."""
    return a_pod("p", "od-1", cpu="500m", spec=would_like_node(tier="spot"))


@MODES
def test_a1_a_preferred_node_with_a_taint_is_no_better_node(mode: PlacementMode) -> None:
    """A1: a better node that the pod does not tolerate is no reason to move."""
    snapshot = a_cluster(
        a_node("spot-1", labels={"tier": "spot"}, taints=["spot=true:NoSchedule"]), a_node("od-1"), a_node("od-2"), liking_spot()
    )
    plan = decided(snapshot, PREFERRED, mode)
    assert moved(plan) == []
    assert refusals(plan)["p"] in {"no-acceptable-landing", "no-gain"}


@MODES
def test_a2_a_preferred_node_that_is_full_is_no_better_node(mode: PlacementMode) -> None:
    """A2: a better node without room is no reason to move."""
    snapshot = a_cluster(
        a_node("spot-1", labels={"tier": "spot"}),
        a_node("od-1"),
        a_node("od-2"),
        pinned("load", "spot-1", "3800m"),
        liking_spot(),
    )
    assert moved(decided(snapshot, PREFERRED, mode)) == []


@MODES
def test_a2_a_preferred_node_with_room_is_taken(mode: PlacementMode) -> None:
    """A2, positive twin: with room on the better node the pod goes there."""
    snapshot = a_cluster(
        a_node("spot-1", labels={"tier": "spot"}),
        a_node("od-1"),
        a_node("od-2"),
        pinned("load", "spot-1", "3000m"),
        liking_spot(),
    )
    plan = decided(snapshot, PREFERRED, mode)
    assert moved(plan) == ["p"]
    if mode is PlacementMode.REQUIRED:
        assert set(plan.approved[0].landings) == {"spot-1"}


@MODES
@pytest.mark.parametrize("state", [{"cordoned": True}, {"ready": False}], ids=["cordoned", "not ready"])
def test_a2_a_preferred_node_that_takes_no_pods_is_no_better_node(mode: PlacementMode, state: dict[str, Any]) -> None:
    """A2, second twin: a cordoned or NotReady node is no reason to move."""
    snapshot = a_cluster(
        a_node("spot-1", labels={"tier": "spot"}, **state),
        a_node("od-1"),
        a_node("od-2"),
        liking_spot(),
    )
    assert moved(decided(snapshot, PREFERRED, mode)) == []


def spread_out_room() -> list[dict[str, object]]:
    """Return the nodes of A4."""
    return [
        a_node("n1", cpu="8000m"),
        *(a_node(name) for name in ("n2", "n3", "n4")),
        *(pinned(name, name, "1000m") for name in ("n2", "n3", "n4")),
    ]


@MODES
def test_a4_room_that_is_there_only_in_total_takes_no_pod(mode: PlacementMode) -> None:
    """A4: three pods of 2500m have no single destination that stays at or below its target."""
    snapshot = a_cluster(spread_out_room(), pods(3, "n1", cpu="2500m"))
    assert moved(decided(snapshot, low_node_utilization(30, 50), mode)) == []  # type: ignore[arg-type]


@MODES
def test_a4_small_pods_fill_each_destination_to_its_target(mode: PlacementMode) -> None:
    """A4, twin: of fifteen pods of 500m six go, two to each destination."""
    snapshot = a_cluster(spread_out_room(), pods(15, "n1", cpu="500m"))
    plan = decided(snapshot, low_node_utilization(30, 50), mode)  # type: ignore[arg-type]
    assert moved_from(plan) == {"n1": 6}


@MODES
def test_a5_packing_never_moves_to_another_source(mode: PlacementMode) -> None:
    """A5: the only node with room is under-used itself."""
    snapshot = a_cluster(
        a_node("n1"),
        a_node("n2"),
        a_node("n3"),
        a_pod("p", "n1", cpu="2400m"),
        pinned("a", "n2", "800m"),
        pinned("b", "n3", "3600m"),
    )
    policy = a_policy({"HighNodeUtilization": {"thresholds": {"cpu": 70}}})
    assert moved(decided(snapshot, policy, mode, scheduler=PACKING)) == []


@MODES
@pytest.mark.parametrize("namespaces", ["one namespace", "namespace selector"])
def test_a7_a9_a_pod_whose_anti_affinity_forbids_the_only_target_stays(mode: PlacementMode, namespaces: str) -> None:
    """A7, A9: the holder of the rule stays, also where the rule reaches other namespaces by selector; the free pod goes."""
    if namespaces == "one namespace":
        rule, there = keeps_away("y"), "ns1"
    else:
        rule, there = keeps_away("y", namespaceSelector={"matchLabels": {"team": "core"}}), "ns2"
    snapshot = a_cluster(
        a_node("n1"),
        a_node("n2"),
        a_namespace("ns1"),
        a_namespace("ns2", team="core"),
        a_pod("px", "n1", cpu="1000m", app="x", spec=rule),
        a_pod("pf", "n1", cpu="1000m", app="free"),
        pinned("load", "n1", "1600m"),
        a_pod("py", "n2", cpu="200m", app="y", namespace=there),
    )
    assert moved(decided(snapshot, low_node_utilization(20, 50), mode)) == ["pf"]  # type: ignore[arg-type]
