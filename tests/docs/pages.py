"""The pages as data: headings, links, blocks of code, names in code. Just enough Markdown for our own pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
INDEX = DOCS / "index.md"
README = ROOT / "README.md"

_FENCE = re.compile(r"^( *)(```+)([^\n`]*)\n(.*?)^\1\2 *$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_ANCHOR = re.compile(r'<a id="([^"]+)">')
_CODE = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code. language, attributes: of its fence. line: of the file, counted from 1. text: without its indentation."""

    path: Path
    line: int
    language: str
    attributes: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Return every page, the README first."""
    return [README, *sorted(DOCS.rglob("*.md"))]


def name(path: Path) -> str:
    """Return a page's name for ids of tests."""
    return str(path.relative_to(ROOT))


def blocks(path: Path) -> Iterator[Block]:
    """Yield the blocks of code of a page."""
    source = path.read_text()
    for found in _FENCE.finditer(source):
        indent, _, info, text = found.groups()
        words = info.split() or [""]
        lines = [line.removeprefix(indent) for line in text.splitlines()]
        line = source.count("\n", 0, found.start()) + 1
        yield Block(path, line, words[0], tuple(words[1:]), "\n".join(lines) + "\n")


def all_blocks(*languages: str) -> list[Block]:
    """Return the blocks of these languages of all pages."""
    return [block for path in pages() for block in blocks(path) if block.language in languages]


def prose(path: Path) -> str:
    """Return a page without its blocks of code."""
    return _FENCE.sub("", path.read_text())


def links(path: Path) -> list[str]:
    """Return the targets of a page's links and pictures."""
    return _LINK.findall(_CODE.sub("", prose(path)))


def anchors(path: Path) -> list[str]:
    """Return what can be linked to in a page, as GitHub makes it of headings, and what the page says itself."""
    found: list[str] = []
    for heading in _HEADING.findall(prose(path)):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
        count = sum(known == slug or re.fullmatch(rf"{re.escape(slug)}-\d+", known) is not None for known in found)
        found.append(f"{slug}-{count}" if slug in found else slug)
    return found + _ANCHOR.findall(path.read_text())


def code(path: Path) -> Iterator[str]:
    """Yield everything that a page writes as code: words between backticks, and blocks."""
    yield from _CODE.findall(prose(path))
    yield from (block.text for block in blocks(path))
