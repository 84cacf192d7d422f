"""Events as the cluster's own parts write them: counted when they repeat."""

from __future__ import annotations

from typing import Any

from rebalancer.sim.history import Object
from rebalancer.sim.kinds import EVENT
from rebalancer.sim.problems import ApiProblem
from rebalancer.sim.registry import Registry


class EventWriter:
    """Writes core v1 Events for one component.

    enabled: False writes nothing, for large clusters in which nobody reads them.
    """

    def __init__(self, registry: Registry, component: str, *, enabled: bool = True) -> None:
        self._registry = registry
        self._component = component
        self._enabled = enabled
        self._seen: dict[tuple[str, str, str], tuple[str, str]] = {}

    def normal(self, about: Object, reason: str, message: str) -> None:
        """Write an Event of type Normal."""
        self._write(about, "Normal", reason, message)

    def warning(self, about: Object, reason: str, message: str) -> None:
        """Write an Event of type Warning."""
        self._write(about, "Warning", reason, message)

    def _write(self, about: Object, kind: str, reason: str, message: str) -> None:
        if not self._enabled:
            return
        metadata = about["metadata"]
        namespace = metadata.get("namespace", "default")
        same = (metadata["uid"], reason, message)
        now = self._registry.now()
        known = self._seen.get(same)
        found = self._registry.store.get(EVENT.storage, *known) if known else None
        if found is not None:
            counted: dict[str, Any] = {**found, "count": found.get("count", 1) + 1, "lastTimestamp": now}
            self._registry.store.put(EVENT.storage, {**counted, "metadata": dict(found["metadata"])})
            return
        name = f"{metadata['name']}.{self._registry.identities.uid().replace('-', '')[:16]}"
        event = {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {
                "kind": about["kind"],
                **({"namespace": namespace} if "namespace" in metadata else {}),
                "name": metadata["name"],
                "uid": metadata["uid"],
                "apiVersion": about["apiVersion"],
                "resourceVersion": metadata.get("resourceVersion", ""),
            },
            "reason": reason,
            "message": message,
            "source": {"component": self._component},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "type": kind,
            "eventTime": None,
            "reportingComponent": self._component,
            "reportingInstance": "",
        }
        try:
            self._registry.create_read(EVENT, namespace, event)
        except ApiProblem:
            return
        self._seen[same] = (namespace, name)
