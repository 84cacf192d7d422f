"""The sliding window. That it survives a restart is in test_memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.control.rate import SlidingWindow


def test_a_permit_counts_for_the_whole_window_f11() -> None:
    """Two per 300 s at 0, 0, 150 and 301 s: the third is denied, for nothing refills in between (F11)."""
    window = SlidingWindow(2, 300.0)
    assert [window.take(moment) for moment in (0.0, 0.0, 150.0, 301.0)] == [True, True, False, True]


@pytest.mark.parametrize(("moment", "free"), [(59.0, False), (60.0, False), (60.01, True)], ids=["before", "at", "after"])
def test_the_window_is_closed_at_both_ends(moment: float, free: bool) -> None:
    """A stretch of exactly 60 s holds no more than the limit either."""
    window = SlidingWindow(1, 60.0)
    assert window.take(0.0)
    assert window.take(moment) is free


@given(
    limit=st.integers(min_value=1, max_value=5),
    waits=st.lists(st.floats(min_value=0, max_value=40, allow_nan=False), max_size=60),
)
def test_no_stretch_ever_holds_more_than_the_limit(limit: int, waits: list[float]) -> None:
    """Whenever permits are asked for, no 60 s hold more than the limit; and one is given as soon as the wait says so."""
    window, now, given_at = SlidingWindow(limit, 60.0), 0.0, []
    for wait in waits:
        now += wait
        if window.take(now):
            given_at.append(now)
        else:
            pause = window.wait_seconds(now)
            assert pause is not None
            assert 0 < pause <= 60.01
            assert window.wait_seconds(now + pause + 1e-6) == 0.0
    for begin in given_at:
        assert sum(begin <= moment <= begin + 60.0 for moment in given_at) <= limit


@pytest.mark.parametrize(("limit", "answer"), [(None, 0.0), (0, None)], ids=["no limit", "nothing at all"])
def test_the_absurd_limits(limit: int | None, answer: float | None) -> None:
    """Without a limit a permit is always free; with a limit of 0 it never is."""
    window = SlidingWindow(limit, 60.0)
    for moment in (0.0, 0.0, 1.0):
        assert window.wait_seconds(moment) == answer
        assert window.take(moment) is (answer == 0.0)


def test_permits_of_another_process_count() -> None:
    """What was given before a restart counts as if it had been given here."""
    window = SlidingWindow(2, 60.0)
    window.restore([-30.0, -10.0])
    assert not window.take(0.0)
    assert window.take(30.5)


def test_a_permit_counts_from_when_its_request_ended() -> None:
    """A request that took five seconds may have been carried out at their end: the next one waits for the minute after that."""
    window = SlidingWindow(1, 60.0)
    assert window.take(0.0)
    window.ended(5.0)
    assert not window.take(61.0)
    assert window.take(65.01)


def test_own_permits_are_not_counted_twice_when_they_are_read_again() -> None:
    """Read from memory, a permit that has been moved since is the same one; one of another process counts besides."""
    window = SlidingWindow(3, 60.0)
    assert window.take(0.0)
    window.ended(2.0)
    window.restore([0.0], longest=6.0)
    assert window.given == (2.0,)
    window.restore([0.0, 20.0], longest=6.0)
    assert window.given == (2.0, 26.0)
