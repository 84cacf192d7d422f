"""Everything that is not a pod: small tables by name, and the views of them that a snapshot needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

Key = tuple[str, str]

WORKLOADS = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job")
_UNNAMESPACED = ("Node", "Namespace", "PriorityClass", "PersistentVolume", "StorageClass", "CSINode")


def key_of(kind: str, value: Any) -> Key:
    """Return the namespace and the name of a value; the namespace is empty for kinds without one."""
    if kind == "CSINode":
        return "", value.node
    if kind in _UNNAMESPACED:
        return "", value.name
    return value.namespace, value.name


def is_kept(kind: str, value: Any) -> bool:
    """Say whether a value is worth its memory: the old ReplicaSets of a Deployment have no pods, and nothing asks for them."""
    return kind != "ReplicaSet" or bool(value.replicas or value.status_replicas)


class Table:
    """The values of one kind by namespace and name, workloads by UID too. changes: counts up with each change."""

    __slots__ = ("by_uid", "changes", "values")

    def __init__(self, kind: str = "") -> None:
        """Start empty."""
        self.values: dict[Key, Any] = {}
        self.by_uid: dict[str, Any] | None = {} if kind in WORKLOADS else None
        self.changes = 0

    def put(self, key: Key, value: Any) -> Any | None:
        """Add or replace a value; return the one that was there."""
        old = self.values.get(key)
        self.values[key] = value
        if self.by_uid is not None:
            if old is not None and old.uid != value.uid:
                self.by_uid.pop(old.uid, None)
            self.by_uid[value.uid] = value
        self.changes += 1
        return old

    def remove(self, key: Key) -> Any | None:
        """Take a value out and return it; None where there was none."""
        old = self.values.pop(key, None)
        if old is not None:
            if self.by_uid is not None:
                self.by_uid.pop(old.uid, None)
            self.changes += 1
        return old

    def swap(self, new: Table) -> dict[Key, Any]:
        """Hold what another table holds; return what was there."""
        old, self.values, self.by_uid = self.values, new.values, new.by_uid
        self.changes += 1
        return old


class View:
    """What a snapshot shows of some tables, built again only after one of them has changed."""

    def __init__(self, tables: Iterable[Table], build: Callable[[], Any]) -> None:
        """Show these tables. build: makes the view from them."""
        self._tables = tuple(tables)
        self._build = build
        self._seen: tuple[int, ...] | None = None
        self._value: Any = None

    def get(self) -> Any:
        """Return the view. It is never changed afterwards, so snapshots may share it."""
        changes = tuple(table.changes for table in self._tables)
        if changes != self._seen:
            self._value, self._seen = self._build(), changes
        return self._value


def views(tables: Mapping[str, Table]) -> dict[str, View]:
    """Return the views of a snapshot, by the names of its fields."""

    def by_name(kind: str) -> View:
        return View([tables[kind]], lambda: {name: value for (_, name), value in sorted_items(tables[kind])})

    def grouped(kind: str) -> View:
        return View([tables[kind]], lambda: _grouped(tables[kind]))

    return {
        "nodes": by_name("Node"),
        "namespaces": by_name("Namespace"),
        "priority_classes": by_name("PriorityClass"),
        "storage_classes": by_name("StorageClass"),
        "volumes": by_name("PersistentVolume"),
        "drivers": by_name("CSINode"),
        "claims": View([tables["PersistentVolumeClaim"]], lambda: dict(tables["PersistentVolumeClaim"].values)),
        "budgets": grouped("PodDisruptionBudget"),
        "services": grouped("Service"),
        "workloads": View([tables[kind] for kind in WORKLOADS], lambda: _united(tables[kind].by_uid for kind in WORKLOADS)),
    }


def sorted_items(table: Table) -> list[tuple[Key, Any]]:
    """Return the entries in the order of namespaces and names."""
    return sorted(table.values.items(), key=lambda item: item[0])


def _united(parts: Iterable[dict[str, Any] | None]) -> dict[str, Any]:
    """Return one dictionary of several; a hundred thousand entries are copied in a few milliseconds."""
    united: dict[str, Any] = {}
    for part in parts:
        united.update(part or {})
    return united


def _grouped(table: Table) -> dict[str, tuple[Any, ...]]:
    groups: dict[str, list[Any]] = {}
    for (namespace, _), value in sorted_items(table):
        groups.setdefault(namespace, []).append(value)
    return {namespace: tuple(values) for namespace, values in groups.items()}
