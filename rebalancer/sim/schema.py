"""The fields that each type has, and what decoding an object by them does.

What enters: JSON values as they came in a request. What leaves: the value as a real server would write it back (empty
optional fields gone, fields that are always written filled in), the unknown fields by path, or the decoder's own complaint.
The table ``fields.json`` is generated from the published OpenAPI schema of Kubernetes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any

import orjson

from rebalancer.errors import QuantityError
from rebalancer.model.quantity import parse_quantity
from rebalancer.sim import zeros
from rebalancer.sim.kinds import Kind

_MICRO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(?:Z|[+-]\d\d:\d\d)")
_QUANTITY_RULE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_GO_NAMES = {"boolean": "bool", "number": "float64", "Time": "v1.Time", "MicroTime": "v1.MicroTime", "bytes": "[]uint8"}
_SCALARS = frozenset({"string", "int32", "int64", "integer", "boolean", "number", "bytes"})


class DecodeProblem(Exception):
    """A value does not fit its field; the message is the decoder's."""


@dataclass(frozen=True, slots=True)
class Merge:
    """How a list or map merges.

    key: the strategic merge key; "" merges scalars; None replaces the list.
    kind: atomic, set or map (server-side apply); empty where nothing is said.
    keys: what identifies an element of a ``map`` list.
    retain_keys: a strategic merge patch may carry ``$retainKeys``.
    """

    key: str | None = None
    kind: str = ""
    keys: tuple[str, ...] = ()
    retain_keys: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """One field. type: a scalar, a type name, ``[`` and an element type, or ``{`` and a value type."""

    type: str
    merge: Merge
    required: bool

    @property
    def element(self) -> str:
        """The type of the elements of a list or map."""
        return self.type[1:]


PLAIN = Merge()


@cache
def _table() -> dict[str, dict[str, Any]]:
    loaded: dict[str, dict[str, Any]] = orjson.loads(resources.files("rebalancer.sim").joinpath("fields.json").read_bytes())
    return loaded


@cache
def fields_of(type_name: str) -> dict[str, Field] | None:
    """Return the fields of a type, or None where any are allowed."""
    raw = _table().get(type_name)
    if not raw:
        return None
    return {name: _field(entry, name in raw[""]) for name, entry in raw.items() if name} or None


def _field(entry: str | list[Any], required: bool) -> Field:
    if isinstance(entry, str):
        return Field(entry, PLAIN, required)
    said = entry[1]
    kind = "atomic" if said.get("map") == "atomic" else said.get("list", "")
    return Field(entry[0], Merge(said.get("patch"), kind, tuple(said.get("keys", ())), "retain" in said), required)


def type_names() -> list[str]:
    """Return the name of every type in the table."""
    return list(_table())


@cache
def type_of(kind: Kind) -> str:
    """Return the name of the type of a served kind."""
    package = kind.group.split(".")[0] if kind.group else "core"
    return f"{package}.{kind.version}.{kind.kind}"


@dataclass(slots=True)
class Reading:
    """Decodes values. unknown: the paths of the fields that no type has."""

    unknown: list[str] = field(default_factory=list)

    def read(self, type_name: str, value: Any) -> Any:
        """Return the value of a named type as the server writes it back. Raises DecodeProblem."""
        return self._struct(type_name, value, "", "")

    def _struct(self, type_name: str, value: Any, path: str, where: str) -> Any:
        known = fields_of(type_name)
        if known is None:
            return value
        if not isinstance(value, dict):
            raise _mismatch(value, where, _go_name(type_name))
        short = type_name.rsplit(".", 1)[1]
        result: dict[str, Any] = {}
        for name, item in value.items():
            described = known.get(name)
            inner = f"{path}.{name}" if path else name
            if described is None:
                self.unknown.append(inner)
                continue
            if item is None:
                continue
            dotted = re.sub(r"\[\d+\]", "", inner)
            read = self._value(described.type, item, inner, f"Go struct field {short}.{dotted}")
            if not zeros.omitted(type_name, name, described, read):
                result[name] = read
        zeros.fill(type_name, result)
        return result

    def _value(self, kind: str, value: Any, path: str, where: str) -> Any:
        if kind[0] == "[":
            if not isinstance(value, list):
                raise _mismatch(value, where, "[]" + _go_name(kind[1:]))
            return [self._element(kind[1:], item, f"{path}[{index}]", where) for index, item in enumerate(value)]
        if kind[0] == "{":
            if not isinstance(value, dict):
                raise _mismatch(value, where, "map[string]" + _go_name(kind[1:]))
            return {name: self._element(kind[1:], item, f"{path}.{name}", where) for name, item in value.items()}
        if kind in _SCALARS or kind in {"Quantity", "IntOrString", "Time", "MicroTime"}:
            return _scalar(kind, value, where)
        if kind == "object":
            return value
        return self._struct(kind, value, path, where)

    def _element(self, kind: str, value: Any, path: str, where: str) -> Any:
        if value is None:
            return "" if kind == "string" else value
        return self._value(kind, value, path, where)


def _scalar(kind: str, value: Any, where: str) -> Any:
    fits = True
    if kind in {"string", "bytes"}:
        fits = isinstance(value, str)
    elif kind == "boolean":
        fits = isinstance(value, bool)
    elif kind in {"int32", "int64", "integer"}:
        fits = isinstance(value, int) and not isinstance(value, bool)
    elif kind == "number":
        fits = isinstance(value, int | float) and not isinstance(value, bool)
    elif kind == "IntOrString":
        fits = isinstance(value, int | str) and not isinstance(value, bool)
    elif kind == "Quantity":
        return _quantity(value)
    elif kind in {"Time", "MicroTime"}:
        return _time(kind, value, where)
    if not fits:
        raise _mismatch(value, where, _go_name(kind))
    return value


def _quantity(value: Any) -> str:
    text = value if isinstance(value, str) else str(value)
    try:
        parse_quantity(text)
    except QuantityError:
        raise DecodeProblem(_QUANTITY_RULE) from None
    return text


def _time(kind: str, value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise _mismatch(value, where, _go_name(kind))
    layout = "2006-01-02T15:04:05.000000Z07:00" if kind == "MicroTime" else "2006-01-02T15:04:05Z07:00"
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise DecodeProblem(f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"') from None
    if kind == "MicroTime" and not _MICRO.fullmatch(value):
        rest = value[19:]
        raise DecodeProblem(f'parsing time "{value}" as "{layout}": cannot parse "{rest}" as ".000000"')
    if moment.tzinfo is None:
        raise DecodeProblem(f'parsing time "{value}" as "{layout}": cannot parse "" as "Z07:00"')
    return value


def _mismatch(value: Any, where: str, wanted: str) -> DecodeProblem:
    into = f"into {where} of type {wanted}" if where else f"into Go value of type {wanted}"
    return DecodeProblem(f"json: cannot unmarshal {_json_kind(value)} {into}")


def _json_kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int):
        return "number"
    if isinstance(value, float):
        return f"number {value}"
    return "array" if isinstance(value, list) else "object"


def _go_name(kind: str) -> str:
    if kind.startswith("["):
        return "[]" + _go_name(kind[1:])
    if kind.startswith("{"):
        return "map[string]" + _go_name(kind[1:])
    if "." in kind:
        return ".".join(kind.split(".")[-2:])
    return _GO_NAMES.get(kind, kind)
