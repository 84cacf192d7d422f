"""Label and field selectors of a request, as one test on an object.

Sources: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#api and
https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from rebalancer.errors import SelectorError
from rebalancer.model.selector import LabelSelector
from rebalancer.parse.selector import label_selector, parse_selector
from rebalancer.sim.history import Object
from rebalancer.sim.kinds import Kind
from rebalancer.sim.problems import bad_request
from rebalancer.sim.selector_words import complaint

Selects = Callable[[Object], bool]

_TERM = re.compile(r"(?P<key>[^=!]*?)(?P<operator>==|!=|=)(?P<value>.*)")
_EVENT_PATHS = {
    f"involvedObject.{name}": ("involvedObject", name)
    for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
}
_REGARDING = {
    f"regarding.{name}": ("involvedObject", name)
    for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
}
_FIELDS: dict[str, dict[str, tuple[str, ...]]] = {
    "pods": {
        "spec.nodeName": ("spec", "nodeName"),
        "spec.restartPolicy": ("spec", "restartPolicy"),
        "spec.schedulerName": ("spec", "schedulerName"),
        "spec.serviceAccountName": ("spec", "serviceAccountName"),
        "spec.hostNetwork": ("spec", "hostNetwork"),
        "status.phase": ("status", "phase"),
        "status.podIP": ("status", "podIP"),
        "status.nominatedNodeName": ("status", "nominatedNodeName"),
    },
    "nodes": {"spec.unschedulable": ("spec", "unschedulable")},
    "namespaces": {"status.phase": ("status", "phase")},
    "secrets": {"type": ("type",)},
    "replicationcontrollers": {"status.replicas": ("status", "replicas")},
    "replicasets.apps": {"status.replicas": ("status", "replicas")},
    "jobs.batch": {"status.successful": ("status", "succeeded")},
    "events": {
        **_EVENT_PATHS,
        "reason": ("reason",),
        "type": ("type",),
        "source": ("source", "component"),
        "reportingComponent": ("reportingComponent",),
    },
    "events.events.k8s.io": {
        **_REGARDING,
        "reason": ("reason",),
        "type": ("type",),
        "reportingController": ("reportingComponent",),
    },
}
_BOOLEANS = frozenset({"spec.unschedulable", "spec.hostNetwork"})
_NUMBERS = frozenset({"status.replicas", "status.successful"})


def everything(obj: Object) -> bool:
    """Select every object."""
    del obj
    return True


def selects(kind: Kind, labels: str, fields: str) -> Selects:
    """Return the test that both selectors of a request make together. Raises ApiProblem 400."""
    label_test = labels_test(labels) if labels else None
    field_test = fields_test(kind, fields) if fields else None
    if label_test and field_test:
        first, second = label_test, field_test
        return lambda obj: first(obj) and second(obj)
    return label_test or field_test or everything


def labels_test(text: str) -> Selects:
    """Return the test that a label selector makes."""
    wrong = complaint(text)
    if wrong:
        raise bad_request(wrong)
    try:
        selector = parse_selector(text)
    except SelectorError as problem:
        raise bad_request(str(problem)) from None
    return lambda obj: selector.matches(obj["metadata"].get("labels") or {})


def fields_test(kind: Kind, text: str) -> Selects:
    """Return the test that a field selector makes."""
    known = _FIELDS.get(kind.resource, {})
    tests: list[tuple[tuple[str, ...], str, bool]] = []
    for term in filter(None, text.split(",")):
        found = _TERM.fullmatch(term)
        if found is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        key = found["key"].strip()
        if key in {"metadata.name", "metadata.namespace"}:
            path = tuple(key.split("."))
        elif key in known:
            path = known[key]
        else:
            raise bad_request(f"field label not supported: {key}")
        tests.append((path, found["value"].strip(), found["operator"] != "!="))

    def test(obj: Object) -> bool:
        return all((_text(obj, path) == wanted) is equal for path, wanted, equal in tests)

    return test


def _text(obj: Object, path: tuple[str, ...]) -> str:
    value: Any = obj
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    dotted = ".".join(path)
    if value is None:
        return "false" if dotted in _BOOLEANS else "0" if path[-1] in {"replicas", "succeeded"} else ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def owned_selector(document: Any) -> LabelSelector | None:
    """Return the selector in an object's spec, or None where it is absent or wrong."""
    if not isinstance(document, dict):
        return None
    try:
        return label_selector(document)
    except SelectorError:
        return None
