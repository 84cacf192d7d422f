"""Objects that the API server refuses, field by field, in its words.

Only fields that this product reads or writes are looked at closely.
Source: kubernetes/kubernetes pkg/apis/*/validation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from rebalancer.errors import QuantityError, SelectorError
from rebalancer.model.quantity import parse_quantity
from rebalancer.parse.selector import label_selector
from rebalancer.sim.history import Object
from rebalancer.sim.kinds import Kind
from rebalancer.sim.naming import (
    label_name_problems,
    label_problems,
    label_value_problems,
    metadata_problems,
    qualified_name_problems,
)
from rebalancer.sim.pod_update import pod_update_problems
from rebalancer.sim.problems import FieldProblem, forbidden_field, invalid_value, not_supported, required

Spec = dict[str, Any]
Problems = list[FieldProblem]

_WORKLOADS = frozenset({"deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps"})
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_STATEFUL_RULE = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_STATEFUL_MAY_CHANGE = frozenset(
    {
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    }
)


def create_problems(kind: Kind, obj: Object) -> Problems:
    """Return what is wrong with a new object."""
    problems = metadata_problems(kind.storage, obj["metadata"])
    check = _CHECKS.get(kind.storage)
    return problems + (check(obj) if check else [])


def update_problems(kind: Kind, new: Object, old: Object) -> Problems:
    """Return what is wrong with a changed object, or with the change."""
    problems = _metadata_change_problems(new["metadata"], old["metadata"])
    problems += [p for p in metadata_problems(kind.storage, new["metadata"]) if p.field != "metadata.name"]
    change = _CHANGES.get(kind.storage)
    if change:
        problems += change(new, old)
    check = _CHECKS.get(kind.storage)
    if check and new.get("spec") != old.get("spec"):
        problems += check(new)
    return problems


def _metadata_change_problems(new: Spec, old: Spec) -> Problems:
    fixed = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp")
    problems = [
        invalid_value(f"metadata.{name}", new.get(name), "field is immutable") for name in fixed if new.get(name) != old.get(name)
    ]
    added = set(new.get("finalizers", ())) - set(old.get("finalizers", ()))
    if old.get("deletionTimestamp") and added:
        names = ", ".join(f'"{name}"' for name in sorted(added))
        detail = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{names}}}"
        problems.append(forbidden_field("metadata.finalizers", detail))
    return problems


def _pod(obj: Object) -> Problems:
    return pod_spec_problems(obj.get("spec") or {}, "spec")


def pod_spec_problems(spec: Spec, at: str) -> Problems:
    """Return what is wrong with a pod's spec, alone or in a template."""
    problems: Problems = []
    containers = spec.get("containers")
    if not containers:
        problems.append(required(f"{at}.containers"))
    names: set[str] = set()
    for group in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(group) or ()):
            problems += _container_problems(container, f"{at}.{group}[{index}]", names)
    if spec.get("restartPolicy", "Always") not in {"Always", "OnFailure", "Never"}:
        problems.append(not_supported(f"{at}.restartPolicy", spec["restartPolicy"], ("Always", "OnFailure", "Never")))
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        grace = spec["terminationGracePeriodSeconds"]
        problems.append(invalid_value(f"{at}.terminationGracePeriodSeconds", grace, "must be greater than or equal to 0"))
    problems += label_problems(f"{at}.nodeSelector", spec.get("nodeSelector") or {})
    for index, toleration in enumerate(spec.get("tolerations", ())):
        problems += _toleration_problems(toleration, f"{at}.tolerations[{index}]")
    for index, constraint in enumerate(spec.get("topologySpreadConstraints", ())):
        problems += _spread_problems(constraint, f"{at}.topologySpreadConstraints[{index}]")
    return problems


def _container_problems(container: Spec, at: str, names: set[str]) -> Problems:
    problems: Problems = []
    name = container.get("name", "")
    if not name:
        problems.append(required(f"{at}.name"))
    else:
        problems += label_name_problems(f"{at}.name", name)
        if name in names:
            problems.append(FieldProblem("FieldValueDuplicate", f"{at}.name", f'Duplicate value: "{name}"'))
        names.add(name)
    if not container.get("image"):
        problems.append(required(f"{at}.image"))
    for index, port in enumerate(container.get("ports", ())):
        if not 0 < port.get("containerPort", 0) < 65536:
            detail = "must be between 1 and 65535, inclusive"
            problems.append(invalid_value(f"{at}.ports[{index}].containerPort", port.get("containerPort", 0), detail))
    resources = container.get("resources") or {}
    limits = resources.get("limits", {})
    for group in ("limits", "requests"):
        for resource, amount in resources.get(group, {}).items():
            problems += _amount_problems(amount, f"{at}.resources.{group}[{resource}]")
    for resource, amount in resources.get("requests", {}).items():
        if resource in limits and _more(amount, limits[resource]):
            detail = f"must be less than or equal to {resource} limit of {limits[resource]}"
            problems.append(invalid_value(f"{at}.resources.requests", amount, detail))
    return problems


