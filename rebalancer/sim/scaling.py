"""The scale subresource: one number of a workload, seen as an autoscaling/v1 Scale.

Source: kubernetes/kubernetes pkg/registry/apps/*/storage.
"""

from __future__ import annotations

from typing import Any

from rebalancer.parse.selector_text import text_of_selector
from rebalancer.sim.history import Object
from rebalancer.sim.kinds import Kind
from rebalancer.sim.patching import MERGE_PATCH, patched
from rebalancer.sim.problems import conflict, invalid, invalid_value
from rebalancer.sim.registry import Registry
from rebalancer.sim.selecting import owned_selector


def scale_of(obj: Object) -> Object:
    """Return the Scale of a workload."""
    metadata = obj["metadata"]
    names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: dict[str, Any] = {"replicas": obj.get("status", {}).get("replicas", 0)}
    document = obj["spec"].get("selector")
    if obj.get("kind") == "ReplicationController":
        text = ",".join(f"{key}={value}" for key, value in sorted((document or {}).items()))
    else:
        selector = owned_selector(document)
        text = text_of_selector(selector) if selector else ""
    if text:
        status["selector"] = text
    replicas = obj["spec"].get("replicas", 0)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in names if name in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def set_scale(
    registry: Registry,
    kind: Kind,
    namespace: str,
    name: str,
    scale: Any,
    *,
    dry_run: bool = False,
    manager: str = "",
) -> Object:
    """Set the replicas of a workload from a Scale and return the new Scale."""
    old = registry.get(kind, namespace, name)
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if replicas < 0:
        problem = invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid("autoscaling", "Scale", name, [problem])
    version = (scale.get("metadata") or {}).get("resourceVersion")
    if version and version != old["metadata"]["resourceVersion"]:
        raise conflict(kind, name)
    new = {**old, "metadata": dict(old["metadata"]), "spec": {**old["spec"], "replicas": replicas}}
    return scale_of(registry.update(kind, old, new, dry_run=dry_run, manager=manager))


def patch_scale(
    registry: Registry,
    kind: Kind,
    namespace: str,
    name: str,
    patch: Any,
    media_type: str = MERGE_PATCH,
    *,
    dry_run: bool = False,
    manager: str = "",
) -> Object:
    """Patch the Scale of a workload and return the new Scale."""
    changed = patched(scale_of(registry.get(kind, namespace, name)), patch, media_type, "autoscaling.v1.Scale")
    return set_scale(registry, kind, namespace, name, changed, dry_run=dry_run, manager=manager)
