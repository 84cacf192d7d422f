"""Clusters for the efficacy benchmark: nodes, Deployments with replicas and budgets, as loose objects.

The mix: cpu requests of 100, 250, 250, 500 or 1000m, 128Mi to 1Gi of memory, 1, 2, 3, 4, 6 or 10 replicas; every sixth Deployment
spreads hard over zones, every ninth keeps its pods apart by hostname; each has a budget of maxUnavailable 1.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

CPU = (100, 250, 250, 500, 1000)
MEMORY_MI = (128, 256, 512, 1024)
REPLICAS = (1, 2, 3, 4, 6, 10)
ZONES = ("z0", "z1", "z2")
NODE_CPU = 8000
NODE_MEMORY_GI = 32
NAMESPACE = "apps"


def node(name: str, zone: str) -> dict[str, Any]:
    """Return a Ready node of 8 cpu and 32Gi."""
    amounts = {"cpu": "8", "memory": f"{NODE_MEMORY_GI}Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"node-{name}",
            "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone, "kubernetes.io/os": "linux"},
        },
        "spec": {},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def nodes(count: int, first: int = 0) -> list[dict[str, Any]]:
    """Return nodes in three zones in turn, numbered from ``first``."""
    return [node(f"n{index:04d}", ZONES[index % len(ZONES)]) for index in range(first, first + count)]


@dataclass(frozen=True, slots=True)
class Application:
    """One Deployment: its name, replicas and the spec of its pods."""

    name: str
    replicas: int
    cpu_millicores: int
    spec: dict[str, Any]

    @property
    def labels(self) -> dict[str, str]:
        """The labels that select its pods."""
        return {"app": self.name}

    def objects(self) -> list[dict[str, Any]]:
        """Return its Deployment and its budget, as a user would apply them."""
        selector = {"matchLabels": self.labels}
        return [
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": self.name, "namespace": NAMESPACE},
                "spec": {
                    "replicas": self.replicas,
                    "selector": selector,
                    "template": {"metadata": {"labels": self.labels}, "spec": self.spec},
                },
            },
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": self.name, "namespace": NAMESPACE},
                "spec": {"maxUnavailable": 1, "selector": selector},
            },
        ]

    def replica_set(self) -> dict[str, Any]:
        """Return the ReplicaSet that its Deployment makes; the scheduler's built-in spread looks at its selector."""
        return {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": self.name, "namespace": NAMESPACE, "uid": f"rs-{self.name}"},
            "spec": {"replicas": self.replicas, "selector": {"matchLabels": self.labels}},
            "status": {"replicas": self.replicas, "readyReplicas": self.replicas, "availableReplicas": self.replicas},
        }


def applications(rng: random.Random, cpu_millicores: int) -> Iterator[Application]:
    """Yield applications until they request this much cpu in all; the last one is cut to fit."""
    left = cpu_millicores
    index = 0
    while left >= min(CPU):
        cpu = rng.choice([each for each in CPU if each <= left])
        replicas = min(rng.choice(REPLICAS), left // cpu)
        memory = rng.choice(MEMORY_MI)
        name = f"app{index:04d}"
        spec: dict[str, Any] = {
            "containers": [
                {"name": "main", "image": f"img{index}", "resources": {"requests": {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}}}
            ]
        }
        selector = {"matchLabels": {"app": name}}
        if index % 6 == 5:
            spec["topologySpreadConstraints"] = [
                {
                    "maxSkew": 1,
                    "topologyKey": "topology.kubernetes.io/zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": selector,
                }
            ]
        if index % 9 == 8:
            spec["affinity"] = {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
                    ]
                }
            }
        yield Application(name, replicas, cpu, spec)
        left -= cpu * replicas
        index += 1


POLICY: dict[str, Any] = {
    "apiVersion": "descheduler/v1alpha2",
    "kind": "DeschedulerPolicy",
    "profiles": [
        {
            "name": "default",
            "pluginConfig": [
                {"name": "DefaultEvictor", "args": {"nodeFit": True}},
                {"name": "RemoveDuplicates"},
                {
                    "name": "LowNodeUtilization",
                    "args": {
                        "thresholds": {"cpu": 50, "memory": 100, "pods": 100},
                        "targetThresholds": {"cpu": 65, "memory": 100, "pods": 100},
                    },
                },
            ],
            "plugins": {"balance": {"enabled": ["RemoveDuplicates", "LowNodeUtilization"]}},
        }
    ],
}
"""RemoveDuplicates and LowNodeUtilization (cpu 50/65), as the benchmark is defined."""
