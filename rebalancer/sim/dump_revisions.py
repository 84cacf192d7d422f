"""ControllerRevisions that a dump leaves out: made so that loading a dump rolls nothing.

kubectl's usual lists have no ControllerRevisions. Without them the controllers would take the pods of a StatefulSet or
DaemonSet to be of an older template, and replace them all.
"""

from __future__ import annotations

import copy
from collections import Counter, defaultdict

from rebalancer.sim.controllers.indexes import controller_of
from rebalancer.sim.controllers.pods import owner_reference, template_hash
from rebalancer.sim.controllers.revisions import HASH
from rebalancer.sim.history import Object
from rebalancer.sim.kinds import DAEMON_SET, REVISION, STATEFUL_SET, Kind
from rebalancer.sim.registry import Registry, ordered
from rebalancer.sim.schema import type_of
from rebalancer.sim.zeros import fill


def make_revisions(registry: Registry) -> None:
    """Give each workload without a revision one under the name that its pods carry; pods without one get its name."""
    pods: dict[str, list[Object]] = defaultdict(list)
    for pod in registry.store.objects("pods"):
        controller = controller_of(pod)
        if controller is not None:
            pods[controller[2]].append(pod)
    known = {
        reference["uid"]
        for revision in registry.store.objects(REVISION.storage)
        for reference in revision["metadata"].get("ownerReferences", ())
    }
    for kind in (STATEFUL_SET, DAEMON_SET):
        for owner in registry.store.objects(kind.storage):
            owned = pods.get(owner["metadata"]["uid"], [])
            if owned and owner["metadata"]["uid"] not in known:
                _make(registry, kind, owner, owned)


def _make(registry: Registry, kind: Kind, owner: Object, pods: list[Object]) -> None:
    name, template = owner["metadata"]["name"], owner["spec"]["template"]
    carried = Counter(label for pod in pods if (label := pod["metadata"].get("labels", {}).get(HASH)))
    label, _ = max(carried.items(), key=lambda item: (item[1], item[0])) if carried else ("", 0)
    # A StatefulSet's pods carry the revision's whole name, a DaemonSet's only its hash.
    prefix = f"{name}-" if kind is STATEFUL_SET else ""
    digest = label.removeprefix(prefix) or template_hash(template)
    for pod in pods:
        if not pod["metadata"].get("labels", {}).get(HASH):
            labels = {**pod["metadata"].get("labels", {}), HASH: f"{prefix}{digest}"}
            registry.store.put("pods", {**pod, "metadata": {**pod["metadata"], "labels": labels}})
    revision: Object = {
        "kind": "ControllerRevision",
        "apiVersion": "apps/v1",
        "metadata": {
            "name": f"{name}-{digest}",
            "namespace": owner["metadata"]["namespace"],
            "uid": registry.identities.uid(),
            "creationTimestamp": registry.now(),
            "labels": {**template.get("metadata", {}).get("labels", {}), HASH: digest},
            "ownerReferences": [owner_reference(owner)],
        },
        "data": {"spec": {"template": {**copy.deepcopy(template), "$patch": "replace"}}},
        "revision": 1,
    }
    fill(type_of(REVISION), revision)
    registry.store.put(REVISION.storage, ordered(revision))
