"""What is generated in deploy/ is what its sources give now: ``python -m deploy.generate`` was run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from deploy.generate import CHART, DEPLOY, manifests, outputs, rendered
from deploy.table import rows, table, undescribed
from rebalancer import __version__


@pytest.mark.parametrize(("path", "expected"), list(outputs()), ids=lambda value: value.name if isinstance(value, Path) else "")
def test_generated_parts_of_the_chart_are_up_to_date(path: Path, expected: str) -> None:
    """Settings among the values, schema, table of the README, version."""
    assert path.read_text() == expected


@pytest.mark.parametrize(("path", "expected"), list(manifests()), ids=lambda value: value.name if isinstance(value, Path) else "")
def test_plain_manifests_are_what_the_chart_renders(path: Path, expected: str) -> None:
    """Who has no Helm installs the same."""
    assert path.read_text() == expected


def test_no_other_file_lies_among_the_manifests() -> None:
    """A manifest that nothing writes any more would grow old unseen."""
    assert sorted(path.name for path in (DEPLOY / "manifests").iterdir()) == sorted(path.name for path, _ in manifests())


def test_plain_manifests_hold_every_object_of_the_chart() -> None:
    """Only Helm's own labels are missing."""
    plain = list(yaml.safe_load_all((DEPLOY / "manifests" / "deployment.yaml").read_text()))
    ours = rendered({})
    for found in ours:
        found["metadata"]["labels"] = {
            key: value
            for key, value in found["metadata"]["labels"].items()
            if key not in ("helm.sh/chart", "app.kubernetes.io/managed-by")
        }
    key = lambda found: (found["kind"], found["metadata"]["name"])  # noqa: E731
    assert sorted(plain, key=key) == sorted(ours, key=key)


def test_the_version_comes_from_one_place() -> None:
    """Chart and program carry the same."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == __version__


def test_every_value_is_described() -> None:
    """A value nobody explains is not in the table."""
    assert undescribed((CHART / "values.yaml").read_text()) == []


def test_the_table_says_path_default_and_meaning() -> None:
    """Nested keys get dots, comments over several lines are joined, long defaults are left in the file."""
    text = "a:\n  # -- First line,\n  # second line.\n  b: 1\n# plain comment\nc: 2\n# -- List.\nd:\n  - x\n"
    assert [(row.path, row.default, row.description) for row in rows(text)] == [
        ("a.b", 1, "First line, second line."),
        ("d", ["x"], "List."),
    ]
    assert undescribed(text) == ["c"]
    assert "| `a.b` | `1` | First line, second line. |" in table(text)


def test_no_address_outside_is_needed() -> None:
    """Neither dependencies nor images of a named registry; the image repository is a value without a host."""
    assert "dependencies" not in yaml.safe_load((CHART / "Chart.yaml").read_text())
    for path in (DEPLOY / "manifests").iterdir():
        assert set(re.findall(r"image: (\S+)", path.read_text())) == {f"rebalancer/rebalancer:{__version__}"}
