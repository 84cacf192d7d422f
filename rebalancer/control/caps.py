"""Limits of one run on node, namespace, workload and total; settings' and policy's, the tighter wins.

The evaluation keeps within them already; here they are held once more, over all looks of a run and across restarts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rebalancer.control.tally import Tally, namespace_of
from rebalancer.model.cap import Cap
from rebalancer.model.plan import Approval
from rebalancer.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class CapSet:
    """Caps of one origin; None where there is none. origin: in words, for telling which one held."""

    origin: str
    node: Cap | None = None
    namespace: Cap | None = None
    workload: Cap | None = None
    total: Cap | None = None

    @classmethod
    def of_numbers(cls, origin: str, node: int | None, namespace: int | None, total: int | None) -> CapSet:
        """Return caps that are given as numbers."""
        node_cap, namespace_cap, total_cap = (
            None if number is None else Cap(number=number) for number in (node, namespace, total)
        )
        return cls(origin, node=node_cap, namespace=namespace_cap, total=total_cap)


class Caps:
    """All caps together."""

    def __init__(self, sets: Iterable[CapSet]) -> None:
        self._sets = tuple(sets)

    def describe(self) -> str:
        """Say in words what holds."""
        parts = [
            f"at most {cap} {what} ({caps.origin})"
            for caps in self._sets
            for cap, what in (
                (caps.total, "per run"),
                (caps.node, "per node and run"),
                (caps.namespace, "per namespace and run"),
                (caps.workload, "per workload and run"),
            )
            if cap is not None
        ]
        return "; ".join(parts) or "no caps"

    def reached(self, approval: Approval, tally: Tally, snapshot: Snapshot) -> str | None:
        """Return the limit that one more eviction would break, in words; None where it would break none."""
        namespace, owner = namespace_of(approval), approval.owner_uid

        def is_full(cap: Cap | None, kind: str, key: str, used: int, count: Callable[[], int]) -> bool:
            if cap is None:
                return False
            if cap.number is not None:
                return used >= cap.number
            return used >= cap.limit(tally.whole(kind, key, count))

        for caps in self._sets:
            # In upstream's order: total, node, namespace.
            if is_full(caps.total, "total", "", tally.total, lambda: sum(map(len, snapshot.pods.values()))):
                return f"{caps.total} per run ({caps.origin})"
            there = tally.by_node[approval.node]
            if is_full(caps.node, "node", approval.node, there, lambda: len(snapshot.on(approval.node))):
                return f"{caps.node} on node {approval.node} ({caps.origin})"
            there = tally.by_namespace[namespace]
            if is_full(caps.namespace, "namespace", namespace, there, lambda: _pods_in(snapshot, namespace)):
                return f"{caps.namespace} in namespace {namespace} ({caps.origin})"
            there = tally.by_workload[owner]
            if owner and is_full(caps.workload, "workload", owner, there, lambda: _replicas(snapshot, owner)):
                return f"{caps.workload} of {_workload_name(snapshot, approval)} ({caps.origin})"
        return None


def _pods_in(snapshot: Snapshot, namespace: str) -> int:
    return sum(pod.namespace == namespace for pod in snapshot.all_pods())


def _replicas(snapshot: Snapshot, owner_uid: str) -> int:
    workload = snapshot.workloads.get(owner_uid)
    if workload is not None:
        return workload.replicas
    return sum(pod.shape.owner is not None and pod.shape.owner.uid == owner_uid for pod in snapshot.all_pods())


def _workload_name(snapshot: Snapshot, approval: Approval) -> str:
    """Name the workload the same way for each of its pods, so that its limit is told once."""
    namespace, uid = namespace_of(approval), approval.owner_uid
    workload = snapshot.workloads.get(uid)
    if workload is not None:
        return f"{workload.kind} {namespace}/{workload.name}"
    owners = (pod.shape.owner for pod in snapshot.on(approval.node))
    owner = next((owner for owner in owners if owner is not None and owner.uid == uid), None)
    return f"{owner.kind} {namespace}/{owner.name}" if owner is not None else f"the workload {uid} in namespace {namespace}"
