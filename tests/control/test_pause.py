"""Reasons to wait: pending pods, NotReady nodes, an operator's annotation; and that a run respects them."""

from __future__ import annotations

import pytest

from rebalancer.control.pause import PAUSE_ANNOTATION, PauseLimits, paused_by_cluster, paused_by_operator
from rebalancer.model.cap import Cap
from tests.control.cluster import World, a_node, a_pod
from tests.control.stage import Stage, moving

pytestmark = pytest.mark.looptime


@pytest.mark.parametrize(
    ("value", "paused"),
    [("true", True), ("maintenance until Monday", True), ("", False), ("false", False), ("False", False), ("0", False)],
    ids=["true", "a reason", "empty", "false", "False", "0"],
)
async def test_an_annotation_on_the_lease_pauses_unless_it_says_no(value: str, paused: bool) -> None:
    """Any value but an empty one and a no pauses: a pause that was meant must not fail by its spelling."""
    assert (paused_by_operator({PAUSE_ANNOTATION: value}) is not None) is paused
    assert paused_by_operator({}) is None


@pytest.mark.parametrize(
    ("limit", "pending", "paused"),
    [
        (Cap(number=2), 1, False),
        (Cap(number=2), 2, False),
        (Cap(number=2), 3, True),
        (Cap(percent=20), 2, False),
        (Cap(percent=20), 3, True),
        (Cap(number=0), 0, False),
        (Cap(number=0), 1, True),
        (None, 9, False),
    ],
    ids=["below", "at", "above", "at a share", "above a share", "none allowed, none there", "none allowed, one", "no limit"],
)
async def test_pending_pods_pause(limit: Cap | None, pending: int, paused: bool) -> None:
    """More pods that wait for a node than the limit, as a number or a share of all: nothing is evicted."""
    waiting = [a_pod(f"w{number}", None, phase="Pending") for number in range(pending)]
    running = [a_pod(f"r{number}") for number in range(10 - pending)]
    world = await World(a_node("n1"), *waiting, *running).sync()
    assert (paused_by_cluster(world.cache.snapshot(), PauseLimits(pending=limit)) is not None) is paused


@pytest.mark.parametrize(
    ("limit", "down", "paused"),
    [(Cap(percent=25), 1, False), (Cap(percent=25), 2, True), (Cap(number=0), 1, True), (None, 4, False)],
    ids=["at the share", "above the share", "none allowed", "no limit"],
)
async def test_nodes_that_are_not_ready_pause(limit: Cap | None, down: int, paused: bool) -> None:
    """More NotReady nodes than the limit means something is wrong that evictions would make worse."""
    world = await World(*(a_node(f"n{number}", ready=number >= down) for number in range(4))).sync()
    assert (paused_by_cluster(world.cache.snapshot(), PauseLimits(not_ready=limit)) is not None) is paused


async def test_a_cluster_without_nodes_is_no_reason_to_pause() -> None:
    """Zero of zero nodes are down."""
    world = await World().sync()
    assert paused_by_cluster(world.cache.snapshot(), PauseLimits(Cap(percent=10), Cap(percent=10))) is None


async def test_a_run_does_not_start_while_it_is_paused() -> None:
    """What pauses keeps the run from starting, and it says why."""
    pods = [a_pod("p0", app="a"), a_pod("w", None, phase="Pending")]
    world = await World(a_node("n1"), a_node("n2"), *pods).sync()
    stage = Stage(world, moving(pods[:1]), pauses=PauseLimits(pending=Cap(number=0)))
    ended = await stage.run()
    assert (ended.ending, stage.cluster.asked) == ("closed", [])
    assert "pending" in ended.reason
