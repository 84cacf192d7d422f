"""The store core without sockets: versions, history, pages, watches, expiry."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.sim.cluster import EmbeddedCluster
from rebalancer.sim.deletion import DeleteOptions, delete
from rebalancer.sim.kinds import BUDGET, LEASE, NODE, POD
from rebalancer.sim.listing import ListOptions, list_objects, open_watch
from rebalancer.sim.problems import ApiProblem


@pytest.fixture
def quiet() -> EmbeddedCluster:
    """The rules alone: no sockets, no controllers."""
    return EmbeddedCluster(seed=1, controllers=False, sockets=False, history_limit=8)


def a_pod(name: str, **labels: str) -> dict[str, Any]:
    """A pod on a node."""
    return {"metadata": {"name": name, "labels": labels}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}


def add(cluster: EmbeddedCluster, *names: str, **labels: str) -> None:
    """Create pods in the namespace default."""
    for name in names:
        cluster.registry.create(POD, "default", a_pod(name, **labels))


def options(**query: str) -> ListOptions:
    """The options of a list or watch."""
    return ListOptions.of(query)


def names(items: list[dict[str, Any]]) -> list[str]:
    """The names of objects."""
    return [item["metadata"]["name"] for item in items]


def test_each_write_takes_the_next_version(quiet: EmbeddedCluster) -> None:
    """There is one global version, and a write that changes nothing takes none."""
    add(quiet, "a")
    first = quiet.registry.get(POD, "default", "a")
    add(quiet, "b")
    second = quiet.registry.get(POD, "default", "b")
    assert int(second["metadata"]["resourceVersion"]) == int(first["metadata"]["resourceVersion"]) + 1
    before = quiet.store.version
    quiet.registry.modify(POD, "default", "a", lambda pod: None)
    assert quiet.store.version == before


def test_a_page_shows_the_list_as_it_was_at_the_first_page(quiet: EmbeddedCluster) -> None:
    """Later pages neither show what came since nor miss what went or changed."""
    add(quiet, "a", "c", "e", app="x")
    page = list_objects(quiet.store, POD, "default", options(limit="1"))
    add(quiet, "d")
    quiet.registry.modify(POD, "default", "c", lambda pod: pod["metadata"].__setitem__("labels", {"app": "y"}))
    delete(quiet.registry, POD, "default", "e", DeleteOptions(grace_seconds=0))
    rest = list_objects(quiet.store, POD, "default", options(limit="5", **{"continue": page.metadata["continue"]}))
    assert names(page.items) + names(rest.items) == ["a", "c", "e"]
    assert rest.items[0]["metadata"]["labels"] == {"app": "x"}
    assert rest.metadata["resourceVersion"] == page.metadata["resourceVersion"]


def test_a_continue_token_expires_with_the_history(quiet: EmbeddedCluster) -> None:
    """410, with a token that goes on inconsistently from the same place."""
    add(quiet, "a", "b")
    page = list_objects(quiet.store, POD, "default", options(limit="1"))
    add(quiet, "c")
    quiet.store.compact()
    with pytest.raises(ApiProblem) as caught:
        list_objects(quiet.store, POD, "default", options(limit="1", **{"continue": page.metadata["continue"]}))
    assert caught.value.code == 410
    token = caught.value.status["metadata"]["continue"]
    assert names(list_objects(quiet.store, POD, "default", options(**{"continue": token})).items) == ["b", "c"]


@pytest.mark.parametrize(("age", "expired"), [(7, False), (8, False), (9, True)], ids=["below", "at", "above"])
def test_a_watch_goes_back_as_far_as_the_history(quiet: EmbeddedCluster, age: int, expired: bool) -> None:
    """The history holds eight events: a watcher that has seen all but eight may go on, one more and it is too late."""
    add(quiet, "a")
    version = quiet.store.version
    for number in range(age):
        quiet.registry.modify(POD, "default", "a", lambda pod, n=number: pod["metadata"].__setitem__("labels", {"n": str(n)}))
    if expired:
        with pytest.raises(ApiProblem) as caught:
            open_watch(quiet.store, POD, None, options(resourceVersion=str(version)))
        assert caught.value.code == 410
    else:
        watch = open_watch(quiet.store, POD, None, options(resourceVersion=str(version)))
        assert len(watch.take()) == age


def test_a_watch_with_a_selector_sees_entering_and_leaving(quiet: EmbeddedCluster) -> None:
    """An object that begins to match is ADDED, one that stops is DELETED in its last matching form."""
    watch = open_watch(quiet.store, POD, "default", options(labelSelector="app=x", resourceVersion=str(quiet.store.version)))
    add(quiet, "a", app="y")
    for value in ("x", "x2", "x"):
        quiet.registry.modify(POD, "default", "a", lambda pod, v=value: pod["metadata"].__setitem__("labels", {"app": v}))
    seen = [(change.type, (change.obj or {})["metadata"]["labels"]["app"]) for change in watch.take()]
    assert seen == [("ADDED", "x"), ("DELETED", "x"), ("ADDED", "x")]


def test_a_streamed_list_ends_with_its_bookmark(quiet: EmbeddedCluster) -> None:
    """All present objects as ADDED, then a bookmark that says so."""
    add(quiet, "a", "b")
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true", "watch": "1"}
    changes = open_watch(quiet.store, POD, None, ListOptions.of(query)).take()
    assert [change.type for change in changes] == ["ADDED", "ADDED", "BOOKMARK"]
    assert changes[-1].initial_end


def test_a_stale_version_is_a_conflict(quiet: EmbeddedCluster) -> None:
    """Two writers from one version: the second is refused."""
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}}
    made = quiet.registry.create(LEASE, "default", lease)
    mine = {**made, "metadata": dict(made["metadata"]), "spec": {"holderIdentity": "b"}}
    quiet.registry.replace(LEASE, "default", "l", mine)
    with pytest.raises(ApiProblem) as caught:
        quiet.registry.replace(LEASE, "default", "l", mine)
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")


def test_an_update_of_what_is_gone_does_not_bring_it_back(quiet: EmbeddedCluster) -> None:
    """A Lease may be created by an update, but one that names the uid of a deleted Lease meets a failed precondition."""
    made = quiet.registry.create(LEASE, "default", {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}})
    delete(quiet.registry, LEASE, "default", "l", DeleteOptions())
    with pytest.raises(ApiProblem, match="Precondition failed: UID in precondition"):
        quiet.registry.replace(LEASE, "default", "l", made)
    again = {**made, "metadata": {"name": "l"}}
    assert quiet.registry.replace(LEASE, "default", "l", again)["metadata"]["uid"] != made["metadata"]["uid"]


def test_dry_run_stores_nothing_on_any_write(quiet: EmbeddedCluster) -> None:
    """Create, replace, delete and evict go through every rule, and the version stands still."""
    from rebalancer.sim.eviction import evict

    add(quiet, "a")
    version = quiet.store.version
    quiet.registry.create(POD, "default", a_pod("b"), dry_run=True)
    old = quiet.registry.get(POD, "default", "a")
    quiet.registry.replace(POD, "default", "a", {**old, "metadata": {**old["metadata"], "labels": {"x": "y"}}}, dry_run=True)
    delete(quiet.registry, POD, "default", "a", DeleteOptions(dry_run=True))
    evict(quiet.registry, "default", "a", {"metadata": {"name": "a"}, "deleteOptions": {"dryRun": ["All"]}})
    with pytest.raises(ApiProblem):
        quiet.registry.create(POD, "default", a_pod("NOT A NAME"), dry_run=True)
    assert quiet.store.version == version


def test_a_finalizer_holds_an_object_until_it_is_taken_off(quiet: EmbeddedCluster) -> None:
    """Delete marks it; the update that removes the last finalizer removes the object."""
    budget = {"metadata": {"name": "b", "finalizers": ["x.io/y"]}, "spec": {"minAvailable": 1}}
    quiet.registry.create(BUDGET, "default", budget)
    deleted = delete(quiet.registry, BUDGET, "default", "b", DeleteOptions())
    assert not deleted.gone
    assert "deletionTimestamp" in quiet.registry.get(BUDGET, "default", "b")["metadata"]
    quiet.registry.modify(BUDGET, "default", "b", lambda obj: obj["metadata"].pop("finalizers"))
    assert quiet.store.get(BUDGET.storage, "default", "b") is None


def test_a_new_node_is_tainted_until_it_is_ready(quiet: EmbeddedCluster) -> None:
    """Admission adds the not-ready taint once."""
    node = quiet.registry.create(NODE, "", {"metadata": {"name": "n"}})
    assert node["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]


def test_priority_comes_from_the_class(quiet: EmbeddedCluster) -> None:
    """By name, by the global default, never from a number that differs; an unknown class is forbidden."""
    from rebalancer.sim.kinds import PRIORITY_CLASS

    quiet.registry.create(PRIORITY_CLASS, "", {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"})
    pod = a_pod("p")
    pod["spec"]["priorityClassName"] = "high"
    made = quiet.registry.create(POD, "default", pod)
    assert (made["spec"]["priority"], made["spec"]["preemptionPolicy"]) == (1000, "Never")
    for name, priority in (("nope", None), ("high", 7)):
        pod = a_pod("q")
        pod["spec"] |= {"priorityClassName": name} | ({"priority": priority} if priority else {})
        with pytest.raises(ApiProblem) as caught:
            quiet.registry.create(POD, "default", pod)
        assert caught.value.code == 403
    quiet.registry.create(PRIORITY_CLASS, "", {"metadata": {"name": "usual"}, "value": 5, "globalDefault": True})
    made = quiet.registry.create(POD, "default", a_pod("r"))
    assert (made["spec"]["priorityClassName"], made["spec"]["priority"]) == ("usual", 5)
