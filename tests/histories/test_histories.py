"""Promises about evictions, in random histories of changes, faults, failovers, restarts and window edges.

Histories of fixed numbers, and fresh ones that shrink where they fail. Many: ``python -m tests.histories --count 10000``.
That the suite notices when something is missing is shown in ``test_mutants``; that processes freeze, in ``test_processes``.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings

from tests.histories.history import History, Outcome, drawn, histories, live_through
from tests.histories.report import most_refusals, report
from tests.histories.world import ACTIONS

FIXED = 60
FRESH = 30


@pytest.mark.slow
def test_every_promise_is_kept_in_the_histories_of_fixed_numbers() -> None:
    """Budgets, caps, the minute, windows, leadership, sync, staleness, no second request, progress; few refusals by budgets."""
    counts: Counter[str] = Counter()
    for number in range(FIXED):
        outcome = live_through(drawn(number))
        assert outcome.broken == [], f"history {number}: {drawn(number)}"
        counts += outcome.counts
    print(report(counts))
    assert {action for action in ACTIONS if not counts[action]} == set(), "everything that can happen did"
    assert counts["requests"] > 3 * FIXED
    assert counts["runs taken over"]
    assert counts["held by a budget"] <= most_refusals(counts)


@pytest.mark.slow
@settings(max_examples=FRESH, suppress_health_check=list(HealthCheck))
@given(history=histories)
def test_every_promise_is_kept_in_fresh_histories(history: History) -> None:
    """Whatever happens, in whatever order."""
    assert live_through(history).broken == []


def test_a_history_is_always_the_same() -> None:
    """A number stands for one history, and that ends in one way."""
    first, second = (live_through(drawn(7)) for _ in range(2))
    assert isinstance(first, Outcome)
    assert first == second
