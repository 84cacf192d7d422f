"""Events in their two versions: stored as core v1, seen also as events.k8s.io/v1.

Source: kubernetes/kubernetes pkg/apis/events/v1/conversion.go
"""

from __future__ import annotations

from rebalancer.sim.history import Object
from rebalancer.sim.kinds import Kind
from rebalancer.sim.zeros import fill

_TO_CORE = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_FROM_CORE = {core: new for new, core in _TO_CORE.items()}


def to_core(event: Object) -> Object:
    """Return an events.k8s.io/v1 Event as the core one that is stored."""
    core = {_TO_CORE.get(name, name): value for name, value in event.items()}
    core["apiVersion"] = "v1"
    fill("core.v1.Event", core)
    return core


def from_core(event: Object) -> Object:
    """Return a stored Event as events.k8s.io/v1 shows it."""
    seen = {_FROM_CORE.get(name, name): value for name, value in event.items()}
    seen["apiVersion"] = "events.k8s.io/v1"
    for name in ("reportingController", "reportingInstance"):
        if seen.get(name) == "":
            del seen[name]
    for name in ("eventTime",):
        seen.setdefault(name, None)
    return seen


def shown(kind: Kind, obj: Object) -> Object:
    """Return a stored object as its kind's version shows it."""
    return from_core(obj) if kind.stored_as and obj.get("kind") == "Event" else obj
