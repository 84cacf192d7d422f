"""Keep the garbage collector away from the cache: its hundred thousands of values live long and form no cycles.

A full collection has to visit every one of them, with the event loop standing still.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

EVERY = 2_000
CHANGES = 5_000


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


class WhileChanging:
    """Collects and freezes now and then while the cache changes, so that what there is to visit stays small."""

    def __init__(self) -> None:
        """Start with nothing counted."""
        self._count = 0

    def count(self) -> None:
        """Take note of one more change."""
        self._count += 1
        if self._count >= CHANGES and gc.isenabled():
            # While it is switched off, somebody is building what would all have to be visited.
            self._count = 0
            freeze()


def freeze() -> None:
    """Collect what is garbage, then take everything that lives out of the collector's sight; reference counting still frees it.

    Called after the first lists too. It visits only what has come since the last time, so it costs little. The price: what is
    frozen alive and dies later in a cycle stays. The only such thing is a transport of asyncio (1 KiB, it refers to itself), once
    for each connection that breaks; to look for them would hold the loop up for 75 ms even where there are no pods at all, since
    the libraries alone are 100,000 objects. Asking how much is frozen is no cheaper: the collector counts one by one.
    """
    gc.collect()
    gc.freeze()


@contextmanager
def paused() -> Iterator[None]:
    """Keep the collector from running meanwhile: building indexes makes many containers at once, and most of them stay."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def unseen() -> Iterator[None]:
    """Keep the collector from running meanwhile, and from ever visiting what stays: for an evaluation beside the event loop.

    A collection in any thread holds all of them up. What an evaluation leaves behind is a memory that lives long; it makes no
    cycles that would have to be found. Cycles of others that are garbage by now are collected first: frozen, they would stay.
    """
    with paused():
        gc.collect()
        yield
        gc.freeze()
