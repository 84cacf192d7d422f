"""What a change meant: each fact, and none where nothing changed that matters."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.model.trigger import FactKind
from tests.cache.builders import Filled, a_node, a_pod, an_object

N = FactKind


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({}, {}, [], id="a-heartbeat"),
        pytest.param({"ready": False}, {}, [N.NODE_BECAME_SCHEDULABLE], id="ready"),
        pytest.param({}, {"ready": False}, [N.NODE_BECAME_UNSCHEDULABLE], id="not-ready"),
        pytest.param({"cordoned": True}, {}, [N.NODE_BECAME_SCHEDULABLE], id="uncordoned"),
        pytest.param({}, {"cordoned": True}, [N.NODE_BECAME_UNSCHEDULABLE], id="cordoned"),
        pytest.param(
            {"taints": ("node.kubernetes.io/not-ready",)},
            {},
            [N.NODE_BECAME_SCHEDULABLE, N.NODE_TAINTS_CHANGED],
            id="start-up-taint-gone",
        ),
        pytest.param(
            {"taints": ("node.cilium.io/agent-not-ready", "gpu")},
            {"taints": ("gpu",)},
            [N.NODE_BECAME_SCHEDULABLE, N.NODE_TAINTS_CHANGED],
            id="lasting-taint-stays",
        ),
        pytest.param({}, {"taints": ("gpu",)}, [N.NODE_TAINTS_CHANGED], id="lasting-taint"),
        pytest.param({}, {"labels": {"zone": "a"}}, [N.NODE_LABELS_CHANGED], id="labels"),
        pytest.param({}, {"cpu": "8"}, [N.NODE_CAPACITY_CHANGED], id="capacity"),
        pytest.param({}, {"uid": "other"}, [N.NODE_GONE, N.NODE_JOINED, N.NODE_BECAME_SCHEDULABLE], id="replaced"),
    ],
)
async def test_a_node_that_changes(before: dict[str, Any], after: dict[str, Any], expected: list[FactKind]):
    """A fact says what became true; a start-up taint makes a node unusable, a lasting one does not."""
    filled = await Filled().sync(a_node("n1", **before))
    assert [fact.kind for fact in filled.put(a_node("n1", **after))] == expected


async def test_a_node_that_joins_and_goes():
    """A node joins once, becomes usable when it is, and is gone."""
    filled = await Filled().sync()
    assert [fact.kind for fact in filled.put(a_node("n1", ready=False))] == [N.NODE_JOINED]
    assert [fact.kind for fact in filled.put(a_node("n1"))] == [N.NODE_BECAME_SCHEDULABLE]
    assert [(fact.kind, fact.subject, fact.uid) for fact in filled.remove(a_node("n1"))] == [(N.NODE_GONE, "n1", "uid-n1")]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({}, {}, [], id="nothing"),
        pytest.param({}, {"node": "n1"}, [N.POD_BOUND], id="bound"),
        pytest.param({"node": "n1"}, {"node": "n1", "ready": True}, [N.POD_READY], id="ready"),
        pytest.param({"ready": True}, {}, [], id="not-ready-any-more"),
        pytest.param({}, {"phase": "Failed"}, [N.POD_FAILED], id="failed"),
        pytest.param({}, {"restarts": 1}, [N.POD_RESTARTED], id="restarted"),
        pytest.param({"restarts": 2}, {"restarts": 1}, [], id="fewer-restarts"),
        pytest.param({}, {"app": "other"}, [N.POD_CHANGED], id="labels"),
        pytest.param({}, {"deleted": True}, [N.POD_TERMINATING], id="terminating"),
        pytest.param({}, {"uid": "new", "node": "n1"}, [N.POD_GONE, N.POD_ADDED, N.POD_BOUND], id="replaced"),
    ],
)
async def test_a_pod_that_changes(before: dict[str, Any], after: dict[str, Any], expected: list[FactKind]):
    """Each fact once, when it becomes true."""
    filled = await Filled().sync(a_pod("a", **before))
    assert [fact.kind for fact in filled.put(a_pod("a", **after))] == expected


async def test_a_pod_that_comes_and_goes_names_its_node():
    """The detail of a pod's fact is where it runs."""
    filled = await Filled().sync(a_node("n1"))
    (added, bound) = filled.put(a_pod("a", node="n1"))
    (gone,) = filled.remove(a_pod("a"))
    assert (added.kind, added.subject, added.uid, added.detail) == (N.POD_ADDED, "s/a", "uid-a", "n1")
    assert (bound.kind, gone.kind, gone.detail) == (N.POD_BOUND, N.POD_GONE, "n1")


async def test_a_late_deletion_of_an_older_pod_of_that_name_means_nothing():
    """The uid decides which pod is gone."""
    filled = await Filled().sync(a_pod("a", uid="new"))
    assert filled.remove(a_pod("a", uid="old")) == ()
    assert filled.cache.pod("s/a") is not None


async def test_a_budget_that_changes_is_told_apart_from_the_rest():
    """The ledger waits for changes of budgets."""
    filled = await Filled().sync()
    facts = filled.put(an_object("PodDisruptionBudget", "b", "s", spec={"selector": {}}), an_object("Namespace", "s"))
    assert [(fact.kind, fact.subject) for fact in facts] == [(N.BUDGET_CHANGED, "s/b"), (N.OTHER_CHANGED, "s")]


async def test_a_first_list_means_nothing_and_a_relist_means_its_difference():
    """What was there when the process started has not just happened; what a broken watch missed has."""
    filled = Filled()
    assert await filled.list("Node", a_node("n1")) == ()
    assert await filled.list("Pod", a_pod("a", node="n1"), a_pod("b", node="n1")) == ()
    facts = await filled.list("Pod", a_pod("b", node="n1", ready=True), a_pod("c"))
    assert sorted((fact.kind, fact.subject) for fact in facts) == [
        (N.POD_ADDED, "s/c"),
        (N.POD_GONE, "s/a"),
        (N.POD_READY, "s/b"),
    ]
    facts = await filled.list("Node", a_node("n2"))
    assert [(fact.kind, fact.subject) for fact in facts] == [
        (N.NODE_GONE, "n1"),
        (N.NODE_JOINED, "n2"),
        (N.NODE_BECAME_SCHEDULABLE, "n2"),
    ]
