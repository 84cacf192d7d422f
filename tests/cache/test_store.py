"""The cache equals what was reported, by whatever way; snapshots are frozen; evictions that were accepted show at once."""

from __future__ import annotations

import asyncio
import gc
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.cache.collector import freeze, paused
from rebalancer.cache.pods import PodTable, alike
from rebalancer.model.snapshot import Snapshot, snapshot_of
from tests.cache.builders import Filled, a_node, a_pod, an_object

NODES = ("n1", "n2", "n3")


def described(snapshot: Snapshot) -> Any:
    """What a snapshot says of nodes and pods, as plain values that compare."""

    def pod(each: Any) -> tuple[Any, ...]:
        return each.key, each.uid, each.node, each.ready, each.phase, each.terminating, dict(each.shape.labels)

    return (
        list(snapshot.nodes),
        {name: [pod(each) for each in bucket] for name, bucket in snapshot.pods.items()},
        [pod(each) for each in snapshot.unplaced],
        {name: [budget.name for budget in budgets] for name, budgets in snapshot.budgets.items()},
        sorted(snapshot.workloads),
    )


pods = st.builds(
    lambda name, life, **more: a_pod(name, uid=f"uid-{name}-{life}", **more),
    st.sampled_from(("a", "b", "c", "d")),
    st.integers(0, 2),
    node=st.sampled_from(("", *NODES, "unknown")),
    namespace=st.sampled_from(("s", "t")),
    owner=st.sampled_from(("", "rs", "rs2")),
    ready=st.booleans(),
    phase=st.sampled_from(("Pending", "Running", "Failed")),
    app=st.sampled_from(("web", "db")),
)
nodes = st.builds(a_node, st.sampled_from(NODES), ready=st.booleans(), cpu=st.sampled_from(("4", "8")))
others = st.builds(
    an_object,
    st.just("PodDisruptionBudget"),
    st.sampled_from(("b1", "b2")),
    st.sampled_from(("s", "t")),
    spec=st.just({"selector": {}}),
) | st.builds(
    an_object,
    st.just("ReplicaSet"),
    st.sampled_from(("r1", "r2")),
    st.just("s"),
    spec=st.builds(lambda replicas: {"replicas": replicas, "selector": {}}, st.integers(0, 2)),
)
steps = st.lists(st.tuples(st.sampled_from(("put", "remove", "relist")), st.one_of(pods, nodes, others)), max_size=40)


