"""What happened to the objects, newest last, as far back as the bound allows.

An event holds the object before and after. Objects are never changed in place, so an event keeps its meaning.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

Key = tuple[str, str]
"""Namespace (empty for cluster-wide kinds) and name."""

Object = dict[str, Any]


class Event:
    """One change of one object.

    storage, key: which object. version: the resource version that the change made.
    before, after: the object; None where it did not exist.
    final: of a removal, the object's last form under the version of the removal.
    lines: encodings made of this event so far, shared by all watchers.
    """

    __slots__ = ("after", "before", "final", "key", "lines", "storage", "version")

    def __init__(
        self,
        storage: str,
        key: Key,
        version: int,
        before: Object | None,
        after: Object | None,
        final: Object | None = None,
    ) -> None:
        self.storage = storage
        self.key = key
        self.version = version
        self.before = before
        self.after = after
        self.final = final
        self.lines: dict[Any, bytes] = {}


class History:
    """The last events of one resource.

    floor: the newest version that is not remembered any more; a reader from an older one has missed something.
    """

    def __init__(self, limit: int, floor: int) -> None:
        self._events: deque[Event] = deque()
        self._limit = limit
        self.floor = floor

    def add(self, event: Event) -> None:
        """Remember an event, forgetting the oldest one beyond the limit."""
        self._events.append(event)
        if len(self._events) > self._limit:
            self.floor = self._events.popleft().version

    def forget(self, version: int) -> None:
        """Forget every event up to and including a version."""
        while self._events and self._events[0].version <= version:
            self._events.popleft()
        self.floor = max(self.floor, version)

    def after(self, version: int) -> list[Event]:
        """Return the events newer than a version, oldest first."""
        found: list[Event] = []
        for event in reversed(self._events):
            if event.version <= version:
                break
            found.append(event)
        found.reverse()
        return found

    def undone(self, version: int) -> dict[Key, Object | None]:
        """Return, for each object that changed since a version, what it was at that version (None: not there)."""
        past: dict[Key, Object | None] = {}
        for event in self._newest_first(version):
            past[event.key] = event.before
        return past

    def _newest_first(self, version: int) -> Iterator[Event]:
        for event in reversed(self._events):
            if event.version <= version:
                return
            yield event
