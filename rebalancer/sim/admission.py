"""Admission: what the server adds to, or refuses of, a valid request because of the state of the cluster.

Source: https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/ (NamespaceLifecycle, Priority,
DefaultTolerationSeconds, TaintNodesByCondition).
"""

from __future__ import annotations

from rebalancer.sim.history import Object
from rebalancer.sim.kinds import NAMESPACE, Kind
from rebalancer.sim.problems import ApiProblem, forbidden, not_found
from rebalancer.sim.store import Store

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_TOLERATION_SECONDS = 300
_UNDELETABLE = frozenset({"default", "kube-system", "kube-public"})


def admit_create(store: Store, kind: Kind, obj: Object, subject: str = "") -> None:
    """Change a new object as admission does, or raise ApiProblem. ``subject`` is its name in messages."""
    if kind.storage == "pods":
        _add_priority(store, obj, subject)
        _add_tolerations(obj)
    elif kind.storage == "nodes":
        taints = obj.setdefault("spec", {}).setdefault("taints", [])
        if not any(taint.get("key") == NOT_READY for taint in taints):
            taints.append({"key": NOT_READY, "effect": "NoSchedule"})


def admit_namespace(store: Store, kind: Kind, namespace: str, name: str) -> None:
    """Refuse to create in a namespace that is not there or is going."""
    if not kind.namespaced:
        return
    found = store.get(NAMESPACE.storage, "", namespace)
    if found is None:
        raise not_found(NAMESPACE, namespace)
    if found["metadata"].get("deletionTimestamp"):
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        problem = forbidden(kind.group, kind.plural, name, why)
        cause = {"reason": "NamespaceTerminating", "message": f"namespace {namespace} is being terminated"}
        problem.status["details"]["causes"] = [cause | {"field": "metadata.namespace"}]
        raise problem


def admit_delete(kind: Kind, name: str) -> None:
    """Refuse to delete the namespaces that must stay."""
    if kind.storage == NAMESPACE.storage and name in _UNDELETABLE:
        raise forbidden(kind.group, kind.plural, name, "this namespace may not be deleted")


def _add_priority(store: Store, pod: Object, subject: str) -> None:
    spec = pod["spec"]
    name = spec.get("priorityClassName", "")
    value, policy = 0, "PreemptLowerPriority"
    if name:
        found = _class(store, name)
        if found is None:
            raise _no_class(subject, name)
        value, policy = found
    else:
        default = _default_class(store)
        if default is not None:
            name, value, policy = default
            spec["priorityClassName"] = name
    given = spec.get("priority")
    if given is not None and given != value:
        why = (
            f"the integer value of priority ({given}) must not be provided in pod spec; priority admission controller "
            f"computed {value} from the given PriorityClass name"
        )
        raise forbidden("", "pods", subject, why)
    spec["priority"] = value
    spec["preemptionPolicy"] = spec.get("preemptionPolicy") or policy


def _no_class(subject: str, name: str) -> ApiProblem:
    return forbidden("", "pods", subject, f"no PriorityClass with name {name} was found")


def _class(store: Store, name: str) -> tuple[int, str] | None:
    found = store.get("priorityclasses.scheduling.k8s.io", "", name)
    if found is not None:
        return int(found.get("value", 0)), str(found.get("preemptionPolicy", "PreemptLowerPriority"))
    if name in SYSTEM_PRIORITIES:
        return SYSTEM_PRIORITIES[name], "PreemptLowerPriority"
    return None


def _default_class(store: Store) -> tuple[str, int, str] | None:
    defaults = [obj for obj in store.objects("priorityclasses.scheduling.k8s.io") if obj.get("globalDefault")]
    if not defaults:
        return None
    lowest = min(defaults, key=lambda obj: (obj.get("value", 0), obj["metadata"]["name"]))
    policy = lowest.get("preemptionPolicy", "PreemptLowerPriority")
    return lowest["metadata"]["name"], int(lowest.get("value", 0)), str(policy)


def _add_tolerations(pod: Object) -> None:
    tolerations = pod["spec"].setdefault("tolerations", [])
    for key in (NOT_READY, UNREACHABLE):
        if not any(_tolerates(toleration, key) for toleration in tolerations):
            tolerations.append(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATION_SECONDS}
            )


def _tolerates(toleration: Object, key: str) -> bool:
    return toleration.get("key", "") in {"", key} and toleration.get("effect", "") in {"", "NoExecute"}
