"""Refusals of the API server as values that can be raised: an HTTP code, a Status body, headers.

Source of the shapes: k8s.io/apimachinery/pkg/api/errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from rebalancer.errors import RebalancerError

if TYPE_CHECKING:
    from rebalancer.sim.kinds import Kind


class ApiProblem(RebalancerError):
    """A request was refused.

    code: the HTTP status.
    status: the Status object of the body.
    retry_after_seconds: the Retry-After header, None where there is none.
    """

    def __init__(
        self,
        code: int,
        message: str,
        reason: str = "",
        details: dict[str, Any] | None = None,
        *,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.retry_after_seconds: int | None = (details or {}).get("retryAfterSeconds")
        self.status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": metadata or {}}
        self.status |= {"status": "Failure", "message": message}
        if reason:
            self.status["reason"] = reason
        if details is not None:
            self.status["details"] = details
        self.status["code"] = code


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One field that validation refuses.

    reason: FieldValueInvalid, FieldValueRequired, FieldValueForbidden, FieldValueNotSupported, FieldValueDuplicate …
    """

    reason: str
    field: str
    message: str


def required(field: str, detail: str = "") -> FieldProblem:
    """A field that must be there is not."""
    return FieldProblem("FieldValueRequired", field, f"Required value: {detail}" if detail else "Required value")


def invalid_value(field: str, value: Any, detail: str) -> FieldProblem:
    """A field holds what it must not."""
    return FieldProblem("FieldValueInvalid", field, f"Invalid value: {_shown(value)}: {detail}")


def not_supported(field: str, value: Any, allowed: Sequence[str]) -> FieldProblem:
    """A field holds none of the values it may hold."""
    names = ", ".join(f'"{name}"' for name in allowed)
    return FieldProblem("FieldValueNotSupported", field, f"Unsupported value: {_shown(value)}: supported values: {names}")


def forbidden_field(field: str, detail: str) -> FieldProblem:
    """A field may not be set, or not be changed."""
    return FieldProblem("FieldValueForbidden", field, f"Forbidden: {detail}")


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if value is None or isinstance(value, dict | list):
        return orjson.dumps(value).decode()
    return str(value)


def bad_request(message: str) -> ApiProblem:
    """400."""
    return ApiProblem(400, message, "BadRequest")


def unauthorized() -> ApiProblem:
    """401."""
    return ApiProblem(401, "Unauthorized", "Unauthorized")


def not_found(kind: Kind, name: str) -> ApiProblem:
    """404 for an object that is not there."""
    return ApiProblem(404, f'{kind.resource} "{name}" not found', "NotFound", _details(kind, name))


def no_such_resource() -> ApiProblem:
    """404 for a path that is not served within a group that is."""
    return ApiProblem(404, "the server could not find the requested resource", "NotFound", {})


def already_exists(kind: Kind, name: str) -> ApiProblem:
    """409 on create."""
    return ApiProblem(409, f'{kind.resource} "{name}" already exists', "AlreadyExists", _details(kind, name))


def conflict(kind: Kind, name: str, why: str | None = None) -> ApiProblem:
    """409 because another write came first."""
    why = why or "the object has been modified; please apply your changes to the latest version and try again"
    message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
    return ApiProblem(409, message, "Conflict", _details(kind, name))


def failed_precondition(kind: Kind, name: str, what: str, wanted: str, found: str) -> ApiProblem:
    """409 because a UID or version precondition does not hold; here the server names the kind, not the resource."""
    ending = "The object might have been deleted and then recreated" if what == "UID" else "The object might have been modified"
    named = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    message = (
        f'Operation cannot be fulfilled on {named} "{name}": the {what} in the precondition ({wanted}) '
        f"does not match the {what} in record ({found}). {ending}"
    )
    details = {"name": name, "group": kind.group, "kind": kind.kind} if kind.group else {"name": name, "kind": kind.kind}
    return ApiProblem(409, message, "Conflict", details)


def invalid(group: str, kind: str, name: str, problems: Sequence[FieldProblem]) -> ApiProblem:
    """422: every field that validation refuses."""
    texts = [f"{problem.field}: {problem.message}" for problem in problems]
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    named = f"{kind}.{group}" if group else kind
    details: dict[str, Any] = {"name": name} if name else {}
    if group:
        details["group"] = group
    details["kind"] = kind
    details["causes"] = [{"reason": problem.reason, "message": problem.message, "field": problem.field} for problem in problems]
    return ApiProblem(422, f'{named} "{name}" is invalid: {joined}', "Invalid", details)


def forbidden(group: str, resource: str, name: str, why: str) -> ApiProblem:
    """403."""
    named = f"{resource}.{group}" if group else resource
    message = f'{named} "{name}" is forbidden: {why}' if name else f"{named} is forbidden: {why}"
    details: dict[str, Any] = {"name": name} if name else {}
    if group:
        details["group"] = group
    details["kind"] = resource
    return ApiProblem(403, message, "Forbidden", details)


def unsupported_media_type() -> ApiProblem:
    """415."""
    return ApiProblem(415, "415: Unsupported Media Type", "UnsupportedMediaType", {})


def method_not_allowed(verb: str, resource: str) -> ApiProblem:
    """405."""
    del verb, resource
    return ApiProblem(405, "the server does not allow this method on the requested resource", "MethodNotAllowed", {})


def too_many_requests(message: str, cause: str, retry_after_seconds: int | None = None) -> ApiProblem:
    """429 because of a disruption budget."""
    details: dict[str, Any] = {"causes": [{"reason": "DisruptionBudget", "message": cause}]}
    if retry_after_seconds:
        details["retryAfterSeconds"] = retry_after_seconds
    return ApiProblem(429, message, "TooManyRequests", details)


def expired(message: str, continue_token: str | None = None) -> ApiProblem:
    """410: the version or the continue token is gone from the history."""
    metadata = {"continue": continue_token} if continue_token else None
    return ApiProblem(410, message, "Expired", metadata=metadata)


def version_too_large(version: int, current: int) -> ApiProblem:
    """504: the asked version is not reached yet."""
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    return ApiProblem(504, f"Timeout: Too large resource version: {version}, current: {current}", "Timeout", details)


def _details(kind: Kind, name: str) -> dict[str, Any]:
    if kind.group:
        return {"name": name, "group": kind.group, "kind": kind.plural}
    return {"name": name, "kind": kind.plural}
