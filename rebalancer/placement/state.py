"""What runs where within one run, as arrays that follow every decision.

Enters: a cache of the snapshot's pods, then changes. Leaves: amounts in use per node and counts of matching pods per node.
The filters and scores that read them are in modules of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol, TypeAlias

import numpy as np

from rebalancer.model.pod import AffinityTerm, PodShape
from rebalancer.model.selector import LabelSelector, Operator
from rebalancer.model.snapshot import Snapshot
from rebalancer.model.workload import Workload
from rebalancer.placement.arrays import Bools, Domains, Floats, Ints
from rebalancer.placement.occupancy import BucketCache, ShapeIndex, reached


class Follower(Protocol):
    """Something computed from the pods that is kept up to date."""

    def concerns(self, shape: PodShape) -> bool:
        """Say whether pods of this shape count here."""

    def change(self, shape: PodShape, node: int, live: int, dying: int) -> None:
        """Take up that this many pods of the shape came to (or, negative, left) a node."""


_Shapes: TypeAlias = Mapping[PodShape, None] | None
_Group: TypeAlias = tuple[str | None, ...]
_PODS, _TERMS, _LABELLED = "pods", "terms", "labelled"
_MOST_SPARSE = 256


class PodCount:
    """How many pods of a kind are on each node. Dying pods count where ``with_dying`` says so.

    Most kinds are on few nodes, and there may be thousands of kinds: only counts of many nodes are kept as arrays.
    """

    __slots__ = ("_dense", "_size", "_sparse", "concerns", "with_dying")

    def __init__(self, concerns: Callable[[PodShape], bool], with_dying: bool, size: int) -> None:
        self.concerns = concerns
        self.with_dying = with_dying
        self._size = size
        self._sparse: dict[int, int] = {}
        self._dense: Ints | None = None

    def change(self, shape: PodShape, node: int, live: int, dying: int) -> None:
        """Count pods that came or left."""
        pods = live + dying if self.with_dying else live
        if self._dense is not None:
            self._dense[node] += pods
            return
        self._sparse[node] = self._sparse.get(node, 0) + pods
        if len(self._sparse) > _MOST_SPARSE:
            self._dense = self.per_node
            self._sparse = {}

    @property
    def per_node(self) -> Ints:
        """The counts by position. Not to be written to."""
        if self._dense is not None:
            return self._dense
        counts: Ints = np.zeros(self._size, dtype=np.int64)
        counts[list(self._sparse)] = list(self._sparse.values())
        return counts

    def by_domain(self, codes: Domains, counted: Bools, domains: int) -> Floats:
        """Return the sum of each domain. codes: each node's domain. counted: the nodes that count, all with one."""
        if self._dense is not None:
            return np.bincount(codes[counted], self._dense[counted], domains).astype(np.float64)
        nodes = np.array(list(self._sparse), dtype=np.int64)
        pods = np.array(list(self._sparse.values()), dtype=np.int64)
        here = counted[nodes]
        return np.bincount(codes[nodes[here]], pods[here], domains).astype(np.float64)


