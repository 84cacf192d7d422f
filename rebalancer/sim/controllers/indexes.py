"""Who owns what and which pods are on which node, kept up to date on each event."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rebalancer.sim.history import Event, Key, Object
from rebalancer.sim.store import Store, key_of


def controller_of(obj: Object) -> tuple[str, str, str] | None:
    """Return kind, name and uid of the controlling owner, or None."""
    for owner in obj["metadata"].get("ownerReferences", ()):
        if owner.get("controller"):
            return owner["kind"], owner["name"], owner["uid"]
    return None


class Index:
    """Objects of one resource by a label that a function gives them."""

    def __init__(self, store: Store, storage: str, label: Callable[[Object], str | None]) -> None:
        self._store = store
        self._storage = storage
        self._label = label
        self._keys: dict[str, dict[Key, None]] = {}
        for obj in store.objects(storage):
            self._add(obj)
        store.listen(storage, self._on_event)

    def get(self, label: str) -> list[Object]:
        """Return the objects with a label."""
        found = (self._store.get(self._storage, *key) for key in tuple(self._keys.get(label, ())))
        return [obj for obj in found if obj is not None]

    def count(self, label: str) -> int:
        """Return how many objects have a label."""
        return len(self._keys.get(label, ()))

    def labels(self) -> Iterable[str]:
        """Return the labels that any object has."""
        return tuple(self._keys)

    def _add(self, obj: Object) -> None:
        label = self._label(obj)
        if label is not None:
            self._keys.setdefault(label, {})[key_of(obj)] = None

    def _on_event(self, event: Event) -> None:
        before = self._label(event.before) if event.before is not None else None
        after = self._label(event.after) if event.after is not None else None
        if before is not None and before != after:
            keys = self._keys.get(before, {})
            keys.pop(event.key, None)
            if not keys:
                self._keys.pop(before, None)
        if after is not None and before != after:
            self._keys.setdefault(after, {})[event.key] = None


def controller_uid(obj: Object) -> str | None:
    """Return the uid of the controlling owner, or None."""
    owner = controller_of(obj)
    return owner[2] if owner else None


def node_name(pod: Object) -> str | None:
    """Return the node of a pod, or None."""
    name = pod["spec"].get("nodeName")
    return str(name) if name else None


class Indexes:
    """The indexes that controllers, scheduler and kubelets share."""

    def __init__(self, store: Store) -> None:
        self.pods_by_owner = Index(store, "pods", controller_uid)
        self.pods_by_node = Index(store, "pods", node_name)
        self.sets_by_owner = Index(store, "replicasets.apps", controller_uid)
        self.jobs_by_owner = Index(store, "jobs.batch", controller_uid)
        self.revisions_by_owner = Index(store, "controllerrevisions.apps", controller_uid)
