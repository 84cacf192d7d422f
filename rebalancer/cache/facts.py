"""What a change meant: the difference between two values of one object, as facts."""

from __future__ import annotations

from rebalancer.cache.usable import usable
from rebalancer.model.node import Node
from rebalancer.model.pod import Phase, Pod
from rebalancer.model.trigger import Fact, FactKind


def node_facts(old: Node | None, new: Node | None) -> tuple[Fact, ...]:
    """Return what became true of a node. None: it was not there before, or is not any more."""
    if new is None:
        return () if old is None else (Fact(FactKind.NODE_GONE, old.name, old.uid),)
    facts = []

    def note(kind: FactKind, detail: str = "") -> None:
        facts.append(Fact(kind, new.name, new.uid, detail))

    if old is not None and old.uid != new.uid:
        facts.append(Fact(FactKind.NODE_GONE, old.name, old.uid, "replaced by a node of the same name"))
        old = None
    can, could = usable(new), old is not None and usable(old)
    if old is None:
        note(FactKind.NODE_JOINED, "can take pods" if can else "cannot take pods yet")
    if can and not could:
        note(FactKind.NODE_BECAME_SCHEDULABLE)
    if could and not can:
        note(FactKind.NODE_BECAME_UNSCHEDULABLE, "cordoned" if new.unschedulable else "not Ready" if not new.ready else "tainted")
    if old is not None:
        if old.labels != new.labels:
            changed = sorted(key for key in {*old.labels, *new.labels} if old.labels.get(key) != new.labels.get(key))
            note(FactKind.NODE_LABELS_CHANGED, ", ".join(changed))
        if old.taints != new.taints:
            note(FactKind.NODE_TAINTS_CHANGED, ", ".join(map(str, new.taints)) or "none left")
        if old.allocatable != new.allocatable:
            note(FactKind.NODE_CAPACITY_CHANGED)
    return tuple(facts)


def pod_facts(old: Pod | None, new: Pod | None) -> tuple[Fact, ...]:
    """Return what became true of a pod. None: it was not there before, or is not any more. The detail is its node."""
    if new is None:
        return () if old is None else (Fact(FactKind.POD_GONE, old.key, old.uid, old.node or ""),)
    if old is not None and old.uid != new.uid:
        return pod_facts(old, None) + pod_facts(None, new)
    kinds = []
    if old is None:
        kinds.append(FactKind.POD_ADDED)
    elif old.shape is not new.shape:
        kinds.append(FactKind.POD_CHANGED)
    if new.node is not None and (old is None or old.node is None):
        kinds.append(FactKind.POD_BOUND)
    if new.ready and not (old is not None and old.ready):
        kinds.append(FactKind.POD_READY)
    if new.phase is Phase.FAILED and (old is None or old.phase is not Phase.FAILED):
        kinds.append(FactKind.POD_FAILED)
    if old is not None and restarts(new) > restarts(old):
        kinds.append(FactKind.POD_RESTARTED)
    if new.terminating and not (old is not None and old.terminating):
        kinds.append(FactKind.POD_TERMINATING)
    if not kinds:
        return ()
    key, where = new.key, new.node or ""
    return tuple(Fact(kind, key, new.uid, where) for kind in kinds)


def restarts(pod: Pod) -> int:
    """Return the restarts of all its containers."""
    return pod.main.restarts + pod.init.restarts
