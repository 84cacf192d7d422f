"""Documents of the version ``descheduler/v1alpha1``, from its first form (0.18) to its last (0.30), as policies of today.

A plain document enters, a Policy leaves, with the findings beside it: a warning for each meaning that changed. Unknown
keys are warnings too, as that version was lenient; but a selector that stands in the wrong place is a mistake, since
ignoring it would widen what is moved.
Source: https://github.com/kubernetes-sigs/descheduler/blob/v0.18.0/pkg/api/v1alpha1/types.go and its later versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rebalancer.eligibility.arguments import DefaultEvictorArgs
from rebalancer.parse.arguments import joined_path, shown
from rebalancer.parse.spelling import nearest_name
from rebalancer.policy.changed_meanings import warn_of_changes
from rebalancer.policy.findings import Findings
from rebalancer.policy.policy import PluginUse, Policy, Profile
from rebalancer.policy.v1alpha2 import TopLevel
from rebalancer.strategies.arguments import CATALOGUE

_TOP_LEVEL = ("nodeSelector", "maxNoOfPodsToEvictPerNode", "maxNoOfPodsToEvictPerNamespace", "maxNoOfPodsToEvictTotal")
_EVICTOR = (
    "evictLocalStoragePods",
    "evictDaemonSetPods",
    "evictSystemCriticalPods",
    "evictFailedBarePods",
    "ignorePvcPods",
    "ignorePodsWithoutPDB",
)
_ANY_STRATEGY = ("thresholdPriority", "thresholdPriorityClassName", "nodeFit")
_FILTERED = ("namespaces", "labelSelector")
_UTILIZATION = ("useDeviationThresholds", "thresholds", "targetThresholds", "numberOfNodes")

# Of each strategy: the parameters it knew, and for those in a group of their own what the group holds.
_PARAMS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "RemoveDuplicates": {"namespaces": (), "removeDuplicates": ("excludeOwnerKinds",)},
    "LowNodeUtilization": {"namespaces": (), "nodeResourceUtilizationThresholds": _UTILIZATION},
    "HighNodeUtilization": {"namespaces": (), "nodeResourceUtilizationThresholds": ("thresholds", "numberOfNodes")},
    "RemovePodsViolatingInterPodAntiAffinity": dict.fromkeys(_FILTERED, ()),
    "RemovePodsViolatingNodeAffinity": dict.fromkeys((*_FILTERED, "nodeAffinityType"), ()),
    "RemovePodsViolatingNodeTaints": dict.fromkeys(
        (*_FILTERED, "includePreferNoSchedule", "excludedTaints", "includedTaints"), ()
    ),
    "RemovePodsViolatingTopologySpreadConstraint": dict.fromkeys((*_FILTERED, "includeSoftConstraints"), ()),
    "RemovePodsHavingTooManyRestarts": {
        **dict.fromkeys(_FILTERED, ()),
        "podsHavingTooManyRestarts": ("podRestartThreshold", "podRestartThresholds", "includingInitContainers"),
    },
    "PodLifeTime": {
        **dict.fromkeys((*_FILTERED, "maxPodLifeTimeSeconds"), ()),
        "podLifeTime": ("maxPodLifeTimeSeconds", "podStatusPhases", "states"),
    },
    "RemoveFailedPods": {
        **dict.fromkeys(_FILTERED, ()),
        "failedPods": ("minPodLifetimeSeconds", "reasons", "exitCodes", "includingInitContainers", "excludeOwnerKinds"),
    },
}
_ALL_PARAMS = tuple(sorted({name for params in _PARAMS.values() for name in params} | set(_ANY_STRATEGY)))
_RENAMED = {"podRestartThresholds": "podRestartThreshold"}
_NARROWING = (
    *("labelSelector", "namespaces", "nodeSelector", "include", "exclude", "matchLabels", "matchExpressions"),
    *("excludeOwnerKinds", "excludedTaints", "includedTaints", "thresholdPriority", "thresholdPriorityClassName"),
)


def read_v1alpha1(document: Mapping[str, Any], findings: Findings) -> Policy | None:
    """Return the policy that a document describes, or None where it is wrong; mistakes and warnings go to findings."""
    before = len(findings.mistakes)
    findings.warn("apiVersion", "descheduler/v1alpha1 is converted: see what it became with 'rebalancer policy convert'")
    _look_for_strangers(document, ("apiVersion", "kind", "strategies", *_TOP_LEVEL, *_EVICTOR), "", findings)
    top = findings.read(TopLevel, {key: document[key] for key in _TOP_LEVEL if key in document}, "")
    # The first versions took 0 for "no limit"; none at all is the safe reading of today.
    for key in _TOP_LEVEL[1:]:
        if document.get(key) == 0:
            findings.warn(key, "0 allows no eviction at all; early versions took it for no limit, which is now: leave it out")
    shared = {key: document[key] for key in _EVICTOR if document.get(key) is not None}
    profiles = []
    for name, value in (findings.mapping(document.get("strategies"), "strategies") or {}).items():
        profile = _strategy(name, value, shared, findings)
        if profile is not None:
            profiles.append(profile)
    if len(profiles) > 1:
        order = ", ".join(use.name for use in _in_order(profiles))
        findings.warn("strategies", f"ran in random order; now Deschedule strategies come before Balance ones: {order}")
    if document.get("strategies") in (None, {}):
        findings.refuse("strategies", "at least one strategy is required: without one nothing would ever be done")
    elif not profiles and len(findings.mistakes) == before:
        findings.warn("strategies", "no strategy is enabled: the policy does nothing")
        profiles.append(Profile("default"))
    if top is None or len(findings.mistakes) > before:
        return None
    return Policy(
        profiles=tuple(profiles),
        node_selector=top.node_selector,
        max_per_node=top.max_no_of_pods_to_evict_per_node,
        max_per_namespace=top.max_no_of_pods_to_evict_per_namespace,
        max_total=top.max_no_of_pods_to_evict_total,
    )


def _in_order(profiles: list[Profile]) -> list[PluginUse]:
    uses = [use for profile in profiles for use in profile.deschedule]
    return uses + [use for profile in profiles for use in profile.balance]


def _strategy(name: str, value: Any, shared: Mapping[str, Any], findings: Findings) -> Profile | None:
    path = joined_path("strategies", (str(name),))
    document = findings.mapping(value, path)
    if document is None:
        return None
    enabled = document.get("enabled")
    if enabled is not None and not isinstance(enabled, bool):
        findings.refuse(f"{path}.enabled", f"must be true or false, not {shown(enabled)}")
    if name not in CATALOGUE:
        near = nearest_name(str(name), CATALOGUE)
        if enabled:
            findings.refuse(path, "must be the name of a strategy", near)
        else:
            hint = f" (did you mean {near}?)" if near else ""
            findings.warn(path, f"is not a strategy{hint}; it is not enabled, and nothing is lost")
        return None
    _look_for_strangers(document, ("enabled", "params", "weight"), path, findings)
    if enabled is not True:
        return None
    if document.get("weight"):
        findings.warn(f"{path}.weight", "has no effect; it never had one")
    params = findings.mapping(document.get("params"), f"{path}.params")
    if params is None:
        return None
    return _profile(name, params, shared, f"{path}.params", findings)


def _profile(name: str, params: Mapping[str, Any], shared: Mapping[str, Any], path: str, findings: Findings) -> Profile | None:
    args, origins = _args(name, params, path, findings)
    read = findings.read(CATALOGUE[name].args, args, path, origins)
    evictor = _evictor(params, shared, path, findings)
    if read is None or evictor is None:
        return None
    warn_of_changes(name, read, params, path, findings)
    use = (PluginUse(name, read),)
    # Upstream's own conversion names profiles like this, and so metrics and annotations keep their values.
    if "balance" in CATALOGUE[name].extension_points:
        return Profile(f"strategy-{name}-profile", evictor, balance=use)
    return Profile(f"strategy-{name}-profile", evictor, deschedule=use)


def _evictor(params: Mapping[str, Any], shared: Mapping[str, Any], path: str, findings: Findings) -> DefaultEvictorArgs | None:
    args = dict(shared)
    origins = {key: key for key in shared}
    if params.get("nodeFit") is not None:
        args["nodeFit"] = params["nodeFit"]
    threshold = {"value": params.get("thresholdPriority"), "name": params.get("thresholdPriorityClassName")}
    if any(value not in (None, "") for value in threshold.values()):
        args["priorityThreshold"] = {key: value for key, value in threshold.items() if value is not None}
        origins["priorityThreshold"] = f"{path}.thresholdPriority"
    quiet = Findings()
    read = quiet.read(DefaultEvictorArgs, args, path, origins)
    findings.mistakes.extend(mistake for mistake in quiet.mistakes if mistake not in findings.mistakes)
    if read is None:
        return None
    # Said in today's words at once: the booleans have become lists.
    return DefaultEvictorArgs.model_validate(read.canonical())


def _args(name: str, params: Mapping[str, Any], path: str, findings: Findings) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the arguments of today, and where in the document each was written."""
    groups = _PARAMS[name]
    args: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for key, value in params.items():
        here = joined_path(path, (str(key),))
        if key in _ANY_STRATEGY or value is None:
            continue
        if key not in groups:
            _strange_param(name, str(key), here, findings)
        elif groups[key]:
            group = findings.mapping(value, here)
            _look_for_strangers(group or {}, groups[key], here, findings)
            for inner, given in (group or {}).items():
                if inner in groups[key] and given is not None:
                    _take(_RENAMED.get(inner, inner), given, f"{here}.{inner}", args, origins, findings)
                if inner in _RENAMED:
                    findings.warn(f"{here}.{inner}", f"is taken for {_RENAMED[inner]}; the descheduler ignored it")
        else:
            _take(str(key), value, here, args, origins, findings)
    _rename(name, args, origins, findings)
    return args, origins


