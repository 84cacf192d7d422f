"""Facts of the cache become triggers.

A node *joins* when it can take pods (Ready, not cordoned, its start-up taints gone; ``cache.usable`` says so) and then has had
the node settle time, in which its DaemonSets start. Until then it is followed here. Time comes in with each call, nothing waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from rebalancer.cache.usable import usable
from rebalancer.model.node import Node
from rebalancer.model.trigger import Fact, FactKind, Trigger, TriggerKind

_NODE_CHANGES: Mapping[FactKind, str] = {
    FactKind.NODE_BECAME_UNSCHEDULABLE: "became unschedulable",
    FactKind.NODE_LABELS_CHANGED: "labels changed",
    FactKind.NODE_TAINTS_CHANGED: "taints changed",
    FactKind.NODE_CAPACITY_CHANGED: "capacity changed",
    FactKind.NODE_GONE: "gone",
}
_LEAVES = frozenset({FactKind.NODE_BECAME_UNSCHEDULABLE, FactKind.NODE_GONE})
_POD_CHANGES = frozenset({FactKind.POD_FAILED, FactKind.POD_RESTARTED})


class TriggerMaker:
    """Follows arriving nodes and turns facts into triggers.

    wanted: the kinds of triggers that some enabled strategy reacts to; others are not made. Ticks and the like always are.
    """

    def __init__(
        self,
        node_of: Callable[[str], Node | None],
        *,
        settle_seconds: float,
        wanted: frozenset[TriggerKind] = frozenset(TriggerKind),
    ) -> None:
        """Watch nodes arrive. node_of: returns a node as it is now."""
        self._node_of = node_of
        self._settle_seconds = settle_seconds
        self.wanted = wanted
        self._settling: dict[str, float] = {}

    def on_facts(self, facts: Iterable[Fact], now: float) -> list[Trigger]:
        """Return the triggers that facts make at once; arriving nodes are settled first (``due``). now: monotonic seconds."""
        made: list[Trigger] = []
        for fact in facts:
            if fact.kind is FactKind.NODE_BECAME_SCHEDULABLE:
                self._settling.setdefault(fact.subject, now + self._settle_seconds)
            elif fact.kind in _LEAVES:
                self._settling.pop(fact.subject, None)
            if (change := _NODE_CHANGES.get(fact.kind)) is not None:
                if fact.kind in _LEAVES or self._is_known(fact.subject):
                    made.append(Trigger(TriggerKind.NODE_CHANGED, fact.subject, change))
            elif fact.kind in _POD_CHANGES:
                made.append(Trigger(TriggerKind.POD_CHANGED, fact.subject, str(fact.kind)))
        return [trigger for trigger in made if trigger.kind in self.wanted]

    def due(self, now: float) -> list[Trigger]:
        """Return a trigger for each node that has settled by now."""
        settled = sorted(name for name, moment in self._settling.items() if moment <= now)
        for name in settled:
            del self._settling[name]
        if TriggerKind.NODE_JOINED not in self.wanted:
            return []
        return [Trigger(TriggerKind.NODE_JOINED, name, "ready and settled") for name in settled]

    @property
    def next_due(self) -> float | None:
        """When the next node will have settled, in monotonic seconds; None while none settles."""
        return min(self._settling.values(), default=None)

    @property
    def settling(self) -> tuple[str, ...]:
        """The nodes that settle now."""
        return tuple(sorted(self._settling))

    def _is_known(self, name: str) -> bool:
        """Say whether a node has settled, or is not on its way in at all."""
        node = self._node_of(name)
        return name not in self._settling and node is not None and (usable(node) or node.unschedulable)
