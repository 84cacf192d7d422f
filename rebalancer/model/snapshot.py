"""The frozen picture of a cluster that every decision is taken on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from rebalancer.model.budget import Budget
from rebalancer.model.node import Node, NodeDrivers
from rebalancer.model.pod import Pod
from rebalancer.model.volume import PersistentVolume, PersistentVolumeClaim, StorageClass
from rebalancer.model.workload import Namespace, PriorityClass, Service, Workload


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Nodes, pods, budgets and the rest at one moment.

    now: seconds since the epoch, UTC; the only clock of the deciding part.
    nodes: by name, in the order of names.
    pods: by node name; every key is in ``nodes``; each bucket is ordered by pod uid and replaced, never changed.
    unplaced: pods without a node, or on a node that is not in ``nodes``; ordered by uid.
    budgets: by namespace, ordered by name.
    namespaces, priority_classes, storage_classes, volumes, drivers: by name.
    claims: by (namespace, name). services: by namespace. workloads: by uid.
    missing: kinds that the source of this picture could not give (a dump without PodDisruptionBudgets, say).
    """

    now: float
    nodes: Mapping[str, Node] = field(default_factory=dict)
    pods: Mapping[str, tuple[Pod, ...]] = field(default_factory=dict)
    unplaced: tuple[Pod, ...] = ()
    budgets: Mapping[str, tuple[Budget, ...]] = field(default_factory=dict)
    namespaces: Mapping[str, Namespace] = field(default_factory=dict)
    priority_classes: Mapping[str, PriorityClass] = field(default_factory=dict)
    storage_classes: Mapping[str, StorageClass] = field(default_factory=dict)
    volumes: Mapping[str, PersistentVolume] = field(default_factory=dict)
    claims: Mapping[tuple[str, str], PersistentVolumeClaim] = field(default_factory=dict)
    services: Mapping[str, tuple[Service, ...]] = field(default_factory=dict)
    workloads: Mapping[str, Workload] = field(default_factory=dict)
    drivers: Mapping[str, NodeDrivers] = field(default_factory=dict)
    missing: frozenset[str] = frozenset()

    def on(self, node: str) -> tuple[Pod, ...]:
        """Return the pods on a node, finished and terminating ones included."""
        return self.pods.get(node, ())

    def all_pods(self) -> Iterator[Pod]:
        """Yield every pod: by node in the order of names, then the unplaced ones."""
        for bucket in self.pods.values():
            yield from bucket
        yield from self.unplaced

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        """Return a namespace's labels; where it is unknown, those that every namespace has."""
        namespace = self.namespaces.get(name)
        return namespace.labels if namespace else {"kubernetes.io/metadata.name": name}


def snapshot_of(
    now: float,
    *,
    nodes: Iterable[Node] = (),
    pods: Iterable[Pod] = (),
    budgets: Iterable[Budget] = (),
    namespaces: Iterable[Namespace] = (),
    priority_classes: Iterable[PriorityClass] = (),
    storage_classes: Iterable[StorageClass] = (),
    volumes: Iterable[PersistentVolume] = (),
    claims: Iterable[PersistentVolumeClaim] = (),
    services: Iterable[Service] = (),
    workloads: Iterable[Workload] = (),
    drivers: Iterable[NodeDrivers] = (),
    missing: Iterable[str] = (),
) -> Snapshot:
    """Build a snapshot from loose values in any order; the result does not depend on that order."""
    by_node: dict[str, list[Pod]] = {}
    known = {node.name: node for node in sorted(nodes, key=lambda node: node.name)}
    unplaced: list[Pod] = []
    for pod in sorted(pods, key=lambda pod: pod.uid):
        if pod.node is not None and pod.node in known:
            by_node.setdefault(pod.node, []).append(pod)
        else:
            unplaced.append(pod)
    grouped: dict[str, list[Budget]] = {}
    for budget in sorted(budgets, key=lambda budget: (budget.namespace, budget.name)):
        grouped.setdefault(budget.namespace, []).append(budget)
    served: dict[str, list[Service]] = {}
    for service in sorted(services, key=lambda service: (service.namespace, service.name)):
        served.setdefault(service.namespace, []).append(service)
    return Snapshot(
        now=now,
        nodes=known,
        pods={name: tuple(by_node.get(name, ())) for name in known},
        unplaced=tuple(unplaced),
        budgets={name: tuple(group) for name, group in grouped.items()},
        namespaces={namespace.name: namespace for namespace in namespaces},
        priority_classes={each.name: each for each in priority_classes},
        storage_classes={each.name: each for each in storage_classes},
        volumes={volume.name: volume for volume in volumes},
        claims={(claim.namespace, claim.name): claim for claim in claims},
        services={name: tuple(group) for name, group in served.items()},
        workloads={workload.uid: workload for workload in workloads},
        drivers={each.node: each for each in drivers},
        missing=frozenset(missing),
    )
