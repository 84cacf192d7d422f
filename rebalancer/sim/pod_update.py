"""What of a pod may be changed after it was created, and how the server shows the rest as a difference.

Source: ValidatePodUpdate in kubernetes/kubernetes pkg/apis/core/validation/validation.go. The difference is made of the
server's internal form of the spec, whose field order is listed here.
"""

from __future__ import annotations

import copy
import difflib
import json
from typing import Any

from rebalancer.sim.history import Object
from rebalancer.sim.problems import FieldProblem, forbidden_field, invalid_value

_RULE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_SPEC = [
    "Volumes",
    "InitContainers",
    "Containers",
    "EphemeralContainers",
    "RestartPolicy",
    "TerminationGracePeriodSeconds",
    "ActiveDeadlineSeconds",
    "DNSPolicy",
    "NodeSelector",
    "ServiceAccountName",
    "AutomountServiceAccountToken",
    "NodeName",
    "SecurityContext",
    "ImagePullSecrets",
    "Hostname",
    "Subdomain",
    "SetHostnameAsFQDN",
    "Affinity",
    "SchedulerName",
    "Tolerations",
    "HostAliases",
    "PriorityClassName",
    "Priority",
    "PreemptionPolicy",
    "DNSConfig",
    "ReadinessGates",
    "RuntimeClassName",
    "Overhead",
    "EnableServiceLinks",
    "TopologySpreadConstraints",
    "OS",
    "SchedulingGates",
    "ResourceClaims",
    "Resources",
    "HostnameOverride",
]
_CONTAINER = [
    "Name",
    "Image",
    "Command",
    "Args",
    "WorkingDir",
    "Ports",
    "EnvFrom",
    "Env",
    "Resources",
    "ResizePolicy",
    "RestartPolicy",
    "RestartPolicyRules",
    "VolumeMounts",
    "VolumeDevices",
    "LivenessProbe",
    "ReadinessProbe",
    "StartupProbe",
    "Lifecycle",
    "TerminationMessagePath",
    "TerminationMessagePolicy",
    "ImagePullPolicy",
    "SecurityContext",
    "Stdin",
    "StdinOnce",
    "TTY",
]
_SECURITY = [
    "HostNetwork",
    "HostPID",
    "HostIPC",
    "ShareProcessNamespace",
    "HostUsers",
    "SELinuxOptions",
    "WindowsOptions",
    "RunAsUser",
    "RunAsGroup",
    "RunAsNonRoot",
    "SupplementalGroups",
    "SupplementalGroupsPolicy",
    "FSGroup",
    "FSGroupChangePolicy",
    "Sysctls",
    "SeccompProfile",
    "AppArmorProfile",
    "SELinuxChangePolicy",
]
_TOLERATION = ["Key", "Operator", "Value", "Effect", "TolerationSeconds"]
_ON_POD = frozenset({"HostNetwork", "HostPID", "HostIPC", "ShareProcessNamespace", "HostUsers"})
_FALSE = frozenset({"HostNetwork", "HostPID", "HostIPC", "Stdin", "StdinOnce", "TTY"})
_EMPTY = frozenset(
    [
        "ServiceAccountName",
        "NodeName",
        "Hostname",
        "Subdomain",
        "SchedulerName",
        "PriorityClassName",
        "WorkingDir",
        "Key",
        "Operator",
        "Value",
        "Effect",
    ]
)


