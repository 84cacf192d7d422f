"""Collect triggers into batches: a batch is handed out after a quiet time, or at the latest after a maximum.

Triggers enter through ``add``; a batch leaves through ``next_batch``. A trigger that arrives while a run is going on waits
here and is part of the next batch; nothing is ever dropped, only equal triggers are counted instead of kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rebalancer.control.ports import Clock
from rebalancer.model.trigger import Trigger

# How long the waiting room stands still at most, so that it can be seen to be alive.
_LOOK_SECONDS = 10.0
# Beyond so many different triggers they are only counted: each batch looks at everything anyway.
_MOST = 1000


@dataclass(frozen=True, slots=True)
class Batch:
    """What one debounce collected.

    triggers: each once, in the order in which they first came.
    collapsed: how many equal ones came besides.
    waited_seconds: from the first trigger to the hand-out.
    """

    triggers: tuple[Trigger, ...]
    collapsed: int = 0
    waited_seconds: float = 0.0


class Debounce:
    """The waiting room of triggers. One taker at a time."""

    def __init__(self, clock: Clock, *, quiet_seconds: float, maximum_seconds: float) -> None:
        self._clock = clock
        self._quiet_seconds = quiet_seconds
        self._maximum_seconds = maximum_seconds
        self._waiting: dict[Trigger, int] = {}
        self._beyond = 0
        self._first_at = 0.0
        self._last_at = 0.0
        self._urgent = False
        self._arrived = asyncio.Event()

    def add(self, trigger: Trigger, *, urgent: bool = False) -> None:
        """Take a trigger in. urgent: hand the batch out without waiting for quiet (a person asked)."""
        now = self._clock.monotonic()
        if not self._waiting:
            self._first_at = now
        self._last_at = now
        if trigger in self._waiting or len(self._waiting) < _MOST:
            self._waiting[trigger] = self._waiting.get(trigger, 0) + 1
        else:
            self._beyond += 1
        self._urgent = self._urgent or urgent
        self._arrived.set()

    def put_back(self, triggers: Iterable[Trigger]) -> None:
        """Return triggers that could not be acted on, so that they are part of the next batch, before all others."""
        kept = dict.fromkeys(triggers, 1)
        if not kept:
            return
        if not self._waiting:
            self._first_at = self._last_at = self._clock.monotonic()
        for trigger, count in self._waiting.items():
            kept[trigger] = kept.get(trigger, 0) + count
        self._waiting = kept
        self._arrived.set()

    @property
    def waiting(self) -> tuple[Trigger, ...]:
        """The triggers that wait, in order."""
        return tuple(self._waiting)

    def due_in(self) -> float | None:
        """Return the seconds until the batch that waits is due (0 when it is); None when nothing waits."""
        if not self._waiting:
            return None
        if self._urgent:
            return 0.0
        due = min(self._last_at + self._quiet_seconds, self._first_at + self._maximum_seconds)
        return max(0.0, due - self._clock.monotonic())

    async def next_batch(self, turned: Callable[[], None]) -> Batch:
        """Wait for a batch that is due, and hand it out. turned: called at least every ten seconds while waiting."""
        while True:
            turned()
            self._arrived.clear()
            rest = self.due_in()
            if rest == 0.0:
                return self._hand_out()
            # An urgent trigger may cut the wait short; any other only moves the end, which is looked at afterwards.
            await self._clock.wait_for(self._arrived, _LOOK_SECONDS if rest is None else min(rest, _LOOK_SECONDS))

    def _hand_out(self) -> Batch:
        counts = self._waiting
        batch = Batch(
            triggers=tuple(counts),
            collapsed=sum(counts.values()) - len(counts) + self._beyond,
            waited_seconds=self._clock.monotonic() - self._first_at,
        )
        self._waiting = {}
        self._beyond = 0
        self._urgent = False
        return batch
