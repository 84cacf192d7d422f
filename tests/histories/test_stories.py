"""Chosen stories, told with the whole service in virtual time: what random histories hit only by chance."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from rebalancer.sim.faults import Fault, Trouble
from rebalancer.sim.requests import Request
from tests.histories.observer import Ambush, accounts_for
from tests.histories.story import tell
from tests.histories.world import PROMISES, WINDOW_OPEN, WINDOW_PERIOD, World
from tests.service.process import POLICY


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


def hold_back(world: World, until: Callable[[], bool]) -> list[str]:
    """Hold the account of the next eviction back until then; return where it says that it did."""
    struck: list[str] = []

    async def strike(request: Request) -> None:
        """Hold it back."""
        while not until():
            await asyncio.sleep(0.05)
        struck.append(request.path)

    def meets(request: Request) -> bool:
        """Say whether an eviction is about to be sent."""
        return bool(accounts_for(request, world.clock.now(), within=0.1))

    world.witness.ambushes.append(Ambush(meets, strike))
    return struck


def test_a_window_that_closes_while_a_request_is_accounted_for_stops_it() -> None:
    """The account was begun in time and is written too late: the request does not go out any more."""

    async def story(world: World) -> None:
        """Tell what happens."""
        await world.begin(1)
        await asyncio.sleep(WINDOW_OPEN - 3.5 - world.clock.now() % WINDOW_PERIOD)
        before = world.witness.counts["requests"]
        struck = hold_back(world, lambda: world.clock.now() % WINDOW_PERIOD > WINDOW_OPEN)
        world.cluster.add_node("node-04")
        await asyncio.sleep(1.5)
        world.replicas[0].ask()
        await asyncio.sleep(30.0)
        assert struck
        assert world.witness.counts["requests"] == before

    tell(story, windows=True, policy=POLICY)


def test_a_lease_that_runs_out_while_a_request_is_accounted_for_stops_it() -> None:
    """It still leads, and what is left of its lease is shorter than a request may take: the request does not go out."""

    async def story(world: World) -> None:
        """Tell what happens."""
        await world.begin(1)
        await asyncio.sleep(40.0)
        (replica,) = world.replicas
        election = replica.parts.election
        assert election is not None
        world.cluster.faults.add(Fault(Trouble.RESET, "/leases", watches=False, times=None))
        while election.remaining_seconds() > PROMISES.request + 3.0:
            await asyncio.sleep(0.05)
        before = world.witness.counts["requests"]
        struck = hold_back(world, lambda: election.remaining_seconds() < PROMISES.request)
        world.cluster.add_node("node-04")
        await asyncio.sleep(1.0)
        replica.ask()
        while election.leading:
            await asyncio.sleep(0.05)
        assert struck
        assert world.witness.counts["requests"] == before
        world.cluster.faults.clear()
        await asyncio.sleep(30.0)
        assert world.witness.counts["requests"] > before

    tell(story, policy=POLICY)


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