class ClusterState:
    """The mutable picture of one run.

    table: what the nodes are. cpu, memory, ephemeral, pods, nonzero_cpu, nonzero_memory: what is in use on each.
    version: differs whenever anything differs. touched: the nodes on which something in use has changed, in that order.
    """

    def __init__(self, snapshot: Snapshot, cache: BucketCache | None = None) -> None:
        """Read the snapshot. cache: kept by the caller from run to run, so that only changed nodes are read."""
        self._cache = cache or BucketCache()
        self._cache.refresh(snapshot)
        self._cache_version = self._cache.version
        self.snapshot = snapshot
        self.table = self._cache.table
        self.size = self.table.size
        sums = self._cache.sums
        rows = [sums[name] for name in self.table.names]
        columns = np.array(rows, dtype=np.int64).reshape(-1, 6).T.copy()
        self.cpu, self.memory, self.ephemeral, self.pods, self.nonzero_cpu, self.nonzero_memory = columns
        self._scalars: dict[str, Ints] = {}
        for node, amounts in self._cache.scalars.items():
            for name, amount in amounts.items():
                self.scalar(name)[self.table.index[node]] = amount
        self.version = 0
        self.touched: list[int] = []
        self._last_version = 0
        self._changes: dict[PodShape, dict[int, list[int]]] = {}
        self._moved = ShapeIndex()
        self._followers: dict[_Group, list[Follower]] = {}
        self._groups: dict[PodShape, tuple[_Group, ...]] = {}
        self._audience: dict[tuple[PodShape, _Group], tuple[int, list[Follower]]] = {}
        self._counts: dict[tuple[object, ...], PodCount] = {}
        self._labelled: dict[tuple[str, str], dict[str, dict[PodShape, None]]] = {}
        self._workloads: dict[tuple[str, str, str], Workload] | None = None

    @property
    def cache(self) -> BucketCache:
        """The indexes of the snapshot's pods; read again, privately, if somebody has refreshed the shared ones meanwhile."""
        if self._cache.version != self._cache_version:
            self._cache = BucketCache()
            self._cache.refresh(self.snapshot)
            self._cache_version = self._cache.version
        return self._cache

    def scalar(self, resource: str) -> Ints:
        """Return how much of an extended resource is in use on each node."""
        found = self._scalars.get(resource)
        if found is None:
            found = self._scalars[resource] = np.zeros(self.size, dtype=np.int64)
        return found

    def hold(self, shape: PodShape, node: int, pods: int = 1) -> None:
        """Take (or, negative, give back) the room of pods without counting them as being there."""
        requests = shape.requests
        self.cpu[node] += pods * requests.cpu_millicores
        self.memory[node] += pods * requests.memory_bytes
        self.ephemeral[node] += pods * requests.ephemeral_storage_bytes
        self.pods[node] += pods
        self.touched.append(node)
        self.nonzero_cpu[node] += pods * shape.nonzero_cpu_millicores
        self.nonzero_memory[node] += pods * shape.nonzero_memory_bytes
        for name, amount in requests.scalars.items():
            self.scalar(name)[node] += pods * amount
        self._tick()

    def change(self, shape: PodShape, node: int, live: int, dying: int) -> None:
        """Let pods come or, negative, leave."""
        if live + dying:
            self.hold(shape, node, live + dying)
        else:
            self._tick()
        for follower in self._followers_of(shape):
            follower.change(shape, node, live, dying)
        changes = self._changes.get(shape)
        if changes is None:
            changes = self._changes[shape] = {}
            self._moved.add(shape)
            for key, value in shape.labels.items():
                if (by_value := self._labelled.get((shape.namespace, key))) is not None:
                    by_value.setdefault(value, {})[shape] = None
        change = changes.setdefault(node, [0, 0])
        change[0] += live
        change[1] += dying

    def close(self) -> None:
        """Forget who follows: followers know the state, so neither would be freed before the garbage collector comes by."""
        self._followers.clear()
        self._audience.clear()
        self._groups.clear()

    def _tick(self) -> None:
        self._last_version += 1
        self.version = self._last_version

    def rewind(self, version: int) -> None:
        """Declare that changes have been undone, so that what was computed under that version holds again."""
        self.version = version

    def _followers_of(self, shape: PodShape) -> Iterator[Follower]:
        """Yield who is concerned; followers are asked once per shape."""
        for group in self._groups.get(shape) or self._groups.setdefault(shape, self._groups_of(shape)):
            seen, audience = self._audience.get((shape, group), (0, []))
            followers = self._followers.get(group, ())
            if seen < len(followers):
                audience += [follower for follower in followers[seen:] if follower.concerns(shape)]
                self._audience[shape, group] = len(followers), audience
            yield from audience

    def _groups_of(self, shape: PodShape) -> tuple[_Group, ...]:
        reach = reached(shape)
        asked: Iterable[_Group] = ((_TERMS, namespace) for namespace in reach)
        if None in reach:
            asked = (group for group in self._followers if group[0] == _TERMS)
        labelled = ((_LABELLED, shape.namespace, *label) for label in shape.labels.items())
        return ((_PODS, shape.namespace), (_PODS, None), *labelled, *asked)

    def follow_pods(self, follower: Follower, namespace: str | None) -> None:
        """Keep something up to date that depends on the pods of a namespace, or of any."""
        self._followers.setdefault((_PODS, namespace), []).append(follower)

    def follow_terms(self, follower: Follower, namespace: str) -> None:
        """Keep something up to date that depends on the pods whose inter-pod terms reach a namespace."""
        if (_TERMS, namespace) not in self._followers:
            self._followers[_TERMS, namespace] = []
            self._groups.clear()  # Shapes that reach every namespace have one group more.
        self._followers[_TERMS, namespace].append(follower)

    def placed(self, shape: PodShape) -> Iterator[tuple[int, int, int]]:
        """Yield node, live pods and dying pods of a shape; a node may come more than once, and then the numbers add up."""
        index = self.table.index
        cache = self.cache
        for name, pods in cache.live.get(shape, {}).items():
            yield index[name], pods, 0
        for name, pods in cache.dying.get(shape, {}).items():
            yield index[name], 0, pods
        for node, (live, dying) in self._changes.get(shape, {}).items():
            yield node, live, dying

    def arrivals(self) -> Iterator[tuple[PodShape, int]]:
        """Yield shape and node of pods that have come since the snapshot."""
        for shape, nodes in self._changes.items():
            for node, (live, dying) in nodes.items():
                if live + dying > 0:
                    yield shape, node

    def shapes(self, namespace: str | None = None) -> Iterator[PodShape]:
        """Yield the shapes of a namespace, or all, that are somewhere or were moved."""
        known, moved = self.cache.shapes.namespaces, self._moved.namespaces
        for name in dict.fromkeys((*known, *moved)) if namespace is None else (namespace,):
            yield from _joined(known.get(name), moved.get(name))

    def shapes_with_terms(self, namespace: str) -> Iterator[PodShape]:
        """Yield the shapes that have inter-pod terms which may mean pods of a namespace."""
        known, moved = self.cache.shapes.terms, self._moved.terms
        for reach in (namespace, None):
            yield from _joined(known.get(reach), moved.get(reach))

    def shapes_with_ports(self) -> Iterator[PodShape]:
        """Yield the shapes that take host ports."""
        yield from _joined(self.cache.shapes.ports, self._moved.ports)

    def shapes_with_disks(self) -> Iterator[PodShape]:
        """Yield the shapes that use claims or in-tree disks."""
        yield from _joined(self.cache.shapes.disks, self._moved.disks)

    def workload(self, kind: str, namespace: str, name: str) -> Workload | None:
        """Return a workload by its name, as kube-scheduler looks it up."""
        if self._workloads is None:
            self._workloads = {(each.kind, each.namespace, each.name): each for each in self.snapshot.workloads.values()}
        return self._workloads.get((kind, namespace, name))

    def count_live(self, namespace: str, selector: LabelSelector) -> PodCount:
        """Count the pods of a namespace that a selector means, terminating ones left out (as topology spread does)."""
        key = (namespace, selector)
        found = self._counts.get(key)
        if found is None:
            found = self._counts[key] = self._counted(
                lambda shape: shape.namespace == namespace and selector.matches(shape.labels), False, (namespace,), selector
            )
        return found

    def count_all(self, terms: tuple[AffinityTerm, ...]) -> PodCount:
        """Count the pods that every one of these terms means, terminating ones included (as inter-pod affinity does)."""
        found = self._counts.get(terms)
        if found is None:
            labels = self.snapshot.namespace_labels

            def matches(shape: PodShape) -> bool:
                around = labels(shape.namespace)
                return all(term.selects(shape.namespace, around, shape.labels) for term in terms)

            first = terms[0]
            namespaces = tuple(sorted(first.namespaces)) if first.namespace_selector is None else (None,)
            found = self._counts[terms] = self._counted(matches, True, namespaces, first.selector)
        return found

    def _counted(
        self,
        matches: Callable[[PodShape], bool],
        with_dying: bool,
        namespaces: tuple[str | None, ...],
        selector: LabelSelector,
    ) -> PodCount:
        """Count, and keep counting. selector: what a pod has to match at least; one of its labels says who is asked at all."""
        count = PodCount(matches, with_dying, self.size)
        wanted = next((each for each in selector.requirements if each.operator is Operator.IN), None)
        for namespace in namespaces:
            if wanted is None or namespace is None:
                candidates = self.shapes(namespace)
                self.follow_pods(count, namespace)
            else:
                by_value = self._by_value(namespace, wanted.key)
                candidates = (shape for value in wanted.values for shape in by_value.get(value, ()))
                for value in wanted.values:
                    self._followers.setdefault((_LABELLED, namespace, wanted.key, value), []).append(count)
            for shape in candidates:
                if matches(shape):
                    for node, live, dying in self.placed(shape):
                        count.change(shape, node, live, dying)
        return count

    def _by_value(self, namespace: str, key: str) -> dict[str, dict[PodShape, None]]:
        """Return the shapes of a namespace by the value of a label."""
        found = self._labelled.get((namespace, key))
        if found is None:
            found = self._labelled[namespace, key] = {}
            for shape in self.shapes(namespace):
                value = shape.labels.get(key)
                if value is not None:
                    found.setdefault(value, {})[shape] = None
        return found


def _joined(known: _Shapes, moved: _Shapes) -> Iterator[PodShape]:
    yield from known or ()
    for shape in moved or ():
        if not known or shape not in known:
            yield shape
