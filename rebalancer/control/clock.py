"""The clock of the real world, bound to the running event loop."""

from __future__ import annotations

import asyncio
import time


class LoopClock:
    """Waits on the event loop; reads the wall clock, and a monotonic one that goes on while the machine is suspended."""

    def __init__(self) -> None:
        self._boot_clock = getattr(time, "CLOCK_BOOTTIME", None)

    def monotonic(self) -> float:
        """Return seconds that never go backwards and do not stop while the process is frozen."""
        return time.monotonic() if self._boot_clock is None else time.clock_gettime(self._boot_clock)

    def now(self) -> float:
        """Return seconds since the epoch, UTC."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    async def wait_for(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait until the event is set, at most so long; say whether it is."""
        return await wait_for(event, seconds)


async def wait_for(event: asyncio.Event, seconds: float) -> bool:
    """Wait on the event loop's own timer until the event is set, at most so long; say whether it is."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return event.is_set()
    return True
