"""The state of the embedded cluster: objects under one global resource version, their history, and who watches.

Nothing here knows what an object means; the rules are in ``registry``. Stored objects are never changed in place: a write
puts a new object, which may share any part with the old one. Everything is synchronous and needs no event loop.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rebalancer.sim.history import Event, History, Key, Object

Listener = Callable[[Event], None]


def key_of(obj: Object) -> Key:
    """Return the namespace and name of an object."""
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


class Store:
    """Objects by resource, namespace and name.

    history_limit: events remembered per resource.
    version: the newest resource version.
    incarnation: counts restarts; a watch of an older one is dead.
    """

    def __init__(self, history_limit: int = 20_000) -> None:
        self._objects: dict[str, dict[Key, Object]] = {}
        self._sorted: dict[str, list[Key] | None] = {}
        self._histories: dict[str, History] = {}
        self._listeners: dict[str, list[Listener]] = {}
        self._all_listeners: list[Listener] = []
        self._history_limit = history_limit
        self._floor = 0
        self.version = 1
        self.incarnation = 0

    def get(self, storage: str, namespace: str, name: str) -> Object | None:
        """Return an object, or None. It must not be changed."""
        return self._objects.get(storage, {}).get((namespace, name))

    def count(self, storage: str) -> int:
        """Return how many objects a resource has."""
        return len(self._objects.get(storage, ()))

    def objects(self, storage: str, namespace: str | None = None) -> Iterable[Object]:
        """Return the objects of a resource, in a namespace or everywhere, in no particular order."""
        found = self._objects.get(storage, {})
        if namespace is None:
            return list(found.values())
        return [found[key] for key in self.keys(storage, namespace)]

    def keys(self, storage: str, namespace: str | None = None, start: Key | None = None) -> list[Key]:
        """Return the sorted keys of a resource, in a namespace or everywhere, from ``start`` on."""
        keys = self._sorted.get(storage)
        if keys is None:
            keys = self._sorted[storage] = sorted(self._objects.get(storage, ()))
        low = 0
        high = len(keys)
        if namespace is not None:
            low = bisect_left(keys, (namespace, ""))
            high = bisect_left(keys, (namespace + "\0", ""))
        if start is not None:
            low = max(low, bisect_left(keys, start))
        return keys[low:high]

    def put(self, storage: str, obj: Object) -> Object:
        """Store an object under the next version and return it. The caller gives the object away."""
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        key = key_of(obj)
        objects = self._objects.setdefault(storage, {})
        before = objects.get(key)
        if before is None:
            self._added(storage, key)
        objects[key] = obj
        self._publish(Event(storage, key, self.version, before, obj))
        return obj

    def remove(self, storage: str, key: Key, last: Object | None = None) -> Object:
        """Remove an object and return its last form, which carries the version of the removal."""
        self.version += 1
        held = self._objects[storage].pop(key)
        keys = self._sorted.get(storage)
        if keys is not None:
            del keys[bisect_left(keys, key)]
        final = with_metadata(last or held, resourceVersion=str(self.version))
        self._publish(Event(storage, key, self.version, held, None, final))
        return final

    def load(self, storage: str, objects: Iterable[Object]) -> None:
        """Take over objects of a dump with the versions that they carry; no event is made of it."""
        held = self._objects.setdefault(storage, {})
        for obj in objects:
            held[key_of(obj)] = obj
            version = str(obj["metadata"].get("resourceVersion", ""))
            if version.isdigit() and int(version) > self.version:
                self.version = int(version)
        self._sorted[storage] = None
        self._floor = max(self._floor, self.version)
        for history in self._histories.values():
            history.forget(self.version)

    def history(self, storage: str) -> History:
        """Return the history of a resource."""
        found = self._histories.get(storage)
        if found is None:
            found = self._histories[storage] = History(self._history_limit, self._floor)
        return found

    def listen(self, storage: str, listener: Listener) -> Callable[[], None]:
        """Call a listener on each later event of a resource; the answer stops that."""
        listeners = self._listeners.setdefault(storage, [])
        listeners.append(listener)
        return lambda: listeners.remove(listener) if listener in listeners else None

    def listen_to_all(self, listener: Listener) -> None:
        """Call a listener on each later event of any resource."""
        self._all_listeners.append(listener)

    def compact(self, version: int | None = None) -> None:
        """Forget the history up to a version (default: all of it)."""
        upto = self.version if version is None else version
        self._floor = max(self._floor, upto)
        for history in self._histories.values():
            history.forget(upto)

    def everything(self) -> Iterator[tuple[str, Object]]:
        """Yield every object with the resource that it is stored under."""
        for storage, objects in self._objects.items():
            for obj in list(objects.values()):
                yield storage, obj

    def _added(self, storage: str, key: Key) -> None:
        keys = self._sorted.get(storage)
        if keys is not None:
            insort(keys, key)

    def _publish(self, event: Event) -> None:
        self.history(event.storage).add(event)
        for listener in tuple(self._listeners.get(event.storage, ())):
            listener(event)
        for listener in self._all_listeners:
            listener(event)


def with_metadata(obj: Object, **changes: Any) -> Object:
    """Return a copy of an object with some metadata fields set (None: removed)."""
    metadata = {**obj["metadata"], **changes}
    return {**obj, "metadata": {name: value for name, value in metadata.items() if value is not None}}
