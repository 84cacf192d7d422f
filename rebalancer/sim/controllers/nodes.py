"""The node lifecycle: taints that follow a node's conditions, and pods that leave because of them.

Source: kubernetes/kubernetes pkg/controller/nodelifecycle and pkg/controller/tainteviction
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from rebalancer.sim.admission import NOT_READY, UNREACHABLE
from rebalancer.sim.controllers.indexes import Indexes
from rebalancer.sim.controllers.loop import Loop
from rebalancer.sim.controllers.pods import condition
from rebalancer.sim.deletion import DeleteOptions, delete
from rebalancer.sim.events import EventWriter
from rebalancer.sim.fitting import tolerates
from rebalancer.sim.history import Event, Key, Object
from rebalancer.sim.kinds import NODE, POD
from rebalancer.sim.moments import moment_of
from rebalancer.sim.registry import Registry

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_PRESSURES = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
_OWN = frozenset({NOT_READY, UNREACHABLE, UNSCHEDULABLE, *_PRESSURES.values()})


class NodeController:
    """Keeps each node's taints in step with its conditions, and evicts by NoExecute taints."""

    def __init__(self, registry: Registry, indexes: Indexes, events: EventWriter) -> None:
        self._registry = registry
        self._indexes = indexes
        self._events = events
        self._loop = Loop(self.reconcile)
        registry.store.listen(NODE.storage, self._on_node)
        registry.store.listen("pods", self._on_pod)
        for key in registry.store.keys(NODE.storage):
            self._loop.add(key)

    async def run(self) -> None:
        """Work until cancelled."""
        await self._loop.run()

    def _on_node(self, event: Event) -> None:
        if event.after is not None:
            self._loop.add(event.key)

    def _on_pod(self, event: Event) -> None:
        if event.after is None:
            return
        name = event.after["spec"].get("nodeName")
        if name and (event.before is None or not event.before["spec"].get("nodeName")):
            node = self._registry.store.get(NODE.storage, "", name)
            if node is not None and any(taint["effect"] == "NoExecute" for taint in node["spec"].get("taints", ())):
                self._loop.add(("", name))

    def reconcile(self, key: Key) -> float | None:
        """Set one node's taints and evict what does not tolerate them."""
        node = self._registry.store.get(NODE.storage, *key)
        if node is None:
            return None
        wanted = self._wanted(node)
        taints = node["spec"].get("taints", [])
        kept = [taint for taint in taints if taint["key"] not in _OWN or _named(taint) in wanted]
        present = {_named(taint) for taint in kept}
        now = self._registry.now()
        for key_effect in sorted(wanted - present):
            added: dict[str, Any] = {"key": key_effect[0], "effect": key_effect[1]}
            kept.append({**added, "timeAdded": now})
        if kept != taints:
            spec = {**node["spec"], "taints": kept}
            if not kept:
                del spec["taints"]
            node = self._registry.store.put(NODE.storage, {**node, "metadata": dict(node["metadata"]), "spec": spec})
        return self._evict(node)

    def _wanted(self, node: Object) -> set[tuple[str, str]]:
        ready = (condition(node, "Ready") or {}).get("status")
        wanted: set[tuple[str, str]] = set()
        if ready == "False":
            wanted |= {(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")}
        elif ready == "Unknown":
            wanted |= {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}
        elif ready is None:
            wanted.add((NOT_READY, "NoSchedule"))
        if node["spec"].get("unschedulable"):
            wanted.add((UNSCHEDULABLE, "NoSchedule"))
        for kind, key in _PRESSURES.items():
            if (condition(node, kind) or {}).get("status") == "True":
                wanted.add((key, "NoSchedule"))
        return wanted

    def _evict(self, node: Object) -> float | None:
        taints = [taint for taint in node["spec"].get("taints", ()) if taint["effect"] == "NoExecute"]
        if not taints:
            return None
        now = self._registry.clock()
        waits: list[float] = []
        for pod in self._indexes.pods_by_node.get(node["metadata"]["name"]):
            if "deletionTimestamp" in pod["metadata"]:
                continue
            left = self._time_left(pod, taints, now)
            if left is None:
                continue
            if left > 0:
                waits.append(left)
                continue
            metadata = pod["metadata"]
            self._events.normal(
                pod, "TaintManagerEviction", f"Marking for deletion Pod {metadata['namespace']}/{metadata['name']}"
            )
            delete(self._registry, POD, metadata["namespace"], metadata["name"], DeleteOptions(uid=metadata["uid"]))
        return min(waits) if waits else None

    def _time_left(self, pod: Object, taints: list[dict[str, Any]], now: Any) -> float | None:
        """Return the seconds that a pod may stay, None for ever, 0 not at all."""
        tolerations = pod["spec"].get("tolerations", ())
        limits: list[float] = []
        for taint in taints:
            covering = [one for one in tolerations if tolerates(one, taint)]
            if not covering:
                return 0.0
            seconds = [one["tolerationSeconds"] for one in covering if one.get("tolerationSeconds") is not None]
            if seconds:
                since = moment_of(taint["timeAdded"]) if taint.get("timeAdded") else now
                limits.append((since + timedelta(seconds=max(0, min(seconds))) - now).total_seconds())
        return max(0.0, min(limits)) if limits else None


def _named(taint: dict[str, Any]) -> tuple[str, str]:
    return taint["key"], taint["effect"]
