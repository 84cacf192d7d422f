"""Does an approval still hold? What earlier checks have seen makes later ones quicker, never different."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.control.recheck import OwnDoing, Seen, doubt
from rebalancer.model.plan import Approval
from rebalancer.model.snapshot import Snapshot
from tests.builders import Object, a_cluster, a_node, a_pod

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


def a_world(places: dict[str, str], cordoned: set[str]) -> Snapshot:
    """Return a cluster in which the pod to be moved is on n1, and others where they are placed."""
    nodes: list[Object] = [a_node(name, cordoned=name in cordoned) for name in NODES]
    return a_cluster(*nodes, a_pod("moving", node="n1"), *(a_pod(name, node=node) for name, node in sorted(places.items())))


@given(worlds=worlds, landings=st.sets(st.sampled_from(NODES[1:])))
def test_what_was_seen_before_changes_no_answer(
    worlds: list[tuple[dict[str, str], set[str], set[str]]], landings: set[str]
) -> None:
    """Over any changes of the world, checks that remember say what checks say that do not; own doing only grows."""
    (places, cordoned, _), *later = worlds
    then = a_world(places, cordoned)
    moving = next(pod for pod in then.on("n1") if pod.name == "moving")
    approval = Approval(
        pod=moving.key,
        uid=moving.uid,
        node="n1",
        owner_uid="",
        profile="default",
        strategy="RemoveDuplicates",
        reason="because",
        landings={name: 1 / len(landings) for name in sorted(landings)},
    )
    seen: Seen = {}
    own: set[str] = set()
    seen_worlds = [(a_world(places, cordoned), ours) for places, cordoned, ours in later]
    for newest, ours in (*seen_worlds, *seen_worlds):
        for more in (set[str](), {pod.uid for name in NODES for pod in newest.on(name) if pod.name in ours}):
            own |= more
            doing = OwnDoing(frozenset(own), frozenset())
            assert doubt(then, newest, approval, doing, seen) == doubt(then, newest, approval, doing)
