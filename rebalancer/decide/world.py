"""The strategy view's pods: the snapshot by node, shape and namespace, following every approval of the run.

A snapshot replaces a node's tuple of pods when it changes and keeps the same object otherwise, so what is worked out per node
is kept from one evaluation to the next in a FactsCache.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from rebalancer.model.node import Node
from rebalancer.model.pod import Phase, Pod, PodShape
from rebalancer.model.resources import Resources
from rebalancer.model.snapshot import Snapshot

Result = TypeVar("Result")

_FINISHED = (Phase.SUCCEEDED, Phase.FAILED)


class NodeFacts:
    """What is worked out of one node's pods. live: neither finished nor terminating, by shape. requested: their sum.

    kept: what strategies worked out of the node and these pods, with the node as it was then.
    """

    __slots__ = ("kept", "live", "requested")

    def __init__(self, live: dict[PodShape, tuple[Pod, ...]], requested: Resources) -> None:
        self.live = live
        self.requested = requested
        self.kept: dict[Hashable, tuple[Node, Any]] = {}


def facts_of(bucket: Sequence[Pod]) -> NodeFacts:
    """Work out a node's facts."""
    groups: dict[PodShape, tuple[Pod, ...]] = {}
    for pod in bucket:
        if pod.deleted_at is None and pod.phase not in _FINISHED:
            group = groups.get(pod.shape)
            groups[pod.shape] = (pod,) if group is None else (*group, pod)
    cpu = memory = storage = pods = 0
    scalars: dict[str, int] = {}
    for shape, group in groups.items():
        count, requests = len(group), shape.requests
        cpu += count * requests.cpu_millicores
        memory += count * requests.memory_bytes
        storage += count * requests.ephemeral_storage_bytes
        pods += count
        for name, amount in requests.scalars.items():
            scalars[name] = scalars.get(name, 0) + count * amount
    requested = Resources(cpu, memory, storage, pods, scalars)
    return NodeFacts(groups, requested)


