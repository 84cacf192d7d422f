"""The settings as rows, for the generated reference and for whoever compares the chart with them."""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from rebalancer.model.cap import Cap
from rebalancer.settings.environment import GROUPS, variable
from rebalancer.settings.types import NO_LIMIT
from rebalancer.settings.windows import WindowSetting


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting as the reference shows it.

    name: the environment variable. subject, title: its group, by field of Settings and for people. field: its name there.
    type, default, unit, description: in words; unit is empty where there is none.
    """

    name: str
    subject: str
    title: str
    field: str
    type: str
    default: str
    unit: str
    description: str


def reference_rows() -> Iterator[SettingRow]:
    """Yield every setting, group by group, in the order of declaration."""
    for subject, group in GROUPS.items():
        for name, field in group.model_fields.items():
            yield SettingRow(
                name=variable(name),
                subject=subject,
                title=group.title,
                field=name,
                type=_type(field.annotation, field),
                default=_default(field.default, field.annotation),
                unit=_unit(name),
                description=field.description or "",
            )


def _type(annotation: Any, field: FieldInfo) -> str:
    if get_origin(annotation) is Literal:
        return ", ".join(get_args(annotation))
    members = [item for item in get_args(annotation) if item is not type(None)]
    if get_origin(annotation) in {Union, types.UnionType}:
        limit = Cap in members or _is_count(members[0])
        return _type(members[0], field) + (f", or {NO_LIMIT}" if limit else "")
    if get_origin(annotation) is tuple:
        return "JSON list" if WindowSetting in members else "list"
    if get_args(annotation):
        return _type(members[0], field)
    words = {bool: "true or false", float: "number", int: "whole number", str: "text", Cap: "number or percentage"}
    return words[annotation]


def _is_count(annotation: Any) -> bool:
    return annotation is int or int in get_args(annotation)


def _default(default: Any, annotation: Any) -> str:
    if default is None:
        return NO_LIMIT if Cap in get_args(annotation) else ""
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, float):
        return f"{default:g}"
    if isinstance(default, tuple):
        return ",".join(default) or "[]"
    return str(default)


def _unit(name: str) -> str:
    if name.endswith("_seconds"):
        return "seconds"
    return {"evictions_per_minute": "evictions per minute"}.get(name, "")
