"""Builders of policy documents: each states only what a case is about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rebalancer.errors import Mistake, PolicyError
from rebalancer.policy import Loaded, load
from rebalancer.strategies.arguments import CATALOGUE

DATA = Path(__file__).parent / "data"
REQUIRED: dict[str, dict[str, Any]] = {
    "LowNodeUtilization": {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}},
    "HighNodeUtilization": {"thresholds": {"cpu": 20}},
    "RemovePodsViolatingNodeAffinity": {"nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]},
    "RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 100},
    "PodLifeTime": {"maxPodLifeTimeSeconds": 86400},
}


def a_profile(*strategies: str, name: str = "p", evictor: dict[str, Any] | None = None, **args: Any) -> dict[str, Any]:
    """Return a profile that enables the strategies; args: those of a strategy, by its name, in place of the "
    "least it needs."""
    config: list[dict[str, Any]] = [{"name": "DefaultEvictor", "args": evictor}] if evictor is not None else []
    config += [{"name": each, "args": args.get(each, REQUIRED.get(each, {}))} for each in strategies]
    plugins: dict[str, Any] = {}
    for each in strategies:
        point = min(CATALOGUE[each].extension_points)
        plugins.setdefault(point, {"enabled": []})["enabled"].append(each)
    return {"name": name, "pluginConfig": config, "plugins": plugins}


def a_policy(*profiles: dict[str, Any], **top: Any) -> dict[str, Any]:
    """Return a v1alpha2 document with these profiles (or a harmless one) and top-level keys."""
    document: dict[str, Any] = {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy"}
    return document | top | {"profiles": list(profiles) or [a_profile("RemoveDuplicates")]}


def an_old_policy(strategies: dict[str, Any], **top: Any) -> dict[str, Any]:
    """Return a v1alpha1 document."""
    return {"apiVersion": "descheduler/v1alpha1", "kind": "DeschedulerPolicy", "strategies": strategies} | top


def loaded(document: Any) -> Loaded:
    """Return what a document gives."""
    return load(document, source="policy.yaml")


def mistakes_in(document: Any) -> dict[str, Mistake]:
    """Return the mistakes in a document by their paths; none where it loads."""
    try:
        load(document, source="policy.yaml")
    except PolicyError as error:
        return {mistake.path: mistake for mistake in error.mistakes}
    return {}


def mistakes_in_args(strategy: str, args: Any) -> dict[str, Mistake]:
    """Return the mistakes in the arguments of a strategy (or of DefaultEvictor), by their paths inside the "
    "arguments."""
    if strategy == "DefaultEvictor":
        found = mistakes_in(a_policy(a_profile("RemoveDuplicates", evictor=args)))
    else:
        found = mistakes_in(a_policy(a_profile(strategy, **{strategy: args})))
    prefix = "profiles[0].pluginConfig[0].args"
    return {path.removeprefix(prefix).removeprefix("."): mistake for path, mistake in found.items()}
