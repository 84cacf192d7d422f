"""The notes after an installation tell in words what will happen, and how to try it without consequences."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chart.rendering import notes


def test_the_limits_in_force_are_named() -> None:
    """Those of the values, zero and none included, not those of the defaults."""
    settings = {"capNode": 0, "capTotal": "none", "evictionsPerMinute": 7, "maxInFlightPerWorkload": 2, "protectedNamespaces": []}
    told = notes({"settings": settings})
    assert "at most 0 pods from one node, none in all" in told
    assert "at most 7 (evictionsPerMinute)" in told
    assert "never in     [] " in told
    assert "at most 3 pods from one node, 20 in all" in notes({})
    assert 'never in     ["kube-system"]' in notes({})


@pytest.mark.parametrize(
    ("values", "told", "not_told"),
    [
        pytest.param({}, "--set settings.dryRun=plan", "DRY RUN", id="real"),
        pytest.param({"settings": {"dryRun": "plan"}}, "only reports what it would evict", "Try a dry run", id="plan"),
        pytest.param({"settings": {"dryRun": "server"}}, "dryRun=All", "Try a dry run", id="server"),
        pytest.param({"settings": {"dryRun": False}}, "Try a dry run first", "DRY RUN", id="off-read-as-false"),
        pytest.param({"kind": "CronJob"}, 'At "*/2 * * * *" it looks', "It watches", id="cronjob"),
        pytest.param({"kind": "Job"}, "logs job/rebalancer-1", "It watches", id="job"),
        pytest.param({"settings": {"placement": "fit"}}, "where the pod fits another node", "improves", id="fit"),
        pytest.param({"settings": {"placement": "off"}}, "as the policy's nodeFit says", "improves", id="off"),
        pytest.param({"deschedulingInterval": "10m"}, "every 600 seconds", "every 300", id="tick"),
        pytest.param({}, "rebalancer", "Warnings", id="no-warnings"),
    ],
)
def test_the_notes_fit_the_values(values: dict[str, Any], told: str, not_told: str) -> None:
    """What is told is what the values make it do."""
    text = notes(values)
    assert told in text
    assert not_told not in text
