"""Deletion: preconditions, grace, finalizers, what happens to dependents.

Source: k8s.io/apiserver/pkg/registry/rest/delete.go BeforeDelete, kubernetes/kubernetes pkg/registry/core/pod/strategy.go
CheckGracefulDelete, https://kubernetes.io/docs/concepts/architecture/garbage-collection/
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from rebalancer.sim import admission
from rebalancer.sim.history import Object
from rebalancer.sim.kinds import Kind
from rebalancer.sim.moments import moment_of, stamp
from rebalancer.sim.problems import failed_precondition
from rebalancer.sim.registry import Registry, ordered

_RETURNED = frozenset(
    {"pods", "persistentvolumes", "persistentvolumeclaims", "podtemplates", "resourcequotas", "serviceaccounts", "services"}
)


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """What a delete request may say.

    grace_seconds: how long the pod may take, None for its own value. uid, version: preconditions, empty for none.
    propagation: Orphan, Background or Foreground; empty for the default.
    """

    grace_seconds: int | None = None
    uid: str = ""
    version: str = ""
    propagation: str = ""
    dry_run: bool = False

    @classmethod
    def of(cls, body: dict[str, Any]) -> DeleteOptions:
        """Return the options that a DeleteOptions object holds."""
        preconditions = body.get("preconditions") or {}
        propagation = body.get("propagationPolicy") or ""
        if not propagation and body.get("orphanDependents") is not None:
            propagation = "Orphan" if body["orphanDependents"] else "Background"
        return cls(
            grace_seconds=body.get("gracePeriodSeconds"),
            uid=preconditions.get("uid") or "",
            version=preconditions.get("resourceVersion") or "",
            propagation=propagation,
            dry_run="All" in (body.get("dryRun") or ()),
        )


@dataclass(frozen=True, slots=True)
class Deleted:
    """What a delete came to.

    obj: the object in its last form, or as it is while it goes. gone: whether it is gone already.
    """

    obj: Object
    gone: bool

    def body(self, kind: Kind) -> Object:
        """Return the body of the answer: the object, or a Status for kinds that answer so."""
        if not self.gone or kind.storage in _RETURNED:
            return self.obj
        metadata = self.obj["metadata"]
        details: dict[str, Any] = {"name": metadata["name"]}
        if kind.group:
            details["group"] = kind.group
        details |= {"kind": kind.plural, "uid": metadata["uid"]}
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def delete(registry: Registry, kind: Kind, namespace: str, name: str, options: DeleteOptions) -> Deleted:
    """Delete an object, at once or gracefully. Raises ApiProblem."""
    admission.admit_delete(kind, name)
    obj = registry.get(kind, namespace, name)
    check_preconditions(kind, obj, options)
    metadata = obj["metadata"]
    finalizers = _finalizers(metadata, options)
    graceful = kind.storage == "pods"
    if not graceful and not finalizers and not _held(kind, obj):
        return Deleted(_remove(registry, kind, obj, options), gone=True)
    if not graceful:
        if "deletionTimestamp" in metadata and finalizers == metadata.get("finalizers", []):
            return Deleted(obj, gone=False)
        marked = _marked(registry, obj, 0, finalizers)
        return Deleted(_put(registry, kind, marked, options), gone=False)
    return _delete_pod(registry, kind, obj, options, finalizers)


def _delete_pod(registry: Registry, kind: Kind, obj: Object, options: DeleteOptions, finalizers: list[str]) -> Deleted:
    metadata = obj["metadata"]
    if "deletionTimestamp" in metadata:
        held = metadata.get("deletionGracePeriodSeconds")
        grace = options.grace_seconds
        if held is None:
            return Deleted(_remove(registry, kind, obj, options), gone=True)
        if grace is None or grace >= held:
            if held == 0 and not finalizers and grace is not None:
                return Deleted(_remove(registry, kind, obj, options), gone=True)
            return Deleted(obj, gone=False)
        begun = moment_of(metadata["deletionTimestamp"]) - timedelta(seconds=held)
        changed = {
            **metadata,
            "deletionTimestamp": stamp(begun + timedelta(seconds=grace)),
            "deletionGracePeriodSeconds": grace,
        }
        obj = {**obj, "metadata": changed}
    else:
        grace = grace_of(obj, options)
        obj = _marked(registry, obj, grace, finalizers)
    obj = _put(registry, kind, obj, options)
    if obj["metadata"]["deletionGracePeriodSeconds"] or finalizers:
        return Deleted(obj, gone=False)
    return Deleted(_remove(registry, kind, obj, options), gone=True)


def grace_of(pod: Object, options: DeleteOptions) -> int:
    """Return the seconds that a pod is given: none if it is not on a node, or finished."""
    spec = pod["spec"]
    if not spec.get("nodeName") or pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}:
        return 0
    grace = options.grace_seconds
    if grace is None:
        grace = int(spec.get("terminationGracePeriodSeconds", 0))
    return 1 if grace < 0 else grace


def check_preconditions(kind: Kind, obj: Object, options: DeleteOptions) -> None:
    """Raise ApiProblem 409 if the object is not the one that was meant."""
    metadata = obj["metadata"]
    if options.uid and options.uid != metadata["uid"]:
        raise failed_precondition(kind, metadata["name"], "UID", options.uid, metadata["uid"])
    if options.version and options.version != metadata["resourceVersion"]:
        raise failed_precondition(kind, metadata["name"], "ResourceVersion", options.version, metadata["resourceVersion"])


def _finalizers(metadata: dict[str, Any], options: DeleteOptions) -> list[str]:
    kept = list(metadata.get("finalizers", ()))
    if options.propagation == "Foreground" and "foregroundDeletion" not in kept:
        kept.append("foregroundDeletion")
    if options.propagation == "Orphan" and "orphan" not in kept:
        kept.append("orphan")
    return kept


def _held(kind: Kind, obj: Object) -> bool:
    return kind.storage == "namespaces" and bool(obj.get("spec", {}).get("finalizers"))


def _marked(registry: Registry, obj: Object, grace: int, finalizers: list[str]) -> Object:
    metadata = dict(obj["metadata"])
    if "deletionTimestamp" not in metadata:
        metadata["deletionTimestamp"] = stamp(registry.clock() + timedelta(seconds=grace))
        metadata["deletionGracePeriodSeconds"] = grace
        if metadata.get("generation"):
            metadata["generation"] += 1
    if finalizers:
        metadata["finalizers"] = finalizers
    marked = {**obj, "metadata": metadata}
    if obj.get("kind") == "Namespace":
        marked["status"] = {**obj.get("status", {}), "phase": "Terminating"}
    return ordered(marked)


def _put(registry: Registry, kind: Kind, obj: Object, options: DeleteOptions) -> Object:
    if options.dry_run:
        return obj
    return registry.store.put(kind.storage, ordered(obj))


def _remove(registry: Registry, kind: Kind, obj: Object, options: DeleteOptions) -> Object:
    if options.dry_run:
        return obj
    metadata = obj["metadata"]
    return registry.store.remove(kind.storage, (metadata.get("namespace", ""), metadata["name"]), obj)