def pod_update_problems(new: Object, old: Object) -> list[FieldProblem]:
    """Return what an update of a pod changes without being allowed to."""
    problems: list[FieldProblem] = []
    before: dict[str, Any] = old["spec"]
    after: dict[str, Any] = new["spec"]
    if before == after:
        return problems
    problems += _deadline_problems(after, before)
    problems += _toleration_problems(after, before)
    allowed = copy.deepcopy(after)
    for group in ("containers", "initContainers"):
        for index, container in enumerate(allowed.get(group) or ()):
            if index < len(before.get(group) or ()):
                container["image"] = before[group][index].get("image", "")
    _take(allowed, before, "activeDeadlineSeconds")
    _take(allowed, before, "tolerations")
    if before.get("terminationGracePeriodSeconds", 0) < 0 and after.get("terminationGracePeriodSeconds") == 1:
        _take(allowed, before, "terminationGracePeriodSeconds")
    if before.get("schedulingGates"):
        kept = [gate for gate in after.get("schedulingGates", ()) if gate in before["schedulingGates"]]
        if kept == after.get("schedulingGates", []):
            _take(allowed, before, "schedulingGates")
    if allowed != before:
        problems.append(forbidden_field("spec", f"{_RULE}\n{_difference(before, allowed)}"))
    return problems


def _take(spec: dict[str, Any], source: dict[str, Any], name: str) -> None:
    if name in source:
        spec[name] = source[name]
    else:
        spec.pop(name, None)


def _deadline_problems(after: dict[str, Any], before: dict[str, Any]) -> list[FieldProblem]:
    field = "spec.activeDeadlineSeconds"
    new, old = after.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    if old is not None and new is None:
        return [invalid_value(field, None, "must not update from a positive integer to nil value")]
    if new is not None and old is not None and new > old:
        return [invalid_value(field, new, "must be less than or equal to previous value")]
    return []


def _toleration_problems(after: dict[str, Any], before: dict[str, Any]) -> list[FieldProblem]:
    new = after.get("tolerations", [])
    if all(any(_same_toleration(one, other) for other in new) for one in before.get("tolerations", ())):
        return []
    return [forbidden_field("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")]


def _same_toleration(one: dict[str, Any], other: dict[str, Any]) -> bool:
    names = ("key", "operator", "value", "effect")
    return all(one.get(name, "") == other.get(name, "") for name in names)


def _difference(before: dict[str, Any], after: dict[str, Any]) -> str:
    lines = difflib.unified_diff(_dump(before), _dump(after), n=3, lineterm="")
    return "\n".join(list(lines)[2:]) + "\n"


def _dump(spec: dict[str, Any]) -> list[str]:
    return json.dumps(_internal_spec(spec), indent=1).split("\n")


def _internal_spec(spec: dict[str, Any]) -> dict[str, Any]:
    known = {name.lower(): value for name, value in spec.items()}
    result: dict[str, Any] = {}
    for name in _SPEC:
        value = known.get(name.lower())
        if name == "SecurityContext":
            result[name] = _ordered(_SECURITY, {**(value or {}), **{k: v for k, v in spec.items() if _lowered(k) in _ON_POD}})
        elif name in {"Containers", "InitContainers", "EphemeralContainers"}:
            result[name] = [_internal_container(item) for item in value] if value else None
        elif name == "Tolerations":
            result[name] = [_ordered(_TOLERATION, item) for item in value] if value else None
        else:
            result[name] = _capitalised(value) if value is not None else _zero(name)
    return result


def _internal_container(container: dict[str, Any]) -> dict[str, Any]:
    result = _ordered(_CONTAINER, container)
    resources = container.get("resources") or {}
    result["Resources"] = {name: resources.get(name.lower()) for name in ("Limits", "Requests", "Claims")}
    return result


def _ordered(names: list[str], value: dict[str, Any]) -> dict[str, Any]:
    known = {name.lower(): item for name, item in value.items()}
    return {name: _capitalised(known[name.lower()]) if name.lower() in known else _zero(name) for name in names}


def _zero(name: str) -> Any:
    if name in _FALSE:
        return False
    return "" if name in _EMPTY else None


def _lowered(name: str) -> str:
    return name[:1].upper() + name[1:]


def _capitalised(value: Any) -> Any:
    if isinstance(value, list):
        return [_capitalised(item) for item in value]
    if isinstance(value, dict):
        return {_lowered(name): _capitalised(item) for name, item in value.items()}
    return value
