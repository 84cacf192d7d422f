"""The generated parts are as they would be written now."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.generate import PARTS, main, page, slug
from docs.generate import pages as generated_pages
from rebalancer.settings import reference_rows
from rebalancer.strategies.catalogue import STRATEGIES
from tests.docs.pages import DOCS, name


@pytest.mark.parametrize("path", list(generated_pages()), ids=name)
def test_a_page_is_as_the_generator_writes_it(path: Path) -> None:
    """Run scripts/docs where this fails."""
    assert path.read_text() == page(path)


def test_every_part_is_used() -> None:
    """What can be generated stands in some page."""
    text = "".join(path.read_text() for path in generated_pages())
    assert [part for part in PARTS if f"<!-- generated: {part} -->" not in text] == []


def test_every_strategy_has_a_page_with_its_arguments() -> None:
    """A new strategy without one is noticed."""
    for strategy, found in STRATEGIES.items():
        text = (DOCS / "strategies" / f"{slug(strategy)}.md").read_text()
        assert text.startswith(f"# {strategy}\n")
        for argument in found.args.names():
            assert f"`{argument}" in text


def test_every_setting_is_in_the_reference() -> None:
    """With its name and its meaning."""
    text = (DOCS / "settings.md").read_text()
    for row in reference_rows():
        assert f"| `{row.name}` |" in text


def test_checking_writes_nothing_and_names_what_differs(capsys: pytest.CaptureFixture[str]) -> None:
    """With everything up to date it says nothing and returns 0."""
    assert main(["--check"]) == 0
    assert capsys.readouterr().out == ""