def _take(name: str, value: Any, path: str, args: dict[str, Any], origins: dict[str, str], findings: Findings) -> None:
    if name in args and args[name] != value:
        findings.refuse(path, f"is given twice with different values, here and as {origins[name]}")
        return
    args[name] = value
    origins[name] = path


def _rename(name: str, args: dict[str, Any], origins: dict[str, str], findings: Findings) -> None:
    """Bring the parameters of v1alpha1 to the names of v1alpha2."""
    if name in {"LowNodeUtilization", "HighNodeUtilization"} and "namespaces" in args:
        args["evictableNamespaces"] = args.pop("namespaces")
        origins["evictableNamespaces"] = origins.pop("namespaces")
    if name == "LowNodeUtilization" and args.get("useDeviationThresholds") is not True:
        _complete_thresholds(args, origins, findings)
    if "includeSoftConstraints" in args:
        soft, origin = args.pop("includeSoftConstraints"), origins.pop("includeSoftConstraints")
        if not isinstance(soft, bool):
            findings.refuse(origin, f"must be true or false, not {shown(soft)}")
        elif soft:
            args["constraints"] = ["DoNotSchedule", "ScheduleAnyway"]
    if "podStatusPhases" in args:
        phases, states = args.pop("podStatusPhases"), args.get("states", [])
        origin = origins.pop("podStatusPhases")
        if not isinstance(phases, list):
            findings.refuse(origin, f"must be a list, not {shown(phases)}")
        elif isinstance(states, list):
            args["states"] = [*phases, *(state for state in states if state not in phases)]
            origins.setdefault("states", origin)


