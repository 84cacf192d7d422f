"""Everything that decisions rest on, read once: for commands that look at a live cluster and go.

Lists come in pages, each kind from one version. A kind that may be missing and cannot be read becomes a note.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from rebalancer.errors import KubeError, KubeForbidden, KubeUnavailable, WatchExpired
from rebalancer.kube.resources import RESOURCES, Resource
from rebalancer.kube.transport import Query, Transport

_PAGE = 500


async def list_all(
    transport: Transport, resources: Iterable[Resource] = RESOURCES, *, timeout_seconds: float = 30.0
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the objects of all kinds, and notes about kinds that could not be read.

    Raises KubeError where a kind cannot be read without which nothing can be decided.
    """
    objects: list[dict[str, Any]] = []
    notes = []
    for resource in resources:
        try:
            objects += await _list(transport, resource, timeout_seconds)
        except KubeForbidden:
            if resource.required:
                raise
            notes.append(f"not permitted to list {resource.rbac_name}: assumed to be none")
        except KubeError as error:
            if resource.required:
                raise
            notes.append(f"{resource.rbac_name} cannot be listed ({error}): assumed to be none")
    return objects, notes


async def require_lists(
    transport: Transport, resources: Iterable[Resource] = RESOURCES, *, timeout_seconds: float = 30.0
) -> None:
    """Ask for one object of each kind that is required, so that missing permissions are known at once, all of them.

    Raises KubeForbidden that names every resource that may not be listed, KubeError where a kind cannot be listed otherwise.
    """
    refused: list[KubeForbidden] = []
    for resource in resources:
        if resource.required:
            reply = await transport.request("GET", resource.path, query={"limit": 1}, timeout_seconds=timeout_seconds)
            try:
                reply.require("list", resource.rbac_name)
            except KubeForbidden as error:
                refused.append(error)
    if refused:
        raise KubeForbidden("; ".join(map(str, refused)), "list", ", ".join(error.resource for error in refused))


async def _list(transport: Transport, resource: Resource, timeout_seconds: float) -> list[dict[str, Any]]:
    for attempt in range(3):
        try:
            return await _pages(transport, resource, timeout_seconds)
        except WatchExpired:
            # The pages' version was compacted away in the middle: from the start, on a newer one.
            if attempt == 2:
                raise
    return []


async def _pages(transport: Transport, resource: Resource, timeout_seconds: float) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    query: dict[str, str | int] = {"limit": _PAGE}
    while True:
        asked: Query = query
        reply = await transport.request("GET", resource.path, query=asked, timeout_seconds=timeout_seconds)
        reply.require("list", resource.rbac_name)
        try:
            page = orjson.loads(reply.body)
        except ValueError as error:
            raise KubeUnavailable(f"the list of {resource.rbac_name} is not JSON: {error}") from error
        if not isinstance(page, dict) or "items" not in page:
            raise KubeError(f"{transport.access.server} does not answer like an API server: no list of {resource.rbac_name}")
        found += [{**item, "kind": resource.kind} for item in page.get("items") or ()]
        token = (page.get("metadata") or {}).get("continue")
        if not token:
            return found
        query = {"limit": _PAGE, "continue": token}
