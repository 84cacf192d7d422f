"""Amounts of resources: what a node offers and what a pod asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
EPHEMERAL_STORAGE = "ephemeral-storage"


@dataclass(frozen=True, slots=True)
class Resources:
    """Amounts by resource.

    cpu_millicores, memory_bytes, ephemeral_storage_bytes: as the names say.
    pods: pieces; the slots of a node, or 1 for a pod.
    scalars: everything else by its name, in pieces or bytes (``nvidia.com/gpu``, ``hugepages-2Mi``, ``attachable-volumes-…``).
    """

    cpu_millicores: int = 0
    memory_bytes: int = 0
    ephemeral_storage_bytes: int = 0
    pods: int = 0
    scalars: Mapping[str, int] = field(default_factory=dict)

    def amount(self, resource: str) -> int:
        """Return the amount of one resource by its Kubernetes name, cpu in millicores; 0 where it is absent."""
        if resource == CPU:
            return self.cpu_millicores
        if resource == MEMORY:
            return self.memory_bytes
        if resource == PODS:
            return self.pods
        if resource == EPHEMERAL_STORAGE:
            return self.ephemeral_storage_bytes
        return self.scalars.get(resource, 0)

    def plus(self, other: Resources) -> Resources:
        """Return the sum."""
        scalars = self.scalars
        if other.scalars:
            scalars = dict(scalars)
            for name, amount in other.scalars.items():
                scalars[name] = scalars.get(name, 0) + amount
        return Resources(
            self.cpu_millicores + other.cpu_millicores,
            self.memory_bytes + other.memory_bytes,
            self.ephemeral_storage_bytes + other.ephemeral_storage_bytes,
            self.pods + other.pods,
            scalars,
        )

    def minus(self, other: Resources) -> Resources:
        """Return the difference; amounts may become negative."""
        scalars = self.scalars
        if other.scalars:
            scalars = dict(scalars)
            for name, amount in other.scalars.items():
                scalars[name] = scalars.get(name, 0) - amount
        return Resources(
            self.cpu_millicores - other.cpu_millicores,
            self.memory_bytes - other.memory_bytes,
            self.ephemeral_storage_bytes - other.ephemeral_storage_bytes,
            self.pods - other.pods,
            scalars,
        )


NO_RESOURCES = Resources()
