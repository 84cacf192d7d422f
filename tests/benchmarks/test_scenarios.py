"""The clusters that benchmarks measure on are what they claim to be, and the same every time.

Asserted are counts and sizes; times are for ``tox -e bench`` alone.
"""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import replace

import pytest

from benchmarks import events
from benchmarks.evaluation import counts
from benchmarks.growth import exponent
from benchmarks.scenario import CALM, FEW, HOSTILE, MANY, UNSHARED, Kind, Scenario, as_bytes, scaled

KINDS = {"calm": CALM, "few": FEW, "many": MANY, "unshared": UNSHARED, "hostile": HOSTILE}
NODES = 150


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_cluster_has_the_pods_and_nodes_it_is_asked_for(kind: Kind) -> None:
    """As many pods as the size says, each on a node that did not just join unless it was moved there; equal kinds are equal."""
    small = scaled(kind, NODES)
    scenario = Scenario(small)
    assert len(scenario.placed) == small.size.pods == 30 * NODES
    assert len(list(scenario.nodes())) == NODES
    assert max(placed.node for placed in scenario.placed) < NODES - small.joined
    assert Scenario(small).placed == scenario.placed
    other = replace(small, size=replace(small.size, seed=2))
    assert [as_bytes(each) for each in Scenario(other).owners()] != [as_bytes(each) for each in scenario.owners()]


def test_pods_are_as_large_as_in_real_clusters() -> None:
    """About six kilobytes of JSON: managed fields, projected volumes, tolerations and conditions are there."""
    scenario = Scenario(scaled(CALM, NODES))
    pods = [scenario.pod(placed) for placed in scenario.placed[::50]]
    assert 5_000 < statistics.mean(len(as_bytes(pod)) for pod in pods) < 8_000
    assert all(pod["metadata"]["managedFields"] and pod["status"]["conditions"] for pod in pods)
    assert {pod["metadata"]["ownerReferences"][0]["kind"] for pod in pods} == {"ReplicaSet", "StatefulSet", "DaemonSet"}


def test_a_hostile_cluster_is_hostile() -> None:
    """One owner has very many pods, and terms and constraints are each their own."""
    kind = scaled(HOSTILE, NODES)
    scenario = Scenario(kind)
    assert Counter(placed.owner for placed in scenario.placed)[0] == kind.huge > 200
    pods = {placed.owner: scenario.pod(placed) for placed in scenario.placed}
    apart = [pod["spec"]["affinity"]["podAntiAffinity"] for owner, pod in pods.items() if 0 < owner <= kind.terms]
    assert len({str(each) for each in apart}) == min(kind.terms, kind.size.owners - 1)
    crowded = [pod for pod in pods.values() if pod["metadata"]["namespace"] == "crowded"]
    assert sum(len(pod["spec"]["topologySpreadConstraints"]) for pod in crowded) == 2 * kind.constraints


def test_a_calm_cluster_gives_nothing_to_do() -> None:
    """Where nothing was disturbed, no shape is predicted and no pod is refused."""
    found = counts(scaled(CALM, NODES))
    assert (found["shapes judged"], found["approved"], found["refused"]) == (0, 0, 0)
    assert found["pods"] == 30 * NODES


def test_a_disturbed_cluster_is_judged_shape_by_shape() -> None:
    """More disturbed owners mean more shapes judged, a prediction or two per approval, and never one per pod."""
    few, many = counts(scaled(FEW, 300)), counts(scaled(MANY, 300))
    assert 0 < few["shapes judged"] < many["shapes judged"] < many["shapes"]
    assert few["approved"] < many["approved"]
    assert many["predictions"] < 3 * many["approved"] + many["refused"] + many["shapes judged"]


def test_every_event_reaches_the_indexes() -> None:
    """Of events about known pods, those that change a readiness are facts; no pod is lost or added."""
    found = events.measure(scaled(CALM, 20), 300)
    assert found["pods"] == 600
    assert 0 < found["facts"] < 300


def test_the_exponent_of_a_line_is_one() -> None:
    """The fit finds the power of a curve, whatever its factor."""
    assert exponent({1_000.0: 3.0, 2_000.0: 6.0, 8_000.0: 24.0}) == pytest.approx(1.0)
    assert exponent({1_000.0: 5.0, 2_000.0: 20.0, 4_000.0: 80.0}) == pytest.approx(2.0)
