"""A sliding window: never more than so many in any stretch of so many seconds.

A token bucket refills while it waits, and so lets through more than its number in some windows; here each permit is
remembered until it is out of the window.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

# A permit counts up to and at the end of its window, so the next one is free just after.
_AFTER = 1e-3
# What was written down and read again may differ by so much.
_SAME = 0.01


class SlidingWindow:
    """Remembers when permits were given. Times are seconds of whatever clock the caller uses, never going backwards.

    limit: permits in any window; None means no limit; 0 lets nothing through.
    """

    def __init__(self, limit: int | None, seconds: float, given: Iterable[float] = ()) -> None:
        self._limit = limit
        self._seconds = seconds
        self._given: deque[float] = deque(sorted(given))

    def restore(self, given: Iterable[float], longest: float = 0.0) -> None:
        """Count permits that another process gave, besides those given here.

        longest: for how long at most a permit was given before what it was for happened (see ``ended``). A permit that was given
        here, and moved by ``ended`` since, is not counted twice; of the others the last one may have been moved, too.
        """
        own, foreign = deque(self._given), []
        for permit in sorted(given):
            while own and own[0] < permit - _SAME:
                own.popleft()
            if own and own[0] <= permit + longest + _SAME:
                own.popleft()
            else:
                foreign.append(permit)
        if foreign:
            foreign[-1] += longest
        self._given = deque(sorted([*self._given, *foreign]))

    @property
    def given(self) -> tuple[float, ...]:
        """The times of the permits that may still count, oldest first."""
        return tuple(self._given)

    def wait_seconds(self, now: float) -> float | None:
        """Return how long until a permit is free (0: at once); None: never."""
        if self._limit is None:
            return 0.0
        if self._limit <= 0:
            return None
        if len(self._given) < self._limit:
            return 0.0
        # A permit given at t counts in the closed stretch [t, t + seconds]: at exactly t + seconds it still counts.
        freed_at = self._given[-self._limit] + self._seconds
        return 0.0 if freed_at < now else freed_at - now + _AFTER

    def take(self, now: float) -> bool:
        """Take a permit if one is free."""
        if self.wait_seconds(now) != 0.0:
            return False
        if self._limit is not None:
            self._given.append(now)
            while self._given[0] + self._seconds < now:
                self._given.popleft()
        return True

    def ended(self, now: float) -> None:
        """Count the last permit from now on: what it was for has happened only now, and the window is about that."""
        if self._given:
            self._given[-1] = max(self._given[-1], now)
