"""The rows of the settings reference: complete, in words, and true."""

from __future__ import annotations

import pytest

from rebalancer.settings import SettingRow, Settings, load_settings, reference_rows, setting_names

ROWS = list(reference_rows())
BY_NAME = {row.name: row for row in ROWS}


def test_there_is_a_row_for_every_setting() -> None:
    """Nothing is left out and nothing stands twice."""
    assert tuple(row.name for row in ROWS) == setting_names()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_says_what_there_is_to_say(row: SettingRow) -> None:
    """Each has a type and a description that is a sentence; durations have their unit."""
    assert row.type
    assert row.description.endswith(".")
    assert row.title
    assert (row.unit == "seconds") == row.name.endswith("_SECONDS")
    assert hasattr(getattr(Settings(), row.subject), row.field)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_default_that_is_written_out_changes_nothing(row: SettingRow) -> None:
    """The default in the reference is what to write for the default."""
    assert load_settings({row.name: row.default}) == load_settings({})


@pytest.mark.parametrize(
    ("name", "kind", "default"),
    [
        ("REBALANCER_DRY_RUN", "off, plan, server", "off"),
        ("REBALANCER_CAP_TOTAL", "number or percentage, or none", "20"),
        ("REBALANCER_CAP_WORKLOAD", "number or percentage, or none", "none"),
        ("REBALANCER_EVICTIONS_PER_MINUTE", "whole number, or none", "10"),
        ("REBALANCER_TICK_SECONDS", "number", "300"),
        ("REBALANCER_EVENTS", "true or false", "true"),
        ("REBALANCER_PROTECTED_NAMESPACES", "list", "kube-system"),
        ("REBALANCER_WINDOWS", "JSON list", "[]"),
        ("REBALANCER_POLICY_FILE", "text", ""),
    ],
)
def test_types_and_defaults_are_in_words(name: str, kind: str, default: str) -> None:
    """Each kind of setting, once."""
    assert (BY_NAME[name].type, BY_NAME[name].default) == (kind, default)
