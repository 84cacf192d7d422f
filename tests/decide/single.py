"""A workload of one: its Deployment and its ReplicaSet, as the API server shows them when nothing is going on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.builders import Object


def a_deployment(app: str = "app", *, kind: str = "Deployment", status: Object | None = None, **spec: Any) -> Object:
    """Build the settled Deployment ``web`` of one replica, which owns the ReplicaSet of an app."""
    settled = {"replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "availableReplicas": 1, "observedGeneration": 2}
    return {
        "kind": kind,
        "metadata": {"name": "web", "namespace": "ns1", "uid": f"deployment-{app}", "generation": 2},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": app}}, **spec},
        "status": {**settled, **(status or {})},
    }


def a_replica_set(
    app: str = "app",
    *,
    owner: str | None = "Deployment",
    replicas: int = 1,
    generation: int = 1,
    labels: Mapping[str, str] | None = None,
) -> Object:
    """Build the ReplicaSet behind the pods of an app. labels: further ones that it selects by."""
    reference = {"apiVersion": "apps/v1", "kind": owner, "name": "web", "uid": f"deployment-{app}", "controller": True}
    return {
        "kind": "ReplicaSet",
        "metadata": {
            "name": app,
            "namespace": "ns1",
            "uid": f"owner-ns1-{app}",
            "generation": generation,
            **({"ownerReferences": [reference]} if owner else {}),
        },
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": app, **(labels or {})}}},
        "status": {"replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas, "observedGeneration": 1},
    }
