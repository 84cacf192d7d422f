"""Keep the garbage collector away from the cache: its hundred thousands of values live long and form no cycles.

A full collection has to visit every one of them, with the event loop standing still.
"""

from __future__ import annotations

import gc


def freeze() -> None:
    """Take everything that lives now out of the collector's sight; reference counting still frees it.

    Called after the first lists, and now and then later (values that changes brought in are not frozen yet). Only the young
    generations are collected before, so it costs little.
    """
    gc.collect(1)
    gc.freeze()
