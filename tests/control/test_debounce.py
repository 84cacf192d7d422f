"""Debounce: quiet time, hard maximum, nothing lost. What makes triggers is in test_triggers."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from rebalancer.control.debounce import Batch, Debounce
from rebalancer.model.trigger import Trigger, TriggerKind
from tests.control.virtual import VirtualClock

pytestmark = pytest.mark.looptime

A = Trigger(TriggerKind.NODE_JOINED, "a")
B = Trigger(TriggerKind.NODE_JOINED, "b")
C = Trigger(TriggerKind.TICK)


def turned() -> None:
    """Take a turn that nobody looks at."""


def a_debounce(quiet: float = 5.0, maximum: float = 60.0) -> Debounce:
    """Return one with the default times."""
    return Debounce(VirtualClock(), quiet_seconds=quiet, maximum_seconds=maximum)


async def timed(debounce: Debounce) -> tuple[float, Batch]:
    """Return the next batch and the virtual moment at which it came."""
    batch = await debounce.next_batch(turned)
    return asyncio.get_running_loop().time(), batch


async def test_a_single_trigger_waits_for_the_quiet_time() -> None:
    """One trigger is handed out exactly one quiet time after it came."""
    debounce = a_debounce()
    debounce.add(A)
    moment, batch = await timed(debounce)
    assert (round(moment, 6), batch.triggers, batch.collapsed) == (5.0, (A,), 0)


async def test_each_new_trigger_begins_the_quiet_time_again() -> None:
    """A burst is one batch, one quiet time after its last trigger; equal triggers are counted, not kept."""
    debounce = a_debounce()

    async def burst() -> None:
        """Send four triggers, three seconds apart."""
        for trigger in (A, B, A, A):
            debounce.add(trigger)
            await asyncio.sleep(3)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(burst())
        moment, batch = await timed(debounce)
    assert (round(moment, 6), batch.triggers, batch.collapsed) == (9 + 5.0, (A, B), 2)
    assert batch.waited_seconds == pytest.approx(14)


async def test_an_endless_stream_is_cut_at_the_maximum() -> None:
    """Triggers that never let up are handed out after the maximum, however short their distance."""
    debounce = a_debounce()

    async def stream() -> None:
        """Send a trigger every second, for ever."""
        while True:
            debounce.add(A)
            await asyncio.sleep(1)

    feeding = asyncio.create_task(stream())
    moment, _ = await timed(debounce)
    second, _ = await timed(debounce)
    feeding.cancel()
    await asyncio.gather(feeding, return_exceptions=True)
    assert moment == pytest.approx(60)
    assert second == pytest.approx(120, abs=1.01)


async def test_what_comes_while_a_run_goes_on_is_the_next_batch() -> None:
    """Triggers that arrive after the hand-out wait for the next one, and are all in it."""
    debounce = a_debounce()
    debounce.add(A)
    await debounce.next_batch(turned)
    debounce.add(B)
    debounce.add(C)
    await asyncio.sleep(100)
    moment, batch = await timed(debounce)
    assert batch.triggers == (B, C)
    assert moment == pytest.approx(105), "it was due long ago, so it comes at once"


async def test_a_trigger_in_the_very_turn_of_the_hand_out_is_not_lost() -> None:
    """Adding at the moment at which a batch is due puts the trigger into that batch or the next, never into none."""
    debounce = a_debounce()
    debounce.add(A)
    asyncio.get_running_loop().call_at(asyncio.get_running_loop().time() + 5.0, debounce.add, B)
    _, first = await timed(debounce)
    seen = set(first.triggers)
    if B not in seen:
        seen |= set((await timed(debounce))[1].triggers)
    assert seen == {A, B}


async def test_an_urgent_trigger_takes_what_waits_along_at_once() -> None:
    """A person who asks does not wait for quiet."""
    debounce = a_debounce()
    debounce.add(A)
    asyncio.get_running_loop().call_later(1.0, lambda: debounce.add(B, urgent=True))
    moment, batch = await timed(debounce)
    assert (round(moment, 6), batch.triggers) == (1.0, (A, B))


async def test_put_back_triggers_come_first_in_the_next_batch() -> None:
    """What could not be acted on is kept, in front of what came since, and equal ones collapse."""
    debounce = a_debounce()
    debounce.add(B)
    debounce.put_back((A, B))
    _, batch = await timed(debounce)
    assert batch.triggers == (A, B)
    assert batch.collapsed == 1


async def test_nothing_waits_for_ever_without_a_sign_of_life() -> None:
    """While nothing comes, the wait turns at least every ten seconds."""
    turns: list[float] = []
    debounce = a_debounce()
    waiting = asyncio.create_task(debounce.next_batch(lambda: turns.append(asyncio.get_running_loop().time())))
    await asyncio.sleep(35)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert len(turns) == 4
    assert max(after - before for before, after in itertools.pairwise(turns)) <= 10.0


@pytest.mark.parametrize("quiet", [0.0, 1.0], ids=["no quiet time", "a second"])
async def test_the_quiet_time_may_be_anything_down_to_nothing(quiet: float) -> None:
    """Without a quiet time a batch is due at once."""
    debounce = a_debounce(quiet=quiet)
    debounce.add(A)
    assert debounce.due_in() == quiet
    moment, _ = await timed(debounce)
    assert moment == pytest.approx(quiet)
