"""Reasons to wait that lie in the state of the cluster, or in an operator's hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rebalancer.model.cap import Cap
from rebalancer.model.pod import Phase
from rebalancer.model.snapshot import Snapshot

PAUSE_ANNOTATION = "rebalancer.io/paused"


@dataclass(frozen=True, slots=True)
class PauseLimits:
    """From what on nothing is evicted; None switches a rule off.

    pending: most pending pods, as a number or a share of all pods that are not finished.
    not_ready: most nodes that are not Ready, as a number or a share of all nodes.
    """

    pending: Cap | None = None
    not_ready: Cap | None = None


def paused_by_operator(annotations: Mapping[str, str]) -> str | None:
    """Return the reason where the Lease's annotation asks for a pause: any value but empty, ``false``, ``no`` and ``0``."""
    value = annotations.get(PAUSE_ANNOTATION, "").strip()
    if value.lower() in ("", "false", "no", "0"):
        return None
    return f"paused by the annotation {PAUSE_ANNOTATION}={value} of the lease"


def paused_by_cluster(snapshot: Snapshot, limits: PauseLimits) -> str | None:
    """Return why the cluster should be left alone now; None where it need not."""
    if limits.not_ready is not None and snapshot.nodes:
        down = sum(not node.ready for node in snapshot.nodes.values())
        most = limits.not_ready.limit(len(snapshot.nodes))
        if down > most:
            return f"{down} of {len(snapshot.nodes)} nodes are not Ready, more than {limits.not_ready}"
    if limits.pending is not None:
        # A pod that waits for a scheduler is in no bucket of a node; bound ones that still pull images do not wait for room.
        waiting = sum(pod.phase is Phase.PENDING and pod.node is None and not pod.terminating for pod in snapshot.unplaced)
        whole = 0
        if limits.pending.percent is not None:
            whole = sum(not pod.finished for pod in snapshot.all_pods())
        most = limits.pending.limit(whole)
        if waiting > most:
            return f"{waiting} pods are pending, more than {limits.pending}"
    return None
