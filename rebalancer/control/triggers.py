"""Facts of the cache become triggers.

A node *joins* when it can take pods: Ready, not cordoned, its start-up taints gone; and then has had the node settle time, in
which its DaemonSets start. Until then it is followed here. Time comes in with each call, nothing waits here.
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
_ARRIVALS = frozenset({FactKind.NODE_JOINED, FactKind.NODE_BECAME_SCHEDULABLE, FactKind.NODE_TAINTS_CHANGED})
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
        self._usable: set[str] = set()
        self._settling: dict[str, float] = {}

    def know(self, nodes: Iterable[Node]) -> None:
        """Take note of the nodes of the first list: they have not just joined, except those that cannot take pods yet."""
        self._usable = {node.name for node in nodes if usable(node)}

    def on_facts(self, facts: Iterable[Fact], now: float) -> list[Trigger]:
        """Return the triggers that facts make at once; arriving nodes are settled first (``due``). now: monotonic seconds."""
        made: list[Trigger] = []
        for fact in facts:
            if fact.kind in _ARRIVALS and self._arrives(fact.subject, now):
                continue
            if fact.kind is FactKind.NODE_GONE or fact.kind is FactKind.NODE_BECAME_UNSCHEDULABLE:
                self._leaves(fact.subject)
            if (change := _NODE_CHANGES.get(fact.kind)) is not None:
                # A node that still settles will be looked at when it has.
                if fact.subject not in self._settling:
                    made.append(Trigger(TriggerKind.NODE_CHANGED, fact.subject, change))
            elif fact.kind in _POD_CHANGES:
                made.append(Trigger(TriggerKind.POD_CHANGED, fact.subject, str(fact.kind)))
        return [trigger for trigger in made if trigger.kind in self.wanted]

    def due(self, now: float) -> list[Trigger]:
        """Return a trigger for each node that has settled by now."""
        settled = sorted(name for name, moment in self._settling.items() if moment <= now)
        for name in settled:
            del self._settling[name]
            self._usable.add(name)
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

    def _arrives(self, name: str, now: float) -> bool:
        """Begin (or go on) to settle a node that can take pods; return whether that is all its fact meant."""
        node = self._node_of(name)
        if node is None:
            return False
        if not usable(node):
            self._leaves(name)
            return False
        if name in self._usable:
            return False
        self._settling.setdefault(name, now + self._settle_seconds)
        return True

    def _leaves(self, name: str) -> None:
        self._usable.discard(name)
        self._settling.pop(name, None)
