"""Builds the embedded cluster's field table (``rebalancer/sim/fields.json``) out of the published OpenAPI schema of Kubernetes.

``python -m tests.sim.field_table`` writes the file anew; a test compares it with the schema of the pinned version.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import kubernetes_validate

from rebalancer.sim import kinds

VERSION = "v1.36.0-local"
TARGET = Path(kinds.__file__).with_name("fields.json")
PREFIXES = (("io.k8s.api.", ""), ("io.k8s.apimachinery.pkg.apis.meta.v1.", "meta.v1."))
SCALARS = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "Quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "IntOrString",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "Time",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "MicroTime",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "object",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "object",
}
EXTRA = ("policy.v1.Eviction", "autoscaling.v1.Scale", "authentication.v1.TokenRequest", "meta.v1.DeleteOptions")


def build() -> dict[str, dict[str, Any]]:
    """Return every type that a served kind reaches: field names, types, and how lists merge."""
    folder = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema" / VERSION
    schemas = json.loads((folder / "_definitions.json").read_text())["$defs"]
    named = {_short(name): schema for name, schema in schemas.items()}
    wanted = [f"{_package(kind.group)}.{kind.version}.{kind.kind}" for kind in kinds.KINDS]
    table: dict[str, dict[str, Any]] = {}
    queue = [*wanted, *EXTRA]
    while queue:
        name = queue.pop()
        if name in table or name not in named:
            continue
        fields = {field: _field(schema) for field, schema in named[name].get("properties", {}).items()}
        queue.extend((entry if isinstance(entry, str) else entry[0]).lstrip("[{") for entry in fields.values())
        table[name] = fields | {"": named[name].get("required", [])}
    return dict(sorted(table.items()))


def _package(group: str) -> str:
    return group.split(".")[0] if group else "core"


def _short(name: str) -> str:
    for long, short in PREFIXES:
        if name.startswith(long):
            return short + name.removeprefix(long)
    return name


def _type(schema: dict[str, Any]) -> str:
    if reference := schema.get("$ref"):
        name = reference.rsplit("/", 1)[1]
        return SCALARS.get(name, _short(name))
    if "allOf" in schema:
        return _type(schema["allOf"][0])
    declared = schema.get("type", "object")
    kind = next(item for item in declared if item != "null") if isinstance(declared, list) else declared
    if kind == "array":
        return "[" + _type(schema["items"])
    if kind == "object" and "additionalProperties" in schema:
        return "{" + _type(schema["additionalProperties"])
    if schema.get("format") == "byte":
        return "bytes"
    return str(schema.get("format", kind)) if kind == "integer" else kind


def _field(schema: dict[str, Any]) -> str | list[Any]:
    merge: dict[str, Any] = {}
    if key := schema.get("x-kubernetes-patch-merge-key"):
        merge["patch"] = key
    elif "merge" in schema.get("x-kubernetes-patch-strategy", ""):
        merge["patch"] = ""
    if "retainKeys" in schema.get("x-kubernetes-patch-strategy", ""):
        merge["retain"] = True
    if kind := schema.get("x-kubernetes-list-type"):
        merge["list"] = kind
    if keys := schema.get("x-kubernetes-list-map-keys"):
        merge["keys"] = keys
    if schema.get("x-kubernetes-map-type") == "atomic":
        merge["map"] = "atomic"
    return [_type(schema), merge] if merge else _type(schema)


def write() -> None:
    """Write the file that the embedded cluster reads."""
    lines = [f"{json.dumps(name)}: {json.dumps(fields)}" for name, fields in build().items()]
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    write()
