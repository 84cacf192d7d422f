"""Our decisions against recorded ones of the descheduler 0.36. Every difference is listed with the fault that causes it.

``upstream_differences.yaml`` names for each scenario that differs the row of the faults we fix (F1 to F39) and one line of
arithmetic that proves it. The agreement per strategy is printed with ``-s``.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from tests.conformance.recorded import agrees, names, scenario

LISTED: dict[str, dict[str, str]] = yaml.safe_load((Path(__file__).parent / "upstream_differences.yaml").read_text())


@pytest.mark.parametrize("name", names())
def test_our_decision_is_the_recorded_one_or_the_difference_is_listed(name: str) -> None:
    """An unlisted difference fails, and so does a listed one that no longer differs."""
    assert agrees(name) == (name not in LISTED)


def test_every_listed_difference_names_its_fault_and_proves_it() -> None:
    """Each entry is a recorded scenario with an F row and a line of arithmetic."""
    assert LISTED.keys() <= set(names())
    for name, entry in LISTED.items():
        assert re.fullmatch(r"F([1-9]|[12][0-9]|3[0-9])", entry["row"]), name
        assert re.search(r"\d", entry["proof"]), name


def test_agreement_per_strategy_is_high_before_the_list_and_complete_with_it() -> None:
    """Scenarios with one strategy agree by themselves in most cases; with the list, all are accounted for."""
    total: Counter[str] = Counter()
    agreed: Counter[str] = Counter()
    accounted: Counter[str] = Counter()
    for name in names():
        strategies = scenario(name).strategies
        key = strategies[0] if len(strategies) == 1 else "several strategies"
        total[key] += 1
        agreed[key] += agrees(name)
        accounted[key] += agrees(name) or name in LISTED
    for key in sorted(total):
        print(f"{key}: {agreed[key]} of {total[key]} agree, {accounted[key]} with the listed differences")
    assert accounted == total
    assert sum(agreed.values()) >= 0.8 * sum(total.values())
