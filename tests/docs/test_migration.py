"""The migration page maps everything that a user of the descheduler may have, and its numbers are those of the program."""

from __future__ import annotations

import re

import pytest
import yaml

from deploy.schema import FLAGS
from docs.generate import metric_names
from rebalancer.eligibility.arguments import Protection
from rebalancer.policy.v1alpha2 import TOP_LEVEL_NAMES
from rebalancer.settings import reference_rows
from tests.docs.pages import DOCS, ROOT

PAGE = (DOCS / "coming-from-the-descheduler.md").read_text()
RUNNING = (DOCS / "running.md").read_text()

# https://github.com/kubernetes-sigs/descheduler/blob/v0.36.0/metrics/metrics.go
UPSTREAM_METRICS = (
    "descheduler_pods_evicted_total",
    "descheduler_pods_evicted",
    "descheduler_loop_duration_seconds",
    "descheduler_descheduler_loop_duration_seconds",
    "descheduler_strategy_duration_seconds",
    "descheduler_descheduler_strategy_duration_seconds",
    "descheduler_build_info",
)


def section(title: str, page: str = PAGE) -> str:
    """Return the text under a heading of the second level."""
    found = page.partition(f"\n## {title}\n")[2]
    assert found, f"there is no section {title}"
    return found.partition("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    """Return the cells of the tables in a text, heads and rules left out."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [row for row, after in zip(cells, [*cells[1:], [""]], strict=True) if set(row[0]) != {"-"} and set(after[0]) != {"-"}]


def named(text: str) -> set[str]:
    """Return everything that the first cells of a section's tables name as code."""
    return {name for row in rows(text) for name in re.findall(r"`([^`]+)`", row[0])}


def test_every_flag_of_the_descheduler_is_mapped() -> None:
    """Those of 0.36 and those of 0.18."""
    flags = {flag.lstrip("-") for flag in named(section("Flags"))}
    assert flags == set(FLAGS)


@pytest.mark.parametrize("file", ["upstream-0.36-values.yaml", "upstream-0.36-optional-values.yaml", "upstream-0.20-values.yaml"])
def test_every_value_of_the_deschedulers_chart_is_mapped(file: str) -> None:
    """Each key of the first level."""
    keys = set(yaml.safe_load((ROOT / "tests" / "chart" / file).read_text()))
    assert keys - named(section("Chart values")) == set()


def test_every_metric_of_the_descheduler_is_mapped() -> None:
    """What is said to be the same is served."""
    text = section("Metrics")
    assert set(UPSTREAM_METRICS) <= named(text)
    for row in rows(text):
        for name in re.findall(r"`([^`]+)`", row[0]):
            assert row[1].startswith("the same") == (name in metric_names()), name


def test_every_field_of_the_policy_is_mapped() -> None:
    """The keys of the top level, and what a profile holds."""
    known = named(section("Policy fields"))
    fields = set(TOP_LEVEL_NAMES) - {"apiVersion", "kind", "profiles"}
    assert fields - known == set()
    assert {"profiles[].name", "profiles[].pluginConfig", "profiles[].plugins.deschedule"} <= known


def test_every_protection_is_on_the_evictors_page() -> None:
    """With what it protects."""
    assert {str(each) for each in Protection} <= named((DOCS / "evictor.md").read_text())


def test_defaults_that_differ_are_those_of_the_program() -> None:
    """Cells of the form: 15 s instead of 137 s."""
    defaults = {row.name: row.default for row in reference_rows()}
    checked = 0
    for row in rows(section("Flags")):
        found = re.match(r"(\d+) s instead of", row[2])
        if found:
            assert defaults[row[1].strip("`")] == found[1]
            checked += 1
    assert checked == 3


def test_the_speed_limits_are_those_of_the_program() -> None:
    """The table of how fast it goes."""
    defaults = {row.name: row.default for row in reference_rows()}
    checked = set()
    for row in rows(section("How fast", RUNNING).partition("###")[0]):
        for name in re.findall(r"`(REBALANCER_[A-Z_]+)`", row[2]):
            assert defaults[name] == row[1], name
            checked.add(name)
    assert len(checked) == 7


def test_durations_in_running_are_those_of_the_program() -> None:
    """Sentences of the form: 5 s (`REBALANCER_...`), 10 minutes have passed (`REBALANCER_...`)."""
    defaults = {row.name: row.default for row in reference_rows()}
    units = {"s": 1, "minutes": 60}
    pattern = re.compile(r"(\d+) (s|minutes)\b[^.|()]{0,40}\(`(REBALANCER_[A-Z_]+_SECONDS)`\)")
    found = pattern.findall(" ".join(RUNNING.split()))
    assert len(found) >= 4
    for number, unit, name in found:
        assert float(defaults[name]) == int(number) * units[unit], name
