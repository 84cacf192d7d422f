"""Watch changes as the lines of a response body.

A line is encoded once per event and form, however many watchers there are.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import orjson

from rebalancer.sim.answering import OpenWatch
from rebalancer.sim.event_views import shown
from rebalancer.sim.history import Object
from rebalancer.sim.problems import ApiProblem
from rebalancer.sim.requests import Form
from rebalancer.sim.schema import type_of
from rebalancer.sim.tables import partial, table
from rebalancer.sim.watching import Change
from rebalancer.sim.zeros import zero_object

_END = {"k8s.io/initial-events-end": "true"}


def line(opened: OpenWatch, change: Change, now: datetime) -> bytes:
    """Return the line of a change, newline included."""
    if change.obj is None:
        return _line("BOOKMARK", _bookmark(opened, change))
    if change.event is None or opened.form is Form.TABLE:
        return _line(change.type, _shaped(opened, change.obj, now))
    key = (change.type, opened.form, opened.kind)
    encoded = change.event.lines.get(key)
    if encoded is None:
        encoded = change.event.lines[key] = _line(change.type, _shaped(opened, change.obj, now))
    return encoded


def error_line(problem: ApiProblem) -> bytes:
    """Return the line that ends a watch with a problem."""
    return _line("ERROR", problem.status)


def _line(kind: str, obj: Object) -> bytes:
    return orjson.dumps({"type": kind, "object": obj}) + b"\n"


def _shaped(opened: OpenWatch, obj: Object, now: datetime) -> Object:
    obj = shown(opened.kind, obj)
    if opened.form is Form.TABLE:
        metadata = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        include = opened.request.query.get("includeObject", "Metadata")
        return table(opened.kind, [obj], metadata, now, include)
    return partial(obj) if opened.form is Form.METADATA else obj


def _bookmark(opened: OpenWatch, change: Change) -> Object:
    metadata: dict[str, Any] = {"resourceVersion": str(change.version)}
    if change.initial_end:
        metadata["annotations"] = dict(_END)
    if opened.form is Form.METADATA:
        return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    kind = opened.kind
    zero = {"kind": kind.kind, "apiVersion": kind.api_version, **zero_object(type_of(kind))}
    whole = {**zero, "metadata": metadata}
    if opened.form is Form.TABLE:
        head = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": str(change.version)}}
        return {**head, "columnDefinitions": None, "rows": [{"cells": [], "object": whole}]}
    return whole
