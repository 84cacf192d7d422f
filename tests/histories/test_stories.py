"""Chosen stories, told with the whole service in virtual time: what random histories hit only by chance."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from rebalancer.sim.faults import Fault, Trouble
from tests.histories.processes import VirtualLoop
from tests.histories.world import PROMISES, World


def tell(story: Callable[[World], Awaitable[None]], *, windows: bool = False, evaluation_seconds: float = 0.01) -> World:
    """Tell a story in a new world, and hold it to its promises."""

    async def told(loop: VirtualLoop) -> World:
        """Tell it, and close the book."""
        world = World(loop, seed=11, windows=windows, evaluation_seconds=evaluation_seconds, lag_seconds=0.01)
        try:
            await story(world)
        finally:
            problems = [*world.failures(), *await world.end()]
        assert [*world.witness.broken, *problems] == []
        return world

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)
        return runner.run(told(loop))


@pytest.mark.parametrize("path", ["/poddisruptionbudgets", "/api/v1/pods", "/api/v1/nodes", "/priorityclasses"])
def test_no_run_starts_before_everything_needed_is_known_f1(path: str) -> None:
    """Budgets (or nodes, or pods) cannot be listed yet: no run, no request; they can: both (F1)."""

    async def story(world: World) -> None:
        """Tell what happens."""
        fault = world.cluster.faults.add(Fault(Trouble.UNAVAILABLE, path, times=None))
        await world.begin(1)
        await asyncio.sleep(120.0)
        assert fault.met > 2
        assert (world.witness.counts["runs"], world.witness.counts["requests"]) == (0, 0)
        world.cluster.faults.clear()
        await asyncio.sleep(60.0)
        assert world.witness.counts["runs"]
        assert world.witness.accepted

    tell(story)


@pytest.mark.parametrize(
    "action", ["fault: a replica is killed", "fault: a replica is frozen", "fault: a replica's packets are lost"]
)
def test_another_leads_within_the_lease_and_five_seconds(action: str) -> None:
    """Whatever befalls the leader in the middle of a run: takeover in time, and evictions go on."""

    async def story(world: World) -> None:
        """Tell what happens."""
        await world.begin(3)
        while not world.witness.accepted:
            await asyncio.sleep(0.05)
        (leader,) = [replica for replica in world.replicas if replica.leads]
        began_at = asyncio.get_running_loop().time()
        await world.act(action, 5)
        while not any(replica.leads for replica in world.replicas if replica is not leader):
            await asyncio.sleep(0.05)
            assert asyncio.get_running_loop().time() <= began_at + PROMISES.lease + 5.0
        before = world.witness.accepted
        await asyncio.sleep(60.0)
        assert world.witness.accepted > before
        await world.heal()

    tell(story)


@pytest.mark.parametrize("seconds", [0.0, 0.5, 1.5, 2.9, 3.1], ids=str)
def test_it_stops_in_time_in_the_middle_of_an_evaluation(seconds: float) -> None:
    """An evaluation that would take a minute does not hold up the end."""

    async def story(world: World) -> None:
        """Tell what happens."""
        await world.begin(1)
        while not world.witness.counts["runs"]:
            await asyncio.sleep(0.01)
        await asyncio.sleep(seconds)
        await world.act("fault: a replica is stopped and started", 1)

    world = tell(story, evaluation_seconds=60.0)
    assert world.counts["fault: a replica is stopped and started"] == 1


def test_a_window_that_closes_holds_everything_until_the_next_opens() -> None:
    """Over two periods: evictions in every open stretch, none in between, though there is always something to do."""

    async def story(world: World) -> None:
        """Tell what happens."""
        await world.begin(2)
        await asyncio.sleep(95.0)
        in_the_first = world.witness.accepted
        assert in_the_first
        await asyncio.sleep(75.0)
        between = world.witness.accepted
        await asyncio.sleep(60.0)
        assert world.witness.accepted > between

    tell(story, windows=True)


def test_a_restart_is_no_way_around_a_cap() -> None:
    """A run that is cut short by a restart is gone on with: its counts go on, too."""

    async def story(world: World) -> None:
        """Tell what happens."""
        await world.begin(1)
        for _ in range(4):
            while not world.witness.accepted:
                await asyncio.sleep(0.01)
            await world.act("fault: a replica is stopped and started", 1)
            await asyncio.sleep(3.0)
        assert world.witness.counts["runs taken over"] >= 1

    tell(story)
