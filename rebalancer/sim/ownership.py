"""Who set which field: the ``managedFields`` of an object, and the leaves that they speak of.

A path is a tuple of elements in the notation of FieldsV1: ``f:name`` for a field, ``k:{...}`` for an element of a list with
keys, ``v:...`` for one of a set. Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from rebalancer.sim.history import Object
from rebalancer.sim.schema import Merge, fields_of

Path = tuple[str, ...]
Leaves = dict[Path, Any]

_NEVER_OWNED = frozenset(
    {
        ("f:apiVersion",),
        ("f:kind",),
        *(
            ("f:metadata", f"f:{name}")
            for name in (
                "name",
                "namespace",
                "uid",
                "resourceVersion",
                "generation",
                "creationTimestamp",
                "deletionTimestamp",
                "deletionGracePeriodSeconds",
                "managedFields",
                "selfLink",
                "generateName",
            )
        ),
    }
)
ITEM = object()
"""The value of a path that stands for an element of a list itself."""


def leaves(type_name: str, value: Object) -> Leaves:
    """Return the leaves of an object and their values."""
    found: Leaves = {}
    _struct(type_name, value, (), found)
    for path in [path for path in found if path[:2] in _NEVER_OWNED or path[:1] in _NEVER_OWNED]:
        del found[path]
    return found


def _struct(type_name: str, value: Any, at: Path, found: Leaves) -> None:
    known = fields_of(type_name)
    if known is None or not isinstance(value, dict) or not value:
        found[at] = value
        return
    for name, item in value.items():
        described = known.get(name)
        inner = (*at, f"f:{name}")
        if described is None:
            found[inner] = item
        else:
            _value(described.type, described.merge, item, inner, found)


def _value(kind: str, merge: Merge, value: Any, at: Path, found: Leaves) -> None:
    if kind[0] == "[" and isinstance(value, list) and merge.kind in {"map", "set"}:
        for item in value:
            inner = (*at, element(merge, item))
            found[inner] = ITEM
            if merge.kind == "map":
                _struct(kind[1:], item, inner, found)
    elif kind[0] == "{" and isinstance(value, dict) and merge.kind != "atomic":
        for name, item in value.items():
            found[*at, f"f:{name}"] = item
    elif merge.kind != "atomic" and "." in kind and kind[0] != "[":
        _struct(kind, value, at, found)
    else:
        found[at] = value


def element(merge: Merge, item: Any) -> str:
    """Return the path element of a list's element."""
    if merge.kind == "set":
        return "v:" + orjson.dumps(item).decode()
    keys = {name: item.get(name, _DEFAULTS.get(name)) for name in merge.keys}
    present = {name: value for name, value in keys.items() if value is not None}
    return "k:" + orjson.dumps(present, option=orjson.OPT_SORT_KEYS).decode()


_DEFAULTS = {"protocol": "TCP"}


def fields_v1(paths: Iterable[Path]) -> Object:
    """Return paths as FieldsV1."""
    root: Object = {}
    for path in sorted(paths):
        node = root
        for step in path:
            node = node.setdefault(step, {})
        if path and path[-1][0] in "kv":
            node.setdefault(".", {})
    return root


def paths_of(fields: Object) -> set[Path]:
    """Return the paths that FieldsV1 speaks of."""
    found: set[Path] = set()

    def walk(node: Object, at: Path) -> None:
        inner = {name: item for name, item in node.items() if name != "."}
        if at and (not inner or "." in node):
            found.add(at)
        for name, item in inner.items():
            walk(item, (*at, name))

    walk(fields, ())
    return found


def shown(path: Path) -> str:
    """Return a path as messages show it: ``.spec.containers[name="c"].image``."""
    text = ""
    for step in path:
        if step[0] == "f":
            text += "." + step[2:]
        elif step[0] == "k":
            keys = orjson.loads(step[2:])
            text += "[" + ",".join(f"{name}={orjson.dumps(value).decode()}" for name, value in keys.items()) + "]"
        else:
            text += f"[={step[2:]}]"
    return text


class Managers:
    """The managers of one object: (manager, operation, subresource) to the paths that each has set."""

    def __init__(self, entries: Iterable[Object] = ()) -> None:
        self._entries: dict[tuple[str, str, str], Object] = {}
        self._paths: dict[tuple[str, str, str], set[Path]] = {}
        for entry in entries:
            key = (entry.get("manager", ""), entry.get("operation", ""), entry.get("subresource", ""))
            self._entries[key] = entry
            self._paths[key] = paths_of(entry.get("fieldsV1", {}))

    def paths(self, manager: str, operation: str, subresource: str = "") -> set[Path]:
        """Return what a manager has set."""
        return set(self._paths.get((manager, operation, subresource), ()))

    def others(self, manager: str, operation: str) -> dict[tuple[str, str, str], set[Path]]:
        """Return what every other manager has set."""
        return {key: paths for key, paths in self._paths.items() if key[:2] != (manager, operation)}

    def version_of(self, key: tuple[str, str, str]) -> str:
        """Return the API version that a manager used."""
        return str(self._entries[key].get("apiVersion", ""))

    def take_from_others(self, key: tuple[str, str, str], paths: set[Path]) -> None:
        """Let no other manager have some paths."""
        for other, held in self._paths.items():
            if other != key:
                held -= paths

    def set(self, key: tuple[str, str, str], paths: set[Path], api_version: str, now: str) -> None:
        """Let a manager have exactly some paths."""
        self._paths[key] = paths
        self._entries[key] = {"manager": key[0], "operation": key[1], "apiVersion": api_version, "time": now}

    def written(self) -> list[Object]:
        """Return the managers as ``managedFields``."""
        result = []
        for key, paths in self._paths.items():
            if not paths:
                continue
            entry = self._entries[key]
            written: Object = {
                "manager": key[0],
                "operation": key[1],
                "apiVersion": entry.get("apiVersion", ""),
                "time": entry.get("time", ""),
                "fieldsType": "FieldsV1",
                "fieldsV1": fields_v1(paths),
            }
            result.append(written | ({"subresource": key[2]} if key[2] else {}))
        return sorted(result, key=lambda entry: (entry["operation"], entry["time"], entry["manager"]))


def track_update(type_name: str, old: Object | None, new: Object, manager: str, subresource: str, now: str) -> list[Object]:
    """Return the managedFields of an object after a manager created or updated it."""
    before = leaves(type_name, old) if old is not None else {}
    after = leaves(type_name, new)
    changed = {path for path, value in after.items() if path not in before or before[path] != value}
    gone = set(before) - set(after)
    managers = Managers((old or {}).get("metadata", {}).get("managedFields", ()))
    key = (manager, "Update", subresource)
    managers.take_from_others(key, changed | gone)
    mine = (managers.paths(*key) | changed) - gone
    if changed or mine != managers.paths(*key):
        managers.set(key, mine, new.get("apiVersion", ""), now)
    return managers.written()
