"""What a run has used of its caps so far: requests that were accepted, or are on the wire."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from rebalancer.model.plan import Approval
from rebalancer.model.pod import Pod


@dataclass(slots=True)
class Tally:
    """Counts of one run. started_at: seconds since the epoch. Namespaces are told from the pod's key."""

    started_at: float
    total: int = 0
    by_node: Counter[str] = field(default_factory=Counter)
    by_namespace: Counter[str] = field(default_factory=Counter)
    by_workload: Counter[str] = field(default_factory=Counter)

    def count(self, approval: Approval) -> None:
        """Note one more."""
        self._add(approval, 1)

    def discount(self, approval: Approval) -> None:
        """Take one back: the server refused it."""
        self._add(approval, -1)

    def count_background(self, pod: Pod) -> None:
        """Note an eviction that somebody else carries out and that has not ended."""
        owner = pod.shape.owner
        self._count(pod.node or "", pod.namespace, owner.uid if owner else "", 1)

    def _add(self, approval: Approval, number: int) -> None:
        self._count(approval.node, namespace_of(approval), approval.owner_uid, number)

    def _count(self, node: str, namespace: str, owner_uid: str, number: int) -> None:
        self.total += number
        for counter, key in ((self.by_node, node), (self.by_namespace, namespace), (self.by_workload, owner_uid)):
            if key:
                counter[key] += number
                if counter[key] <= 0:
                    del counter[key]

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        return {
            "startedAt": self.started_at,
            "total": self.total,
            "byNode": dict(self.by_node),
            "byNamespace": dict(self.by_namespace),
            "byWorkload": dict(self.by_workload),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, object]) -> Tally:
        """Read the JSON form; raises KeyError, TypeError or ValueError where it is another."""
        counters = []
        for key in ("byNode", "byNamespace", "byWorkload"):
            counts = document[key]
            if not isinstance(counts, dict):
                raise TypeError(f"{key} is not a map")
            counters.append(Counter({str(name): int(number) for name, number in counts.items()}))
        return cls(float(str(document["startedAt"])), int(str(document["total"])), *counters)


def namespace_of(approval: Approval) -> str:
    """Return the namespace of an approved pod."""
    return approval.pod.partition("/")[0]
