"""The table of a chart's values, from the comments in its values.yaml.

A comment that begins with ``# --`` describes the key below it; lines of comment that follow continue it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

_KEY = re.compile(r"( *)([A-Za-z][A-Za-z0-9-]*):")
_COMMENT = re.compile(r" *# ?(-- )?(.*)")
_LONGEST_DEFAULT = 60


@dataclass(frozen=True, slots=True)
class Row:
    """One value: its path with dots, its description, its default."""

    path: str
    description: str
    default: Any


def rows(text: str) -> Iterator[Row]:
    """Yield every described value, in the order of the file."""
    values = yaml.safe_load(text)
    path: list[tuple[int, str]] = []
    description: list[str] | None = None
    for line in text.splitlines():
        if found := _COMMENT.fullmatch(line):
            if found[1]:
                description = [found[2]]
            elif description is not None:
                description.append(found[2])
        elif found := _KEY.match(line):
            indent = len(found[1])
            path = [*(part for part in path if part[0] < indent), (indent, found[2])]
            names = [name for _, name in path]
            if description is not None:
                yield Row(".".join(names), " ".join(description), _at(values, names))
            description = None
        else:
            description = None


def table(text: str) -> str:
    """Return the table in Markdown."""
    lines = ["| value | default | meaning |", "|---|---|---|"]
    lines += [f"| `{row.path}` | {_shown(row.default)} | {row.description.replace('|', chr(92) + '|')} |" for row in rows(text)]
    return "\n".join(lines)


def undescribed(text: str) -> list[str]:
    """Return the paths of values that neither they nor what they are part of describes."""
    described = {row.path for row in rows(text)}
    return [
        path for path in _leaves(yaml.safe_load(text), "") if not any(f"{path}.".startswith(f"{known}.") for known in described)
    ]


def _leaves(values: Mapping[str, Any], prefix: str) -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name


def _at(values: Any, names: list[str]) -> Any:
    for name in names:
        values = values[name]
    return values


def _shown(default: Any) -> str:
    text = json.dumps(default, ensure_ascii=False)
    return f"`{text}`" if len(text) <= _LONGEST_DEFAULT else "see `values.yaml`"
