"""How long to wait before trying again: doubling, bounded, and never the same for two clients."""

from __future__ import annotations

from random import Random


class Backoff:
    """Delays that double from one failure to the next.

    first_seconds, longest_seconds: before jitter. random: spreads each delay over half to one and a half of its length.
    """

    def __init__(self, first_seconds: float, longest_seconds: float, random: Random) -> None:
        self._first = first_seconds
        self._longest = longest_seconds
        self._random = random
        self._failures = 0

    def reset(self) -> None:
        """It worked: start from the first delay next time."""
        self._failures = 0

    def next_seconds(self, at_least: float | None = None) -> float:
        """Return the delay after one more failure. at_least: what the server asked for."""
        delay = min(self._longest, self._first * 2.0 ** min(self._failures, 30)) * self._random.uniform(0.5, 1.5)
        self._failures += 1
        return max(delay, at_least or 0.0)
