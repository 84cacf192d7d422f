"""A work queue and the loop around it: keys are looked at again after each change that concerns them.

A key that fails is tried again later, longer each time, as client-go's rate-limited queues do.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from typing import Protocol

from rebalancer.sim.history import Key
from rebalancer.sim.problems import ApiProblem

Reconcile = Callable[[Key], float | None]

_FIRST_RETRY_SECONDS = 0.05
_MAX_RETRY_SECONDS = 5.0
GRAIN_SECONDS = 0.001
"""Times nearer than this count as the same, so that a clock with coarse steps cannot keep a loop busy."""


class Controller(Protocol):
    """A part of the cluster that runs until it is cancelled."""

    async def run(self) -> None:
        """Work until cancelled."""
        ...


class Loop:
    """Reconciles keys one after another.

    reconcile: does one key; a number means: again after so many seconds. latency_seconds: from a change to its handling.
    """

    def __init__(self, reconcile: Reconcile, latency_seconds: float = 0.01) -> None:
        self._reconcile = reconcile
        self._latency_seconds = latency_seconds
        self._due: list[tuple[float, Key]] = []
        self._times: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self._wake: asyncio.Event | None = None
        self._early: set[Key] = set()

    def add(self, key: Key, delay_seconds: float | None = None) -> None:
        """Have a key looked at after the latency, or after a delay."""
        if self._wake is None:
            self._early.add(key)
            return
        wait = self._latency_seconds if delay_seconds is None else delay_seconds
        at = asyncio.get_running_loop().time() + wait
        if self._times.get(key, float("inf")) <= at:
            return
        self._times[key] = at
        heapq.heappush(self._due, (at, key))
        self._wake.set()

    async def run(self) -> None:
        """Reconcile keys as they fall due, until cancelled."""
        self._wake = asyncio.Event()
        for key in sorted(self._early):
            self.add(key)
        self._early.clear()
        loop = asyncio.get_running_loop()
        done = 0
        while True:
            self._wake.clear()
            while self._due and self._due[0][0] <= loop.time() + GRAIN_SECONDS:
                at, key = heapq.heappop(self._due)
                if self._times.get(key) != at:
                    continue
                del self._times[key]
                self._once(key)
                done += 1
                if done % 20 == 0:
                    await asyncio.sleep(0)
            wait = self._due[0][0] - loop.time() if self._due else None
            try:
                async with asyncio.timeout(None if wait is None else max(wait, 0)):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def _once(self, key: Key) -> None:
        try:
            again = self._reconcile(key)
        except ApiProblem:
            count = self._failures[key] = self._failures.get(key, 0) + 1
            self.add(key, min(_FIRST_RETRY_SECONDS * 2**count, _MAX_RETRY_SECONDS))
            return
        self._failures.pop(key, None)
        if again is not None:
            self.add(key, max(again, 2 * GRAIN_SECONDS))
