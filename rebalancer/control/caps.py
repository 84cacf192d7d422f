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
        namespace = namespace_of(approval)
        for caps in self._sets:
            # In upstream's order: total, node, namespace.
            if _full(caps.total, tally.total, lambda: sum(len(bucket) for bucket in snapshot.pods.values())):
                return f"{caps.total} per run ({caps.origin})"
            if _full(caps.node, tally.by_node[approval.node], lambda: len(snapshot.on(approval.node))):
                return f"{caps.node} on node {approval.node} ({caps.origin})"
            if _full(
                caps.namespace,
                tally.by_namespace[namespace],
                lambda: sum(pod.namespace == namespace for pod in snapshot.all_pods()),
            ):
                return f"{caps.namespace} in namespace {namespace} ({caps.origin})"
            if approval.owner_uid and _full(
                caps.workload, tally.by_workload[approval.owner_uid], lambda: _replicas(snapshot, approval.owner_uid)
            ):
                return f"{caps.workload} of the workload of {approval.pod} ({caps.origin})"
        return None


def _full(cap: Cap | None, used: int, whole: Callable[[], int]) -> bool:
    if cap is None:
        return False
    return used >= cap.limit(0 if cap.number is not None else whole())


def _replicas(snapshot: Snapshot, owner_uid: str) -> int:
    workload = snapshot.workloads.get(owner_uid)
    if workload is not None:
        return workload.replicas
    return sum(pod.shape.owner is not None and pod.shape.owner.uid == owner_uid for pod in snapshot.all_pods())