def _amount_problems(amount: Any, at: str) -> Problems:
    try:
        negative = parse_quantity(str(amount)) < 0
    except QuantityError:
        return [invalid_value(at, amount, "must be a quantity")]
    return [invalid_value(at, amount, "must be greater than or equal to 0")] if negative else []


def _more(one: Any, other: Any) -> bool:
    try:
        return parse_quantity(str(one)) > parse_quantity(str(other))
    except QuantityError:
        return False


def _toleration_problems(toleration: Spec, at: str) -> Problems:
    problems: Problems = []
    key, operator = toleration.get("key", ""), toleration.get("operator", "Equal")
    if key:
        problems += qualified_name_problems(f"{at}.key", key)
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        problems.append(invalid_value(f"{at}.operator", toleration.get("operator", ""), detail))
    if operator == "Exists" and toleration.get("value"):
        detail = "value must be empty when `operator` is 'Exists'"
        problems.append(invalid_value(f"{at}.operator", toleration["value"], detail))
    if operator not in {"Equal", "Exists", "Lt", "Gt"}:
        problems.append(not_supported(f"{at}.operator", operator, ("Equal", "Exists")))
    if toleration.get("effect", "NoSchedule") not in _EFFECTS:
        problems.append(not_supported(f"{at}.effect", toleration["effect"], _EFFECTS))
    if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        problems.append(invalid_value(f"{at}.effect", toleration.get("effect", ""), detail))
    return problems


def _spread_problems(constraint: Spec, at: str) -> Problems:
    problems: Problems = []
    if constraint.get("maxSkew", 0) <= 0:
        problems.append(invalid_value(f"{at}.maxSkew", constraint.get("maxSkew", 0), "must be greater than zero"))
    if not constraint.get("topologyKey"):
        problems.append(required(f"{at}.topologyKey", "can not be empty"))
    if constraint.get("whenUnsatisfiable") not in {"DoNotSchedule", "ScheduleAnyway"}:
        value = constraint.get("whenUnsatisfiable", "")
        problems.append(not_supported(f"{at}.whenUnsatisfiable", value, ("DoNotSchedule", "ScheduleAnyway")))
    return problems


def selector_problems(document: Any, at: str) -> Problems:
    """Return what is wrong with a label selector in a spec."""
    if document is None:
        return []
    try:
        label_selector(document)
    except SelectorError as problem:
        return [invalid_value(at, "", str(problem))]
    return []


def _workload(obj: Object) -> Problems:
    spec = obj["spec"]
    problems: Problems = []
    if spec.get("replicas", 0) < 0:
        problems.append(invalid_value("spec.replicas", spec["replicas"], "must be greater than or equal to 0"))
    document = spec.get("selector")
    labels = spec.get("template", {}).get("metadata", {}).get("labels") or {}
    if document is None:
        problems.append(required("spec.selector"))
    else:
        wrong = selector_problems(document, "spec.selector")
        problems += wrong
        if not wrong:
            selector = label_selector(document)
            if not selector.requirements:
                detail = f"empty selector is invalid for {obj.get('kind', '').lower()}"
                problems.append(invalid_value("spec.selector", "{}", detail))
            elif not selector.matches(labels):
                shown = "{" + ",".join(f'"{key}":"{value}"' for key, value in sorted(labels.items())) + "}"
                message = f"Invalid value: {shown}: `selector` does not match template `labels`"
                problems.append(FieldProblem("FieldValueInvalid", "spec.template.metadata.labels", message))
    problems += label_problems("spec.template.labels", labels)
    template = spec.get("template", {}).get("spec") or {}
    problems += pod_spec_problems(template, "spec.template.spec")
    policy = template.get("restartPolicy", "Always")
    if policy in {"OnFailure", "Never"}:
        problems.append(not_supported("spec.template.spec.restartPolicy", policy, ("Always",)))
    return problems


def _job(obj: Object) -> Problems:
    template = obj["spec"].get("template", {}).get("spec") or {}
    problems = pod_spec_problems(template, "spec.template.spec")
    if template.get("restartPolicy") == "Always":
        problems.append(
            FieldProblem(
                "FieldValueRequired", "spec.template.spec.restartPolicy", 'Required value: valid values: "OnFailure", "Never"'
            )
        )
    return problems


