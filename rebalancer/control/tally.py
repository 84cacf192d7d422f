"""What a run has used of its caps so far: requests that were accepted, or are on the wire."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rebalancer.model.plan import Approval
from rebalancer.model.pod import Pod


@dataclass(slots=True)
class Tally:
    """Counts of one run. Namespaces are told from the pod's key.

    started_at: seconds since the epoch. wholes: what percentages are of, as it was when the run first asked: pods of a node go
    and replacements come beside them while it goes on, and the cap is to be the same throughout.
    """

    started_at: float
    total: int = 0
    by_node: Counter[str] = field(default_factory=Counter)
    by_namespace: Counter[str] = field(default_factory=Counter)
    by_workload: Counter[str] = field(default_factory=Counter)
    wholes: dict[str, int] = field(default_factory=dict)

    def whole(self, kind: str, key: str, count: Callable[[], int]) -> int:
        """Return how many pods there were of something when this run first asked. count: counts them now."""
        name = f"{kind}/{key}"
        if name not in self.wholes:
            self.wholes[name] = count()
        return self.wholes[name]

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
            "wholes": {name: whole for name, whole in self.wholes.items() if self._has_counted(name)},
        }

    def _has_counted(self, name: str) -> bool:
        kind, _, key = name.partition("/")
        counters = {"node": self.by_node, "namespace": self.by_namespace, "workload": self.by_workload}
        return key in counters[kind] if kind in counters else self.total > 0

    @classmethod
    def from_dict(cls, document: Mapping[str, object]) -> Tally:
        """Read the JSON form; raises KeyError, TypeError or ValueError where it is another."""
        counters = []
        for key in ("byNode", "byNamespace", "byWorkload"):
            counts = document[key]
            if not isinstance(counts, dict):
                raise TypeError(f"{key} is not a map")
            counters.append(Counter({str(name): int(number) for name, number in counts.items()}))
        wholes = document.get("wholes", {})  # An older version did not write them down.
        if not isinstance(wholes, dict):
            raise TypeError("wholes is not a map")
        whole_numbers = {str(name): int(number) for name, number in wholes.items()}
        tally = cls(float(str(document["startedAt"])), int(str(document["total"])), *counters)
        tally.wholes = whole_numbers
        return tally


def namespace_of(approval: Approval) -> str:
    """Return the namespace of an approved pod."""
    return approval.pod.partition("/")[0]
