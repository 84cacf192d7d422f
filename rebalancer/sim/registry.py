"""What a request on an object means: create, read, replace, with the server's rules in the server's order.

What enters: a kind, names, an object as JSON values. What leaves: the stored object, or ApiProblem. Deletion is in
``deletion``, lists and watches in ``listing``, patches in ``patching``, evictions in ``eviction``. No sockets, no clock of
its own: the same rules serve HTTP requests and tests in virtual time.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from rebalancer.sim import admission, preparing, validation
from rebalancer.sim.decoding import read_object
from rebalancer.sim.defaulting import apply_defaults
from rebalancer.sim.history import Object
from rebalancer.sim.identities import Identities
from rebalancer.sim.kinds import Kind
from rebalancer.sim.moments import Clock, stamp
from rebalancer.sim.ownership import track_update
from rebalancer.sim.problems import ApiProblem, already_exists, bad_request, conflict, invalid, invalid_value, not_found
from rebalancer.sim.schema import type_of
from rebalancer.sim.store import Store

_MAY_CREATE_BY_UPDATE = frozenset({"leases.coordination.k8s.io", "events", "endpoints"})
_MUST_NAME_VERSION = frozenset({"leases.coordination.k8s.io", "poddisruptionbudgets.policy"})
_UNTRACKED = frozenset({"leases.coordination.k8s.io", "events"})
_MAX_GENERATED = 58
_META_KEPT = (
    "managedFields",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
)


class Registry:
    """The rules over one store."""

    def __init__(self, store: Store, clock: Clock, identities: Identities) -> None:
        self.store = store
        self.clock = clock
        self.identities = identities

    def now(self) -> str:
        """Return the present moment as Kubernetes writes it."""
        return stamp(self.clock())

    def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """Return an object, which must not be changed. Raises ApiProblem 404."""
        found = self.store.get(kind.storage, namespace if kind.namespaced else "", name)
        if found is None:
            raise not_found(kind, name)
        return found

    def create(self, kind: Kind, namespace: str, value: Any, *, dry_run: bool = False) -> Object:
        """Create an object of JSON values, which are read as the server reads them."""
        obj, _ = read_object(kind, value, b"", "Ignore")
        return self.create_read(kind, namespace, obj, dry_run=dry_run)

    def create_read(
        self,
        kind: Kind,
        namespace: str,
        obj: Object,
        *,
        dry_run: bool = False,
        manager: str = "",
        managed: list[Object] | None = None,
    ) -> Object:
        """Create an object that has been read already; the caller gives it away.

        manager: who sets its fields, empty where that is not noted. managed: its managedFields, where they are known.
        """
        metadata = obj["metadata"]
        self._place(kind, namespace, metadata)
        name = metadata.get("name", "")
        subject = name or metadata.get("generateName", "")
        admission.admit_namespace(self.store, kind, metadata.get("namespace", ""), subject)
        for field in (
            "managedFields",
            "resourceVersion",
            "selfLink",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "generation",
        ):
            if field == "resourceVersion" and metadata.get(field):
                raise ApiProblem(500, "resourceVersion should not be set on objects to be created")
            metadata.pop(field, None)
        metadata["uid"] = self.identities.uid()
        metadata["creationTimestamp"] = self.now()
        if not name and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"][:_MAX_GENERATED] + self.identities.ending()
        apply_defaults(kind.storage, obj)
        admission.admit_create(self.store, kind, obj, subject)
        preparing.for_create(kind, obj)
        problems = validation.create_problems(kind, obj)
        if problems:
            raise invalid(kind.group, kind.kind, metadata.get("name", ""), problems)
        if self.store.get(kind.storage, metadata.get("namespace", ""), metadata["name"]) is not None:
            raise already_exists(kind, metadata["name"])
        if manager and kind.storage not in _UNTRACKED:
            managed = track_update(type_of(kind), None, obj, manager, "", self.now())
        if managed:
            metadata["managedFields"] = managed
        obj = ordered(obj)
        return obj if dry_run else self.store.put(kind.storage, obj)

    def replace(
        self, kind: Kind, namespace: str, name: str, value: Any, *, subresource: str = "", dry_run: bool = False
    ) -> Object:
        """Replace an object, or its status, by JSON values."""
        obj, _ = read_object(kind, value, b"", "Ignore")
        return self.replace_read(kind, namespace, name, obj, subresource=subresource, dry_run=dry_run)[0]

    def replace_read(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        obj: Object,
        *,
        subresource: str = "",
        dry_run: bool = False,
        manager: str = "",
    ) -> tuple[Object, bool]:
        """Replace an object by one that has been read already. Returns it and whether it was created."""
        metadata = obj["metadata"]
        if metadata.get("name") and metadata["name"] != name:
            raise bad_request(f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})")
        metadata.setdefault("name", name)
        self._place(kind, namespace, metadata)
        old = self.store.get(kind.storage, metadata.get("namespace", ""), name)
        if old is None:
            if kind.storage in _MAY_CREATE_BY_UPDATE and not subresource:
                if uid := metadata.get("uid"):  # It was made from an object that is gone: a precondition, as on any update.
                    raise conflict(kind, name, f"Precondition failed: UID in precondition: {uid}, UID in object meta: ")
                metadata.pop("resourceVersion", None)
                return self.create_read(kind, namespace, obj, dry_run=dry_run, manager=manager), True
            raise not_found(kind, name)
        version = metadata.get("resourceVersion", "")
        if not version and kind.storage in _MUST_NAME_VERSION:
            field = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
            raise invalid(kind.group, kind.kind, name, [field])
        return self.update(kind, old, obj, subresource=subresource, dry_run=dry_run, manager=manager), False

    def modify(self, kind: Kind, namespace: str, name: str, change: Callable[[Object], None], *, subresource: str = "") -> Object:
        """Change a copy of the newest object by a function and store it: how the cluster's own parts write."""
        old = self.get(kind, namespace, name)
        obj = copy.deepcopy(old)
        change(obj)
        return self.update(kind, old, obj, subresource=subresource)

    def update(
        self,
        kind: Kind,
        old: Object,
        obj: Object,
        *,
        subresource: str = "",
        dry_run: bool = False,
        manager: str = "",
        managed: list[Object] | None = None,
    ) -> Object:
        """Store a changed object in place of an old one, if the version it was made from is still the newest."""
        metadata = obj["metadata"]
        name = old["metadata"]["name"]
        version = metadata.get("resourceVersion", "")
        if metadata.get("uid") not in {None, "", old["metadata"]["uid"]}:
            why = f"Precondition failed: UID in precondition: {metadata['uid']}, UID in object meta: {old['metadata']['uid']}"
            raise conflict(kind, name, why)
        if version and version != old["metadata"]["resourceVersion"]:
            raise conflict(kind, name)
        for field in _META_KEPT:
            if field in old["metadata"]:
                metadata[field] = old["metadata"][field]
            else:
                metadata.pop(field, None)
        if subresource == "status":
            obj = preparing.for_status_update(kind, obj, old)
        else:
            apply_defaults(kind.storage, obj)
            preparing.for_update(kind, obj, old)
        problems = [] if subresource else validation.update_problems(kind, obj, old)
        if problems:
            raise invalid(kind.group, kind.kind, name, problems)
        obj["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        if managed is not None:
            obj["metadata"]["managedFields"] = managed
        if ordered(obj) == old:
            return old
        if manager and kind.storage not in _UNTRACKED:
            managed = track_update(type_of(kind), old, obj, manager, subresource, self.now())
            obj["metadata"]["managedFields"] = managed
        obj = ordered(obj)
        if dry_run:
            return obj
        if _may_go(obj):
            return self.store.remove(kind.storage, (obj["metadata"].get("namespace", ""), name), obj)
        obj["metadata"] = dict(obj["metadata"])
        return self.store.put(kind.storage, obj)

    def _place(self, kind: Kind, namespace: str, metadata: dict[str, Any]) -> None:
        if not kind.namespaced:
            metadata.pop("namespace", None)
            return
        if metadata.setdefault("namespace", namespace) != namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


_FIRST = ("kind", "apiVersion", "metadata", "spec")
_FIRST_META = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
)


def ordered(obj: Object) -> Object:
    """Return an object with its fields in the server's order, empty maps of its metadata gone."""
    metadata = obj["metadata"]
    kept = {name: metadata[name] for name in _FIRST_META if name in metadata}
    kept |= {name: value for name, value in metadata.items() if name not in kept}
    for name in ("labels", "annotations", "finalizers", "ownerReferences", "managedFields"):
        if name in kept and not kept[name]:
            del kept[name]
    result: Object = {}
    for name in _FIRST:
        if name in obj:
            result[name] = kept if name == "metadata" else obj[name]
    for name, value in obj.items():
        if name not in result and name != "status":
            result[name] = value
    if "status" in obj:
        result["status"] = obj["status"]
    return result


def _may_go(obj: Object) -> bool:
    metadata = obj["metadata"]
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
        and not (obj.get("kind") == "Namespace" and obj.get("spec", {}).get("finalizers"))
    )
