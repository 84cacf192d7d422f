"""From method and path to what is asked: verb, kind, namespace, name, subresource.

Source: k8s.io/apiserver/pkg/endpoints/request/requestinfo.go
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rebalancer.sim.kinds import BY_PATH, GROUP_VERSIONS, Kind

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class Route:
    """What a request is about.

    verb: as RBAC names it. kind: None for a path that is no resource, or none that is served.
    group, version, plural: the names in the path, empty for other paths.
    namespace: None for cluster-wide requests and for lists over all namespaces.
    served: whether the group and version exist here.
    """

    verb: str
    path: str
    group: str = ""
    version: str = ""
    plural: str = ""
    namespace: str | None = None
    name: str = ""
    subresource: str = ""
    kind: Kind | None = None
    served: bool = False

    @property
    def resource_path(self) -> bool:
        """Whether the path is one of a resource."""
        return bool(self.plural)


def route(method: str, path: str, query: Mapping[str, str]) -> Route:
    """Return what a request is about."""
    parts = [part for part in path.split("/") if part]
    verb = _VERBS.get(method, method.lower())
    if len(parts) >= 3 and parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif len(parts) >= 4 and parts[0] == "apis":
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return Route(method.lower(), path)
    namespace: str | None = None
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in {"status", "finalize"}:
        namespace, rest = rest[1], rest[2:]
    elif rest[0] == "namespaces" and len(rest) >= 2:
        namespace = rest[1]
    plural = rest[0]
    name = rest[1] if len(rest) > 1 else ""
    subresource = "/".join(rest[2:])
    if not name:
        if verb == "get":
            watching = query.get("watch", "") in {"1", "true", "True", "TRUE", "t", "T"}
            verb = "watch" if watching else "list"
        elif verb == "delete":
            verb = "deletecollection"
    kind = BY_PATH.get((group, version, plural))
    return Route(
        verb=verb,
        path=path,
        group=group,
        version=version,
        plural=plural,
        namespace=namespace,
        name=name,
        subresource=subresource,
        kind=kind,
        served=(group, version) in GROUP_VERSIONS,
    )
