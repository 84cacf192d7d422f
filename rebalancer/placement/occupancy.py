"""Who is where: sums per node and an index of shapes, kept from one run to the next.

Enters: a snapshot. Leaves: what runs on each node. A snapshot replaces a node's tuple of pods when it changes and keeps the
same object otherwise, so only changed nodes are read again. Decisions of a run are not stored here but in ``state``.

Which pods count: as in kube-scheduler, all that are bound and have not finished; terminating ones still hold their room.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from rebalancer.model.pod import Phase, Pod, PodShape
from rebalancer.model.snapshot import Snapshot
from rebalancer.placement.node_table import NodeTable

Sums = tuple[int, int, int, int, int, int]
Places = dict[PodShape, dict[str, int]]
_Key = TypeVar("_Key", str, str | None)

_DISKS = frozenset({"gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd"})
_CLAIMS = frozenset({"persistentVolumeClaim"})


def reached(shape: PodShape) -> frozenset[str | None]:
    """Return the namespaces whose pods the inter-pod terms of a shape may mean; only None where labels of namespaces decide."""
    preferred = (*shape.preferred_affinity, *shape.preferred_anti_affinity)
    terms = (*shape.affinity, *shape.anti_affinity, *(each.term for each in preferred))
    if any(term.namespace_selector is not None for term in terms):
        return frozenset({None})
    return frozenset(namespace for term in terms for namespace in term.namespaces)


def has_disks(shape: PodShape) -> bool:
    """Say whether pods of this shape use claims or in-tree disks."""
    return any(volume.kind in _DISKS or volume.kind in _CLAIMS for volume in shape.volumes)


class ShapeIndex:
    """Shapes by what makes them matter to others.

    namespaces: by their own namespace. terms: those with inter-pod terms, by whom they reach (see ``reached``).
    ports, disks: those with host ports, with claims or in-tree disks.
    """

    __slots__ = ("disks", "namespaces", "ports", "terms")

    def __init__(self) -> None:
        self.namespaces: dict[str, dict[PodShape, None]] = {}
        self.terms: dict[str | None, dict[PodShape, None]] = {}
        self.ports: dict[PodShape, None] = {}
        self.disks: dict[PodShape, None] = {}

    def add(self, shape: PodShape) -> None:
        """Enter a shape wherever it belongs."""
        self.namespaces.setdefault(shape.namespace, {})[shape] = None
        for namespace in reached(shape):
            self.terms.setdefault(namespace, {})[shape] = None
        if shape.host_ports:
            self.ports[shape] = None
        if shape.volumes and has_disks(shape):
            self.disks[shape] = None

    def discard(self, shape: PodShape) -> None:
        """Take a shape out everywhere."""
        _drop(self.namespaces, shape.namespace, shape)
        for namespace in reached(shape):
            _drop(self.terms, namespace, shape)
        self.ports.pop(shape, None)
        self.disks.pop(shape, None)


def _drop(groups: dict[_Key, dict[PodShape, None]], key: _Key, shape: PodShape) -> None:
    group = groups[key]
    del group[shape]
    if not group:
        del groups[key]


class BucketCache:
    """Sums and indexes of the bound pods of one snapshot, brought up to date by ``refresh``.

    table: the nodes' columns. version: changes with every refresh; who reads lazily checks it.
    live, dying: shape to node to how many pods; terminating ones are in ``dying``.
    shapes: all of them, by what makes them matter.
    daemons: DaemonSet (its uid) to node to how many of its pods.
    """

    def __init__(self) -> None:
        """Start with nothing known."""
        self.table = NodeTable(())
        self.version = 0
        self.live: Places = {}
        self.dying: Places = {}
        self.shapes = ShapeIndex()
        self.daemons: dict[str, dict[str, int]] = {}
        self._daemon_of: dict[PodShape, str] = {}
        self._buckets: dict[str, tuple[Pod, ...]] = {}
        self._sums: dict[str, Sums] = {}
        self._scalars: dict[str, dict[str, int]] = {}

    @property
    def sums(self) -> Mapping[str, Sums]:
        """cpu, memory, ephemeral storage, pods, and cpu and memory with the defaults for containers without requests, by node."""
        return self._sums

    @property
    def scalars(self) -> Mapping[str, Mapping[str, int]]:
        """Requested extended resources by node, for nodes where there are any."""
        return self._scalars

    def refresh(self, snapshot: Snapshot) -> None:
        """Bring everything up to date with a snapshot."""
        self.version += 1
        if not self.table.made_of(snapshot.nodes):
            self.table = NodeTable(snapshot.nodes.values())
        buckets = self._buckets
        pods = snapshot.pods
        if buckets.keys() != pods.keys():
            for node in [node for node in buckets if node not in pods]:
                self._forget(node, buckets.pop(node))
        for node, bucket in pods.items():
            known = buckets.get(node)
            if known is not bucket:
                if known:
                    self._forget(node, known)
                buckets[node] = bucket
                self._learn(node, bucket)

    def _learn(self, node: str, bucket: tuple[Pod, ...]) -> None:
        cpu = memory = ephemeral = count = nonzero_cpu = nonzero_memory = 0
        scalars: dict[str, int] = {}
        live, dying = self.live, self.dying
        daemon_of = self._daemon_of
        for pod in bucket:
            phase = pod.phase
            if phase is Phase.SUCCEEDED or phase is Phase.FAILED:
                continue
            shape = pod.shape
            requests = shape.requests
            cpu += requests.cpu_millicores
            memory += requests.memory_bytes
            ephemeral += requests.ephemeral_storage_bytes
            count += 1
            nonzero_cpu += shape.nonzero_cpu_millicores
            nonzero_memory += shape.nonzero_memory_bytes
            if requests.scalars:
                for name, amount in requests.scalars.items():
                    scalars[name] = scalars.get(name, 0) + amount
            places = live if pod.deleted_at is None else dying
            nodes = places.get(shape)
            if nodes is None:
                nodes = places[shape] = {}
                self.shapes.add(shape)
                owner = shape.owner
                if owner is not None and owner.kind == "DaemonSet":
                    daemon_of[shape] = owner.uid
            nodes[node] = nodes.get(node, 0) + 1
            if shape in daemon_of:
                mine = self.daemons.setdefault(daemon_of[shape], {})
                mine[node] = mine.get(node, 0) + 1
        self._sums[node] = (cpu, memory, ephemeral, count, nonzero_cpu, nonzero_memory)
        if scalars:
            self._scalars[node] = scalars

    def _forget(self, node: str, bucket: tuple[Pod, ...]) -> None:
        self._sums.pop(node, None)
        self._scalars.pop(node, None)
        for pod in bucket:
            if pod.finished:
                continue
            shape = pod.shape
            places = self.live if pod.deleted_at is None else self.dying
            uid = self._daemon_of.get(shape)
            if uid is not None and _take(self.daemons[uid], node):
                del self.daemons[uid]
            if _take(places[shape], node):
                del places[shape]
                if shape not in self.live and shape not in self.dying:
                    self.shapes.discard(shape)
                    self._daemon_of.pop(shape, None)


def _take(nodes: dict[str, int], node: str) -> bool:
    """Take one from a node; say whether nothing is left anywhere."""
    left = nodes[node] - 1
    if left:
        nodes[node] = left
        return False
    del nodes[node]
    return not nodes
