"""A clock that runs on the event loop's virtual time, and listeners that keep what they hear."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from rebalancer.control.clock import wait_for
from rebalancer.control.happenings import Happening

EPOCH = 1_790_000_000.0
Kind = TypeVar("Kind")


class VirtualClock:
    """Monotonic time is the loop's; the wall clock starts at a fixed moment and may be set off by a skew."""

    def __init__(self, epoch: float = EPOCH, skew: float = 0.0) -> None:
        """Start at the epoch."""
        self.epoch = epoch
        self.skew = skew
        self.frozen_for = 0.0

    def monotonic(self) -> float:
        """Return the loop's time."""
        return asyncio.get_running_loop().time() + self.frozen_for

    def now(self) -> float:
        """Return the wall clock."""
        return self.epoch + self.monotonic() + self.skew

    async def sleep(self, seconds: float) -> None:
        """Wait in virtual time."""
        await asyncio.sleep(seconds)

    async def wait_for(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait in virtual time."""
        return await wait_for(event, seconds)


class Heard:
    """Listens, and keeps everything."""

    def __init__(self) -> None:
        """Start with nothing heard."""
        self.all: list[Happening] = []

    def __call__(self, happening: Happening) -> None:
        """Keep it."""
        self.all.append(happening)

    def of(self, kind: type[Kind]) -> list[Kind]:
        """Return what was heard of one kind, in order."""
        return [happening for happening in self.all if isinstance(happening, kind)]