@given(steps)
def test_the_cache_equals_what_was_reported(history: list[tuple[str, dict[str, Any]]]):
    """Whatever comes, in whatever order, and by list or by watch: indexes and snapshot are those of a cache built at once."""

    async def play() -> None:
        """Play the history."""
        filled = await Filled().sync()
        truth: dict[tuple[str, str, str], dict[str, Any]] = {}
        for what, body in history:
            key = (body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"])
            if what == "remove":
                known = truth.pop(key, None)
                filled.remove(known or body)
            else:
                truth[key] = body
                if what == "put":
                    filled.put(body)
                else:
                    await filled.list(body["kind"], *(each for (kind, _, _), each in truth.items() if kind == body["kind"]))
        check(filled, truth)

    asyncio.run(play())


def check(filled: Filled, truth: dict[tuple[str, str, str], dict[str, Any]]) -> None:
    """Compare a cache with the objects that it should hold."""
    fresh = Filled()
    parsed = [(kind, fresh.parsed(body)) for (kind, _, _), body in truth.items()]
    expected = snapshot_of(
        0.0,
        nodes=[value for kind, value in parsed if kind == "Node"],
        pods=[value for kind, value in parsed if kind == "Pod"],
        budgets=[value for kind, value in parsed if kind == "PodDisruptionBudget"],
        workloads=[value for kind, value in parsed if kind == "ReplicaSet" and value.replicas],
    )
    found = filled.cache.snapshot()
    assert described(found) == described(expected)
    for owner in ("uid-rs", "uid-rs2"):
        members = sorted(pod.uid for pod in expected.all_pods() if pod.shape.owner and pod.shape.owner.uid == owner)
        assert [pod.uid for pod in filled.cache.pods_of(owner)] == members
    for namespace in ("s", "t"):
        members = sorted(pod.name for pod in expected.all_pods() if pod.namespace == namespace)
        assert sorted(pod.name for pod in filled.cache.pods_in(namespace)) == members
    assert filled.cache.count("Pod") == len(list(expected.all_pods()))


async def test_a_snapshot_never_changes():
    """What an evaluation reads beside the event loop stays as it was."""
    filled = await Filled().sync(a_node("n1"), a_pod("a", node="n1"))
    before = filled.cache.snapshot()
    picture = described(before)
    filled.put(a_pod("b", node="n1"), a_node("n2"), an_object("PodDisruptionBudget", "b", "s", spec={"selector": {}}))
    filled.remove(a_pod("a"))
    assert described(before) == picture
    assert [pod.name for pod in filled.cache.snapshot().pods["n1"]] == ["b"]


async def test_what_has_not_changed_is_the_same_object_in_the_next_snapshot():
    """Whatever was computed for a bucket stays right while the bucket is the same."""
    filled = await Filled().sync(a_node("n1"), a_node("n2"), a_pod("a", node="n1"), a_pod("b", node="n2"))
    before = filled.cache.snapshot()
    filled.put(a_pod("b", node="n2", ready=True))
    after = filled.cache.snapshot()
    assert after.pods["n1"] is before.pods["n1"]
    assert after.pods["n2"] is not before.pods["n2"]
    assert after.nodes is before.nodes
    assert filled.cache.snapshot().pods is after.pods


async def test_a_relist_without_a_difference_changes_no_bucket():
    """An object that comes again equal is the one known already."""
    bodies = [a_pod("a", node="n1"), a_pod("b", node="n2"), a_pod("c", owner="other")]
    filled = await Filled().sync(a_node("n1"), a_node("n2"), *bodies)
    before, generation = filled.cache.snapshot(), filled.cache.pods_of("uid-rs")
    assert await filled.list("Pod", *reversed(bodies)) == ()
    after = filled.cache.snapshot()
    assert all(after.pods[name] is before.pods[name] for name in ("n1", "n2"))
    assert filled.cache.pods_of("uid-rs") is generation


async def test_a_relist_shows_all_at_once():
    """While it is taken over in slices, snapshots show what was there before."""
    many = [a_pod(f"p{number:04}", node="n1") for number in range(1200)]
    filled = await Filled().sync(a_node("n1"), *many[:10])
    task = asyncio.create_task(filled.list("Pod", *many))
    seen = set()
    while not task.done():
        seen.add(len(filled.cache.snapshot().pods["n1"]))
        await asyncio.sleep(0)
    await task
    seen.add(len(filled.cache.snapshot().pods["n1"]))
    assert seen == {10, 1200}


async def test_pods_of_a_node_that_is_not_known_are_unplaced():
    """Every pod of a snapshot has its node in the snapshot; the others are kept apart."""
    filled = await Filled().sync(a_node("n1"), a_pod("a", node="gone"), a_pod("b"), a_pod("c", node="n1"))
    snapshot = filled.cache.snapshot()
    assert [pod.name for pod in snapshot.unplaced] == ["a", "b"]
    filled.put(a_node("gone"))
    assert [pod.name for pod in filled.cache.snapshot().pods["gone"]] == ["a"]


async def test_an_accepted_eviction_shows_as_terminating_until_the_watch_says_so():
    """The next look must not ask for the same pod again; the watch's own word is still to be had."""
    filled = await Filled().sync(a_node("n1"), a_pod("a", node="n1"))
    filled.cache.assume_evicted("s/a", "uid-a", 30.0)
    (pod,) = filled.cache.snapshot().pods["n1"]
    assert pod.deleted_at == 2_000_000_030.0
    watched = filled.cache.pod("s/a")
    assert watched is not None
    assert not watched.terminating
    filled.put(a_pod("a", node="n1", ready=True))  # the kubelet wrote before the eviction
    (pod,) = filled.cache.snapshot().pods["n1"]
    assert (pod.ready, pod.terminating) == (True, True)
    assert [fact.kind.value for fact in filled.put(a_pod("a", node="n1", deleted=True))] == ["pod terminating"]
    filled.clock.now += 1000.0
    (pod,) = filled.cache.snapshot().pods["n1"]
    assert pod.terminating


@pytest.mark.parametrize(("seconds", "terminating"), [pytest.param(29.9, True, id="below"), pytest.param(30.0, False, id="at")])
async def test_an_assumption_ends_after_its_time(seconds: float, terminating: bool):
    """An eviction that never shows did not happen (a server-side race, a restored backup)."""
    filled = await Filled().sync(a_node("n1"), a_pod("a", node="n1"))
    filled.cache.assume_evicted("s/a", "uid-a", 30.0)
    filled.clock.now += seconds
    assert [pod.terminating for pod in filled.cache.snapshot().pods["n1"]] == [terminating]


async def test_an_assumption_is_about_one_uid():
    """A pod that took the name is another pod."""
    filled = await Filled().sync(a_node("n1"), a_pod("a", node="n1", uid="new"))
    filled.cache.assume_evicted("s/a", "old", 30.0)
    assert not filled.cache.snapshot().pods["n1"][0].terminating
    filled.cache.assume_evicted("s/a", "new", 30.0)
    filled.put(a_pod("a", node="n1", uid="newer"))
    assert not filled.cache.snapshot().pods["n1"][0].terminating


async def test_an_assumption_can_be_withdrawn():
    """The answer turned out to be no."""
    filled = await Filled().sync(a_node("n1"), a_pod("a", node="n1"))
    filled.cache.assume_evicted("s/a", "uid-a", 30.0)
    filled.cache.withdraw_assumption("uid-a")
    assert not filled.cache.snapshot().pods["n1"][0].terminating


async def test_an_assumption_outlives_a_relist():
    """A list that was read before the eviction showed does not undo it; a pod that is gone takes it along."""
    filled = await Filled().sync(a_node("n1"), a_pod("a", node="n1"), a_pod("b", node="n1"))
    for name in ("a", "b"):
        filled.cache.assume_evicted(f"s/{name}", f"uid-{name}", 30.0)
    facts = await filled.list("Pod", a_pod("a", node="n1"))
    assert [(fact.kind.value, fact.subject) for fact in facts] == [("pod gone", "s/b")]
    assert [(pod.name, pod.terminating) for pod in filled.cache.snapshot().pods["n1"]] == [("a", True)]


async def test_old_replica_sets_are_not_kept():
    """Ten revisions of each Deployment would cost memory, and no pod refers to them."""
    filled = await Filled().sync()
    scaled = {"spec": {"replicas": 1}, "status": {"replicas": 1}}
    filled.put(an_object("ReplicaSet", "r", "s", **scaled))
    assert list(filled.cache.snapshot().workloads) == ["uid-ReplicaSet-s-r"]
    filled.put(an_object("ReplicaSet", "r", "s", spec={"replicas": 0}))
    assert filled.cache.snapshot().workloads == {}


async def test_an_object_that_has_not_changed_becomes_the_known_value():
    """Heartbeats and managed fields cost no memory and mean nothing."""
    filled = await Filled().sync(a_node("n1"), a_pod("a"))
    assert filled.parsed(a_pod("a")) is filled.cache.pod("s/a")
    assert filled.parsed(a_node("n1")) is filled.cache.node("n1")
    generation = filled.cache.generation
    assert filled.put(a_node("n1"), a_pod("a")) == ()
    assert filled.cache.generation == generation


def test_pods_differ_in_any_field():
    """Equality looks at every field, times of conditions included."""
    filled = Filled()
    body = a_pod("a")
    later = json.loads(json.dumps(body))
    later["status"]["conditions"][0]["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    assert alike(filled.parsed(body), filled.parsed(body))
    assert not alike(filled.parsed(body), filled.parsed(later))


def test_a_frozen_cache_works_on():
    """Freezing is a matter of the collector only."""
    table = PodTable()
    freeze()
    filled = Filled()
    table.put(filled.parsed(a_pod("a", node="n1")))
    table.put(filled.parsed(a_pod("a", node="n2")))
    assert (list(table.by_node), table.count, len(list(table))) == (["n2"], 1, 1)


def test_a_collection_before_freezing_visits_only_what_is_new():
    """What was frozen once is not visited again: the loop would stand still for it."""
    collected = []
    freeze()
    gc.callbacks.append(lambda phase, info: collected.append(len(gc.get_objects())) if phase == "start" else None)
    try:
        values = [[] for _ in range(1000)]
        freeze()
    finally:
        gc.callbacks.pop()
    assert len(values) == 1000
    assert collected
    assert collected[-1] < 20_000


def test_the_collector_is_paused_only_for_a_while():
    """It goes on afterwards, after a failure too, unless it was off before; pauses may overlap."""
    assert gc.isenabled()
    with paused():
        assert not gc.isenabled()
        with paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), paused():
        _ = 1 / 0
    assert gc.isenabled()
