"""Who takes room before any replacement does: pending pods, and DaemonSet pods that fresh nodes have still to start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from rebalancer.model.pod import Pod, PodShape
from rebalancer.model.selector import NodeSelector
from rebalancer.placement.arrays import Bools
from rebalancer.placement.node_filters import affinity_admits, cordon_admits, taints_admit
from rebalancer.placement.state import ClusterState

_FRESH_SECONDS = 600.0


def waiting(unplaced: Iterable[Pod]) -> list[Pod]:
    """Return the pods that a scheduler will look at: nominated ones first, then by priority, then the oldest.

    Source: https://github.com/kubernetes/kubernetes/blob/v1.36.2/pkg/scheduler/framework/plugins/queuesort/priority_sort.go
    """
    pods = [pod for pod in unplaced if pod.node is None and not (pod.finished or pod.terminating or pod.gated)]
    return sorted(pods, key=lambda pod: (pod.nominated_node is None, -(pod.shape.priority or 0), pod.created_at, pod.uid))


def daemon_reservations(state: ClusterState) -> Iterator[tuple[PodShape, Bools]]:
    """Yield for each DaemonSet one shape and the nodes that should run it and do not yet.

    What a DaemonSet wants is read off its pod on the first node by name that has one, without the node that this pod names.
    """
    cache = state.cache
    fresh = _fresh_nodes(state)
    if not fresh.any():
        return
    coming: dict[str, set[int]] = {}
    for shape, node in state.arrivals():
        owner = shape.owner
        if owner is not None and owner.kind == "DaemonSet":
            coming.setdefault(owner.uid, set()).add(node)
    for uid in sorted(cache.daemons):
        there = cache.daemons[uid]
        if len(there) >= state.size:
            continue
        first = state.snapshot.pods[min(there)]
        shape = next(pod.shape for pod in first if not pod.finished and pod.shape.owner and pod.shape.owner.uid == uid)
        anywhere = unpinned(shape)
        wanted = (
            affinity_admits(state.table, anywhere) & cordon_admits(state.table, anywhere) & taints_admit(state.table, anywhere)
        )
        absent = np.ones(state.size, dtype=np.bool_)
        absent[[state.table.index[node] for node in there]] = False
        absent[list(coming.get(uid, ()))] = False
        wanted = wanted & absent & fresh
        if wanted.any():
            yield shape, wanted


def _fresh_nodes(state: ClusterState) -> Bools:
    """Return the nodes that have come, or become Ready, lately: an older one runs what it is going to run."""
    since = state.snapshot.now - _FRESH_SECONDS
    return np.array([max(node.created_at, node.ready_since or 0.0) >= since for node in state.table.nodes], dtype=np.bool_)


def unpinned(shape: PodShape) -> PodShape:
    """Return the shape without the node names that the DaemonSet controller has written into its affinity."""
    if shape.required_node is None:
        return shape
    terms = [replace(term, fields=()) for term in shape.required_node.terms]
    open_terms = tuple(term for term in terms if term.labels)
    # A term that consisted of the name alone leaves no condition at all.
    return replace(shape, required_node=NodeSelector(open_terms) if len(open_terms) == len(terms) else None)
