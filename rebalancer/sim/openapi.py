"""The OpenAPI v3 documents that kubectl reads for ``explain``, ``apply`` and to learn which options are understood.

They are built from the field table; the words that describe a type are our own.
Source of the form: https://kubernetes.io/docs/concepts/overview/kubernetes-api/#openapi-v3
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

import orjson

from rebalancer.sim.kinds import GROUP_VERSIONS, KINDS, SUBRESOURCES, Kind
from rebalancer.sim.schema import Field, fields_of, type_of

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_API = "io.k8s.api."
_SCALARS: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "boolean": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "integer": {"type": "integer"},
    "number": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
    "object": {"type": "object"},
}
_SPECIAL = {
    "Quantity": "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "IntOrString": "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    "Time": _META + "Time",
    "MicroTime": _META + "MicroTime",
}
_SPECIAL_SCHEMAS: dict[str, dict[str, Any]] = {
    _SPECIAL["Quantity"]: {"oneOf": [{"type": "string"}, {"type": "number"}], "description": "An amount of a resource."},
    _SPECIAL["IntOrString"]: {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    _SPECIAL["Time"]: {"type": "string", "format": "date-time"},
    _SPECIAL["MicroTime"]: {"type": "string", "format": "date-time"},
}
_QUERY = ("dryRun", "fieldManager", "fieldValidation", "force", "pretty")


def long_name(type_name: str) -> str:
    """Return the full name of a type of the field table."""
    if type_name.startswith("meta.v1."):
        return _META + type_name.removeprefix("meta.v1.")
    return type_name if type_name.startswith("io.k8s.") else _API + type_name


def _path_of(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


@cache
def index() -> bytes:
    """Return the body of ``/openapi/v3``."""
    paths = {}
    for group, version in GROUP_VERSIONS:
        path = _path_of(group, version)
        digest = hashlib.sha256(document(path) or b"").hexdigest()[:32].upper()
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
    return orjson.dumps({"paths": paths})


@cache
def document(path: str) -> bytes | None:
    """Return the body of ``/openapi/v3/<path>``, or None."""
    found = next(((g, v) for g, v in GROUP_VERSIONS if _path_of(g, v) == path), None)
    if found is None:
        return None
    kinds = [kind for kind in KINDS if (kind.group, kind.version) == found]
    schemas: dict[str, Any] = dict(_SPECIAL_SCHEMAS)
    queue = [type_of(kind) for kind in kinds] + ["meta.v1.DeleteOptions"]
    named = {type_of(kind): kind for kind in kinds}
    while queue:
        type_name = queue.pop()
        full = long_name(type_name)
        if full in schemas:
            continue
        schemas[full], needed = _schema(type_name, named.get(type_name))
        queue.extend(needed)
    for kind in kinds:
        if not kind.asked_only:
            schemas[long_name(type_of(kind)) + "List"] = _list_schema(kind)
    body = {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.2"},
        "paths": _paths(kinds, path),
        "components": {"schemas": schemas},
    }
    return orjson.dumps(body)


def _schema(type_name: str, kind: Kind | None) -> tuple[dict[str, Any], list[str]]:
    known = fields_of(type_name)
    short = type_name.rsplit(".", 1)[-1]
    described: dict[str, Any] = {"type": "object", "description": f"{short} of Kubernetes {type_name.rpartition('.')[0]}."}
    if known is None:
        return described, []
    needed: list[str] = []
    described["properties"] = {name: _property(name, field, needed) for name, field in known.items()}
    required = [name for name, field in known.items() if field.required]
    if required:
        described["required"] = required
    if kind is not None:
        described["x-kubernetes-group-version-kind"] = [_gvk(kind)]
    return described, needed


def _property(name: str, field: Field, needed: list[str]) -> dict[str, Any]:
    described = {"description": f"The field {name}.", **_typed(field.type, needed)}
    merge = field.merge
    if merge.kind == "atomic" and field.type[0] != "[":
        described["x-kubernetes-map-type"] = "atomic"
    elif merge.kind:
        described["x-kubernetes-list-type"] = merge.kind
    if merge.keys:
        described["x-kubernetes-list-map-keys"] = list(merge.keys)
    strategies = [word for word, holds in (("merge", merge.key is not None), ("retainKeys", merge.retain_keys)) if holds]
    if strategies:
        described["x-kubernetes-patch-strategy"] = ",".join(strategies)
    if merge.key:
        described["x-kubernetes-patch-merge-key"] = merge.key
    return described


def _typed(kind: str, needed: list[str]) -> dict[str, Any]:
    if kind[0] == "[":
        return {"type": "array", "items": _typed(kind[1:], needed)}
    if kind[0] == "{":
        return {"type": "object", "additionalProperties": _typed(kind[1:], needed)}
    if kind in _SCALARS:
        return dict(_SCALARS[kind])
    if kind in _SPECIAL:
        return {"allOf": [{"$ref": f"#/components/schemas/{_SPECIAL[kind]}"}]}
    needed.append(kind)
    return {"allOf": [{"$ref": f"#/components/schemas/{long_name(kind)}"}]}


def _list_schema(kind: Kind) -> dict[str, Any]:
    reference = {"$ref": f"#/components/schemas/{long_name(type_of(kind))}"}
    fields = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "items": {"type": "array", "items": {"allOf": [reference]}},
    }
    gvk = {**_gvk(kind), "kind": f"{kind.kind}List"}
    return {"type": "object", "properties": fields, "required": ["items"], "x-kubernetes-group-version-kind": [gvk]}


def _gvk(kind: Kind) -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _paths(kinds: list[Kind], path: str) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    query = [{"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}} for name in _QUERY]
    for kind in kinds:
        space = "namespaces/{namespace}/" if kind.namespaced else ""
        base = f"/{path}/{space}{kind.plural}"
        gvk = _gvk(kind)
        one = {"x-kubernetes-group-version-kind": gvk, "parameters": query, "responses": {"200": {"description": "OK"}}}
        paths[base] = {"get": {**one, "x-kubernetes-action": "list"}, "post": {**one, "x-kubernetes-action": "post"}}
        if kind.asked_only:
            del paths[base]["get"]
            continue
        operations = {"get": "get", "put": "put", "patch": "patch", "delete": "delete"}
        paths[base + "/{name}"] = {method: {**one, "x-kubernetes-action": action} for method, action in operations.items()}
        for name in kind.subresources:
            served = SUBRESOURCES[name]
            other = {"group": served.group, "version": served.version, "kind": served.kind} if served.kind else gvk
            verbs = {"get": "get", "update": "put", "patch": "patch", "create": "post"}
            paths[f"{base}/{{name}}/{name}"] = {
                verbs[verb]: {**one, "x-kubernetes-group-version-kind": other} for verb in served.verbs
            }
    return paths
