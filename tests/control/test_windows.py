"""Windows: starts, ends, time zones, blackouts, profiles. What an opening sets off is in test_run."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.control.windows import Window, Windows

HOUR = 3600.0


def at(text: str, zone: str = "UTC", fold: int = 0) -> float:
    """Return the instant that a local time names; fold 1 is the second of two equal ones."""
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp()


NIGHT = Window("0 22 * * *", 6 * HOUR, "Europe/Berlin")


@pytest.mark.parametrize(
    ("moment", "is_open"),
    [
        ("2026-06-10T21:59:59", False),
        ("2026-06-10T22:00:00", True),
        ("2026-06-11T00:30:00", True),
        ("2026-06-11T03:59:59", True),
        ("2026-06-11T04:00:00", False),
        ("2026-06-11T12:00:00", False),
    ],
    ids=["just before", "at the start", "past midnight", "just before the end", "at the end", "noon"],
)
def test_a_window_is_open_from_its_start_to_just_before_its_end(moment: str, is_open: bool) -> None:
    """It opens at the start, across midnight, and is closed at its end."""
    assert NIGHT.is_open(at(moment, "Europe/Berlin")) is is_open


@pytest.mark.parametrize(
    ("start", "evening"),
    [("2026-03-28T22:00:00", "spring"), ("2026-10-24T22:00:00", "autumn")],
    ids=["an hour is skipped", "an hour comes twice"],
)
def test_a_change_of_the_clock_neither_stretches_nor_shortens(start: str, evening: str) -> None:
    """Six hours are six hours, also in the night in which the clock changes."""
    begin = at(start, "Europe/Berlin")
    assert NIGHT.is_open(begin + 6 * HOUR - 1), evening
    assert not NIGHT.is_open(begin + 6 * HOUR), evening


def test_a_start_in_the_skipped_hour_happens_once_at_its_end() -> None:
    """02:30 does not exist on 29 March in Berlin: the window opens at 03:00, for its full length."""
    window = Window("30 2 * * *", HOUR, "Europe/Berlin")
    begin = at("2026-03-29T01:00:00")
    assert not window.is_open(begin - 1)
    assert window.is_open(begin)
    assert window.is_open(begin + HOUR - 1)
    assert not window.is_open(begin + HOUR)


def test_a_start_in_the_repeated_hour_happens_once_the_first_time() -> None:
    """02:30 comes twice on 25 October in Berlin: the window opens at the first and not again at the second."""
    window = Window("30 2 * * *", HOUR / 2, "Europe/Berlin")
    first = at("2026-10-25T02:30:00", "Europe/Berlin")
    second = at("2026-10-25T02:30:00", "Europe/Berlin", fold=1)
    assert second - first == HOUR
    assert window.is_open(first)
    assert not window.is_open(first + HOUR / 2)
    assert not window.is_open(second)
    assert window.last_start(second) == first


def test_in_the_repeated_hour_the_wall_clock_alone_does_not_decide() -> None:
    """At the second 02:10 the start at the first 02:30 is past, though the wall clock shows less."""
    window = Window("30 2 * * *", HOUR, "Europe/Berlin")
    moment = at("2026-10-25T02:10:00", "Europe/Berlin", fold=1)
    assert window.is_open(moment)
    assert window.next_start(moment) == at("2026-10-26T02:30:00", "Europe/Berlin")


ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Antarctica/Troll", "Asia/Kolkata"]
CRONS = ["30 2 * * *", "0 * * * *", "*/20 1-3 * * *", "15 3 * * SUN", "0 0 1 * *"]


@given(
    zone=st.sampled_from(ZONES),
    cron=st.sampled_from(CRONS),
    minutes=st.integers(min_value=0, max_value=366 * 1440),
    seconds=st.integers(min_value=0, max_value=59),
)
def test_last_and_next_start_are_neighbours_around_now(zone: str, cron: str, minutes: int, seconds: int) -> None:
    """Whatever the moment of a year: last <= now < next, the next of the last is the next, and the last of the next is itself."""
    window, now = Window(cron, HOUR, zone), at("2026-01-01T00:00:00") + 60 * minutes + seconds
    last, following = window.last_start(now), window.next_start(now)
    assert last is not None
    assert following is not None
    assert last <= now < following
    assert window.next_start(last) == following
    assert window.last_start(following) == following


def test_without_windows_it_is_always_open() -> None:
    """No window at all means no restriction."""
    assert Windows().closed_because(0.0) is None
    assert Windows().next_change(0.0) is None


def test_any_of_several_windows_suffices() -> None:
    """Windows are alternatives."""
    both = Windows([NIGHT, Window("0 12 * * *", HOUR)])
    assert both.closed_because(at("2026-06-10T12:30:00")) is None
    assert both.closed_because(at("2026-06-10T22:30:00", "Europe/Berlin")) is None
    assert both.closed_because(at("2026-06-10T14:30:00")) is not None


def test_a_blackout_wins_over_every_window() -> None:
    """Inside a blackout nothing goes, whatever else is open, and it says which one it is."""
    windows = Windows([NIGHT], [Window("0 23 10 6 *", HOUR, "Europe/Berlin")])
    assert windows.closed_because(at("2026-06-10T22:30:00", "Europe/Berlin")) is None
    assert "0 23 10 6 *" in str(windows.closed_because(at("2026-06-10T23:30:00", "Europe/Berlin")))
    assert windows.closed_because(at("2026-06-11T00:00:00", "Europe/Berlin")) is None


def test_a_blackout_alone_leaves_the_rest_open() -> None:
    """With blackouts only, everything else is open."""
    windows = Windows([], [Window("0 9 * * 1-5", 8 * HOUR)])
    assert windows.closed_because(at("2026-06-10T10:00:00")) is not None
    assert windows.closed_because(at("2026-06-13T10:00:00")) is None


def test_windows_of_a_profile_restrict_only_that_profile() -> None:
    """A profile's own windows come on top of the global ones, and concern nobody else."""
    windows = Windows([NIGHT, Window("0 0 * * *", HOUR, "Europe/Berlin", frozenset({"risky"}))])
    evening, midnight = at("2026-06-10T23:00:00", "Europe/Berlin"), at("2026-06-11T00:30:00", "Europe/Berlin")
    assert windows.closed_profiles(evening) == {"risky"}
    assert windows.closed_because(evening, "calm") is None
    assert windows.closed_because(evening, "risky") is not None
    assert windows.closed_profiles(midnight) == frozenset()


def test_a_window_of_a_profile_alone_leaves_the_others_always_open() -> None:
    """Where only a profile has windows, there is no global restriction."""
    windows = Windows([Window("0 0 * * *", HOUR, "UTC", frozenset({"risky"}))])
    noon = at("2026-06-10T12:00:00")
    assert windows.closed_because(noon) is None
    assert windows.closed_profiles(noon) == {"risky"}


def test_the_next_change_is_the_next_opening_or_closing() -> None:
    """Whoever waits for a window knows until when."""
    assert Windows([NIGHT]).next_change(at("2026-06-10T12:00:00")) == at("2026-06-10T22:00:00", "Europe/Berlin")
    assert Windows([NIGHT]).next_change(at("2026-06-10T23:00:00", "Europe/Berlin")) == at("2026-06-11T04:00:00", "Europe/Berlin")
