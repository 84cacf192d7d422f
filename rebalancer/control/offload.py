"""Run a long pure computation beside the event loop, in a thread that does not hold up the exit of the process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


async def beside_the_loop(compute: Callable[[], Result], *, name: str) -> Result:
    """Return what the computation returns, or raise what it raises. Cancelling the wait leaves the thread to end by itself.

    The pools of asyncio are joined at exit and would keep a process that was told to stop; a daemon thread is not.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def settle(act: Callable[[], None]) -> None:
        """Hand the outcome over, unless the wait was given up."""
        if not future.done():
            act()

    def work() -> None:
        """Compute in the thread."""
        try:
            result = compute()
        except BaseException as error:
            act: Callable[[], None] = lambda error=error: future.set_exception(error)  # type: ignore[misc] # noqa: E731
        else:
            act = lambda: future.set_result(result)  # noqa: E731
        try:
            loop.call_soon_threadsafe(settle, act)
        except RuntimeError:
            # The loop is closed: nobody waits any more.
            return

    threading.Thread(target=work, name=name, daemon=True).start()
    return await future
