"""One copy of equal parts: pods of one owner share most of their spec, and stored objects are never changed in place."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Sharing:
    """Gives back one and the same value for equal values.

    It keeps what it has seen, so it should not live longer than the loading of a dump.
    """

    def __init__(self) -> None:
        self._scalars: dict[Any, Any] = {}
        self._parts: dict[tuple[Any, ...], Any] = {}

    def part(self, value: Any) -> Any:
        """Return the shared form of a value and of everything in it."""
        kind = type(value)
        if kind is str:
            return self._scalars.setdefault(value, value)
        part = self.part
        if kind is dict:
            made = {name: part(item) for name, item in value.items()}
            return self._parts.setdefault((*made, *map(id, made.values())), made)
        if kind is list:
            items = [part(item) for item in value]
            return self._parts.setdefault(tuple(map(id, items)), items)
        return self._scalars.setdefault((kind, value), value)

    def leaves(self, value: Any) -> Any:
        """Return a value of its own whose texts are shared: for what no two objects have in common."""
        kind = type(value)
        if kind is str:
            return self._scalars.setdefault(value, value)
        leaves = self.leaves
        if kind is dict:
            return {name: leaves(item) for name, item in value.items()}
        if kind is list:
            return [leaves(item) for item in value]
        return value


@contextmanager
def without_collector() -> Iterator[None]:
    """Hold the garbage collector off while many objects are made that stay."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
