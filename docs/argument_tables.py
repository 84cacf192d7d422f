"""Tables of arguments and settings, in Markdown, from the models themselves."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from rebalancer.model.selector import LabelSelector
from rebalancer.parse import argument_types
from rebalancer.parse.arguments import Arguments

_WORDS: Mapping[Any, str] = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
    LabelSelector: "label selector",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One argument: its path with dots, its type and default in words, its meaning."""

    path: str
    type: str
    default: str
    meaning: str


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    heads = list(head)
    lines = [heads, ["---"] * len(heads), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def arguments(model: type[Arguments], prefix: str = "") -> Iterator[Row]:
    """Yield a row for each argument of a model; those inside a map come instead of the map."""
    for name, field in model.model_fields.items():
        path = prefix + str(field.alias or name)
        inner = _inner(field.annotation)
        if inner is None:
            yield Row(path, _type(field), _default(field), field.description or "")
        else:
            group, is_list = inner
            yield from arguments(group, f"{path}[]." if is_list else f"{path}.")


def arguments_table(model: type[Arguments]) -> str:
    """Return the table of a model's arguments."""
    rows = list(arguments(model))
    if not rows:
        return "It takes no arguments.\n"
    return table(
        ("argument", "type", "default", "meaning"), ((f"`{row.path}`", row.type, row.default, row.meaning) for row in rows)
    )


def _inner(annotation: Any) -> tuple[type[Arguments], bool] | None:
    """Return the model inside an annotation, and whether it is that of a list's items."""
    if isinstance(annotation, type) and issubclass(annotation, Arguments):
        return annotation, False
    is_list = get_origin(annotation) is tuple
    for part in get_args(annotation):
        found = _inner(part)
        if found is not None:
            return found[0], found[1] or is_list
    return None


def _type(field: FieldInfo) -> str:
    annotation = field.annotation
    if get_origin(annotation) in {Union, types.UnionType}:
        annotation = next(part for part in get_args(annotation) if part is not type(None))
    while get_origin(annotation) is Annotated:
        if annotation == argument_types.Duration:
            return "duration, as in `1h30m`"
        if annotation == argument_types.NodeLabels:
            return "label selector as text, as in `pool=a`"
        annotation = get_args(annotation)[0]
    if field.metadata and annotation is LabelSelector and not field.is_required() and field.default is not None:
        return "label selector as text, as in `pool=a`"
    origin = get_origin(annotation)
    if origin is tuple:
        return "list"
    if origin is not None and issubclass(origin, Mapping):
        return "map of resource to percent"
    return _WORDS[annotation]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    default = field.default
    if default is None or default in ("", ()) or isinstance(default, LabelSelector):
        return ""
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, tuple):
        return "`[" + ", ".join(map(str, default)) + "]`"
    return f"`{default}`"
