"""Promises about evictions, in random histories of changes, faults, failovers, restarts and window edges.

Histories of fixed numbers, those of fresh numbers, and others that shrink where they fail. Many, or one again:
``python -m tests.histories --first 0 --count 10000``.
That the suite notices when something is missing is shown in ``test_mutants``; that processes freeze, in ``test_processes``.
How many there were, and how many faults of each kind, is printed at the end of every test run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import SystemRandom

import pytest
from hypothesis import HealthCheck, given, settings

from tests.conftest import FIGURES
from tests.histories.actions import ACTIONS
from tests.histories.history import History, Outcome, drawn, histories, live_through
from tests.histories.report import most_refusals, report

FIXED = 60
FRESH = 30
SHRINKING = 20


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_promise_is_kept_in_the_histories_of_fixed_numbers(record_property: Callable[[str, object], None]) -> None:
    """Budgets, caps, the minute, windows, leadership, sync, staleness, no second request, progress; few refusals by budgets."""
    counts: Counter[str] = Counter()
    for number in range(FIXED):
        outcome = live_through(drawn(number))
        assert outcome.broken == [], f"history {number}: {drawn(number)}"
        counts += outcome.counts
    record_property(FIGURES, report(counts))
    assert {action for action in ACTIONS if not counts[action]} == set(), "everything that can happen did"
    assert counts["requests"] > 3 * FIXED
    assert counts["runs taken over"]
    assert counts["held by a budget"] <= most_refusals(counts)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_promise_is_kept_in_histories_of_fresh_numbers(record_property: Callable[[str, object], None]) -> None:
    """Other numbers each time; where one fails, it says which."""
    counts: Counter[str] = Counter()
    first = SystemRandom().randrange(FIXED, 2**31)
    for number in range(first, first + FRESH):
        outcome = live_through(drawn(number))
        assert outcome.broken == [], f"history {number}: {drawn(number)}"
        counts += outcome.counts
    record_property(FIGURES, f"numbers from {first} on\n{report(counts)}")
    assert counts["requests"] > FRESH


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_promise_is_kept_whatever_happens_in_whatever_order(record_property: Callable[[str, object], None]) -> None:
    """Others each time, also where Hypothesis would repeat itself; the smallest that fails is shown."""
    counts: Counter[str] = Counter()

    @settings(max_examples=SHRINKING, derandomize=False, suppress_health_check=list(HealthCheck))
    @given(history=histories)
    def is_kept(history: History) -> None:
        """Live through one, and hold it to every promise."""
        outcome = live_through(history)
        counts.update(outcome.counts)
        assert outcome.broken == []

    try:
        is_kept()
    finally:
        record_property(FIGURES, report(counts))
    assert counts["histories"] >= SHRINKING


def test_a_history_is_always_the_same() -> None:
    """A number stands for one history, and that ends in one way."""
    first, second = (live_through(drawn(7)) for _ in range(2))
    assert isinstance(first, Outcome)
    assert first == second


def test_a_report_counts_histories_and_faults_by_kind() -> None:
    """The whole is a sum without what could not be; each kind has its own count."""
    counts = Counter(
        {
            "histories": 2,
            "virtual seconds": 1800,
            "requests": 200,
            "held by a budget": 1,
            "seconds until progress, in all": 30,
            "fault: a replica is killed": 3,
            "fault: watches fail": 4,
            "fault: watches fail (could not be)": 1,
            "change: a node joins": 5,
        }
    )
    assert report(counts).splitlines() == [
        "2 histories, 0.5 hours of virtual time, 200 requests",
        "held by a budget: 0.50% of requests",
        "progress 15.0 s after the faults ended, on average (windows included)",
        "what came of it",
        "    held by a budget 1",
        "changes: 5",
        "    a node joins 5",
        "faults: 7",
        "    a replica is killed 3, watches fail 4, watches fail (could not be) 1",
        "faults and changes that met a request, a watch or a pod: 0",
    ]


@pytest.mark.parametrize(("requests", "most"), [(0, 1.0), (99, 1.0), (100, 1.0), (101, 1.01), (10_000, 100.0)])
def test_one_refusal_in_a_hundred_is_few_enough(requests: int, most: float) -> None:
    """1 % of requests, and one where there are few."""
    assert most_refusals(Counter(requests=requests)) == pytest.approx(most)
