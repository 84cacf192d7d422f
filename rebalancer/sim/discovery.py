"""What the API server says about itself: groups, versions, resources, aggregated discovery.

Source: https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from rebalancer.sim.kinds import GROUP_VERSIONS, KINDS, SUBRESOURCES, Kind

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
VERSION = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.2",
    "gitCommit": "$Format:%H$",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "go1.26.6",
    "compiler": "gc",
    "platform": "linux/amd64",
}


def core_versions(address: str) -> dict[str, Any]:
    """Return the body of ``/api``."""
    served = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": served}


def groups() -> list[dict[str, Any]]:
    """Return the named groups."""
    return [_group(group, version) for group, version in GROUP_VERSIONS if group]


def group_list() -> dict[str, Any]:
    """Return the body of ``/apis``."""
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups()}


def group_named(name: str) -> dict[str, Any] | None:
    """Return the body of ``/apis/<group>``, or None."""
    found = next((group for group in groups() if group["name"] == name), None)
    return None if found is None else {"kind": "APIGroup", "apiVersion": "v1", **found}


def _group(group: str, version: str) -> dict[str, Any]:
    served = {"groupVersion": f"{group}/{version}", "version": version}
    return {"name": group, "versions": [served], "preferredVersion": dict(served)}


def resource_list(group: str, version: str) -> dict[str, Any] | None:
    """Return the body of ``/api/v1`` or ``/apis/<group>/<version>``, or None."""
    if (group, version) not in GROUP_VERSIONS:
        return None
    resources: list[dict[str, Any]] = []
    for kind in _kinds(group, version):
        resources.append(_resource(kind))
        resources.extend(_subresource(kind, name) for name in kind.subresources)
    name = f"{group}/{version}" if group else version
    head = {"kind": "APIResourceList"} | ({"apiVersion": "v1"} if group else {})
    return {**head, "groupVersion": name, "resources": resources}


def _kinds(group: str, version: str) -> list[Kind]:
    return [kind for kind in KINDS if (kind.group, kind.version) == (group, version)]


def _resource(kind: Kind) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        described["shortNames"] = list(kind.short_names)
    if kind.categories:
        described["categories"] = list(kind.categories)
    if "watch" in kind.verbs:
        described["storageVersionHash"] = _storage_hash(kind)
    return described


def _storage_hash(kind: Kind) -> str:
    stored_group = "" if kind.stored_as == "events" else kind.group
    name = f"{stored_group}/{kind.version}/{kind.kind}"
    return base64.b64encode(hashlib.sha256(name.encode()).digest()[:8]).decode()


def _subresource(kind: Kind, name: str) -> dict[str, Any]:
    served = SUBRESOURCES[name]
    described: dict[str, Any] = {"name": f"{kind.plural}/{name}", "singularName": "", "namespaced": kind.namespaced}
    if served.group:
        described |= {"group": served.group, "version": served.version}
    return {**described, "kind": served.kind or kind.kind, "verbs": list(served.verbs)}


def aggregated(core: bool) -> dict[str, Any]:
    """Return the body of ``/api`` (core) or ``/apis`` for a client that asks for aggregated discovery."""
    wanted = [pair for pair in GROUP_VERSIONS if bool(pair[0]) is not core]
    items = [
        {
            "metadata": {"name": group} if group else {},
            "versions": [
                {
                    "version": version,
                    "resources": [_aggregated_resource(kind) for kind in _kinds(group, version)],
                    "freshness": "Current",
                }
            ],
        }
        for group, version in wanted
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _aggregated_resource(kind: Kind) -> dict[str, Any]:
    described: dict[str, Any] = {
        "resource": kind.plural,
        "responseKind": {"group": "", "version": "", "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        described["shortNames"] = list(kind.short_names)
    if kind.categories:
        described["categories"] = list(kind.categories)
    if kind.subresources:
        described["subresources"] = [
            {
                "subresource": name,
                "responseKind": {
                    "group": SUBRESOURCES[name].group,
                    "version": SUBRESOURCES[name].version,
                    "kind": SUBRESOURCES[name].kind or kind.kind,
                },
                "verbs": list(SUBRESOURCES[name].verbs),
            }
            for name in kind.subresources
        ]
    return described
