"""Loose objects of many kinds, from a dump or from a caller, to one snapshot.

Enters: dicts with ``kind``. Leaves: Parsed. One malformed object is a problem in words; it never takes the others down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from rebalancer.errors import ParseError
from rebalancer.model.snapshot import Snapshot, snapshot_of
from rebalancer.parse import others
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

_WORKLOADS = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job")


@dataclass(frozen=True, slots=True)
class Parsed:
    """What was found in a set of objects.

    by_kind: values by kind; kinds that are not read are left out. problems: one sentence for each malformed object.
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


def flatten(objects: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield single objects; a List (``kind: List`` or ``PodList``) gives its items, with the kind it implies."""
    for each in objects:
        kind = each.get("kind") or ""
        items = each.get("items")
        if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list):
            implied = kind.removesuffix("List")
            for item in items:
                if not isinstance(item, Mapping):
                    yield {"kind": implied, "metadata": item}
                else:
                    yield item if item.get("kind") or not implied else {"kind": implied, **item}
        else:
            yield each


def parse_objects(objects: Iterable[Mapping[str, Any]], interner: Interner | None = None) -> Parsed:
    """Parse dicts as ``kubectl get -o json`` gives them. Never raises for one bad object: it becomes a problem."""
    interner = interner or Interner()
    found: dict[str, list[Any]] = {}
    problems: list[str] = []
    for each in flatten(objects):
        kind = each.get("kind") if isinstance(each, Mapping) else None
        parser = PARSERS.get(kind) if isinstance(kind, str) else None
        if parser is None:
            continue
        try:
            found.setdefault(str(kind), []).append(parser(msgspec.json.encode(each), interner))
        except ParseError as error:
            problems.append(str(error))
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            problems.append(f"{kind}: cannot be written as JSON: {error}")
    return Parsed({kind: tuple(values) for kind, values in found.items()}, tuple(problems))
