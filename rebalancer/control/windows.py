"""Maintenance windows and blackouts: when evictions may go out, for everybody and per profile.

A window is a cron start, a duration and an IANA time zone. It is open from each start for exactly its duration, counted in
UTC instants, so that a change to or from daylight saving neither stretches nor shortens it. A start that falls into the hour
that is skipped in spring happens at the end of the gap; one in the hour that is repeated in autumn happens once, as with
Debian's cron.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim

# The widest shift of a clock that cron has to look across (Lord Howe shifts by half an hour, Troll by two).
_WIDEST_SHIFT = timedelta(hours=3)


@dataclass(frozen=True, slots=True)
class Window:
    """One recurring stretch of time.

    start: five cron fields. duration_seconds: how long from each start. zone: an IANA name.
    profiles: the profiles it is for; empty means all.
    """

    start: str
    duration_seconds: float
    zone: str = "UTC"
    profiles: frozenset[str] = frozenset()

    def describe(self) -> str:
        """Say it in words."""
        whom = f" for {', '.join(sorted(self.profiles))}" if self.profiles else ""
        return f"'{self.start}' {self.zone} for {self.duration_seconds / 60:g} min{whom}"

    def last_start(self, now: float) -> float | None:
        """Return the latest start at or before ``now``; None where there never was one."""
        return _last_start(self.start, self.zone, int(now // 60))

    def next_start(self, now: float) -> float | None:
        """Return the earliest start after ``now``; None where there will be none."""
        return _next_start(self.start, self.zone, int(now // 60))

    def is_open(self, now: float) -> bool:
        """Say whether ``now`` lies in it. It is open at its start and closed at its end."""
        start = self.last_start(now)
        return start is not None and now < start + self.duration_seconds

    def closes_at(self, now: float) -> float | None:
        """Return when it closes if nothing starts again before; None while it is closed."""
        start = self.last_start(now)
        if start is None or now >= start + self.duration_seconds:
            return None
        return start + self.duration_seconds


# Starts are whole minutes, so within one minute the answers stay the same.


@lru_cache(maxsize=256)
def _last_start(expression: str, zone: str, minute: int) -> float | None:
    now = minute * 60.0
    # Backwards from a little later: in the repeated hour the wall clock alone does not say which starts are past.
    local = datetime.fromtimestamp(now, UTC).astimezone(ZoneInfo(zone)) + _WIDEST_SHIFT
    for start in CronSim(expression, local, reverse=True):
        instant = start.timestamp()
        if instant <= now:
            return instant
    return None


@lru_cache(maxsize=256)
def _next_start(expression: str, zone: str, minute: int) -> float | None:
    now = minute * 60.0
    local = datetime.fromtimestamp(now, UTC).astimezone(ZoneInfo(zone)) - _WIDEST_SHIFT
    for start in CronSim(expression, local):
        instant = start.timestamp()
        if instant > now:
            return instant
    return None


class Windows:
    """All windows and blackouts together.

    Without any window it is always open; otherwise at least one must be open. A blackout wins over every window.
    Windows that name profiles restrict those profiles only, and come on top of the global ones.
    """

    def __init__(self, windows: Iterable[Window] = (), blackouts: Iterable[Window] = ()) -> None:
        self._windows = tuple(windows)
        self._blackouts = tuple(blackouts)

    @property
    def all(self) -> tuple[Window, ...]:
        """Every window, then every blackout."""
        return self._windows + self._blackouts

    @property
    def profiles(self) -> frozenset[str]:
        """The profiles that have windows or blackouts of their own."""
        return frozenset(profile for window in self.all for profile in window.profiles)

    def closed_because(self, now: float, profile: str | None = None) -> str | None:
        """Return why nothing may go now, in words; None while it may. Without a profile only the global windows count."""
        for blackout in self._blackouts:
            if self._concerns(blackout, profile) and blackout.is_open(now):
                return f"in the blackout {blackout.describe()}"
        general = [window for window in self._windows if not window.profiles]
        own = [window for window in self._windows if profile is not None and profile in window.profiles]
        for group in (general, own):
            if group and not any(window.is_open(now) for window in group):
                return f"outside the windows: {'; '.join(window.describe() for window in group)}"
        return None

    def closed_profiles(self, now: float) -> frozenset[str]:
        """Return the profiles that have windows of their own and are closed now."""
        return frozenset(profile for profile in self.profiles if self.closed_because(now, profile) is not None)

    def next_change(self, now: float) -> float | None:
        """Return the next instant at which anything may open or close; None where there are no windows."""
        instants = [
            instant for window in self.all for instant in (window.next_start(now), window.closes_at(now)) if instant is not None
        ]
        return min(instants, default=None)

    def _concerns(self, window: Window, profile: str | None) -> bool:
        return not window.profiles or (profile is not None and profile in window.profiles)
