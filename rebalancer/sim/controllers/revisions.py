"""ControllerRevisions: the templates that a StatefulSet or DaemonSet has had.

Source: kubernetes/kubernetes pkg/controller/history/controller_history.go
"""

from __future__ import annotations

import copy

from rebalancer.sim.controllers.indexes import Indexes
from rebalancer.sim.controllers.pods import owner_reference, template_hash
from rebalancer.sim.deletion import DeleteOptions, delete
from rebalancer.sim.history import Object
from rebalancer.sim.kinds import REVISION
from rebalancer.sim.registry import Registry

HASH = "controller-revision-hash"


class Revisions:
    """Finds and makes the revisions of workloads."""

    def __init__(self, registry: Registry, indexes: Indexes) -> None:
        self._registry = registry
        self._indexes = indexes
        self._current: dict[str, str] = {}

    def of(self, owner: Object) -> tuple[Object, Object]:
        """Return the revision of an owner's present template, and the one that it comes from."""
        known = sorted(self._indexes.revisions_by_owner.get(owner["metadata"]["uid"]), key=lambda one: one["revision"])
        template = owner["spec"]["template"]
        update = next((one for one in known if one["data"]["spec"]["template"] == _marked(template)), None)
        highest = known[-1]["revision"] if known else 0
        if update is None:
            update = self._make(owner, template, highest + 1)
        elif update["revision"] < highest:
            changed = {**update, "metadata": dict(update["metadata"]), "revision": highest + 1}
            update = self._registry.store.put(REVISION.storage, changed)
        wanted = self._current.get(owner["metadata"]["uid"]) or owner.get("status", {}).get("currentRevision")
        current = next((one for one in known if one["metadata"]["name"] == wanted), update)
        return update, current

    def settle(self, owner: Object, revision: Object) -> None:
        """Remember that every pod of an owner is of a revision, and forget the oldest beyond the limit."""
        self._current[owner["metadata"]["uid"]] = revision["metadata"]["name"]
        known = sorted(self._indexes.revisions_by_owner.get(owner["metadata"]["uid"]), key=lambda one: one["revision"])
        old = [one for one in known if one["metadata"]["name"] != revision["metadata"]["name"]]
        for one in old[: max(0, len(old) - owner["spec"].get("revisionHistoryLimit", 10))]:
            delete(self._registry, REVISION, one["metadata"]["namespace"], one["metadata"]["name"], DeleteOptions())

    def _make(self, owner: Object, template: Object, number: int) -> Object:
        metadata = owner["metadata"]
        digest = template_hash(template)
        revision = {
            "kind": "ControllerRevision",
            "apiVersion": "apps/v1",
            "metadata": {
                "name": f"{metadata['name']}-{digest}",
                "labels": {**template.get("metadata", {}).get("labels", {}), HASH: digest},
                "annotations": {
                    name: value
                    for name, value in metadata.get("annotations", {}).items()
                    if name != "kubectl.kubernetes.io/last-applied-configuration"
                },
                "ownerReferences": [owner_reference(owner)],
            },
            "data": {"spec": {"template": _marked(template)}},
            "revision": number,
        }
        return self._registry.create_read(REVISION, metadata["namespace"], revision)


def _marked(template: Object) -> Object:
    return {**copy.deepcopy(template), "$patch": "replace"}
