"""Whether a pod's own wishes and a node go together: selectors, affinity, taints.

Sources: https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/ and
https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rebalancer.sim.history import Object

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def matches_node(spec: Mapping[str, Any], node: Object) -> bool:
    """Say whether a pod's nodeSelector and required node affinity allow a node."""
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    required = (spec.get("affinity") or {}).get("nodeAffinity", {}).get(_REQUIRED)
    if not required:
        return True
    return any(term_matches(term, node) for term in required.get("nodeSelectorTerms", ()))


def term_matches(term: Mapping[str, Any], node: Object) -> bool:
    """Say whether a node selector term selects a node. A term without requirements selects none."""
    expressions, fields = term.get("matchExpressions", ()), term.get("matchFields", ())
    if not expressions and not fields:
        return False
    labels = node["metadata"].get("labels") or {}
    names = {"metadata.name": node["metadata"]["name"]}
    return all(_holds(item, labels) for item in expressions) and all(_holds(item, names) for item in fields)


def _holds(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement["key"])
    values = requirement.get("values", ())
    match requirement["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            try:
                number, bound = int(value or ""), int(values[0])
            except ValueError:
                return False
            return number > bound if operator == "Gt" else number < bound
        case _:
            return False


def tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """Say whether one toleration covers one taint."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")


def untolerated(node: Object, tolerations: Iterable[Mapping[str, Any]], effects: frozenset[str]) -> Mapping[str, Any] | None:
    """Return the first taint of a node with one of the effects that no toleration covers, or None."""
    taints = node.get("spec", {}).get("taints", ())
    held = tuple(tolerations) if taints else ()
    for taint in taints:
        if taint.get("effect") in effects and not any(tolerates(toleration, taint) for toleration in held):
            found: Mapping[str, Any] = taint
            return found
    return None
