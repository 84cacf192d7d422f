"""Does an approval still hold? What earlier checks have seen makes later ones quicker, never different."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.control.recheck import OwnDoing, Progress, doubt
from rebalancer.model.plan import Approval
from rebalancer.model.pod import Pod
from rebalancer.model.snapshot import Snapshot
from tests.builders import a_cluster, a_node, a_pod

NODES = ("n1", "n2", "n3")
worlds = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(NODES), max_size=6),
        st.sets(st.sampled_from(NODES)),
        st.sets(st.sampled_from("abcdef")),
    ),
    min_size=2,
    max_size=5,
)


def an_approval(pod: Pod, landings: Iterable[str], owner_uid: str = "", strategy: str = "RemoveDuplicates") -> Approval:
    """Return the approval of a pod with equally likely landings."""
    names = sorted(landings)
    return Approval(
        pod=pod.key,
        uid=pod.uid,
        node=pod.node or "",
        owner_uid=owner_uid,
        profile="default",
        strategy=strategy,
        reason="because",
        landings={name: 1 / len(names) for name in names},
    )


OPEN = a_cluster(
    *(a_node(name) for name in NODES),
    a_pod("moving", node="n1"),
    *(a_pod(f"{name}-{node}", node=node) for name in "abcdef" for node in NODES),
)
CORDONED = a_cluster(*(a_node(name, cordoned=True) for name in NODES))


def a_world(places: dict[str, str], cordoned: set[str]) -> Snapshot:
    """Return a cluster in which the pod to be moved is on n1, and others where they are placed; equal things are the same."""
    there = {f"{name}-{node}" for name, node in places.items()} | {"moving"}
    return replace(
        OPEN,
        nodes={name: (CORDONED if name in cordoned else OPEN).nodes[name] for name in NODES},
        pods={name: tuple(pod for pod in OPEN.on(name) if pod.name in there) for name in NODES},
    )


@given(worlds=worlds, landings=st.sets(st.sampled_from(NODES[1:])))
def test_what_was_seen_before_changes_no_answer(
    worlds: list[tuple[dict[str, str], set[str], set[str]]], landings: set[str]
) -> None:
    """Over any changes of the world, checks that remember say what checks say that do not; own doing only grows."""
    (places, cordoned, _), *later = worlds
    then = a_world(places, cordoned)
    moving = next(pod for pod in then.on("n1") if pod.name == "moving")
    approval = an_approval(moving, landings)
    progress = Progress()
    own: set[str] = set()
    seen_worlds = [(a_world(places, cordoned), ours) for places, cordoned, ours in later]
    for newest, ours in (*seen_worlds, *seen_worlds):
        for more in (set[str](), {pod.uid for name in NODES for pod in newest.on(name) if pod.name[0] in ours}):
            own |= more
            doing = OwnDoing(frozenset(own), frozenset())
            assert doubt(then, newest, approval, doing, progress) == doubt(then, newest, approval, doing)


@pytest.mark.parametrize(
    ("strategy", "kind", "app", "landings", "code"),
    [
        ("RemoveDuplicates", "ReplicaSet", "web", ["n2"], "room-given-back"),
        ("LowNodeUtilization", "ReplicaSet", "web", ["n2"], None),
        ("RemoveDuplicates", "ReplicaSet", "other", ["n2"], None),
        ("RemoveDuplicates", "ReplicaSet", "web", [], None),
        ("RemoveDuplicates", "StatefulSet", "web", ["n2"], None),
    ],
    ids=["of a sibling", "for who fills nodes", "of another workload", "where nothing was foreseen", "which a plan has gone"],
)
def test_room_that_an_earlier_pod_has_given_back(
    strategy: str, kind: str, app: str, landings: list[str], code: str | None
) -> None:
    """A plan has earlier pods of a workload terminate while the next are placed: once one is gone, it does not hold any more."""
    nodes = [a_node(name) for name in NODES]
    earlier, pod = a_pod("earlier", node="n1", owner=kind, app=app), a_pod("pod", node="n1", owner=kind, app="web")
    then = a_cluster(nodes, earlier, pod)
    newest = replace(then, pods={**then.pods, "n1": tuple(each for each in then.on("n1") if each.name == "pod")})
    approvals = {
        each.name: an_approval(each, landings, f"owner-ns1-{each.shape.labels['app']}", strategy) for each in then.on("n1")
    }
    own = OwnDoing({approvals["earlier"].uid}, set())
    for world, expected in ((then, None), (newest, code)):
        found = doubt(then, world, approvals["pod"], own, Progress(moved=[approvals["earlier"]]))
        assert (found.code if found else None) == expected
