"""A watch on one resource: what was missed first, then each change as it comes.

The rules: https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from rebalancer.sim.history import Event, Object
from rebalancer.sim.store import Store

Selects = Callable[[Object], bool]


class Change(NamedTuple):
    """One line of a watch.

    type: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.
    obj: the object; None for a BOOKMARK, whose ``version`` says it all.
    version: the resource version that the watcher has reached with it.
    event: the event behind it, None for initial objects and bookmarks.
    initial_end: the BOOKMARK that ends a streamed list.
    """

    type: str
    obj: Object | None
    version: int
    event: Event | None = None
    initial_end: bool = False


def _nothing() -> None:
    """Stop a second time."""


class Watch:
    """A subscription. Iterate over it, or ``take`` what is there; ``close`` when done.

    overrun: the changes that may wait before the watcher is dropped as too slow.
    """

    def __init__(self, store: Store, storage: str, namespace: str | None, selects: Selects, overrun: int = 200_000) -> None:
        self._store = store
        self._namespace = namespace
        self._selects = selects
        self._waiting: deque[Change] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._overrun = overrun
        self.closed = False
        self.version = store.version
        self._stop: Callable[[], None] = store.listen(storage, self._on_event)

    def start(self, storage: str, version: int | None, *, stream: bool, end_mark: bool) -> None:
        """Queue what comes first: the events after a version, or (None) the present objects, then their end mark."""
        if version is not None and not stream:
            for event in self._store.history(storage).after(version):
                self._on_event(event)
            return
        for key in self._store.keys(storage, self._namespace):
            obj = self._store.get(storage, *key)
            if obj is not None and self._selects(obj):
                self._push(Change("ADDED", obj, self._store.version))
        if end_mark:
            self._push(Change("BOOKMARK", None, self._store.version, initial_end=True))

    def bookmark(self) -> None:
        """Queue a bookmark at the newest version."""
        self._push(Change("BOOKMARK", None, self._store.version))

    def take(self) -> list[Change]:
        """Return the waiting changes and forget them."""
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    async def wait(self) -> None:
        """Return once something waits or the watch is closed."""
        while not self._waiting and not self.closed:
            self._wake = asyncio.get_running_loop().create_future()
            try:
                await self._wake
            finally:
                self._wake = None

    def close(self) -> None:
        """End the watch; what waits can still be taken."""
        if not self.closed:
            self.closed = True
            self._stop()
            self._stop = _nothing  # It refers to the watch: only the garbage collector would find the two.
            self._rouse()

    async def __aiter__(self) -> AsyncIterator[Change]:
        """Yield changes until the watch is closed."""
        while True:
            await self.wait()
            for change in self.take():
                yield change
            if self.closed and not self._waiting:
                return

    def _on_event(self, event: Event) -> None:
        self.version = event.version
        if self._namespace is not None and event.key[0] != self._namespace:
            return
        change = seen_through(event, self._selects)
        if change is not None:
            self._push(change)

    def _push(self, change: Change) -> None:
        self._waiting.append(change)
        if len(self._waiting) > self._overrun:
            self.close()
        self._rouse()

    def _rouse(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


def seen_through(event: Event, selects: Selects) -> Change | None:
    """Return what a watcher with a selector sees of an event: entering is ADDED, leaving is DELETED."""
    before, after = event.before, event.after
    was = before is not None and selects(before)
    if after is not None and selects(after):
        return Change("MODIFIED" if was else "ADDED", after, event.version, event)
    if was and before is not None:
        return Change("DELETED", event.final or _at(before, event.version), event.version, event)
    return None


def _at(obj: Object, version: int) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}}
