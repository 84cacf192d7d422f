"""Cases G: lifetime, restarts, failed pods, the anti-affinity strategy."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.policy import load
from tests.builders import (
    DAY,
    HOSTNAME,
    PREFERRED_AFFINITY,
    REQUIRED_AFFINITY,
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


@pytest.mark.parametrize(("counts", "expected"), [([50, 50, 50], ["p"]), ([100], ["p"]), ([99], [])])
def test_g2_restarts_are_summed_and_the_threshold_counts(counts: list[int], expected: list[str]) -> None:
    """G2: 150 and exactly 100 go, 99 stays."""
    snapshot = a_cluster(a_node("n1"), a_pod("p", "n1", restarts=counts))
    assert moved(decided(snapshot, restarting(100))) == expected


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


@pytest.mark.parametrize("version", ["v1alpha2", "v1alpha1"])
def test_g7_a_strategy_without_arguments_has_its_defaults(version: str) -> None:
    """G7: RemoveFailedPods needs no arguments in either version."""
    snapshot = a_cluster(a_node("n1"), a_pod("p", "n1", phase="Failed", ended="Error"))
    document: dict[str, Any] = a_document({"RemoveFailedPods": None})
    if version == "v1alpha1":
        document = {
            "apiVersion": "descheduler/v1alpha1",
            "kind": "DeschedulerPolicy",
            "strategies": {"RemoveFailedPods": {"enabled": True}},
        }
    assert moved(decided(snapshot, load(document, source="test").policy)) == ["p"]


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


@pytest.mark.parametrize(("age", "expected"), [(3599, []), (3600, ["p"]), (-DAY, [])])
def test_failed_pods_are_left_for_an_hour(age: float, expected: list[str]) -> None:
    """Below, at and, with a clock ahead of ours, far from the default age (K6, F21)."""
    snapshot = a_cluster(a_node("n1"), a_pod("p", "n1", phase="Failed", ended="Error", age=age))
    assert moved(decided(snapshot, a_policy({"RemoveFailedPods": {}}))) == expected
