"""Replacement first: which Deployment's rollout would replace the only replica of a workload, or why none can.

A rollout does not go through the Eviction API, so no budget is asked; it keeps the old pod until the new one is Ready, provided
that the strategy may add a pod and need not do without one.
Source: https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#strategy
"""

from __future__ import annotations

import math
from fractions import Fraction

from rebalancer.eligibility.objection import Objection
from rebalancer.model.pod import PodShape
from rebalancer.model.snapshot import Snapshot
from rebalancer.model.workload import Workload

_SHARED = frozenset({"ReadWriteMany", "ReadOnlyMany"})
# Volumes that every pod gets for itself, or that its node has anyway.
_OWN = frozenset({"emptyDir", "ephemeral", "hostPath"})


def rollout_of(snapshot: Snapshot, shape: PodShape) -> Workload | Objection:
    """Return the Deployment whose rollout replaces a pod of this shape, its replacement first; else why there is none."""
    owner = shape.owner
    name = f"{owner.kind}/{owner.name}" if owner is not None else "nobody"
    own = snapshot.workloads.get(owner.uid) if owner is not None else None
    above = own.owner if own is not None and own.kind == "ReplicaSet" else None
    deployment = snapshot.workloads.get(above.uid) if above is not None else None
    if own is None or deployment is None or deployment.kind != "Deployment":
        return Objection("surge-owner", (name,))
    if (objection := _strategy_objection(deployment)) is not None:
        return objection
    if (volume := _bound_to_one_node(snapshot, shape)) is not None:
        return Objection("surge-volume", (volume,))
    if is_in_rollout(deployment) or is_in_rollout(own):
        return Objection("workload-in-rollout", (name,))
    return deployment


def is_in_rollout(workload: Workload) -> bool:
    """Tell whether a workload is being changed: its controller has still to look, or pods of two revisions are there."""
    if workload.observed_generation < workload.generation:
        return True
    if workload.kind == "Deployment":
        return workload.updated_replicas < workload.replicas or workload.status_replicas > workload.updated_replicas
    if workload.kind == "StatefulSet":
        return workload.current_revision != workload.update_revision and workload.updated_replicas < workload.replicas
    return False


def _strategy_objection(deployment: Workload) -> Objection | None:
    """Say why a rollout of the Deployment would not begin, or would stop the old pod before the new one is Ready."""
    if deployment.paused:
        return Objection("surge-paused", (deployment.name,))
    if deployment.strategy == "Recreate":
        return Objection("surge-recreate", (deployment.name,))
    if share(deployment.max_surge, deployment.replicas, up=True) < 1:
        return Objection("surge-none", (deployment.name, deployment.max_surge))
    if share(deployment.max_unavailable, deployment.replicas, up=False) >= max(deployment.replicas, 1):
        return Objection("surge-unavailable", (deployment.name, deployment.max_unavailable))
    return None


def share(given: int | str | None, replicas: int, *, up: bool) -> int:
    """Return how many pods maxSurge (``up``) or maxUnavailable (down) stand for; None is the default, 25%.

    What cannot be read counts as none.
    Source: https://github.com/kubernetes/kubernetes/blob/master/pkg/controller/deployment/util/deployment_util.go
    """
    if isinstance(given, int):
        return given
    try:
        exact = Fraction(("25%" if given is None else given).strip().removesuffix("%")) * replicas / 100
    except (ValueError, ZeroDivisionError):
        return 0
    return math.ceil(exact) if up else math.floor(exact)


def _bound_to_one_node(snapshot: Snapshot, shape: PodShape) -> str | None:
    """Return what holds the replacement up while the old pod runs: a claim or disk that one node can use at a time."""
    for volume in shape.volumes:
        if volume.kind == "persistentVolumeClaim":
            claim = snapshot.claims.get((shape.namespace, volume.name))
            if claim is None or not _SHARED.intersection(claim.access_modes):
                return f"claim {volume.name}"
        elif volume.kind not in _OWN and not volume.read_only:
            return f"{volume.kind} {volume.name}".strip()
    return None
