"""Whether the workload behind a pod can afford a move now. Asked only where guards are given and workloads are known."""

from __future__ import annotations

from rebalancer.eligibility.objection import Objection
from rebalancer.eligibility.rollout import is_in_rollout
from rebalancer.model.pod import Pod
from rebalancer.model.snapshot import Snapshot

_REPLACING = ("ReplicaSet", "ReplicationController", "StatefulSet")


def objection(snapshot: Snapshot, pod: Pod) -> Objection | None:
    """Say why the workload should be left alone: gone, scaled to zero, in a rollout, or not getting its replicas ready."""
    owner = pod.shape.owner
    if owner is None or owner.kind not in _REPLACING or owner.kind in snapshot.missing:
        return None
    name = f"{owner.kind}/{owner.name}"
    workload = snapshot.workloads.get(owner.uid)
    if workload is None:
        return Objection("workload-gone", (name,))
    if workload.replicas == 0:
        return Objection("workload-scaled-to-zero", (name,))
    above = snapshot.workloads.get(workload.owner.uid) if workload.owner is not None else None
    if is_in_rollout(workload) or (above is not None and is_in_rollout(above)):
        return Objection("workload-in-rollout", (name,))
    unready = workload.replicas - workload.ready_replicas
    if unready > 0 and pod.ready:
        return Objection("workload-unready", (name, unready, workload.replicas))
    return None
