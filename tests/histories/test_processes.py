"""The loop of virtual time: nothing waits, frozen processes stand still, killed ones never run again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.histories.processes import Process, VirtualLoop


def in_virtual_time(play: Callable[[VirtualLoop], Awaitable[None]]) -> float:
    """Play, and return how many virtual seconds that took."""

    async def whole() -> float:
        """Play it."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        await play(loop)
        return loop.time()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(whole())


async def count(ticks: list[float]) -> None:
    """Note the time once a second."""
    while True:
        await asyncio.sleep(1.0)
        ticks.append(asyncio.get_running_loop().time())


def test_a_frozen_process_stands_still_and_catches_up() -> None:
    """Between freeze and thaw nothing in it runs, whatever falls due; then that runs at once, and time has passed."""
    ticks: list[float] = []

    async def play(loop: VirtualLoop) -> None:
        """Play what happens."""
        process = Process(loop)
        process.start(count(ticks), "count")
        await asyncio.sleep(2.5)
        process.freeze()
        await asyncio.sleep(10.0)
        assert ticks == [1.0, 2.0]
        process.thaw()
        await asyncio.sleep(1.5)
        await process.bury()

    assert in_virtual_time(play) == pytest.approx(14.0)
    assert ticks == [1.0, 2.0, 12.5, 13.5]


def test_what_was_cancelled_before_the_thaw_takes_effect_does_not_run() -> None:
    """A time limit that passed while everything stood still does not strike after what it limited has ended."""

    async def play(loop: VirtualLoop) -> None:
        """Play what happens."""
        process, done = Process(loop), asyncio.Event()

        async def wait() -> str:
            """Wait, for five seconds at most."""
            async with asyncio.timeout(5.0):
                await done.wait()
            return "in time"

        waiting = process.start(wait(), "wait")
        await asyncio.sleep(1.0)
        process.freeze()
        done.set()
        await asyncio.sleep(20.0)
        process.thaw()
        assert await waiting == "in time"

    in_virtual_time(play)


def test_a_killed_process_has_no_last_word() -> None:
    """Neither does it go on, nor do its final clauses run, until it is buried."""
    said: list[str] = []

    async def speak() -> None:
        """Go on after a while, and have a last word."""
        try:
            await asyncio.sleep(3.0)
            said.append("went on")
        finally:
            said.append("last word")

    async def play(loop: VirtualLoop) -> None:
        """Play what happens."""
        process = Process(loop)
        process.start(speak(), "speak")
        await asyncio.sleep(1.0)
        process.kill()
        process.thaw()
        await asyncio.sleep(10.0)
        assert said == []
        await process.bury()

    in_virtual_time(play)
    assert "went on" not in said


def test_waiting_for_what_never_happens_is_an_error() -> None:
    """Where no timer is left, nobody can be woken any more."""

    async def play(loop: VirtualLoop) -> None:
        """Play what happens."""
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="nothing is left to happen"):
        in_virtual_time(play)