def _budget(obj: Object) -> Problems:
    spec = obj["spec"]
    problems: Problems = []
    if "minAvailable" in spec and "maxUnavailable" in spec:
        internal = {
            "MinAvailable": spec["minAvailable"],
            "Selector": spec.get("selector"),
            "MaxUnavailable": spec["maxUnavailable"],
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        shown = invalid_value("spec", internal, "minAvailable and maxUnavailable cannot be both set")
        problems.append(shown)
    for name in ("minAvailable", "maxUnavailable"):
        if name in spec:
            problems += _share_problems(spec[name], f"spec.{name}")
    problems += selector_problems(spec.get("selector"), "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy not in {None, "AlwaysAllow", "IfHealthyBudget"}:
        problems.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget")))
    return problems


def _share_problems(value: Any, at: str) -> Problems:
    if isinstance(value, int):
        return [invalid_value(at, value, "must be greater than or equal to 0")] if value < 0 else []
    if not re.fullmatch(r"[0-9]+%", value):
        detail = (
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
            "regex used for validation is '[0-9]+%')"
        )
        return [invalid_value(at, value, detail)]
    if int(value[:-1]) > 100:
        return [invalid_value(at, value, "must not be greater than 100%")]
    return []


def _node(obj: Object) -> Problems:
    problems: Problems = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(obj.get("spec", {}).get("taints", ())):
        at = f"spec.taints[{index}]"
        key, effect = taint.get("key", ""), taint.get("effect", "")
        problems += qualified_name_problems(f"{at}.key", key) if key else [required(f"{at}.key")]
        problems += label_value_problems(f"{at}.value", taint.get("value", ""))
        if not effect:
            problems.append(required(f"{at}.effect"))
        elif effect not in _EFFECTS:
            problems.append(not_supported(f"{at}.effect", effect, _EFFECTS))
        if (key, effect) in seen:
            detail = "taints must be unique by key and effect pair"
            problems.append(FieldProblem("FieldValueDuplicate", f"{at}", f"Duplicate value: {detail}"))
        seen.add((key, effect))
    return problems


def _lease(obj: Object) -> Problems:
    spec = obj.get("spec", {})
    problems: Problems = []
    if spec.get("leaseDurationSeconds") is not None and spec["leaseDurationSeconds"] <= 0:
        problems.append(invalid_value("spec.leaseDurationSeconds", spec["leaseDurationSeconds"], "must be greater than 0"))
    if spec.get("leaseTransitions") is not None and spec["leaseTransitions"] < 0:
        detail = "must be greater than or equal to 0"
        problems.append(invalid_value("spec.leaseTransitions", spec["leaseTransitions"], detail))
    return problems


def _event(obj: Object) -> Problems:
    problems: Problems = []
    if obj.get("eventTime"):
        for name, shown in (("reportingComponent", "reportingController"), ("reportingInstance", "reportingInstance")):
            if not obj.get(name):
                problems.append(required(shown))
        for name in ("action", "reason"):
            if not obj.get(name):
                problems.append(required(name))
        if obj.get("type") not in {"Normal", "Warning"}:
            problems.append(invalid_value("type", obj.get("type", ""), "has invalid value: must be Normal or Warning"))
        if len(obj.get("message", "")) > 1024:
            problems.append(invalid_value("message", "", "can have at most 1024 characters"))
    involved = obj.get("involvedObject", {}).get("namespace", "")
    namespace = obj["metadata"].get("namespace", "")
    if involved != namespace and not (involved == "" and namespace == "default"):
        problems.append(invalid_value("involvedObject.namespace", involved, "does not match event.namespace"))
    return problems


def _pod_change(new: Object, old: Object) -> Problems:
    return pod_update_problems(new, old)


def _selector_change(new: Object, old: Object) -> Problems:
    if new["spec"].get("selector") != old["spec"].get("selector"):
        shown = _go_selector(new["spec"].get("selector") or {})
        return [FieldProblem("FieldValueInvalid", "spec.selector", f"Invalid value: {shown}: field is immutable")]
    return []


def _go_selector(document: Spec) -> str:
    labels = document.get("matchLabels")
    shown = "{" + ",".join(f'"{key}":"{value}"' for key, value in sorted((labels or {}).items())) + "}"
    return '{"matchLabels":' + shown + "}" if labels else "{}"


def _stateful_change(new: Object, old: Object) -> Problems:
    names: Iterable[str] = {*new["spec"], *old["spec"]} - _STATEFUL_MAY_CHANGE
    if any(new["spec"].get(name) != old["spec"].get(name) for name in names):
        return [forbidden_field("spec", _STATEFUL_RULE)]
    return []


def _priority_class_change(new: Object, old: Object) -> Problems:
    problems = []
    if new.get("value") != old.get("value"):
        problems.append(forbidden_field("value", "may not be changed in an update."))
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        problems.append(invalid_value("preemptionPolicy", new.get("preemptionPolicy"), "field is immutable"))
    return problems


def _secret_change(new: Object, old: Object) -> Problems:
    if new.get("type") != old.get("type"):
        return [invalid_value("type", new.get("type"), "field is immutable")]
    return []


_CHECKS: dict[str, Callable[[Object], Problems]] = {
    "pods": _pod,
    "nodes": _node,
    **dict.fromkeys(_WORKLOADS, _workload),
    "jobs.batch": _job,
    "poddisruptionbudgets.policy": _budget,
    "leases.coordination.k8s.io": _lease,
    "events": _event,
}
_CHANGES: dict[str, Callable[[Object, Object], Problems]] = {
    "pods": _pod_change,
    "deployments.apps": _selector_change,
    "replicasets.apps": _selector_change,
    "daemonsets.apps": _selector_change,
    "statefulsets.apps": _stateful_change,
    "priorityclasses.scheduling.k8s.io": _priority_class_change,
    "secrets": _secret_change,
}
