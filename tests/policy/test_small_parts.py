"""The small parts that policies and settings are read with: durations, spelling, caps, selectors as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.model.cap import Cap
from rebalancer.parse.duration import duration_seconds, duration_text
from rebalancer.parse.selector import parse_selector
from rebalancer.parse.selector_text import text_of_selector
from rebalancer.parse.spelling import nearest_name


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90.0),
        ("1h30m", 5400.0),
        ("1.5h", 5400.0),
        ("250ms", 0.25),
        ("0", 0.0),
        ("-5m", -300.0),
        ("+1us", 1e-6),
        (".5s", 0.5),
        ("2.s", 2.0),
    ],
)
def test_durations_are_read_as_go_reads_them(text: str, seconds: float) -> None:
    """Parts add up, fractions and signs are allowed."""
    assert duration_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "90", "1 h", "h", "1d", "s1", "1h 30m", "--1s", "1,5h", ".s"])
def test_what_go_refuses_is_no_duration(text: str) -> None:
    """A number without a unit says nothing, and days do not exist."""
    with pytest.raises(ValueError, match="is not a duration"):
        duration_seconds(text)


@given(st.integers(min_value=0, max_value=10**7), st.sampled_from([1, 1000]))
def test_a_duration_survives_being_written(amount: int, parts: int) -> None:
    """The text of any number of seconds or milliseconds stands for the same number."""
    assert duration_seconds(duration_text(amount / parts)) == pytest.approx(amount / parts)


@pytest.mark.parametrize(
    ("name", "valid", "nearest"),
    [
        ("Pods", ["pods", "cpu"], "pods"),
        ("node_fit", ["nodeFit", "nodeSelector"], "nodeFit"),
        ("gpu", ["cpu", "memory"], None),
        ("grace", ["grace_period_seconds", "node_selector"], "grace_period_seconds"),
        ("x", ["a", "b"], None),
        ("", ["a"], None),
    ],
)
def test_the_nearest_name_is_found_where_there_is_one(name: str, valid: list[str], nearest: str | None) -> None:
    """Case and separators do not count; short names of another meaning are not suggested."""
    assert nearest_name(name, valid) == nearest


@pytest.mark.parametrize(
    ("text", "number", "percent"),
    [("0", 0, None), ("20", 20, None), (3, 3, None), ("0%", None, 0), ("12.5 %", None, 12.5), ("100%", None, 100)],
)
def test_a_cap_is_a_number_or_a_percentage(text: str, number: int | None, percent: float | None) -> None:
    """Both forms are read, blanks allowed."""
    assert Cap.of(text) == Cap(number=number, percent=percent)


@pytest.mark.parametrize("text", ["", "-1", -1, "1.5", "100.1%", "-1%", "%", "x", True, "٣"])
def test_anything_else_is_no_cap(text: str | int) -> None:
    """Absurd limits are refused."""
    with pytest.raises(ValueError):
        Cap.of(text)


def test_a_cap_is_not_both_and_not_neither() -> None:
    """A number and a percentage exclude each other."""
    with pytest.raises(ValueError):
        Cap()
    with pytest.raises(ValueError):
        Cap(number=1, percent=1)


@pytest.mark.parametrize(
    ("cap", "whole", "limit"),
    [
        ("3", 100, 3),
        ("10%", 0, 0),
        ("10%", 1, 1),
        ("10%", 10, 1),
        ("10%", 11, 2),
        ("0%", 100, 0),
        ("100%", 7, 7),
        ("0.1%", 1000, 1),
    ],
)
def test_a_percentage_is_rounded_up(cap: str, whole: int, limit: int) -> None:
    """A share of few is at least one, and only none is none."""
    assert Cap.of(cap).limit(whole) == limit
    assert str(Cap.of(cap)) == cap


@pytest.mark.parametrize("text", ["", "a=b", "a!=b", "a in (b,c)", "a notin (b,c)", "a", "!a", "a>1", "x.y/a=b,!c"])
def test_a_selector_survives_being_written_as_text(text: str) -> None:
    """What is read from a text is written as that text."""
    assert text_of_selector(parse_selector(text)) == text
