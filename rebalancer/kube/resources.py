"""Which kinds are watched, and where the API server has them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of the API.

    group: empty for the core group. plural: as in paths and Roles.
    required: nothing works without it; the others are assumed empty where they cannot be read, and the snapshot says so.
    """

    kind: str
    group: str
    version: str
    plural: str
    required: bool = False

    @property
    def path(self) -> str:
        """The path of the list of all objects, in all namespaces."""
        return f"/apis/{self.group}/{self.version}/{self.plural}" if self.group else f"/api/{self.version}/{self.plural}"

    @property
    def rbac_name(self) -> str:
        """The name as people write it in Roles: ``poddisruptionbudgets.policy``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


RESOURCES = (
    Resource("Node", "", "v1", "nodes", required=True),
    Resource("Pod", "", "v1", "pods", required=True),
    Resource("PodDisruptionBudget", "policy", "v1", "poddisruptionbudgets", required=True),
    Resource("Namespace", "", "v1", "namespaces", required=True),
    Resource("PriorityClass", "scheduling.k8s.io", "v1", "priorityclasses", required=True),
    Resource("PersistentVolumeClaim", "", "v1", "persistentvolumeclaims"),
    Resource("PersistentVolume", "", "v1", "persistentvolumes"),
    Resource("StorageClass", "storage.k8s.io", "v1", "storageclasses"),
    Resource("CSINode", "storage.k8s.io", "v1", "csinodes"),
    Resource("ReplicaSet", "apps", "v1", "replicasets"),
    Resource("StatefulSet", "apps", "v1", "statefulsets"),
    Resource("Deployment", "apps", "v1", "deployments"),
    Resource("DaemonSet", "apps", "v1", "daemonsets"),
    Resource("ReplicationController", "", "v1", "replicationcontrollers"),
    Resource("Job", "batch", "v1", "jobs"),
    Resource("Service", "", "v1", "services"),
)
