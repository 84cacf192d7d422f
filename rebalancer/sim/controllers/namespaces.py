"""Namespaces: what they begin with, and how they end.

Source: kubernetes/kubernetes pkg/controller/namespace and pkg/controller/serviceaccount
"""

from __future__ import annotations

from rebalancer.sim.controllers.loop import Loop
from rebalancer.sim.deletion import DeleteOptions, delete
from rebalancer.sim.history import Event, Key
from rebalancer.sim.kinds import KINDS, NAMESPACE, SERVICE_ACCOUNT
from rebalancer.sim.registry import Registry

_KINDS = tuple(kind for kind in KINDS if kind.namespaced and not kind.stored_as and not kind.asked_only)


class NamespaceController:
    """Gives namespaces their default ServiceAccount, empties those that go, then lets them go."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._loop = Loop(self.reconcile)
        registry.store.listen(NAMESPACE.storage, self._on_namespace)
        registry.store.listen_to_all(self._on_removal)
        for key in registry.store.keys(NAMESPACE.storage):
            self._loop.add(key)

    async def run(self) -> None:
        """Work until cancelled."""
        await self._loop.run()

    def _on_namespace(self, event: Event) -> None:
        if event.after is not None:
            self._loop.add(event.key)

    def _on_removal(self, event: Event) -> None:
        if event.after is None and event.key[0]:
            namespace = self._registry.store.get(NAMESPACE.storage, "", event.key[0])
            if namespace is not None and "deletionTimestamp" in namespace["metadata"]:
                self._loop.add(("", event.key[0]))

    def reconcile(self, key: Key) -> float | None:
        """Delete everything in a namespace; once it is empty, take off its finalizer."""
        namespace = self._registry.store.get(NAMESPACE.storage, *key)
        if namespace is None:
            return None
        if "deletionTimestamp" not in namespace["metadata"]:
            if self._registry.store.get(SERVICE_ACCOUNT.storage, key[1], "default") is None:
                self._registry.create(SERVICE_ACCOUNT, key[1], {"metadata": {"name": "default"}})
            return None
        waiting = False
        for kind in _KINDS:
            for obj_key in self._registry.store.keys(kind.storage, key[1]):
                waiting = True
                obj = self._registry.store.get(kind.storage, *obj_key)
                if obj is not None and "deletionTimestamp" not in obj["metadata"]:
                    delete(self._registry, kind, *obj_key, DeleteOptions(propagation="Background"))
        if waiting and any(self._registry.store.keys(kind.storage, key[1]) for kind in _KINDS):
            return 0.5
        spec = {name: value for name, value in namespace["spec"].items() if name != "finalizers"}
        self._registry.store.remove(NAMESPACE.storage, key, {**namespace, "spec": spec})
        return None
