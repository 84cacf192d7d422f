"""What the API server can do: its version, evictions, and the kinds that are watched."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from rebalancer.errors import KubeUnavailable
from rebalancer.kube.resources import RESOURCES, Resource
from rebalancer.kube.transport import Transport


class _Resource(msgspec.Struct, frozen=True):
    name: str = ""
    kind: str = ""
    group: str = ""
    version: str = ""


class _Resources(msgspec.Struct, frozen=True):
    resources: list[_Resource] | None = None


class _Version(msgspec.Struct, frozen=True):
    gitVersion: str = ""  # noqa: N815 (the API's own name)


_RESOURCES = msgspec.json.Decoder(_Resources)
_VERSION = msgspec.json.Decoder(_Version)


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a server can do.

    version: ``v1.36.2``. evicts: ``pods/eviction`` of policy/v1 is there. events: events.k8s.io/v1 is there.
    missing: kinds that it does not serve.
    """

    version: str
    evicts: bool
    events: bool
    missing: frozenset[str]


async def discover(transport: Transport, *, timeout_seconds: float, resources: Iterable[Resource] = RESOURCES) -> Abilities:
    """Ask what the server can do. Raises KubeError where it cannot be asked."""
    resources = tuple(resources)
    reply = await transport.request("GET", "/version", timeout_seconds=timeout_seconds)
    reply.require("get", "/version")
    try:
        version = _VERSION.decode(reply.body).gitVersion
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise KubeUnavailable(f"{transport.access.server} does not answer like an API server: {error}") from error
    known: dict[tuple[str, str], list[_Resource]] = {}
    for group, number in dict.fromkeys(
        [("", "v1"), ("events.k8s.io", "v1"), *((each.group, each.version) for each in resources)]
    ):
        known[group, number] = await _served(transport, group, number, timeout_seconds)
    missing = frozenset(
        each.kind for each in resources if not any(found.name == each.plural for found in known[each.group, each.version])
    )
    return Abilities(
        version=version,
        evicts=any(
            found.name == "pods/eviction" and found.kind == "Eviction" and found.group == "policy" and found.version == "v1"
            for found in known["", "v1"]
        ),
        events=any(found.name == "events" for found in known["events.k8s.io", "v1"]),
        missing=missing,
    )


async def _served(transport: Transport, group: str, version: str, timeout_seconds: float) -> list[_Resource]:
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    reply = await transport.request("GET", path, timeout_seconds=timeout_seconds)
    if reply.status == 404:
        return []
    reply.require("get", path)
    try:
        return _RESOURCES.decode(reply.body).resources or []
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise KubeUnavailable(f"{path} cannot be read: {error}") from error
