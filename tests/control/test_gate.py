"""The gate: everything that forbids a request, each with its reason. Windows and pauses themselves have their own tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from rebalancer.control.gate import Gate
from rebalancer.control.happenings import GateChanged
from rebalancer.control.pause import PauseLimits
from rebalancer.control.windows import Window, Windows
from rebalancer.model.change import Bookmark, Disconnected
from tests.control.cluster import World, a_node
from tests.control.test_leadership import TIMES, Candidate, LeaseStore
from tests.control.virtual import Heard

pytestmark = pytest.mark.looptime


class Guarded:
    """A gate with an election behind it."""

    def __init__(self, world: World, store: LeaseStore) -> None:
        """Guard a world."""
        self.world = world
        self.store = store
        self.candidate = Candidate(store, "one")
        self.heard = Heard()
        self.gate = Gate(
            world.clock, world.cache, Windows(), PauseLimits(), self.candidate.election, self.heard, request_seconds=TIMES.request
        )

    async def up_to(self, version: int) -> None:
        """Have the caches hear of a version."""
        for kind in ("Pod", "Node", "PodDisruptionBudget"):
            await self.world.cache.receive(Bookmark(kind, str(version)))


@asynccontextmanager
async def a_leader() -> AsyncIterator[Guarded]:
    """Give a gate whose process has been elected."""
    guarded = Guarded(await World(a_node("n1")).sync(), LeaseStore())
    guarded.candidate.start()
    await asyncio.sleep(0.5)
    await guarded.up_to(100)
    try:
        yield guarded
    finally:
        await guarded.candidate.stop()


async def test_a_leader_on_fresh_caches_may_act() -> None:
    """Nothing forbids it."""
    async with a_leader() as guarded:
        assert guarded.gate.closed_because() is None


async def test_a_standby_may_not() -> None:
    """Another holds the lease, and is named."""
    async with a_leader() as guarded:
        assert guarded.store.record is not None
        guarded.store.put(replace(guarded.store.record, holder="other", renewed_at=guarded.world.clock.now()))
        await asyncio.sleep(3)
        assert guarded.gate.closed_because() == "standby: other holds the lease"
        assert guarded.gate.opens_by_itself()


async def test_no_request_starts_that_the_lease_would_not_outlast() -> None:
    """Cut off, it leads a while longer, but stops to act when a request might end after the lease."""
    async with a_leader() as guarded:
        guarded.candidate.client.cut = True
        renewed_at = guarded.world.clock.monotonic()
        while guarded.gate.closed_because() is None:
            assert guarded.world.clock.monotonic() + TIMES.request <= renewed_at + TIMES.duration
            await asyncio.sleep(0.05)
        assert "lease" in str(guarded.gate.closed_because())


async def test_a_new_leader_waits_for_the_requests_of_the_one_before() -> None:
    """After a takeover of an expired lease a request's time passes before anything goes."""
    async with a_leader() as guarded:
        other = Guarded(guarded.world, guarded.store)
        other.candidate = Candidate(guarded.store, "two")
        other.gate = Gate(
            guarded.world.clock,
            guarded.world.cache,
            Windows(),
            PauseLimits(),
            other.candidate.election,
            other.heard,
            request_seconds=TIMES.request,
        )
        await guarded.candidate.stop()
        other.candidate.start()
        while not other.candidate.election.leading:
            await asyncio.sleep(0.05)
            await guarded.up_to(100)
        assert "waits" in str(other.gate.closed_because())
        await asyncio.sleep(TIMES.request)
        assert other.gate.closed_because() is None
        await other.candidate.stop()
        guarded.candidate.start()


async def test_caches_older_than_the_takeover_are_not_acted_on() -> None:
    """Until the caches have reached the version at which leadership began, they may miss what was done before it."""
    guarded = Guarded(await World(a_node("n1")).sync(), LeaseStore())
    guarded.store.version = 50
    guarded.candidate.start()
    await asyncio.sleep(0.5)
    await guarded.up_to(50)
    assert "version" in str(guarded.gate.closed_because())
    await guarded.up_to(51)
    assert guarded.gate.closed_because() is None
    await guarded.candidate.stop()


async def test_a_stale_cache_is_named() -> None:
    """A watch that is down for ten seconds closes the gate, and says which one."""
    async with a_leader() as guarded:
        await guarded.world.cache.receive(Disconnected("Pod", "cut"))
        await asyncio.sleep(9)
        await guarded.up_to(101)
        assert guarded.gate.closed_because() is None
        await asyncio.sleep(2)
        assert "Pod" in str(guarded.gate.closed_because())


async def test_an_annotation_on_the_lease_closes_it_within_one_renewal() -> None:
    """An operator's pause is seen when the lease is next renewed, and its end as well."""
    async with a_leader() as guarded:
        assert guarded.store.record is not None
        guarded.store.put(replace(guarded.store.record, annotations={"rebalancer.io/paused": "true"}))
        await asyncio.sleep(TIMES.retry * 1.2 + 0.1)
        assert "rebalancer.io/paused" in str(guarded.gate.closed_because())
        guarded.store.put(replace(guarded.store.record, annotations={}))
        await asyncio.sleep(TIMES.retry * 1.2 + 0.1)
        assert guarded.gate.closed_because() is None


async def test_reasons_are_told_when_they_change_not_at_every_look() -> None:
    """Waiting for a window is one line, not four a second; a countdown in the reason makes no difference."""
    world = await World(a_node("n1")).sync()
    heard = Heard()
    window = Window("0 0 * * *", 3600.0)
    gate = Gate(world.clock, world.cache, Windows([window]), PauseLimits(), None, heard, request_seconds=3.0)
    waiting = asyncio.create_task(gate.opened(lambda: None))
    await asyncio.sleep(60)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert len(heard.of(GateChanged)) == 1
    assert not gate.opens_by_itself()


async def test_a_stopping_process_lets_nothing_out() -> None:
    """Once it was told to stop, no request starts."""
    async with a_leader() as guarded:
        guarded.gate.stopping = True
        assert guarded.gate.closed_because() == "the process is stopping"
