"""What controllers know about pods: which count, which are ready, how one is made from a template, which goes first.

Source: kubernetes/kubernetes pkg/controller/controller_utils.go
"""

from __future__ import annotations

import copy
import hashlib
from datetime import datetime
from typing import Any

import orjson

from rebalancer.sim.history import Object
from rebalancer.sim.kinds import POD, Kind
from rebalancer.sim.moments import moment_of
from rebalancer.sim.registry import Registry

_LETTERS = "bcdf2456789ghjklmnpqrstvwxz"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def is_finished(pod: Object) -> bool:
    """Say whether a pod has ended for good."""
    return pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}


def is_active(pod: Object) -> bool:
    """Say whether a pod counts: neither finished nor on its way out."""
    return "deletionTimestamp" not in pod["metadata"] and not is_finished(pod)


def condition(obj: Object, kind: str) -> dict[str, Any] | None:
    """Return a condition of an object, or None."""
    found: dict[str, Any] | None = next((c for c in obj.get("status", {}).get("conditions", ()) if c["type"] == kind), None)
    return found


def is_ready(pod: Object) -> bool:
    """Say whether a pod's Ready condition is True."""
    found = condition(pod, "Ready")
    return found is not None and found.get("status") == "True"


def available_in(pod: Object, min_ready_seconds: int, now: datetime) -> float | None:
    """Return the seconds until a pod counts as available: 0 if it does, None while it is not ready."""
    found = condition(pod, "Ready")
    if found is None or found.get("status") != "True":
        return None
    if not min_ready_seconds or not found.get("lastTransitionTime"):
        return 0.0
    ready_for = (now - moment_of(found["lastTransitionTime"])).total_seconds()
    return max(0.0, min_ready_seconds - ready_for)


def owner_reference(owner: Object) -> dict[str, Any]:
    """Return the reference that a controller puts on what it creates."""
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def create_pod(
    registry: Registry,
    owner: Object,
    template: Object,
    *,
    name: str = "",
    labels: dict[str, str] | None = None,
    spec: dict[str, Any] | None = None,
) -> Object:
    """Create a pod from an owner's template, with more labels or other parts of the spec."""
    described = template.get("metadata", {})
    metadata: dict[str, Any] = {"name": name} if name else {"generateName": owner["metadata"]["name"][:52] + "-"}
    metadata["namespace"] = owner["metadata"]["namespace"]
    metadata["labels"] = {**described.get("labels", {}), **(labels or {})}
    metadata["annotations"] = dict(described.get("annotations", {}))
    metadata["finalizers"] = list(described.get("finalizers", ()))
    metadata["ownerReferences"] = [owner_reference(owner)]
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": {**copy.deepcopy(template["spec"]), **(spec or {})}}
    return registry.create_read(POD, owner["metadata"]["namespace"], pod)


def template_hash(template: Object, collisions: int = 0) -> str:
    """Return the short hash that names a revision of a template."""
    digest = hashlib.sha256(orjson.dumps([template, collisions], option=orjson.OPT_SORT_KEYS)).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:10])


def deletion_rank(pod: Object, doubles: int) -> tuple[Any, ...]:
    """Return the sort key by which pods go first when there are too many.

    doubles: how many pods of the same owner are on the pod's node.
    Source: ActivePodsWithRanks.
    """
    metadata = pod["metadata"]
    phase = {"Pending": 0, "Unknown": 1, "Running": 2}.get(pod.get("status", {}).get("phase", ""), 1)
    ready = condition(pod, "Ready") or {}
    statuses = pod.get("status", {}).get("containerStatuses", ())
    restarts = max((status.get("restartCount", 0) for status in statuses), default=0)
    return (
        bool(pod["spec"].get("nodeName")),
        phase,
        ready.get("status") == "True",
        int(metadata.get("annotations", {}).get(_DELETION_COST, 0)),
        -doubles,
        _youth(ready.get("lastTransitionTime")),
        -restarts,
        _youth(metadata.get("creationTimestamp")),
        metadata["name"],
    )


def _youth(text: str | None) -> float:
    return -moment_of(text).timestamp() if text else 0.0


def write_status(registry: Registry, kind: Kind, obj: Object, status: dict[str, Any]) -> Object:
    """Store a new status if it says anything new."""
    kept = {name: value for name, value in status.items() if value is not None}
    if kept == obj.get("status", {}):
        return obj
    return registry.store.put(kind.storage, {**obj, "metadata": dict(obj["metadata"]), "status": kept})


def put_spec(registry: Registry, kind: Kind, obj: Object, **changes: Any) -> Object:
    """Store an object with some fields of its spec changed, by the rules."""
    changed = {**obj, "metadata": dict(obj["metadata"]), "spec": {**obj["spec"], **changes}}
    return registry.update(kind, obj, changed)
