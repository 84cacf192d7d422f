"""The suite notices: without the ledger, the lease check, the precondition or the re-check, histories fail."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conftest import FIGURES
from tests.histories.history import drawn, live_through
from tests.histories.mutants import MUTANTS

MOST = 400


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", MUTANTS)
def test_what_is_missing_is_noticed(name: str, record_property: Callable[[str, object], None]) -> None:
    """Within some histories the promise is broken that the missing part keeps; with it, the same history breaks none."""
    mutant = MUTANTS[name]
    for number in range(MOST):
        broken = live_through(drawn(number), mutant.build).broken
        if any(mutant.shows in each for each in broken):
            said = next(each for each in broken if mutant.shows in each)
            record_property(FIGURES, f"{name}: noticed in history {number}: {said}")
            assert live_through(drawn(number)).broken == []
            return
    pytest.fail(f"{MOST} histories passed although there is {name}")