def _complete_thresholds(args: dict[str, Any], origins: Mapping[str, str], findings: Findings) -> None:
    """Name the same resources in both maps; early versions took a missing resource for 100 percent."""
    low, high = args.get("thresholds"), args.get("targetThresholds")
    if not isinstance(low, Mapping) or not isinstance(high, Mapping):
        return
    sentence = "did not name {}, which was not looked at; now it is {}"
    for resource in sorted(high.keys() - low.keys(), key=str):
        findings.warn(origins["thresholds"], sentence.format(resource, f"{high[resource]}, as in targetThresholds"))
    for resource in sorted(low.keys() - high.keys(), key=str):
        findings.warn(origins["targetThresholds"], sentence.format(resource, "100"))
    args["thresholds"] = {**{resource: high[resource] for resource in high if resource not in low}, **low}
    args["targetThresholds"] = {**{resource: 100 for resource in low if resource not in high}, **high}


def _strange_param(name: str, key: str, path: str, findings: Findings) -> None:
    """Judge a parameter that the strategy does not know."""
    if key in _ALL_PARAMS:
        if key in _NARROWING:
            findings.refuse(path, f"{name} knows no {key}: without it more would be moved than is meant")
        else:
            findings.warn(path, f"has no effect on {name}")
        return
    _strange(key, (*_PARAMS[name], *_ANY_STRATEGY), path, findings)


def _look_for_strangers(document: Mapping[str, Any], known: tuple[str, ...], path: str, findings: Findings) -> None:
    for key in document:
        if key not in known:
            _strange(str(key), known, joined_path(path, (str(key),)), findings)


def _strange(key: str, known: tuple[str, ...], path: str, findings: Findings) -> None:
    """Warn of a key that is ignored; refuse it where it looks like a selector, even a misspelt one."""
    near = nearest_name(key, known)
    meant = nearest_name(key, (*_NARROWING, *known))
    if meant in _NARROWING:
        findings.refuse(path, "is a selector in a place where it would be ignored, and more would be moved than is meant", near)
        return
    hint = f" (did you mean {near}?)" if near else ""
    findings.warn(path, f"is not known here and is ignored{hint}")
