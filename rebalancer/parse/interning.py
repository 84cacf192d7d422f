"""Sharing of equal values, so that a cluster's pods cost little memory and equal shapes are the same object."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import TypeVar
from weakref import WeakValueDictionary

from rebalancer.model.pod import NO_STATES, ContainerStates, PodShape

T = TypeVar("T")


class Interner:
    """Keeps one copy of each equal value. Shapes that no pod uses any more are forgotten by themselves.

    Not thread-safe: used by the one task that applies changes.
    """

    def __init__(self) -> None:
        self._shapes: WeakValueDictionary[bytes, PodShape] = WeakValueDictionary()
        self._states: dict[ContainerStates, ContainerStates] = {NO_STATES: NO_STATES}
        self._texts: dict[str, str] = {}
        self._kinds: dict[tuple[tuple[str, str, str], ...], tuple[tuple[str, str, str], ...]] = {}

    def shape(self, parts: list[bytes], build: Callable[[], PodShape]) -> PodShape:
        """Return the shape known under these parts (compared by a digest), or build and remember it."""
        key = blake2b(b"\0".join(parts), digest_size=16).digest()
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = build()
        return shape

    def states(self, states: ContainerStates) -> ContainerStates:
        """Return the one copy of these container states."""
        if len(self._states) > 10_000:
            self._states.clear()
        return self._states.setdefault(states, states)

    def kinds(self, kinds: tuple[tuple[str, str, str], ...]) -> tuple[tuple[str, str, str], ...]:
        """Return the one copy of these condition kinds."""
        if len(self._kinds) > 10_000:
            self._kinds.clear()
        return self._kinds.setdefault(kinds, kinds)

    def text(self, text: str) -> str:
        """Return the one copy of a text that recurs, such as a node's name."""
        if len(self._texts) > 50_000:
            self._texts.clear()
        return self._texts.setdefault(text, text)
