"""Whole clusters for the benchmarks: where every pod runs, what is wrong with some, and every object as an API server sends it.

A calm cluster is what a scheduler that spreads leaves behind: no two replicas of an owner on a node, zones even, nodes equally
full. Then a chosen number of owners and nodes is disturbed, so that the strategies have a chosen amount to decide. Beside the
ReplicaSets there are DaemonSets and StatefulSets, whose pods differ from each other in name labels and node names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heapify, heappop, heappush
from random import Random
from typing import Any

import orjson

from benchmarks.generate import ZONES, Cluster, Size

NODE_CPU, NODE_MEMORY_GI = 32, 128
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
_OWN_LABEL = "app.kubernetes.io/name"


@dataclass(frozen=True, slots=True)
class Kind:
    """What is in a cluster, and how much is wrong with it.

    size: nodes, pods in all, owners beside the DaemonSets. daemons: DaemonSets with a pod on every node.
    stateful_every: every so many owners is a StatefulSet. hard_every, apart_every, picky_every: every so many owners spreads hard
    over zones, keeps its pods apart by required anti-affinity, wants nodes with a label.
    crowded: owners with two pods on each of a few nodes. skewed: owners that spread hard and do not any more.
    hot: nodes that are requested to 60 %. joined: nodes without a pod. huge: one owner has so many pods, placed at random.
    terms: owners with an anti-affinity term of their own over all namespaces of their choice.
    constraints: owners in one namespace, each with two hard spread constraints of its own.
    """

    size: Size
    daemons: int = 2
    stateful_every: int = 20
    hard_every: int = 6
    apart_every: int = 9
    picky_every: int = 11
    crowded: int = 0
    skewed: int = 0
    hot: int = 0
    joined: int = 0
    huge: int = 0
    terms: int = 0
    constraints: int = 0


CALM = Kind(Size(5_000, 150_000, 3_000), joined=5)
FEW = replace(CALM, crowded=12, skewed=4, hot=1)
MANY = replace(CALM, crowded=720, skewed=300, hot=30, joined=60)
UNSHARED = Kind(Size(5_000, 150_000, 140_000), stateful_every=20, hot=5, joined=5)
HOSTILE = replace(CALM, huge=10_000, terms=2_000, constraints=200, crowded=12, skewed=4, hot=1)


def scaled(kind: Kind, nodes: int) -> Kind:
    """Return the cluster on fewer (or more) nodes, everything in proportion."""
    share = nodes / kind.size.nodes

    def part(number: int, least: int = 1) -> int:
        return max(least, round(number * share)) if number else 0

    size = replace(kind.size, nodes=nodes, pods=part(kind.size.pods), owners=part(kind.size.owners))
    return replace(
        kind,
        size=size,
        crowded=part(kind.crowded),
        skewed=part(kind.skewed),
        hot=part(kind.hot),
        joined=part(kind.joined, 2),
        huge=part(kind.huge),
        terms=part(kind.terms),
        constraints=part(kind.constraints),
    )


@dataclass(slots=True)
class Placed:
    """One pod before it is written out. owner: negative for DaemonSets."""

    number: int
    owner: int
    replica: int
    node: int


@dataclass
class Scenario:
    """One generated cluster; equal kinds give equal clusters."""

    kind: Kind
    cluster: Cluster = field(init=False)

    def __post_init__(self) -> None:
        """Draw what the pods refer to."""
        self.cluster = Cluster(self.kind.size)

    @cached_property
    def placed(self) -> list[Placed]:
        """Every pod with its node."""
        return _Placing(self).run()

    def cpu(self, owner: int) -> int:
        """Return what a pod of an owner requests, in millicores."""
        return 50 if owner < 0 or self.is_huge(owner) else self.cluster._cpu[owner]

    def is_huge(self, owner: int) -> bool:
        """Say whether this is the owner with very many pods."""
        return owner == 0 and self.kind.huge > 0

    def namespace(self, owner: int) -> str:
        """Return the namespace of an owner; those with constraints of their own share one."""
        if owner < 0:
            return "kube-system"
        if 0 < owner <= self.kind.constraints:
            return "crowded"
        return self.cluster.namespaces[owner % self.kind.size.namespaces]

    def owner_kind(self, owner: int) -> str:
        """Return the kind of an owner."""
        if owner < 0:
            return "DaemonSet"
        return "StatefulSet" if owner % self.kind.stateful_every == 7 else "ReplicaSet"

    def spreads_hard(self, owner: int) -> bool:
        """Say whether an owner spreads over zones with DoNotSchedule."""
        return owner >= 0 and owner % self.kind.hard_every == 5

    def nodes(self) -> Iterator[dict[str, Any]]:
        """Yield the nodes; those that joined come last."""
        joined = self.kind.size.nodes - self.kind.joined
        for number, node in enumerate(self.cluster.nodes()):
            amounts = {"cpu": str(NODE_CPU), "memory": f"{NODE_MEMORY_GI}Gi", "pods": "110", "ephemeral-storage": "100Gi"}
            node["status"] |= {"capacity": amounts, "allocatable": amounts}
            node["metadata"]["labels"]["disk"] = "ssd" if number % 2 else "hdd"
            if number >= joined:
                node["metadata"]["creationTimestamp"] = "2026-12-01T00:00:00Z"
            yield node

    def pod(self, placed: Placed, version: int | None = None) -> dict[str, Any]:
        """Return one pod as the API server sends it, some six kilobytes of JSON."""
        owner, size = placed.owner, self.kind.size
        node = self.cluster.node_names[placed.node]
        pod = self.cluster.pod(
            max(owner, 0) + placed.replica * size.owners, node=node, version=version or 1_000_000 + placed.number
        )
        metadata, spec = pod["metadata"], pod["spec"]
        metadata["namespace"] = self.namespace(owner)
        reference = metadata["ownerReferences"][0]
        kind = reference["kind"] = self.owner_kind(owner)
        if kind == "DaemonSet":
            name = f"daemon-{-owner:02}"
            metadata |= {
                "name": f"{name}-{placed.node:05x}",
                "generateName": f"{name}-",
                "uid": f"d{-owner:03}{placed.node:032x}",
            }
            metadata["labels"] = {_OWN_LABEL: name, "controller-revision-hash": "5d8f", "pod-template-generation": "1"}
            reference |= {"name": name, "uid": f"uid-{name}"}
            spec["containers"][0]["resources"] = {"requests": {"cpu": "50m", "memory": "64Mi"}}
            spec["affinity"] = {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_named(node)]}}
            }
            spec["tolerations"] = [{"operator": "Exists"}]
            del spec["topologySpreadConstraints"]
            return pod
        app = metadata["labels"][_OWN_LABEL]
        if kind == "StatefulSet":
            name = f"{app}-{placed.replica}"
            metadata["name"] = name
            del metadata["labels"]["pod-template-hash"]
            metadata["labels"] |= {
                "statefulset.kubernetes.io/pod-name": name,
                "apps.kubernetes.io/pod-index": str(placed.replica),
            }
            reference["name"] = app
        if self.is_huge(owner):
            spec["containers"][0]["resources"] = {"requests": {"cpu": "50m", "memory": "64Mi"}}
        mine = {"matchLabels": {_OWN_LABEL: app}}
        if self.spreads_hard(owner):
            spec["topologySpreadConstraints"][0]["whenUnsatisfiable"] = "DoNotSchedule"
        if 0 < owner <= self.kind.constraints:
            spec["topologySpreadConstraints"] = [
                {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": mine}
                for skew, key in ((1, ZONE), (2, HOSTNAME))
            ]
        if owner % self.kind.apart_every == 8 or 0 < owner <= self.kind.terms:
            term: dict[str, Any] = {"labelSelector": mine, "topologyKey": HOSTNAME}
            if owner <= self.kind.terms:
                term |= {"namespaces": sorted({metadata["namespace"], self.cluster.namespaces[owner % 7]})}
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        if owner % self.kind.picky_every == 10:
            spec["nodeSelector"] = {"kubernetes.io/os": "linux"}
        return pod

    def pods(self) -> Iterator[dict[str, Any]]:
        """Yield every pod."""
        return map(self.pod, self.placed)

    def owners(self) -> Iterator[dict[str, Any]]:
        """Yield the workloads behind the pods."""
        counts: dict[int, int] = {}
        for placed in self.placed:
            counts[placed.owner] = counts.get(placed.owner, 0) + 1
        for owner, replicas in sorted(counts.items()):
            kind = self.owner_kind(owner)
            app = f"daemon-{-owner:02}" if owner < 0 else f"app-{owner:05}"
            name = f"{app}-{owner:010x}" if kind == "ReplicaSet" else app
            status = {"replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas, "observedGeneration": 1}
            if kind == "StatefulSet":
                status |= {"updatedReplicas": replicas, "currentRevision": "a", "updateRevision": "a"}
            if kind == "DaemonSet":
                status = {"desiredNumberScheduled": replicas, "numberReady": replicas, "observedGeneration": 1}
            yield {
                "kind": kind,
                "apiVersion": "apps/v1",
                "metadata": {
                    "name": name,
                    "namespace": self.namespace(owner),
                    "uid": f"uid-{app}" if owner < 0 else self.cluster._owner_uids[owner],
                    "resourceVersion": str(10_000 + owner),
                    "generation": 1,
                },
                "spec": {"replicas": replicas, "selector": {"matchLabels": {_OWN_LABEL: app}}},
                "status": status,
            }

    def budgets(self) -> Iterator[dict[str, Any]]:
        """Yield a budget for every third owner, at most 3,000."""
        for owner in range(0, min(self.kind.size.owners, 9_000), 3):
            app, share = f"app-{owner:05}", max(1, self.kind.size.pods // self.kind.size.owners)
            yield {
                "kind": "PodDisruptionBudget",
                "apiVersion": "policy/v1",
                "metadata": {"name": app, "namespace": self.namespace(owner), "uid": f"pdb-{app}", "generation": 1},
                "spec": {"maxUnavailable": 5, "selector": {"matchLabels": {_OWN_LABEL: app}}},
                "status": {
                    "disruptionsAllowed": 5,
                    "currentHealthy": share,
                    "desiredHealthy": max(0, share - 5),
                    "expectedPods": share,
                    "observedGeneration": 1,
                },
            }

    def others(self) -> Iterator[dict[str, Any]]:
        """Yield namespaces and a priority class."""
        yield from self.cluster.other_objects()
        for name in ("kube-system", "crowded"):
            labels = {"kubernetes.io/metadata.name": name}
            yield {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name, "labels": labels}}


def as_bytes(value: dict[str, Any]) -> bytes:
    """Return an object's JSON as the API server writes it."""
    return orjson.dumps(value)


