"""Every name that the documentation mentions exists: settings, metrics, chart values, annotations, files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.generate import metric_names
from rebalancer.decide.evaluate import PRECEDENCE
from rebalancer.policy import is_policy_variable, policy_variables
from rebalancer.settings import setting_names
from tests.docs.pages import DOCS, ROOT, code, name, pages

VARIABLE = re.compile(r"REBALANCER_[A-Z][A-Z0-9_]*")
METRIC = re.compile(r"\b(?:rebalancer|descheduler)_[a-z][a-z0-9_]*")


def found(pattern: re.Pattern[str], path: Path) -> set[str]:
    """Return what a page's code has of a pattern."""
    return {match for text in code(path) for match in pattern.findall(text)}


@pytest.mark.parametrize("path", pages(), ids=name)
def test_every_variable_exists(path: Path) -> None:
    """Settings, and variables of a policy; placeholders such as REBALANCER_STRATEGY__<NAME> aside."""
    known = {*setting_names(), *policy_variables()}
    unknown = {
        variable
        for variable in found(VARIABLE, path) - known
        if not (is_policy_variable(variable + "X") and variable.endswith("__")) and variable != "REBALANCER_STRATEGY"
    }
    assert unknown == set()


@pytest.mark.parametrize("path", pages(), ids=name)
def test_every_metric_exists(path: Path) -> None:
    """Under the name it is scraped by; module names of the library aside."""
    unknown = found(METRIC, path) - metric_names()
    assert unknown == set()


def chart_values() -> dict[str, Any]:
    """Return the chart's values."""
    values: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "chart" / "values.yaml").read_text())
    return values


@pytest.mark.parametrize("path", pages(), ids=name)
def test_every_chart_value_exists(path: Path) -> None:
    """Paths such as settings.capTotal and rbac.tokenReviews, with or without a value."""
    values = chart_values()
    groups = {key for key, value in values.items() if isinstance(value, dict) and value} - {"deschedulerPolicy"}
    pattern = re.compile(rf"(?<![\w./-])((?:{'|'.join(sorted(groups))})\.[A-Za-z.]+[A-Za-z])(?![\w(/])")
    for mentioned in found(pattern, path):
        where: Any = values
        for step in mentioned.split("."):
            assert isinstance(where, dict), mentioned
            assert step in where or mentioned == "settings.lease", f"{name(path)}: {mentioned}"
            where = where.get(step)


@pytest.mark.parametrize("path", pages(), ids=name)
def test_every_file_of_the_repository_that_is_named_exists(path: Path) -> None:
    """Whatever looks like a path into one of its folders."""
    for mentioned in found(re.compile(r"(?<![\w./-])((?:docs|deploy|scripts|tests|benchmarks|rebalancer)/[\w./-]*\w)"), path):
        assert (ROOT / mentioned).exists(), f"{name(path)}: {mentioned}"


def test_the_precedence_of_strategies_is_the_programs() -> None:
    """In the order of the numbered list."""
    text = (DOCS / "strategies" / "index.md").read_text().partition("## Precedence")[2]
    assert tuple(re.findall(r"^\d\. (\w+)$", text, re.MULTILINE)) == PRECEDENCE
