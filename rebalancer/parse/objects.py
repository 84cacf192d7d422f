"""Loose objects of many kinds, from a dump or from a caller, to one snapshot.

Enters: dicts with ``kind``. Leaves: Parsed. One malformed object is a problem in words; it never takes the others down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import msgspec

from rebalancer.errors import ParseError
from rebalancer.model.snapshot import Snapshot, snapshot_of
from rebalancer.parse import others
from rebalancer.parse.arguments import shown
from rebalancer.parse.interning import Interner
from rebalancer.parse.node import parse_csi_node, parse_node
from rebalancer.parse.pod import parse_pod

Parser = Callable[[bytes | msgspec.Raw, Interner], Any]

PARSERS: Mapping[str, Parser] = {
    "Pod": parse_pod,
    "Node": parse_node,
    "PodDisruptionBudget": others.parse_budget,
    "Namespace": others.parse_namespace,
    "PriorityClass": others.parse_priority_class,
    "Service": others.parse_service,
    "Deployment": others.parse_deployment,
    "ReplicaSet": others.parse_replica_set,
    "ReplicationController": others.parse_replication_controller,
    "StatefulSet": others.parse_stateful_set,
    "DaemonSet": others.parse_daemon_set,
    "Job": others.parse_job,
    "PersistentVolume": others.parse_volume,
    "PersistentVolumeClaim": others.parse_claim,
    "StorageClass": others.parse_storage_class,
    "CSINode": parse_csi_node,
}

_CLUSTER_WIDE = ("Node", "Namespace", "PriorityClass", "PersistentVolume", "StorageClass", "CSINode")
_WORKLOADS = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job")


@dataclass(frozen=True, slots=True)
class Parsed:
    """What was found in a set of objects.

    by_kind: values by kind; kinds that are not read are left out.
    problems: one sentence for each object that was skipped, sorted, so that they do not depend on the order of the objects.
    """

    by_kind: Mapping[str, tuple[Any, ...]]
    problems: tuple[str, ...] = ()

    def of(self, kind: str) -> tuple[Any, ...]:
        """Return the values of one kind."""
        return self.by_kind.get(kind, ())

    def snapshot(self, now: float) -> Snapshot:
        """Return the snapshot they make up. now: seconds since the epoch."""
        return snapshot_of(
            now,
            nodes=self.of("Node"),
            pods=self.of("Pod"),
            budgets=self.of("PodDisruptionBudget"),
            namespaces=self.of("Namespace"),
            priority_classes=self.of("PriorityClass"),
            storage_classes=self.of("StorageClass"),
            volumes=self.of("PersistentVolume"),
            claims=self.of("PersistentVolumeClaim"),
            services=self.of("Service"),
            workloads=[workload for kind in _WORKLOADS for workload in self.of(kind)],
            drivers=self.of("CSINode"),
            missing=[kind for kind in PARSERS if not self.of(kind)],
        )


def flatten(objects: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """Yield single objects; a List (``kind: List`` or ``PodList``) gives its items, with the kind it implies.

    What is no object at all becomes one that is malformed, so that it is noticed.
    """
    waiting = [("", iter(objects))]
    while waiting:
        implied, items = waiting[-1]
        for item in items:
            each = _object(item, implied)
            kind, inner = each.get("kind"), each.get("items")
            if isinstance(kind, str) and kind.endswith("List") and isinstance(inner, list):
                waiting.append((kind.removesuffix("List"), iter(inner)))
                break
            yield each
        else:
            waiting.pop()


def _object(item: Any, implied: str) -> Mapping[str, Any]:
    if not isinstance(item, Mapping):
        return {"kind": implied, "metadata": item}
    return item if item.get("kind") or not implied else {**item, "kind": implied}


def parse_objects(objects: Iterable[Mapping[str, Any]], interner: Interner | None = None) -> Parsed:
    """Parse dicts as ``kubectl get -o json`` gives them. Never raises for one bad object: it becomes a problem.

    Of several objects with the same kind, namespace and name the one with the highest resource version counts.
    """
    interner = interner or Interner()
    found: dict[str, dict[tuple[str, str], _Candidate]] = {}
    problems: list[str] = []
    for each in flatten(objects):
        kind = each.get("kind")
        if not kind or not isinstance(kind, str):
            problems.append(f"an object without a kind: {shown(each)}")
            continue
        parser = PARSERS.get(kind)
        if parser is None:
            continue
        try:
            data = msgspec.json.encode(_in_namespace(kind, each))
            candidate = _Candidate(_version(each), blake2b(data, digest_size=8).digest(), parser(data, interner))
        except ParseError as error:
            problems.append(str(error))
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            problems.append(f"{kind}: cannot be written as JSON: {error}")
        else:
            same_kind = found.setdefault(kind, {})
            name = _name(each)
            other = same_kind.get(name)
            if other is not None:
                where = name[1] if kind in _CLUSTER_WIDE else "/".join(name)
                problems.append(f"{kind} {where}: is given more than once; the latest version counts")
            if other is None or candidate.order > other.order:
                same_kind[name] = candidate
    values = {kind: tuple(candidate.value for candidate in named.values()) for kind, named in found.items()}
    return Parsed(values, tuple(sorted(_printable(problem) for problem in problems)))


def _printable(text: str) -> str:
    """Return a text without characters that could do harm on a terminal."""
    return text if text.isprintable() else "".join(each if each.isprintable() else "?" for each in text)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One object that was parsed, and what decides between it and another of the same name: version, then content."""

    version: int
    digest: bytes
    value: Any

    @property
    def order(self) -> tuple[int, bytes]:
        return self.version, self.digest


def _version(document: Mapping[str, Any]) -> int:
    """Return an object's resource version as a number; 0 where it has none that is one."""
    text = str(_metadata(document).get("resourceVersion") or "")
    return int(text) if len(text) < 20 and text.isascii() and text.isdigit() else 0


def _name(document: Mapping[str, Any]) -> tuple[str, str]:
    metadata = _metadata(document)
    return str(metadata.get("namespace") or "default"), str(metadata.get("name"))


def _in_namespace(kind: str, document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the object with a namespace, where its kind has one: a manifest without one means ``default``."""
    metadata = document.get("metadata")
    if kind in _CLUSTER_WIDE or not isinstance(metadata, Mapping) or metadata.get("namespace"):
        return document
    return {**document, "metadata": {**metadata, "namespace": "default"}}


def _metadata(document: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = document.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}
