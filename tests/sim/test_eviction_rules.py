"""Rules of the eviction subresource that the recorded stories do not show."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.sim.cluster import EmbeddedCluster
from rebalancer.sim.eviction import evict
from rebalancer.sim.kinds import BUDGET, POD
from rebalancer.sim.problems import ApiProblem


@pytest.fixture
def quiet() -> EmbeddedCluster:
    """The rules alone, with a ready pod ``p`` labelled app=a."""
    cluster = EmbeddedCluster(seed=1, controllers=False, sockets=False)
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
    cluster.registry.create(POD, "default", {"metadata": {"name": "p", "labels": {"app": "a"}}, "spec": spec})
    ready(cluster, True)
    return cluster


def ready(cluster: EmbeddedCluster, value: bool) -> None:
    """Let the pod be Running, and ready or not."""

    def change(pod: dict[str, Any]) -> None:
        pod["status"] |= {"phase": "Running", "conditions": [{"type": "Ready", "status": str(value)}]}

    cluster.registry.modify(POD, "default", "p", change, subresource="status")


def budget(cluster: EmbeddedCluster, selector: Any, **status: Any) -> None:
    """Create a budget with a status that its controller would have written."""
    made = cluster.registry.create(
        BUDGET, "default", {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": selector}}
    )
    full = {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    cluster.store.put(BUDGET.storage, {**made, "metadata": dict(made["metadata"]), "status": full | status})


def refusal(cluster: EmbeddedCluster, **options: Any) -> ApiProblem:
    """Evict the pod and return the refusal."""
    with pytest.raises(ApiProblem) as caught:
        evict(cluster.registry, "default", "p", {"metadata": {"name": "p"}, "deleteOptions": options})
    return caught.value


def test_an_empty_selector_holds_every_pod_of_the_namespace(quiet: EmbeddedCluster) -> None:
    """In policy/v1 ``{}`` selects everything; no selector at all selects nothing."""
    budget(quiet, {})
    assert refusal(quiet).code == 429


def test_no_selector_holds_nothing(quiet: EmbeddedCluster) -> None:
    """A budget without a selector is no budget of the pod."""
    budget(quiet, None)
    assert evict(quiet.registry, "default", "p", {"metadata": {"name": "p"}})["status"] == "Success"


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        ({}, "The disruption budget b needs 1 healthy pods and has 1 currently"),
        ({"currentHealthy": 2}, "The disruption budget b does not allow evicting pods currently"),
        (
            {"conditions": [{"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "no scale"}]},
            "The disruption budget b does not allow evicting pods currently because it failed sync: no scale",
        ),
        (
            {
                "currentHealthy": 2,
                "conditions": [{"type": "DisruptionAllowed", "status": "False", "reason": "Other", "message": "so"}],
            },
            "The disruption budget b does not allow evicting pods currently (Other): so",
        ),
    ],
    ids=["too few healthy", "no reason known", "sync failed", "another reason"],
)
def test_a_spent_budget_says_why(quiet: EmbeddedCluster, status: dict[str, Any], cause: str) -> None:
    """The cause of the refusal depends on counts and condition."""
    budget(quiet, {"matchLabels": {"app": "a"}}, **status)
    assert refusal(quiet).status["details"]["causes"] == [{"reason": "DisruptionBudget", "message": cause}]


def test_a_failed_precondition_comes_after_the_budget_is_spent(quiet: EmbeddedCluster) -> None:
    """As upstream: the budget is decremented first, then the UID is compared."""
    budget(quiet, {"matchLabels": {"app": "a"}}, disruptionsAllowed=2, currentHealthy=3)
    assert refusal(quiet, preconditions={"uid": "other"}).code == 409
    held = quiet.registry.get(BUDGET, "default", "b")
    assert held["status"]["disruptionsAllowed"] == 1


@pytest.mark.parametrize(
    ("disrupted", "code"), [(1999, None), (2000, None), (2001, 403)], ids=["below the limit", "at the limit", "above"]
)
def test_too_many_unconfirmed_evictions_are_forbidden(quiet: EmbeddedCluster, disrupted: int, code: int | None) -> None:
    """More than 2,000 entries in disruptedPods is a 403 that names the budget."""
    held = {f"p{number}": "2026-01-01T00:00:00Z" for number in range(disrupted)}
    budget(quiet, {"matchLabels": {"app": "a"}}, disruptionsAllowed=5, currentHealthy=6, disruptedPods=held)
    if code is None:
        assert evict(quiet.registry, "default", "p", {"metadata": {"name": "p"}})["status"] == "Success"
    else:
        assert refusal(quiet).code == code


def test_a_negative_budget_is_forbidden(quiet: EmbeddedCluster) -> None:
    """A status that allows less than nothing is refused as 403, not 429."""
    budget(quiet, {"matchLabels": {"app": "a"}}, disruptionsAllowed=-1)
    problem = refusal(quiet)
    assert (problem.code, problem.reason) == (403, "Forbidden")
