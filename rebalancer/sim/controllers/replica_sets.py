"""ReplicaSets and ReplicationControllers: as many pods as wanted, replacements at once.

Source: kubernetes/kubernetes pkg/controller/replicaset/replica_set.go
"""

from __future__ import annotations

from collections import Counter

from rebalancer.sim.controllers.indexes import Indexes, controller_of
from rebalancer.sim.controllers.loop import Loop
from rebalancer.sim.controllers.pods import available_in, create_pod, deletion_rank, is_active, is_ready, write_status
from rebalancer.sim.deletion import DeleteOptions, delete
from rebalancer.sim.events import EventWriter
from rebalancer.sim.history import Event, Key, Object
from rebalancer.sim.kinds import POD, Kind
from rebalancer.sim.registry import Registry

_BURST = 500


class ReplicaSetController:
    """Keeps the pods of every ReplicaSet (or ReplicationController, as ``kind`` says)."""

    def __init__(self, registry: Registry, indexes: Indexes, kind: Kind, events: EventWriter) -> None:
        self._registry = registry
        self._indexes = indexes
        self._kind = kind
        self._events = events
        self._loop = Loop(self.reconcile)
        registry.store.listen(kind.storage, self._on_set)
        registry.store.listen("pods", self._on_pod)
        for key in registry.store.keys(kind.storage):
            self._loop.add(key)

    async def run(self) -> None:
        """Work until cancelled."""
        await self._loop.run()

    def _on_set(self, event: Event) -> None:
        if event.after is not None:
            self._loop.add(event.key)

    def _on_pod(self, event: Event) -> None:
        for pod in (event.after, event.before):
            owner = controller_of(pod) if pod is not None else None
            if owner is not None and owner[0] == self._kind.kind:
                self._loop.add((event.key[0], owner[1]))
                return

    def reconcile(self, key: Key) -> float | None:
        """Create or delete pods of one set and write its status."""
        owner = self._registry.store.get(self._kind.storage, *key)
        if owner is None:
            return None
        pods = self._indexes.pods_by_owner.get(owner["metadata"]["uid"])
        active = [pod for pod in pods if is_active(pod)]
        if "deletionTimestamp" not in owner["metadata"]:
            self._balance(owner, active)
            active = [pod for pod in self._indexes.pods_by_owner.get(owner["metadata"]["uid"]) if is_active(pod)]
        return self._status(owner, active)

    def _balance(self, owner: Object, active: list[Object]) -> None:
        wanted = owner["spec"].get("replicas", 0)
        missing = wanted - len(active)
        for _ in range(min(missing, _BURST)):
            pod = create_pod(self._registry, owner, owner["spec"]["template"])
            self._events.normal(owner, "SuccessfulCreate", f"Created pod: {pod['metadata']['name']}")
        if missing < 0:
            doubles = Counter(pod["spec"].get("nodeName") for pod in active)
            active.sort(key=lambda pod: deletion_rank(pod, doubles[pod["spec"].get("nodeName")]))
            for pod in active[:-missing]:
                metadata = pod["metadata"]
                delete(self._registry, POD, metadata["namespace"], metadata["name"], DeleteOptions(uid=metadata["uid"]))
                self._events.normal(owner, "SuccessfulDelete", f"Deleted pod: {metadata['name']}")

    def _status(self, owner: Object, active: list[Object]) -> float | None:
        least = owner["spec"].get("minReadySeconds", 0)
        waits = [available_in(pod, least, self._registry.clock()) for pod in active]
        available = sum(wait == 0 for wait in waits)
        current = self._registry.store.get(self._kind.storage, owner["metadata"]["namespace"], owner["metadata"]["name"])
        if current is None:
            return None
        status = {
            **{k: v for k, v in current.get("status", {}).items() if k == "conditions"},
            "replicas": len(active),
            "fullyLabeledReplicas": len(active) or None,
            "readyReplicas": sum(map(is_ready, active)) or None,
            "availableReplicas": available or None,
            "observedGeneration": current["metadata"].get("generation"),
        }
        write_status(self._registry, self._kind, current, status)
        later = [wait for wait in waits if wait]
        return min(later) if later else None
