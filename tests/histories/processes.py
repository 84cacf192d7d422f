"""An event loop of virtual time in which processes live that can be frozen and killed.

Whatever runs in the context of a process (``Process.start``) stands still while it is frozen, timers and replies included; when
it is thawed, everything that fell due meanwhile runs at once, as after SIGSTOP and SIGCONT. A killed process never runs again.
"""

from __future__ import annotations

import asyncio
import contextvars
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVarTuple

_Ts = TypeVarTuple("_Ts")
_PROCESS: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)


class Process:
    """What runs together, stands still together and dies together."""

    def __init__(self, loop: VirtualLoop) -> None:
        """Begin running."""
        self._loop = loop
        self._backlog: list[tuple[Callable[..., Any], tuple[Any, ...], contextvars.Context, list[asyncio.Handle]]] = []
        self._context = contextvars.copy_context()
        self._context.run(_PROCESS.set, self)
        self._tasks: list[asyncio.Task[Any]] = []
        self.frozen = False
        self.killed = False

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Start a task that belongs to the process, as do all that it starts itself."""
        task = self._loop.create_task(work, name=name, context=self._context.copy())
        self._tasks.append(task)
        return task

    def enter(self, act: Callable[[], Any]) -> Any:
        """Call a function as the process would."""
        return self._context.copy().run(act)

    def turn(self, timer: list[asyncio.Handle], callback: Callable[..., Any], *args: Any) -> None:
        """Run a callback, or keep it until the process is thawed. timer: what may still be cancelled until then."""
        if self.frozen:
            self._backlog.append((callback, args, contextvars.copy_context(), timer))
            return
        cancelled = any(handle.cancelled() for handle in timer)
        timer.clear()
        if not cancelled:
            callback(*args)

    def freeze(self) -> None:
        """Stop where it stands."""
        self.frozen = True

    def thaw(self) -> None:
        """Go on, unless it was killed."""
        if not self.killed:
            self._go_on()

    def kill(self) -> None:
        """Stop for ever, without a last word."""
        self.frozen = self.killed = True

    async def bury(self) -> None:
        """Clear away what a dead process left behind; nobody may listen to what it says."""
        for task in self._tasks:
            task.cancel()
        self._go_on()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _go_on(self) -> None:
        self.frozen = False
        backlog, self._backlog = self._backlog, []
        for callback, args, context, timer in backlog:
            self._loop.again(self.turn, timer, callback, *args, context=context)


class _Jumping(selectors.SelectSelector):
    """Waits for nothing: time jumps to when the next timer is due."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("nothing is left to happen, and somebody still waits")
        self.now += max(timeout, 0.0)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop that sleeps for nobody. Nothing in it may use threads or sockets."""

    def __init__(self) -> None:
        """Start at second 0."""
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return the virtual seconds since the start."""
        return self._jumping.now

    def call_soon(
        self, callback: Callable[[*_Ts], object], *args: *_Ts, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """Have a callback run next, in its process if it has one."""
        process = _PROCESS.get() if context is None else context.get(_PROCESS)
        if process is None:
            return super().call_soon(callback, *args, context=context)
        turn: Any = process.turn
        return super().call_soon(turn, [], callback, *args, context=context)

    def again(self, turn: Any, *args: Any, context: contextvars.Context) -> None:
        """Have what a frozen process missed run next."""
        super().call_soon(turn, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*_Ts], object], *args: *_Ts, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """Have a callback run at a time, in its process if it has one."""
        process = _PROCESS.get() if context is None else context.get(_PROCESS)
        if process is None:
            return super().call_at(when, callback, *args, context=context)
        timer: list[asyncio.Handle] = []
        turn: Any = process.turn
        handle = super().call_at(when, turn, timer, callback, *args, context=context)
        timer.append(handle)
        return handle
