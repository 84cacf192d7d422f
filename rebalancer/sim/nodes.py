"""Nodes as a cloud would make them, from a few figures or in the likeness of another."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rebalancer.sim.admission import NOT_READY, UNREACHABLE
from rebalancer.sim.history import Object

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
_OWN_TAINTS = frozenset({NOT_READY, UNREACHABLE, "node.kubernetes.io/unschedulable"})


@dataclass(frozen=True, slots=True)
class NodeShape:
    """What a node has. cpu, memory: quantities. pods: how many fit."""

    cpu: str = "8"
    memory: str = "32Gi"
    pods: int = 110
    zone: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()


def new_node(name: str, shape: NodeShape, number: int = 0) -> Object:
    """Return a node that has just joined and is not ready yet."""
    labels = {HOSTNAME: name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    if shape.zone:
        labels |= {ZONE: shape.zone, REGION: shape.zone.rpartition("-")[0] or "local"}
    room = {"cpu": shape.cpu, "memory": shape.memory, "pods": str(shape.pods), "ephemeral-storage": "100Gi"}
    return _node(name, labels | dict(shape.labels), room, room, list(shape.taints), number)


def node_like(name: str, other: Object, number: int = 0) -> Object:
    """Return a node that has just joined and is like another in all but its name."""
    labels = dict(other["metadata"].get("labels") or {})
    for key in (HOSTNAME, "alpha.kubernetes.io/provided-node-ip"):
        labels.pop(key, None)
    labels[HOSTNAME] = name
    status = other.get("status", {})
    capacity = status.get("capacity") or status.get("allocatable") or {}
    taints = [taint for taint in other.get("spec", {}).get("taints", ()) if taint["key"] not in _OWN_TAINTS]
    return _node(name, labels, capacity, status.get("allocatable") or capacity, taints, number)


def _node(
    name: str,
    labels: dict[str, str],
    capacity: Mapping[str, str],
    allocatable: Mapping[str, str],
    taints: list[Any],
    number: int,
) -> Object:
    spec: dict[str, Any] = {"providerID": f"sim://{name}"}
    if taints:
        spec["taints"] = copy.deepcopy([dict(taint) for taint in taints])
    address = f"192.168.{number >> 8 & 255}.{number & 255}"
    info = {
        "machineID": name,
        "systemUUID": name,
        "bootID": name,
        "kernelVersion": "6.12.0",
        "osImage": "Simulated Linux",
        "containerRuntimeVersion": "sim://1.0",
        "kubeletVersion": "v1.36.2",
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": "amd64",
    }
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {
            "capacity": dict(capacity),
            "allocatable": dict(allocatable),
            "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": info,
        },
    }
