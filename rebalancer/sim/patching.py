"""Patch requests: the patch is applied to the newest object, the result is read like any other body and stored.

Source: k8s.io/apiserver/pkg/endpoints/handlers/patch.go
"""

from __future__ import annotations

from typing import Any

from rebalancer.sim import merging
from rebalancer.sim.decoding import json_complaint, read_object
from rebalancer.sim.history import Object
from rebalancer.sim.kinds import Kind
from rebalancer.sim.problems import bad_request, unsupported_media_type
from rebalancer.sim.registry import Registry
from rebalancer.sim.schema import type_of

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_YAML = "application/apply-patch+yaml"
MEDIA_TYPES = frozenset({JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_YAML})


def check_media_type(media_type: str) -> None:
    """Raise ApiProblem 415 for a patch of no known type."""
    if media_type not in MEDIA_TYPES:
        raise unsupported_media_type()


def patched(document: Any, patch: Any, media_type: str, type_name: str) -> Any:
    """Return a document changed by a patch of one of the three types."""
    if media_type == JSON_PATCH:
        return merging.json_patch(document, patch)
    if not isinstance(patch, dict):
        raise bad_request(
            json_complaint(b"[")
            if patch is None
            else "json: cannot unmarshal array into Go value of type map[string]interface {}"
        )
    if media_type == MERGE_PATCH:
        return merging.merge_patch(document, patch)
    return merging.strategic_merge(document, patch, type_name)


def patch_object(
    registry: Registry,
    kind: Kind,
    namespace: str,
    name: str,
    patch: Any,
    media_type: str = MERGE_PATCH,
    *,
    subresource: str = "",
    dry_run: bool = False,
    strictness: str = "Warn",
    manager: str = "",
) -> tuple[Object, list[str]]:
    """Patch an object, or its status; return it and the warnings."""
    check_media_type(media_type)
    old = registry.get(kind, namespace, name)
    changed = patched(old, patch, media_type, type_of(kind))
    obj, warnings = read_object(kind, changed, b"", strictness)
    if obj["metadata"].get("name") != name:
        raise bad_request(
            f"the name of the object ({obj['metadata'].get('name', '')}) does not match the name on the URL ({name})"
        )
    return registry.update(kind, old, obj, subresource=subresource, dry_run=dry_run, manager=manager), warnings
