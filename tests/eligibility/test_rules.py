"""The default evictor's rules, one by one: what they protect, and what switches them off."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import (
    DAY,
    EVICT,
    a_budget,
    a_cluster,
    a_namespace,
    a_node,
    a_pod,
    a_policy,
    decided,
    moved,
    pods,
    refusals,
)

OLD: dict[str, Any] = {"PodLifeTime": {"maxPodLifeTimeSeconds": 60}}


def verdict(objects: list[Any], evictor: dict[str, Any] | None = None) -> str:
    """Return ``moved``, or the code by which the pod ``p`` was refused."""
    plan = decided(a_cluster(a_node("n1"), a_node("n2"), *objects), a_policy(OLD, evictor=evictor))
    return "moved" if "p" in moved(plan) else refusals(plan)["p"]


def off(*names: str) -> dict[str, Any]:
    """Return an evictor with these protections switched off."""
    return {"podProtections": {"defaultDisabled": list(names)}}


def on(*names: str, **config: Any) -> dict[str, Any]:
    """Return an evictor with these protections switched on."""
    return {"podProtections": {"extraEnabled": list(names), **({"config": config} if config else {})}}


EMPTY_DIR = {"volumes": [{"name": "v", "emptyDir": {}}]}
HOST_PATH = {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}
CLAIM = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}


@pytest.mark.parametrize(
    ("more", "code", "protection"),
    [
        ({"spec": EMPTY_DIR}, "local-storage", "PodsWithLocalStorage"),
        ({"spec": HOST_PATH}, "local-storage", "PodsWithLocalStorage"),
        ({"owner": "DaemonSet"}, "daemon-set", "DaemonSetPods"),
        ({"priority": 2_000_000_000}, "system-critical", "SystemCriticalPods"),
        (
            {"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}},
            "safe-to-evict-false",
            "PodsWithSafeToEvictFalse",
        ),
        ({"annotations": {"karpenter.sh/do-not-disrupt": "true"}}, "do-not-disrupt", "PodsWithDoNotDisrupt"),
    ],
)
def test_a_protection_holds_by_default_and_can_be_switched_off(more: dict[str, Any], code: str, protection: str) -> None:
    """Each built-in protection keeps its pods until the policy disables it."""
    assert verdict([a_pod("p", "n1", **more)]) == code
    assert verdict([a_pod("p", "n1", **more)], off(protection)) == "moved"


@pytest.mark.parametrize(
    ("more", "code", "protection"),
    [
        ({"spec": CLAIM}, "pvc-or-nothing", "PodsWithPVC"),
        ({}, "no-budget", "PodsWithoutPDB"),
        ({"spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "x"}]}}, "resource-claims", "PodsWithResourceClaims"),
    ],
)
def test_an_extra_protection_holds_only_where_it_is_enabled(more: dict[str, Any], code: str, protection: str) -> None:
    """Each extra protection is off until the policy enables it."""
    assert verdict([a_pod("p", "n1", **more)]) == "moved"
    assert verdict([a_pod("p", "n1", **more)], on(protection)) == ("pvc" if code == "pvc-or-nothing" else code)


@pytest.mark.parametrize(
    ("storage_class", "expected"), [("gold", "pvc-storage-class"), ("tin", "moved"), (None, "pvc-unknown-class")]
)
def test_claims_can_be_protected_by_storage_class(storage_class: str | None, expected: str) -> None:
    """With classes listed, claims of other classes are free, and those of none that is known stay."""
    claim = {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "ns1"},
        "spec": {"accessModes": ["ReadWriteOnce"], **({"storageClassName": storage_class} if storage_class else {})},
    }
    evictor = on("PodsWithPVC", PodsWithPVC={"protectedStorageClasses": [{"name": "gold"}]})
    assert verdict([claim, a_pod("p", "n1", spec=CLAIM)], evictor) == expected


def test_a_claim_that_is_not_there_is_protected() -> None:
    """A storage class that cannot be looked up may be a protected one."""
    evictor = on("PodsWithPVC", PodsWithPVC={"protectedStorageClasses": [{"name": "gold"}]})
    assert verdict([a_pod("p", "n1", spec=CLAIM)], evictor) == "pvc-unknown-class"


@pytest.mark.parametrize(("priority", "expected"), [(99, "moved"), (100, "priority"), (101, "priority"), (None, "moved")])
def test_only_pods_below_the_priority_threshold_go(priority: int | None, expected: str) -> None:
    """Below, at, above, and without a priority (K7)."""
    assert verdict([a_pod("p", "n1", priority=priority)], {"priorityThreshold": {"value": 100}}) == expected


def test_the_threshold_holds_without_the_protection_of_critical_pods() -> None:
    """Switching SystemCriticalPods off does not drop the threshold (F15)."""
    evictor = {"priorityThreshold": {"value": 100}, **off("SystemCriticalPods")}
    assert verdict([a_pod("p", "n1", priority=100)], evictor) == "priority"


@pytest.mark.parametrize(("ready", "expected"), [(2, "moved"), (1, "min-replicas")])
def test_min_replicas_counts_live_ready_pods(ready: int, expected: str) -> None:
    """Failed, terminating and unready siblings do not raise the count (F16)."""
    others = [
        a_pod("failed", "n1", phase="Failed", age=1),
        a_pod("going", "n1", terminating=True, age=1),
        a_pod("unready", "n1", ready=False, age=1),
        *(a_pod(f"ready{index}", "n1", age=1) for index in range(ready - 1)),
    ]
    assert verdict([a_pod("p", "n1"), *others], {"minReplicas": 2}) == expected


@pytest.mark.parametrize(("minimum", "expected"), [("23h", "moved"), ("24h", "moved"), ("25h", "min-pod-age")])
def test_min_pod_age_counts_from_the_start(minimum: str, expected: str) -> None:
    """Below, at and above an age of a day."""
    assert verdict([a_pod("p", "n1", age=DAY)], {"minPodAge": minimum}) == expected


def test_a_pod_that_has_not_started_is_younger_than_any_age() -> None:
    """Without a start time minPodAge protects."""
    pod = a_pod("p", "n1", phase="Pending")
    del pod["status"]["startTime"]
    assert verdict([pod], {"minPodAge": "1s"}) == "not-started"


def test_label_selectors_choose_pods_and_namespaces() -> None:
    """labelSelector looks at the pod, namespaceLabelSelector at its namespace."""
    pod = a_pod("p", "n1")
    assert verdict([pod], {"labelSelector": {"matchLabels": {"app": "app"}}}) == "moved"
    assert verdict([pod], {"labelSelector": {"matchLabels": {"app": "other"}}}) == "label-selector"
    team = a_namespace("ns1", team="core")
    assert verdict([pod, team], {"namespaceLabelSelector": {"matchLabels": {"team": "core"}}}) == "moved"
    assert verdict([pod, team], {"namespaceLabelSelector": {"matchLabels": {"team": "web"}}}) == "namespace-selector"


def test_the_evict_annotation_skips_the_filter_and_not_what_comes_after() -> None:
    """It lifts local storage, and neither namespaceLabelSelector nor nodeFit (K9)."""
    pod = a_pod("p", "n1", annotations={EVICT: "true"}, spec=EMPTY_DIR)
    assert verdict([pod]) == "moved"
    assert verdict([pod], {"namespaceLabelSelector": {"matchLabels": {"team": "web"}}}) == "namespace-selector"
    assert verdict([a_pod("p", "n1", annotations={EVICT: "true"}, cpu="5")]) == "no-fit"


@pytest.mark.parametrize(("phase", "expected"), [("Failed", "moved"), ("Running", "bare-not-failed")])
def test_bare_pods_go_only_when_they_failed(phase: str, expected: str) -> None:
    """Without FailedBarePods, a pod without an owner may go once it has failed."""
    assert verdict([a_pod("p", "n1", owner=None, phase=phase)], off("FailedBarePods")) == expected


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, "budget"),
        ({"ready": False}, "moved"),
        ({"phase": "Pending"}, "moved"),
        ({"phase": "Failed"}, "moved"),
    ],
)
def test_budgets_are_judged_as_the_server_judges_them(more: dict[str, Any], expected: str) -> None:
    """A spent budget holds ready pods; unready ones go while enough others are healthy, pending and finished ones always."""
    assert verdict([a_pod("p", "n1", **more), a_budget("b", app="app", allowed=0)]) == expected


def test_an_unready_pod_stays_while_its_budget_is_not_healthy() -> None:
    """IfHealthyBudget holds it, AlwaysAllow does not."""
    budget = a_budget("b", app="app", allowed=0)
    budget["status"]["currentHealthy"] = 1
    pod = a_pod("p", "n1", ready=False)
    assert verdict([pod, budget]) == "budget"
    budget["spec"]["unhealthyPodEvictionPolicy"] = "AlwaysAllow"
    assert verdict([pod, budget]) == "moved"


def test_a_status_older_than_the_spec_spends_nothing() -> None:
    """While the disruption controller has still to look, the server refuses."""
    budget = a_budget("b", app="app", allowed=1)
    budget["metadata"]["generation"] = 2
    assert verdict([a_pod("p", "n1"), budget]) == "budget-stale"


def test_two_budgets_on_one_pod_are_named() -> None:
    """The server would answer with an error, so nothing is asked of it."""
    objects = [a_pod("p", "n1"), a_budget("one", app="app", allowed=1), a_budget("two", app="app", allowed=1)]
    plan = decided(a_cluster(a_node("n1"), *objects), a_policy(OLD))
    assert refusals(plan) == {"p": "budgets-several"}
    assert "ns1/one and ns1/two" in plan.refused[0].reason


def test_a_budget_is_spent_within_a_run() -> None:
    """Of three pods under a budget of one, one goes."""
    plan = decided(a_cluster(a_node("n1"), pods(3, "n1"), a_budget("b", app="app", allowed=1)), a_policy(OLD))
    assert len(plan.approved) == 1
    assert list(refusals(plan).values()) == ["budget", "budget"]
