"""Bodies of requests: objects, patches, delete options."""

from __future__ import annotations

from typing import Any

import yaml

from rebalancer.sim import protobuf
from rebalancer.sim.decoding import parse
from rebalancer.sim.deletion import DeleteOptions
from rebalancer.sim.problems import ApiProblem, bad_request, unsupported_media_type
from rebalancer.sim.requests import Request


def body_of(request: Request, wanted: str) -> Any:
    """Return the JSON value of a body in JSON or protobuf. Raises ApiProblem."""
    media = request.content_type.partition(";")[0].strip() or "application/json"
    if media == protobuf.MEDIA_TYPE:
        return protobuf.decode(request.body)
    if media == "application/yaml":
        return yaml.safe_load(request.body)
    if media not in {"application/json", "*/*"}:
        raise unsupported_media_type()
    return parse(request.body, wanted)


def intent_of(request: Request) -> Any:
    """Return the value of an apply patch, which is YAML. Raises ApiProblem."""
    try:
        return yaml.safe_load(request.body)
    except yaml.YAMLError as problem:
        raise bad_request(f"error decoding YAML: {problem}") from None


def patch_of(request: Request) -> Any:
    """Return the JSON value of a patch. Raises ApiProblem."""
    try:
        return parse(request.body, "")
    except ApiProblem:
        raise bad_request("error decoding patch: invalid JSON document") from None


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