def _named(node: str) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}


class _Placing:
    """Gives every pod a node: the emptiest ones of each zone first, then the disturbances."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.kind = kind = scenario.kind
        self.random = Random(kind.size.seed)
        self.usable = kind.size.nodes - kind.joined
        self.load = [0] * kind.size.nodes
        self.by_owner: dict[int, list[Placed]] = {}
        self.pods: list[Placed] = []

    def run(self) -> list[Placed]:
        kind = self.kind
        for daemon in range(1, kind.daemons + 1):
            for node in range(self.usable):
                self._put(-daemon, node, node)
        left = kind.size.pods - len(self.pods)
        if kind.huge:
            for replica in range(kind.huge):
                self._put(0, replica, self.random.randrange(self.usable))
            left -= kind.huge
        first = 1 if kind.huge else 0
        owners = kind.size.owners - first
        share, rest = divmod(left, owners)
        heaps = [[(self.load[node], node) for node in range(zone, self.usable, len(ZONES))] for zone in range(len(ZONES))]
        for heap in heaps:
            heapify(heap)
        for owner in range(first, kind.size.owners):
            self._spread(owner, share + (owner - first < rest), heaps)
        self._disturb(first)
        return self.pods

    def _put(self, owner: int, replica: int, node: int) -> None:
        placed = Placed(len(self.pods), owner, replica, node)
        self.pods.append(placed)
        self.by_owner.setdefault(owner, []).append(placed)
        self.load[node] += self.scenario.cpu(owner)

    def _spread(self, owner: int, replicas: int, heaps: list[list[tuple[int, int]]]) -> None:
        taken: list[list[int]] = [[] for _ in heaps]
        for replica in range(replicas):
            zone = (replica + owner) % len(heaps)
            if not heaps[zone]:  # more replicas than nodes
                for node in taken[zone]:
                    heappush(heaps[zone], (self.load[node], node))
                taken[zone] = []
            node = heappop(heaps[zone])[1]
            self._put(owner, replica, node)
            taken[zone].append(node)
        for zone, nodes in enumerate(taken):
            for node in nodes:
                heappush(heaps[zone], (self.load[node], node))

    def _move(self, placed: Placed, node: int) -> None:
        cpu = self.scenario.cpu(placed.owner)
        self.load[placed.node] -= cpu
        self.load[node] += cpu
        placed.node = node

    def _disturb(self, first: int) -> None:
        kind, scenario = self.kind, self.scenario
        plain = [
            owner
            for owner in range(first + kind.constraints + 1, kind.size.owners)
            if owner % kind.apart_every != 8 and owner > kind.terms and scenario.owner_kind(owner) == "ReplicaSet"
        ]
        hard = [owner for owner in plain if scenario.spreads_hard(owner)]
        soft = [owner for owner in plain if not scenario.spreads_hard(owner)]
        for owner in self.random.sample(soft, min(kind.crowded, len(soft))):
            pods = self.by_owner[owner]
            for one, other in zip(pods[0:3], pods[3:6], strict=False):
                self._move(other, one.node)
        for owner in self.random.sample(hard, min(kind.skewed, len(hard))):
            pods = self.by_owner[owner]
            nodes = {pod.node for pod in pods}
            for pod in [pod for pod in pods if pod.node % len(ZONES) == 1][:6]:
                free = next((node for node in range(0, self.usable, len(ZONES)) if node not in nodes), None)
                if free is not None:
                    nodes.add(free)
                    self._move(pod, free)
        for node in self.random.sample(range(self.usable), kind.hot):
            held = {pod.owner for pod in self.pods if pod.node == node}
            for owner in self.random.sample(soft, len(soft)):
                if self.load[node] >= 0.6 * NODE_CPU * 1000:
                    break
                pod = self.random.choice(self.by_owner[owner])
                if pod.owner not in held:
                    held.add(pod.owner)
                    self._move(pod, node)
