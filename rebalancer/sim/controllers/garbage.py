"""Garbage collection by owner references, and pods whose node is gone.

Source: https://kubernetes.io/docs/concepts/architecture/garbage-collection/
"""

from __future__ import annotations

from rebalancer.sim.controllers.indexes import Indexes
from rebalancer.sim.controllers.loop import Loop
from rebalancer.sim.deletion import DeleteOptions, delete
from rebalancer.sim.history import Event, Key, Object
from rebalancer.sim.kinds import KINDS, POD, Kind, kind_of
from rebalancer.sim.problems import ApiProblem
from rebalancer.sim.registry import Registry
from rebalancer.sim.store import key_of, with_metadata

_FOREGROUND = "foregroundDeletion"
_ORPHAN = "orphan"
_BY_STORAGE = {kind.storage: kind for kind in KINDS if not kind.stored_as}


class GarbageCollector:
    """Deletes what nobody owns any more, and finishes foreground and orphaning deletions."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._dependents: dict[str, dict[tuple[str, Key], None]] = {}
        self._gone: dict[Key, str] = {}
        self._loop = Loop(self.reconcile)
        for storage, obj in registry.store.everything():
            self._note(storage, obj)
        registry.store.listen_to_all(self._on_event)

    async def run(self) -> None:
        """Work until cancelled."""
        await self._loop.run()

    def _note(self, storage: str, obj: Object) -> None:
        for owner in obj["metadata"].get("ownerReferences", ()):
            self._dependents.setdefault(owner["uid"], {})[storage, key_of(obj)] = None

    def _on_event(self, event: Event) -> None:
        if event.after is not None:
            metadata = event.after["metadata"]
            if event.before is None or metadata.get("ownerReferences") != event.before["metadata"].get("ownerReferences"):
                self._note(event.storage, event.after)
                if event.before is None and metadata.get("ownerReferences"):
                    self._loop.add(("missing", f"{event.storage}|{event.key[0]}|{event.key[1]}"), 1.0)
            if "deletionTimestamp" in metadata and metadata.get("finalizers"):
                self._loop.add(("going", f"{event.storage}|{event.key[0]}|{event.key[1]}"))
            return
        if event.before is None:
            return
        uid = event.before["metadata"]["uid"]
        if uid in self._dependents:
            self._loop.add(("gone", uid))
        for owner in event.before["metadata"].get("ownerReferences", ()):
            known = self._dependents.get(owner["uid"])
            if known is not None:
                known.pop((event.storage, event.key), None)
                kind = kind_of(owner["apiVersion"], owner["kind"])
                if kind is not None:
                    space = event.key[0] if kind.namespaced else ""
                    self._loop.add(("going", f"{kind.storage}|{space}|{owner['name']}"))

    def reconcile(self, key: Key) -> float | None:
        """Do what one event calls for."""
        if key[0] == "gone":
            for dependent_storage, dependent in tuple(self._dependents.pop(key[1], ())):
                self._delete_if_unowned(dependent_storage, dependent)
            return None
        storage, namespace, name = key[1].split("|")
        if key[0] == "missing":
            self._delete_if_unowned(storage, (namespace, name))
        else:
            self._finish(storage, (namespace, name))
        return None

    def _delete_if_unowned(self, storage: str, key: Key) -> None:
        obj = self._registry.store.get(storage, *key)
        kind = _BY_STORAGE.get(storage)
        if obj is None or kind is None or "deletionTimestamp" in obj["metadata"]:
            return
        owners = obj["metadata"].get("ownerReferences", ())
        if not owners or any(self._exists(owner, key[0]) for owner in owners):
            return
        delete(self._registry, kind, *key, DeleteOptions(uid=obj["metadata"]["uid"], propagation="Background"))

    def _exists(self, owner: dict[str, str], namespace: str) -> bool:
        kind = kind_of(owner["apiVersion"], owner["kind"])
        if kind is None:
            return True
        found = self._registry.store.get(kind.storage, namespace if kind.namespaced else "", owner["name"])
        return found is not None and found["metadata"]["uid"] == owner["uid"]

    def _finish(self, storage: str, key: Key) -> None:
        obj = self._registry.store.get(storage, *key)
        kind = _BY_STORAGE.get(storage)
        if obj is None or kind is None or "deletionTimestamp" not in obj["metadata"]:
            return
        finalizers = obj["metadata"].get("finalizers", ())
        uid = obj["metadata"]["uid"]
        if _ORPHAN in finalizers:
            for dependent_storage, dependent in tuple(self._dependents.pop(uid, ())):
                self._disown(dependent_storage, dependent, uid)
            self._take_off(kind, obj, _ORPHAN)
        elif _FOREGROUND in finalizers and not self._delete_dependents(uid):
            self._take_off(kind, obj, _FOREGROUND)

    def _delete_dependents(self, uid: str) -> bool:
        waiting = False
        for storage, key in tuple(self._dependents.get(uid, ())):
            dependent = self._registry.store.get(storage, *key)
            kind = _BY_STORAGE.get(storage)
            if dependent is None or kind is None:
                continue
            waiting = True
            if "deletionTimestamp" not in dependent["metadata"]:
                delete(self._registry, kind, *key, DeleteOptions(propagation="Foreground"))
        return waiting

    def _disown(self, storage: str, key: Key, uid: str) -> None:
        obj = self._registry.store.get(storage, *key)
        if obj is not None:
            owners = [owner for owner in obj["metadata"].get("ownerReferences", ()) if owner["uid"] != uid]
            self._registry.store.put(storage, with_metadata(obj, ownerReferences=owners or None))

    def _take_off(self, kind: Kind, obj: Object, finalizer: str) -> None:
        kept = [name for name in obj["metadata"].get("finalizers", ()) if name != finalizer]
        changed = with_metadata(obj, finalizers=kept or None)
        self._registry.update(kind, obj, changed)


class PodCollector:
    """Deletes the pods of nodes that are gone.

    Source: kubernetes/kubernetes pkg/controller/podgc
    """

    def __init__(self, registry: Registry, indexes: Indexes) -> None:
        self._registry = registry
        self._indexes = indexes
        self._loop = Loop(self.reconcile)
        registry.store.listen("nodes", self._on_node)

    async def run(self) -> None:
        """Work until cancelled."""
        await self._loop.run()

    def _on_node(self, event: Event) -> None:
        if event.after is None:
            self._loop.add(event.key)

    def reconcile(self, key: Key) -> float | None:
        """Delete the pods of one node if it is still gone."""
        if self._registry.store.get("nodes", *key) is not None:
            return None
        for pod in self._indexes.pods_by_node.get(key[1]):
            metadata = pod["metadata"]
            try:
                delete(self._registry, POD, metadata["namespace"], metadata["name"], DeleteOptions(grace_seconds=0))
            except ApiProblem:
                continue
        return None
