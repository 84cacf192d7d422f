"""Single replicas, replacement first: a rollout restart of their Deployment instead of an eviction. Pure."""

from __future__ import annotations

from fractions import Fraction

from rebalancer.model.snapshot import Snapshot
from rebalancer.model.workload import Workload


def is_single(snapshot: Snapshot, owner_uid: str) -> bool:
    """Say whether a workload wants exactly one replica."""
    workload = snapshot.workloads.get(owner_uid)
    return workload is not None and workload.replicas == 1


def surge_target(snapshot: Snapshot, owner_uid: str) -> Workload | str:
    """Return the Deployment whose rollout replaces the pods of this owner; where that cannot be, why not, in words.

    Source: https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#strategy
    """
    owner = snapshot.workloads.get(owner_uid)
    if owner is None or owner.kind != "ReplicaSet" or owner.owner is None:
        return "only pods of a Deployment can be replaced by a rollout"
    deployment = snapshot.workloads.get(owner.owner.uid)
    if deployment is None or deployment.kind != "Deployment":
        return f"its ReplicaSet belongs to {owner.owner.kind}/{owner.owner.name}, which is not a known Deployment"
    if deployment.strategy == "Recreate":
        return f"Deployment/{deployment.name} has the strategy Recreate, which stops the old pod first"
    if _surge(deployment) < 1:
        return f"Deployment/{deployment.name} has maxSurge 0, which stops the old pod first"
    return deployment


def _surge(deployment: Workload) -> int:
    """Return how many pods may be added; a percentage is rounded up."""
    given = deployment.max_surge
    if given is None:
        given = "25%"
    if isinstance(given, int):
        return given
    try:
        return -int(-(Fraction(given.strip().removesuffix("%")) * deployment.replicas / 100) // 1)
    except ValueError:
        return 0
