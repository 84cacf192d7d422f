"""A request and its answer as values, and which form of the body the client wants.

Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#alternate-representations-of-resources
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import orjson

from rebalancer.sim.discovery import AGGREGATED
from rebalancer.sim.problems import ApiProblem

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"


class Form(StrEnum):
    """How a client wants objects."""

    WHOLE = "whole"
    TABLE = "table"
    METADATA = "metadata"
    AGGREGATED = "aggregated"


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request. The names of headers are as in Python: ``content_type`` for Content-Type."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    content_type: str = ""
    accept: str = ""
    authorization: str = ""
    user_agent: str = ""
    impersonated_user: str = ""
    impersonated_groups: tuple[str, ...] = ()

    @property
    def dry_run(self) -> bool:
        """Whether nothing is to be stored."""
        return self.query.get("dryRun", "") == "All"

    @property
    def strictness(self) -> str:
        """What is done about unknown fields: Strict, Warn or Ignore."""
        return self.query.get("fieldValidation", "") or "Warn"

    @property
    def manager(self) -> str:
        """Who owns the fields that this request sets."""
        return self.query.get("fieldManager", "") or self.user_agent.partition("/")[0] or "unknown"

    @property
    def form(self) -> Form:
        """The form that the Accept header prefers among those that are served. Raises ApiProblem 406."""
        entries = [entry.strip() for entry in self.accept.split(",") if entry.strip()]
        for entry in entries or [JSON]:
            media, *parameters = [part.strip() for part in entry.split(";")]
            wanted = dict(part.partition("=")[::2] for part in parameters)
            found = _form_of(media, wanted)
            if found is not None:
                return found
        raise _not_acceptable()


def _form_of(media: str, wanted: Mapping[str, str]) -> Form | None:
    if media not in {JSON, "*/*", "application/*"}:
        return None
    shape = wanted.get("as", "")
    if not shape:
        return Form.WHOLE
    if shape == "Table" and wanted.get("v") == "v1":
        return Form.TABLE
    if shape.startswith("PartialObjectMetadata") and wanted.get("v") == "v1":
        return Form.METADATA
    if shape == "APIGroupDiscoveryList" and wanted.get("v") == "v2":
        return Form.AGGREGATED
    return None


def _not_acceptable() -> ApiProblem:
    types = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    return ApiProblem(406, f"only the following media types are accepted: {types}", "NotAcceptable", {})


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer. headers: Retry-After and Warning where there are any."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


def json_answer(value: Any, status: int = 200, warnings: list[str] | None = None) -> Answer:
    """Return a JSON answer, with the warnings as one Warning header."""
    headers = {}
    if warnings:
        headers["Warning"] = ", ".join(f"299 - {_quoted(text)}" for text in warnings)
    return Answer(status, orjson.dumps(value), JSON, headers)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def text_answer(text: str, status: int = 200) -> Answer:
    """Return a plain text answer."""
    return Answer(status, text.encode(), TEXT)


def problem_answer(problem: ApiProblem) -> Answer:
    """Return the answer that tells of a problem."""
    headers = {}
    if problem.retry_after_seconds:
        headers["Retry-After"] = str(problem.retry_after_seconds)
    return Answer(problem.code, orjson.dumps(problem.status), JSON, headers)


def aggregated_answer(value: Any) -> Answer:
    """Return aggregated discovery."""
    return Answer(200, orjson.dumps(value), AGGREGATED)
