"""One replica of the whole service as a process that can be frozen and killed, and what is crippled in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

from rebalancer.control.happenings import Happening
from rebalancer.model.plan import Plan
from rebalancer.model.trigger import Trigger, TriggerKind
from rebalancer.placement.profile import DEFAULT
from rebalancer.policy import Policy
from rebalancer.service.life import Stop, serve
from rebalancer.service.parts import Parts, build
from rebalancer.settings import Settings
from tests.control.virtual import VirtualClock
from tests.histories.network import Line
from tests.histories.observer import Observer
from tests.histories.processes import Process

MOST_STOP_SECONDS = 5.0
Build = Callable[..., Parts]


class Replica:
    """A process of the service. build: how its parts are put together."""

    def __init__(
        self,
        process: Process,
        observer: Observer,
        line: Line,
        settings: Settings,
        policy: Policy,
        clock: VirtualClock,
        *,
        seed: int,
        evaluation_seconds: float,
        build: Build = build,
    ) -> None:
        """Start it."""
        self.name = observer.name
        self.process = process
        self.line = line
        self._observer = observer
        self._evaluation_seconds = evaluation_seconds
        self._stop: Stop = process.enter(Stop)
        observer.line = line
        self.parts: Parts = process.enter(
            lambda: build(settings, policy, DEFAULT, line, [self._hear], random=Random(seed), clock=clock, beside=self._compute)
        )
        observer.parts = self.parts
        self.task = process.start(serve(self.parts, self._stop, policy_file=None, listen=False), self.name)

    def _hear(self, happening: Happening) -> None:
        self._observer.hear(happening)

    async def _compute(self, compute: Callable[[], Plan]) -> Plan:
        self._observer.looks()
        await asyncio.sleep(self._evaluation_seconds)
        return compute()

    @property
    def leads(self) -> bool:
        """Whether it believes to lead."""
        return self.parts.election is not None and self.parts.election.leading

    def ask(self) -> None:
        """Ask for a run."""
        self.process.enter(lambda: self.parts.trigger(Trigger(TriggerKind.MANUAL, "", "asked"), urgent=True))

    async def stop(self) -> str | None:
        """Tell it to stop, and wait; return what is wrong with how it ended."""
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        self._stop.event.set()
        done, _ = await asyncio.wait({self.task}, timeout=60.0)
        seconds = loop.time() - began_at
        if not done:
            return f"{self.name} did not stop"
        if (error := self.task.exception()) is not None:
            return f"{self.name} failed: {error!r}"
        return f"{self.name} took {seconds:.2f} s to stop" if seconds >= MOST_STOP_SECONDS else None

    def failure(self) -> str | None:
        """Return why it ended by itself; None while it runs or was stopped."""
        if not self.task.done() or self.task.cancelled():
            return None
        error: Any = self.task.exception()
        return f"{self.name} ended by itself: {error!r}"

    async def bury(self) -> None:
        """Clear it away."""
        self.line.gone = True
        await self.process.bury()
        await self.line.bury()
