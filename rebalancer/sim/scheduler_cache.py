"""What the scheduler knows of nodes and pods: sums per node, kept up to date, some time behind the truth.

Source: kubernetes/kubernetes pkg/scheduler/backend/cache
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rebalancer.errors import QuantityError
from rebalancer.model.quantity import millis, units
from rebalancer.sim.history import Key, Object

Amounts = dict[str, int]

_DEFAULT_CPU_MILLI = 100
_DEFAULT_MEMORY_BYTES = 200 * 1024 * 1024


class PodInfo:
    """One pod as the scheduler sees it.

    requests: effective requests, cpu in milli. scored: the same with the defaults that scores assume for silent containers.
    ports: (host IP, protocol, port). terms: required anti-affinity terms.
    """

    __slots__ = ("key", "labels", "namespace", "obj", "ports", "requests", "scored", "terminating", "terms")

    def __init__(self, pod: Object) -> None:
        metadata, spec = pod["metadata"], pod["spec"]
        self.obj = pod
        self.key: Key = (metadata.get("namespace", ""), metadata["name"])
        self.namespace = self.key[0]
        self.labels: Mapping[str, str] = metadata.get("labels") or {}
        self.requests, self.scored = requests_of(spec)
        self.ports = ports_of(spec)
        anti = (spec.get("affinity") or {}).get("podAntiAffinity", {})
        self.terms = anti.get("requiredDuringSchedulingIgnoredDuringExecution", ())
        self.terminating = "deletionTimestamp" in metadata


class NodeInfo:
    """One node and the sums of its pods."""

    __slots__ = ("allocatable", "anti_affine", "labels", "name", "obj", "pods", "ports", "requested", "scored")

    def __init__(self, name: str) -> None:
        self.name = name
        self.obj: Object | None = None
        self.labels: Mapping[str, str] = {}
        self.allocatable: Amounts = {}
        self.pods: dict[Key, PodInfo] = {}
        self.requested: Amounts = {}
        self.scored: Amounts = {}
        self.ports: dict[tuple[str, str, int], int] = {}
        self.anti_affine = 0

    def set_node(self, node: Object | None) -> None:
        """Take over a node's newest form; None for one that is gone."""
        self.obj = node
        if node is not None:
            self.labels = node["metadata"].get("labels") or {}
            status = node.get("status", {})
            self.allocatable = amounts(status.get("allocatable") or status.get("capacity") or {})

    def add(self, pod: PodInfo) -> None:
        """Count a pod."""
        self.pods[pod.key] = pod
        self._count(pod, 1)

    def remove(self, key: Key) -> None:
        """Stop counting a pod."""
        pod = self.pods.pop(key, None)
        if pod is not None:
            self._count(pod, -1)

    def _count(self, pod: PodInfo, sign: int) -> None:
        for name, amount in pod.requests.items():
            self.requested[name] = self.requested.get(name, 0) + sign * amount
        for name, amount in pod.scored.items():
            self.scored[name] = self.scored.get(name, 0) + sign * amount
        for port in pod.ports:
            self.ports[port] = self.ports.get(port, 0) + sign
        self.anti_affine += sign * bool(pod.terms)


def amounts(values: Mapping[str, Any]) -> Amounts:
    """Return quantities as numbers: cpu in milli, all else in units; what cannot be read is left out."""
    result: Amounts = {}
    for name, value in values.items():
        try:
            result[name] = millis(value) if name == "cpu" else units(value)
        except QuantityError:
            continue
    return result


def requests_of(spec: Mapping[str, Any]) -> tuple[Amounts, Amounts]:
    """Return a pod's effective requests, and those that scores use.

    Source: https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/#resource-sharing-within-containers
    """
    total: Amounts = {}
    scored: Amounts = {}
    sidecars: Amounts = {}
    for container in spec.get("containers", ()):
        own = amounts((container.get("resources") or {}).get("requests") or {})
        _add(total, own)
        _add(scored, {"cpu": _DEFAULT_CPU_MILLI, "memory": _DEFAULT_MEMORY_BYTES} | own)
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = amounts((container.get("resources") or {}).get("requests") or {})
        if container.get("restartPolicy") == "Always":
            _add(sidecars, own)
            _add(total, own)
            _add(scored, own)
            own = sidecars
        else:
            own = {name: own.get(name, 0) + sidecars.get(name, 0) for name in {*own, *sidecars}}
        for name, amount in own.items():
            peak[name] = max(peak.get(name, 0), amount)
    for name, amount in peak.items():
        total[name] = max(total.get(name, 0), amount)
        scored[name] = max(scored.get(name, 0), amount)
    whole = amounts((spec.get("resources") or {}).get("requests") or {})
    total |= whole
    scored |= whole
    overhead = amounts(spec.get("overhead") or {})
    _add(total, overhead)
    _add(scored, overhead)
    return total, {name: amount for name, amount in scored.items() if name in {"cpu", "memory"}}


def _add(into: Amounts, other: Mapping[str, int]) -> None:
    for name, amount in other.items():
        into[name] = into.get(name, 0) + amount


def ports_of(spec: Mapping[str, Any]) -> tuple[tuple[str, str, int], ...]:
    """Return the host ports of a pod."""
    return tuple(
        (port.get("hostIP") or "0.0.0.0", port.get("protocol", "TCP"), port["hostPort"])
        for container in spec.get("containers", ())
        for port in container.get("ports", ())
        if port.get("hostPort")
    )


class SchedulerCache:
    """All nodes and where pods count.

    order: node names in the order in which the scheduler walks them.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, NodeInfo] = {}
        self._places: dict[Key, str] = {}
        self.anti_affine_pods = 0

    def set_node(self, name: str, node: Object | None) -> None:
        """Take over a node's newest form."""
        info = self.nodes.get(name)
        if node is None:
            if info is not None:
                info.set_node(None)
                if not info.pods:
                    del self.nodes[name]
            return
        if info is None:
            info = self.nodes[name] = NodeInfo(name)
        info.set_node(node)

    def set_pod(self, key: Key, pod: Object | None) -> None:
        """Take over a pod's newest form: counted on its node unless it has none or is finished."""
        node = pod["spec"].get("nodeName", "") if pod is not None else ""
        if pod is not None and pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}:
            node = ""
        known = self._places.get(key)
        if known is not None:
            if pod is not None and not node and pod.get("status", {}).get("phase") == "Pending":
                return
            info = self.nodes[known]
            held = info.pods.get(key)
            self.anti_affine_pods -= bool(held and held.terms)
            info.remove(key)
            del self._places[key]
        if node and pod is not None:
            self.place(pod, node)

    def place(self, pod: Object, node: str) -> None:
        """Count a pod on a node, also one that is only assumed to be there."""
        counted = PodInfo(pod)
        info = self.nodes.get(node)
        if info is None:
            info = self.nodes[node] = NodeInfo(node)
        info.add(counted)
        self._places[counted.key] = node
        self.anti_affine_pods += bool(counted.terms)

    def forget(self, key: Key) -> None:
        """Stop counting a pod whose binding failed."""
        node = self._places.pop(key, None)
        if node is not None:
            held = self.nodes[node].pods.get(key)
            self.anti_affine_pods -= bool(held and held.terms)
            self.nodes[node].remove(key)

    def usable(self) -> list[NodeInfo]:
        """Return the nodes that exist."""
        return [info for info in self.nodes.values() if info.obj is not None]
