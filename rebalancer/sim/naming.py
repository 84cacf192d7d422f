"""Names, labels and annotations that the API server accepts, and how it words a refusal.

Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/ and k8s.io/apimachinery/pkg/util/validation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rebalancer.sim.problems import FieldProblem, invalid_value, required

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_OLD_LABEL = "[a-z]([-a-z0-9]*[a-z0-9])?"
_NAME_PART = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"

_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    f"an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_OLD_LABEL_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    f"and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '{_OLD_LABEL}')"
)
_NAME_PART_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    f"character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME_PART}')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'{_VALUE}')"
)
_LABEL_NAMED = frozenset({"namespaces"})
_OLD_LABEL_NAMED: frozenset[str] = frozenset()
_FREELY_NAMED = frozenset(
    {
        "roles.rbac.authorization.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
        "rolebindings.rbac.authorization.k8s.io",
        "clusterrolebindings.rbac.authorization.k8s.io",
    }
)
_ANNOTATION_BYTES = 256 * 1024


def name_problems(storage: str, name: str) -> list[FieldProblem]:
    """Return what is wrong with an object's name."""
    field = "metadata.name"
    if not name:
        return [required(field, "name or generateName is required")]
    if storage in _FREELY_NAMED:
        if name in {".", ".."} or "/" in name or "%" in name:
            return [invalid_value(field, name, "may not contain '/' or '%', nor be '.' or '..'")]
        return []
    if storage in _LABEL_NAMED:
        return label_name_problems(field, name)
    if storage == "services" and not re.fullmatch(_LABEL, name):
        return [invalid_value(field, name, _OLD_LABEL_RULE)]
    return subdomain_problems(field, name)


def subdomain_problems(field: str, name: str) -> list[FieldProblem]:
    """Return what keeps a text from being a DNS subdomain."""
    problems = []
    if len(name) > 253:
        problems.append(invalid_value(field, name, "must be no more than 253 characters"))
    if not re.fullmatch(_SUBDOMAIN, name):
        problems.append(invalid_value(field, name, _SUBDOMAIN_RULE))
    return problems


def label_name_problems(field: str, name: str) -> list[FieldProblem]:
    """Return what keeps a text from being a DNS label."""
    problems = []
    if len(name) > 63:
        problems.append(invalid_value(field, name, "must be no more than 63 characters"))
    if not re.fullmatch(_LABEL, name):
        problems.append(invalid_value(field, name, _LABEL_RULE))
    return problems


def qualified_name_problems(field: str, key: str) -> list[FieldProblem]:
    """Return what keeps a text from being a label or annotation key."""
    prefix, slash, name = key.rpartition("/")
    problems = []
    if slash and not re.fullmatch(_SUBDOMAIN, prefix):
        detail = "prefix part must be non-empty" if not prefix else f"prefix part {_SUBDOMAIN_RULE}"
        problems.append(invalid_value(field, key, detail))
    if not name:
        problems.append(invalid_value(field, key, "name part must be non-empty"))
    elif len(name) > 63:
        problems.append(invalid_value(field, key, "name part must be no more than 63 characters"))
    if not re.fullmatch(_NAME_PART, name):
        problems.append(invalid_value(field, key, _NAME_PART_RULE))
    return problems


def label_problems(field: str, labels: Mapping[str, str]) -> list[FieldProblem]:
    """Return what is wrong with a set of labels."""
    problems = []
    for key, value in labels.items():
        problems += qualified_name_problems(field, key)
        problems += label_value_problems(field, value)
    return problems


def label_value_problems(field: str, value: str) -> list[FieldProblem]:
    """Return what keeps a text from being a label's value."""
    problems = []
    if len(value) > 63:
        problems.append(invalid_value(field, value, "must be no more than 63 bytes"))
    if not re.fullmatch(_VALUE, value):
        problems.append(invalid_value(field, value, _VALUE_RULE))
    return problems


def metadata_problems(storage: str, metadata: Mapping[str, Any]) -> list[FieldProblem]:
    """Return what is wrong with an object's metadata."""
    problems = name_problems(storage, metadata.get("name", ""))
    problems += label_problems("metadata.labels", metadata.get("labels") or {})
    annotations = metadata.get("annotations") or {}
    for key in annotations:
        problems += qualified_name_problems("metadata.annotations", key.lower())
    if sum(len(key) + len(value) for key, value in annotations.items()) > _ANNOTATION_BYTES:
        problems.append(
            FieldProblem("FieldValueTooLong", "metadata.annotations", f"Too long: may not be more than {_ANNOTATION_BYTES} bytes")
        )
    for owner in metadata.get("ownerReferences") or ():
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                field = f"metadata.ownerReferences.{name}"
                problems.append(
                    invalid_value(field, owner.get(name, ""), f"{name if name != 'apiVersion' else 'version'} must not be empty")
                )
    controllers = [owner for owner in metadata.get("ownerReferences") or () if owner.get("controller")]
    if len(controllers) > 1:
        problems.append(
            invalid_value(
                "metadata.ownerReferences",
                "",
                'Only one reference can have Controller set to true. Found "true" in references for '
                f"{controllers[0]['name']} and {controllers[1]['name']}",
            )
        )
    return problems
