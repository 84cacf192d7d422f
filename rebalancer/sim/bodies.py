"""Bodies of requests: objects, patches, delete options."""

from __future__ import annotations

from typing import Any

import yaml

from rebalancer.sim import protobuf
from rebalancer.sim.decoding import json_complaint, parse
from rebalancer.sim.deletion import DeleteOptions
from rebalancer.sim.problems import ApiProblem, bad_request, unsupported_media_type
from rebalancer.sim.requests import Request


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads times as texts, as the API server does."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def body_of(request: Request, wanted: str) -> Any:
    """Return the JSON value of a body in JSON or protobuf. Raises ApiProblem."""
    media = request.content_type.partition(";")[0].strip() or "application/json"
    if media == protobuf.MEDIA_TYPE:
        return protobuf.decode(request.body)
    if media == "application/yaml":
        return yaml.load(request.body, _Loader)
    if media not in {"application/json", "*/*"}:
        raise unsupported_media_type()
    return parse(request.body, wanted)


def intent_of(request: Request) -> Any:
    """Return the value of an apply patch, which is YAML. Raises ApiProblem."""
    try:
        return yaml.load(request.body, _Loader)
    except yaml.YAMLError as problem:
        raise bad_request(f"error decoding YAML: {problem}") from None


def patch_of(request: Request) -> Any:
    """Return the JSON value of a patch. Raises ApiProblem."""
    try:
        return parse(request.body, "")
    except ApiProblem:
        raise bad_request(f"error decoding patch: {json_complaint(request.body)}") from None


def delete_options(request: Request) -> DeleteOptions:
    """Return what a delete request says, in its body or its query."""
    body: dict[str, Any] = {}
    if request.body:
        body = dict(body_of(request, "DeleteOptions") or {})
    if "gracePeriodSeconds" in request.query and body.get("gracePeriodSeconds") is None:
        body["gracePeriodSeconds"] = int(request.query["gracePeriodSeconds"])
    if "propagationPolicy" in request.query and not body.get("propagationPolicy"):
        body["propagationPolicy"] = request.query["propagationPolicy"]
    if request.dry_run:
        body["dryRun"] = ["All"]
    return DeleteOptions.of(body)