class FactsCache:
    """Facts of nodes by their bucket; holds from one snapshot to the next as long as the bucket is the same object."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[Pod, ...], NodeFacts]] = {}

    def facts(self, snapshot: Snapshot) -> dict[str, NodeFacts]:
        """Return the facts of every node of a snapshot, working out only what changed."""
        known, fresh = self._known, {}
        for name, bucket in snapshot.pods.items():
            entry = known.get(name)
            if entry is None or entry[0] is not bucket:
                entry = (bucket, facts_of(bucket))
            fresh[name] = entry
        self._known = fresh
        return {name: entry[1] for name, entry in fresh.items()}


class World:
    """The pods as a strategy sees them: approved ones are gone, stand-ins are where the replacements are expected."""

    def __init__(self, snapshot: Snapshot, cache: FactsCache | None = None) -> None:
        self.snapshot = snapshot
        self._initial = (cache or FactsCache()).facts(snapshot)
        self._facts = dict(self._initial)
        self._buckets: dict[str, tuple[Pod, ...]] = {}
        self._places: dict[PodShape, dict[str, tuple[Pod, ...]]] | None = None
        self._namespaces: dict[str, dict[PodShape, None]] = {}
        self._live_ready: dict[str, int] | None = None
        self._live_owned: dict[str, int] | None = None
        self.gone: set[str] = set()
        self.stand_ins: set[str] = set()

    def on(self, node: str) -> Sequence[Pod]:
        """Return all pods on a node."""
        bucket = self._buckets.get(node)
        return self.snapshot.on(node) if bucket is None else bucket

    def live(self, node: str) -> Mapping[PodShape, Sequence[Pod]]:
        """Return the live pods of a node by shape."""
        facts = self._facts.get(node)
        return facts.live if facts is not None else {}

    def requested(self, node: str) -> Resources:
        """Return what the live pods of a node request."""
        facts = self._facts.get(node)
        return facts.requested if facts is not None else Resources()

    def of_node(self, node: Node, what: Hashable, compute: Callable[[], Result]) -> Result:
        """Return what follows from a node and its pods alone; kept from run to run as long as both are the same."""
        facts = self._facts.get(node.name)
        if facts is None:
            return compute()
        kept = facts.kept.get(what)
        if kept is None or kept[0] is not node:
            kept = facts.kept[what] = (node, compute())
        result: Result = kept[1]
        return result

    def where(self, shape: PodShape) -> Mapping[str, Sequence[Pod]]:
        """Return the live pods of a shape by node."""
        return self._all_places().get(shape, {})

    def shapes(self, namespace: str) -> Sequence[PodShape]:
        """Return the shapes of live pods in a namespace."""
        self._all_places()
        return tuple(self._namespaces.get(namespace, ()))

    def namespaces(self) -> Sequence[str]:
        """Return the namespaces with live pods, in order."""
        self._all_places()
        return sorted(self._namespaces)

    def live_ready(self, owner_uid: str) -> int:
        """Return how many live pods of an owner were ready when the run began."""
        if self._live_ready is None:
            self._live_ready = self._count_owned(only_ready=True)
        return self._live_ready.get(owner_uid, 0)

    def live_owned(self, owner_uid: str) -> int:
        """Return how many live pods an owner has."""
        if self._live_owned is None:
            self._live_owned = self._count_owned(only_ready=False)
        return self._live_owned.get(owner_uid, 0)

    def pods_on(self, node: str) -> int:
        """Return how many pods the snapshot has on a node."""
        return len(self.snapshot.on(node))

    def pods_in(self, namespace: str) -> int:
        """Return how many pods the snapshot has on the nodes in a namespace."""
        return sum(1 for bucket in self.snapshot.pods.values() for pod in bucket if pod.shape.namespace == namespace)

    def all_pods(self) -> int:
        """Return how many pods the snapshot has on nodes."""
        return sum(len(bucket) for bucket in self.snapshot.pods.values())

    def move(self, pod: Pod, landing: str | None) -> None:
        """Take a pod off its node; where a landing is given, put a stand-in there."""
        node = pod.node or ""
        self._replace(node, tuple(each for each in self.on(node) if each.uid != pod.uid), pod.shape)
        self.gone.add(pod.uid)
        if self._live_owned is not None and not pod.finished:
            for owner in pod.shape.owners:
                self._live_owned[owner.uid] = self._live_owned.get(owner.uid, 0) - 1
        if landing is not None:
            stand_in = replace(pod, uid=f"{pod.uid}+", node=landing, ready=False, phase=Phase.PENDING)
            self.stand_ins.add(stand_in.uid)
            self._replace(landing, (*self.on(landing), stand_in), pod.shape)

    def close(self) -> None:
        """End the run. Indexes are let go piece by piece: freed at once, they would hold up every other thread meanwhile."""
        places, self._places = self._places or {}, None
        for index in (places, self._facts, self._namespaces):
            while index:
                index.popitem()

    def _replace(self, node: str, bucket: tuple[Pod, ...], shape: PodShape) -> None:
        """Show other pods on a node, of which only those of one shape differ."""
        self._buckets[node] = bucket
        after = self._facts[node] = facts_of(bucket)
        if self._places is None:
            return
        nodes = self._places.get(shape)
        if nodes is None:
            nodes = self._places[shape] = {}
            self._namespaces.setdefault(shape.namespace, {})[shape] = None
        if shape in after.live:
            nodes[node] = after.live[shape]
        else:
            nodes.pop(node, None)

    def _all_places(self) -> dict[PodShape, dict[str, tuple[Pod, ...]]]:
        places = self._places
        if places is None:
            places = self._places = {}
            for node, facts in self._facts.items():
                for shape, pods in facts.live.items():
                    nodes = places.get(shape)
                    if nodes is None:
                        places[shape] = {node: pods}
                    else:
                        nodes[node] = pods
            for shape in places:
                self._namespaces.setdefault(shape.namespace, {})[shape] = None
        return places

    def _count_owned(self, *, only_ready: bool) -> dict[str, int]:
        counts: dict[str, int] = {}
        for facts in self._initial.values() if only_ready else self._facts.values():
            for shape, pods in facts.live.items():
                number = sum(pod.ready for pod in pods) if only_ready else len(pods)
                for owner in shape.owners:
                    counts[owner.uid] = counts.get(owner.uid, 0) + number
        return counts
