"""The pages hang together: every link leads somewhere, every page is found from the index."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.docs.pages import DOCS, INDEX, README, ROOT, anchors, links, name, pages, prose

PAGES = pages()


def target(path: Path, link: str) -> tuple[Path, str]:
    """Return the file that a link of a page leads to, and the anchor in it."""
    file, _, anchor = link.partition("#")
    return ((path.parent / file).resolve() if file else path), anchor


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_link_leads_to_a_file_of_the_repository_and_an_anchor_in_it(path: Path) -> None:
    """Addresses outside are allowed, and nothing needs them."""
    for link in links(path):
        if link.startswith(("https://", "http://")):
            continue
        file, anchor = target(path, link)
        assert file.is_file() or file.name == "results.md", f"{name(path)}: {link}"
        assert file.is_relative_to(ROOT), f"{name(path)}: {link} leads out of the repository"
        if anchor:
            assert anchor in anchors(file), f"{name(path)}: {link} has no such anchor"


def test_every_page_is_reached_from_the_index() -> None:
    """Nobody writes a page that nobody finds."""
    seen: set[Path] = set()
    waiting = [INDEX]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        found = (target(path, link)[0] for link in links(path) if not link.startswith("http"))
        waiting += [file for file in found if file.suffix == ".md" and file.is_file()]
    assert {name(path) for path in DOCS.rglob("*.md")} <= {name(path) for path in seen}


def test_the_readme_leads_to_the_index() -> None:
    """Who starts with the README finds everything."""
    assert "docs/index.md" in links(README)


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_anchors_of_a_page_are_unique(path: Path) -> None:
    """A link to one can mean one place only."""
    found = anchors(path)
    assert len(found) == len(set(found))


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_a_page_has_one_title_and_well_formed_tables(path: Path) -> None:
    """A title on its first line, no other; each row of a table has as many cells as its head."""
    text = prose(path)
    assert text.startswith("# ")
    assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1
    width = 0
    for line in text.splitlines():
        cells = len(re.findall(r"(?<!\\)\|", line)) if line.lstrip().startswith("|") else 0
        assert cells in (0, width or cells), f"{name(path)}: {line}"
        width = cells


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.svg")), ids=name)
def test_a_picture_is_well_formed_and_needs_nothing_from_outside(path: Path) -> None:
    """It has a text for those who cannot see it."""
    root = ElementTree.parse(path).getroot()
    assert root.get("aria-label")
    addresses = set(re.findall(r"https?://[^\"' >]+", path.read_text()))
    assert addresses == {"http://www.w3.org/2000/svg"}


def test_the_results_of_benchmarks_are_the_only_file_that_a_link_may_wait_for() -> None:
    """They are written by the benchmarks; every other link is checked without exception."""
    waiting = {target(path, link)[0] for path in PAGES for link in links(path) if link.partition("#")[0].endswith("results.md")}
    assert waiting == {ROOT / "benchmarks" / "results.md"}
