"""Keep the garbage collector away from the cache: its hundred thousands of values live long and form no cycles.

A full collection has to visit every one of them, with the event loop standing still.
"""

from __future__ import annotations

import gc

EVERY = 2_000


class WhileFilling:
    """Freezes now and then while a cache is filled for the first time, when every full collection would visit all of it."""

    def __init__(self) -> None:
        """Start with nothing counted."""
        self._count = 0

    def count(self) -> None:
        """Take note of one more value."""
        self._count += 1
        if self._count % EVERY == 1:
            gc.freeze()


def freeze() -> None:
    """Take everything that lives now out of the collector's sight; reference counting still frees it.

    Called after the first lists, and now and then later (values that changes brought in are not frozen yet). Only the young
    generations are collected before, so it costs little.
    """
    gc.collect(1)
    gc.freeze()
