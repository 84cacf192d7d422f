"""A KubeSchedulerConfiguration document to a SchedulerConfig, with every mistake at once.

Enters: the document as a dict. Leaves: profiles as values. Unknown keys of the parts that matter here are mistakes; parts that
do not bear on where a pod goes (leader election, client connection, queue sort, permit, bind) are passed over.
Source: https://kubernetes.io/docs/reference/config-api/kube-scheduler-config.v1/
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from rebalancer.errors import InputError, Mistake, ParseError
from rebalancer.model.pod import SpreadConstraint
from rebalancer.model.selector import NOTHING, PreferredNodeTerm
from rebalancer.parse import wire
from rebalancer.parse.selector import node_selector, node_term
from rebalancer.parse.spelling import nearest_name
from rebalancer.placement.profile import (
    DEFAULT,
    DEFAULT_SCHEDULER,
    FILTERS,
    NEUTRAL_PLUGINS,
    SYSTEM_SPREAD,
    WEIGHTS,
    Plugin,
    SchedulerConfig,
    SchedulerProfile,
    ScoringKind,
    ScoringStrategy,
)

__all__ = ["DEFAULT", "SchedulerConfig", "SchedulerProfile", "scheduler_config"]

_SOURCE = "scheduler configuration"
_GROUP = "kubescheduler.config.k8s.io/"
_PROFILE_KEYS = ("schedulerName", "plugins", "pluginConfig", "percentageOfNodesToScore")
_POINTS = (
    "preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score",
    "reserve", "permit", "preBind", "bind", "postBind", "multiPoint", "placementGenerate", "placementScore",
)  # fmt: skip


class _Reader:
    """Collects mistakes while values are taken out of a document."""

    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []

    def wrong(self, path: str, expected: str, nearest: str | None = None) -> None:
        """Note a mistake."""
        self.mistakes.append(Mistake(path, expected, nearest))

    def mapping(self, value: Any, path: str, keys: Iterable[str] | None = None) -> Mapping[str, Any]:
        """Return the value as a mapping; an absent one is empty. keys: the only ones allowed."""
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.wrong(path, "must be a mapping")
            return {}
        if keys is not None:
            allowed = tuple(keys)
            for key in value:
                if key not in allowed:
                    self.wrong(f"{path}.{key}" if path else str(key), "is not a known key", nearest_name(str(key), allowed))
        return value

    def items(self, value: Any, path: str) -> list[Any]:
        """Return the value as a list; an absent one is empty."""
        if value is None:
            return []
        if not isinstance(value, list):
            self.wrong(path, "must be a list")
            return []
        return value

    def integer(self, value: Any, path: str, default: int, lowest: int, highest: int) -> int:
        """Return the value as an integer within bounds."""
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
            self.wrong(path, f"must be an integer from {lowest} to {highest}")
            return default
        return value

    def text(self, value: Any, path: str, default: str = "") -> str:
        """Return the value as a text."""
        if value is None:
            return default
        if not isinstance(value, str):
            self.wrong(path, "must be a string")
            return default
        return value


def scheduler_config(document: Mapping[str, Any]) -> SchedulerConfig:
    """Read a KubeSchedulerConfiguration. Raises InputError with every mistake found."""
    if not isinstance(document, Mapping):
        raise InputError(_SOURCE, [Mistake("$", "must be a KubeSchedulerConfiguration as a mapping")])
    reader = _Reader()
    kind, version = document.get("kind"), str(document.get("apiVersion", ""))
    if kind != "KubeSchedulerConfiguration":
        reader.wrong("kind", "must be KubeSchedulerConfiguration")
    if not version.startswith(_GROUP):
        reader.wrong("apiVersion", f"must be {_GROUP}v1")
    elif version != f"{_GROUP}v1":
        reader.wrong("apiVersion", f"{version} is no longer served: must be {_GROUP}v1")
    overall = reader.integer(document.get("percentageOfNodesToScore"), "percentageOfNodesToScore", 0, 0, 100)
    profiles: list[SchedulerProfile] = []
    for position, each in enumerate(reader.items(document.get("profiles"), "profiles")):
        path = f"profiles[{position}]"
        profile = _profile(reader, reader.mapping(each, path, _PROFILE_KEYS), path, overall)
        if any(other.name == profile.name for other in profiles):
            reader.wrong(f"{path}.schedulerName", f"{profile.name!r} is taken by an earlier profile")
        profiles.append(profile)
    extenders = len(reader.items(document.get("extenders"), "extenders"))
    if reader.mistakes:
        raise InputError(_SOURCE, reader.mistakes)
    return SchedulerConfig(tuple(profiles) or (SchedulerProfile(percentage_to_score=overall),), extenders)


def _profile(reader: _Reader, document: Mapping[str, Any], path: str, overall: int) -> SchedulerProfile:
    filters, weights, foreign = _plugins(reader, reader.mapping(document.get("plugins"), f"{path}.plugins", _POINTS), path)
    given: dict[str, tuple[Mapping[str, Any], str]] = {}
    for position, each in enumerate(reader.items(document.get("pluginConfig"), f"{path}.pluginConfig")):
        place = f"{path}.pluginConfig[{position}]"
        entry = reader.mapping(each, place, ("name", "args"))
        given[reader.text(entry.get("name"), f"{place}.name")] = (
            reader.mapping(entry.get("args"), f"{place}.args"),
            f"{place}.args",
        )
    args: Any = lambda plugin: given.get(plugin, ({}, ""))  # noqa: E731
    fit, place = args(Plugin.RESOURCES_FIT)
    affinity, affinity_path = args(Plugin.INTER_POD_AFFINITY)
    balanced, balanced_path = args(Plugin.BALANCED_ALLOCATION)
    spread, spread_path = args(Plugin.TOPOLOGY_SPREAD)
    node, node_path = args(Plugin.NODE_AFFINITY)
    constraints, built_in = _spread(reader, spread, spread_path)
    required, preferred = _added(reader, node, node_path)
    return SchedulerProfile(
        name=reader.text(document.get("schedulerName"), f"{path}.schedulerName") or DEFAULT_SCHEDULER,
        filters=filters,
        weights=weights,
        fit=_strategy(reader, reader.mapping(fit.get("scoringStrategy"), f"{place}.scoringStrategy"), f"{place}.scoringStrategy"),
        balanced_resources=_resources(reader, balanced.get("resources"), f"{balanced_path}.resources"),
        ignored_resources=frozenset(map(str, reader.items(fit.get("ignoredResources"), f"{place}.ignoredResources"))),
        ignored_groups=frozenset(map(str, reader.items(fit.get("ignoredResourceGroups"), f"{place}.ignoredResourceGroups"))),
        hard_affinity_weight=reader.integer(
            affinity.get("hardPodAffinityWeight"), f"{affinity_path}.hardPodAffinityWeight", 1, 0, 100
        ),
        ignore_preferred=bool(affinity.get("ignorePreferredTermsOfExistingPods", False)),
        default_spread=constraints,
        system_spread=built_in,
        added_affinity=required,
        added_preferred=preferred,
        percentage_to_score=reader.integer(
            document.get("percentageOfNodesToScore"), f"{path}.percentageOfNodesToScore", overall, 0, 100
        ),
        foreign=foreign,
    )


def _plugins(
    reader: _Reader, document: Mapping[str, Any], path: str
) -> tuple[frozenset[Plugin], dict[Plugin, int], tuple[str, ...]]:
    """Apply what is enabled and disabled: first at every point (multiPoint), then at the single ones, which win."""
    known = {str(plugin) for plugin in Plugin}
    filters, weights = set(FILTERS), dict(WEIGHTS)
    foreign: dict[str, None] = {}
    for point in ("multiPoint", "preFilter", "filter", "preScore", "score"):
        place = f"{path}.plugins.{point}"
        entry = reader.mapping(document.get(point), place, ("enabled", "disabled"))
        filtering, scoring = point in ("multiPoint", "filter"), point in ("multiPoint", "score")
        for position, each in enumerate(reader.items(entry.get("disabled"), f"{place}.disabled")):
            item = reader.mapping(each, f"{place}.disabled[{position}]", ("name", "weight"))
            name = reader.text(item.get("name"), f"{place}.disabled[{position}].name")
            if name != "*" and name not in known and name not in NEUTRAL_PLUGINS and (likely := nearest_name(name, known)):
                reader.wrong(f"{place}.disabled[{position}].name", f"{name!r} is not a plugin", likely)
            for plugin in Plugin:
                if name in ("*", plugin):
                    if filtering:
                        filters.discard(plugin)
                    if scoring:
                        weights.pop(plugin, None)
        for position, each in enumerate(reader.items(entry.get("enabled"), f"{place}.enabled")):
            item = reader.mapping(each, f"{place}.enabled[{position}]", ("name", "weight"))
            name = reader.text(item.get("name"), f"{place}.enabled[{position}].name")
            weight = reader.integer(item.get("weight"), f"{place}.enabled[{position}].weight", 0, 0, 2**31 - 1)
            if name in known:
                plugin = Plugin(name)
                if filtering and plugin in FILTERS:
                    filters.add(plugin)
                if scoring and plugin in WEIGHTS:
                    weights[plugin] = weight or (WEIGHTS[plugin] if point == "multiPoint" else 1)
            elif name not in NEUTRAL_PLUGINS:
                foreign[name] = None
    return frozenset(filters), weights, tuple(foreign)


def _strategy(reader: _Reader, document: Mapping[str, Any], path: str) -> ScoringStrategy:
    if not document:
        return ScoringStrategy()
    reader.mapping(document, path, ("type", "resources", "requestedToCapacityRatio"))
    name = reader.text(document.get("type"), f"{path}.type", ScoringKind.LEAST_ALLOCATED)
    if name not in list(ScoringKind):
        reader.wrong(f"{path}.type", f"must be one of {', '.join(ScoringKind)}", nearest_name(name, map(str, ScoringKind)))
        return ScoringStrategy()
    kind = ScoringKind(name)
    ratio = reader.mapping(document.get("requestedToCapacityRatio"), f"{path}.requestedToCapacityRatio", ("shape",))
    points: list[tuple[int, int]] = []
    for position, each in enumerate(reader.items(ratio.get("shape"), f"{path}.requestedToCapacityRatio.shape")):
        place = f"{path}.requestedToCapacityRatio.shape[{position}]"
        point = reader.mapping(each, place, ("utilization", "score"))
        utilisation = reader.integer(point.get("utilization"), f"{place}.utilization", 0, 0, 100)
        if points and utilisation <= points[-1][0]:
            reader.wrong(f"{place}.utilization", f"must be greater than {points[-1][0]}, the one before")
        points.append((utilisation, reader.integer(point.get("score"), f"{place}.score", 0, 0, 10)))
    if kind is ScoringKind.REQUESTED_TO_CAPACITY_RATIO and not points:
        reader.wrong(f"{path}.requestedToCapacityRatio.shape", "must have at least one point")
    return ScoringStrategy(kind, _resources(reader, document.get("resources"), f"{path}.resources"), tuple(points))


def _resources(reader: _Reader, value: Any, path: str) -> tuple[tuple[str, int], ...]:
    found = []
    for position, each in enumerate(reader.items(value, path)):
        item = reader.mapping(each, f"{path}[{position}]", ("name", "weight"))
        name = reader.text(item.get("name"), f"{path}[{position}].name")
        if not name:
            reader.wrong(f"{path}[{position}].name", "must name a resource")
        found.append((name, reader.integer(item.get("weight"), f"{path}[{position}].weight", 1, 1, 100)))
    return tuple(found) or ScoringStrategy().resources


def _spread(reader: _Reader, document: Mapping[str, Any], path: str) -> tuple[tuple[SpreadConstraint, ...], bool]:
    defaulting = reader.text(document.get("defaultingType"), f"{path}.defaultingType", "System")
    listed = reader.items(document.get("defaultConstraints"), f"{path}.defaultConstraints")
    if defaulting not in ("System", "List"):
        reader.wrong(f"{path}.defaultingType", "must be System or List", nearest_name(defaulting, ("System", "List")))
    if defaulting == "System":
        if listed:
            reader.wrong(f"{path}.defaultConstraints", "must be empty unless defaultingType is List")
        return SYSTEM_SPREAD, True
    constraints = []
    for position, each in enumerate(listed):
        place = f"{path}.defaultConstraints[{position}]"
        item = reader.mapping(each, place, ("maxSkew", "topologyKey", "whenUnsatisfiable"))
        action = reader.text(item.get("whenUnsatisfiable"), f"{place}.whenUnsatisfiable")
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            reader.wrong(f"{place}.whenUnsatisfiable", "must be DoNotSchedule or ScheduleAnyway")
        key = reader.text(item.get("topologyKey"), f"{place}.topologyKey")
        if not key:
            reader.wrong(f"{place}.topologyKey", "must be a label key")
        skew = reader.integer(item.get("maxSkew"), f"{place}.maxSkew", 1, 1, 2**31 - 1)
        constraints.append(SpreadConstraint(skew, key, action == "DoNotSchedule", NOTHING, None, True, False))
    return tuple(constraints), False


def _added(reader: _Reader, document: Mapping[str, Any], path: str) -> tuple[Any, tuple[PreferredNodeTerm, ...]]:
    value = document.get("addedAffinity")
    if value is None:
        return None, ()
    try:
        affinity = msgspec.convert(value, wire.NodeAffinity)
        required = affinity.requiredDuringSchedulingIgnoredDuringExecution
        return (
            None if required is None else node_selector(required),
            tuple(
                PreferredNodeTerm(each.weight, node_term(each.preference))
                for each in affinity.preferredDuringSchedulingIgnoredDuringExecution or ()
            ),
        )
    except (msgspec.ValidationError, ParseError) as error:
        reader.wrong(f"{path}.addedAffinity", f"must be a node affinity: {error}")
        return None, ()
