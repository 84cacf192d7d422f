"""Documents of the version ``descheduler/v1alpha2``, read strictly: every key, type and value is checked.

A plain document enters, a Policy leaves, with the findings beside it.
Source: https://github.com/kubernetes-sigs/descheduler/blob/master/pkg/api/v1alpha2/types.go (names and types).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from rebalancer.eligibility.arguments import DefaultEvictorArgs
from rebalancer.model.selector import EVERYTHING
from rebalancer.parse.argument_types import Count, Items, NodeLabels
from rebalancer.parse.arguments import Arguments, shown
from rebalancer.parse.spelling import nearest_name
from rebalancer.policy.findings import Findings
from rebalancer.policy.metrics import KUBERNETES_METRICS, MetricsCollector, MetricsProvider
from rebalancer.policy.policy import PluginUse, Policy, Profile
from rebalancer.strategies.arguments import CATALOGUE, ExtensionPoint, StrategyArgs

EVICTOR = "DefaultEvictor"
REAL_LOAD_REFUSED = "real load is not supported yet: leave metricsUtilization out, and nodes are judged by requests"
_STRATEGY_POINTS: tuple[ExtensionPoint, ...] = ("deschedule", "balance")
_EVICTOR_POINTS = ("filter", "preevictionfilter")
_IDLE_POINTS = ("presort", "sort")
_SPELLINGS = {"preEvictionFilter": "preevictionfilter", "preSort": "presort"}
_HEADER = ("apiVersion", "kind")


class TopLevel(Arguments):
    """The keys of a policy beside its profiles."""

    node_selector: NodeLabels = Field(
        EVERYTHING, description="Only these nodes are looked at (a label selector as text); all where empty."
    )
    max_no_of_pods_to_evict_per_node: Count | None = Field(
        None, description="Most evictions per node and run (pods); no limit where not given, 0 for none."
    )
    max_no_of_pods_to_evict_per_namespace: Count | None = Field(
        None, description="Most evictions per namespace and run (pods); no limit where not given, 0 for none."
    )
    max_no_of_pods_to_evict_total: Count | None = Field(
        None, description="Most evictions per run (pods); no limit where not given, 0 for none."
    )
    eviction_failure_event_notification: bool = Field(False, description="Write Events about failed evictions, too.")
    grace_period_seconds: Count | None = Field(
        None, description="Grace period of each eviction (seconds); the pod's own where not given."
    )
    metrics_collector: MetricsCollector | None = Field(None, description="Deprecated: use metricsProviders.")
    metrics_providers: Items[Any] = Field((), description="Where real load could be read.")
    single_node: bool = Field(
        False, description="On fewer than two Ready nodes, let Deschedule strategies run (ours; upstream skips)."
    )


TOP_LEVEL_NAMES = (*_HEADER, *TopLevel.names(), "profiles")


def read_v1alpha2(document: Mapping[str, Any], findings: Findings) -> Policy | None:
    """Return the policy that a document describes, or None where it is wrong; mistakes and warnings go to findings."""
    before = len(findings.mistakes)
    findings.refuse_unknown(document, TOP_LEVEL_NAMES, "")
    keys = {key: document[key] for key in TopLevel.names() if key in document}
    top = findings.read(TopLevel, keys, "")
    providers = _providers(document.get("metricsProviders"), findings)
    collector = top is not None and top.metrics_collector is not None and top.metrics_collector.enabled
    if collector:
        if any(provider.source == KUBERNETES_METRICS for provider in providers):
            findings.refuse("metricsCollector.enabled", "must not be set beside a KubernetesMetrics provider")
        else:
            providers = (*providers, MetricsProvider(source=KUBERNETES_METRICS))
            findings.warn("metricsCollector", "is deprecated: write a metricsProviders entry with source KubernetesMetrics")
    profiles = _profiles(document.get("profiles"), findings)
    if providers:
        findings.warn("metricsProviders", "has no effect: real load is not supported yet")
    if top is None or len(findings.mistakes) > before:
        return None
    return Policy(
        profiles=profiles,
        node_selector=top.node_selector,
        max_per_node=top.max_no_of_pods_to_evict_per_node,
        max_per_namespace=top.max_no_of_pods_to_evict_per_namespace,
        max_total=top.max_no_of_pods_to_evict_total,
        grace_period_seconds=top.grace_period_seconds,
        eviction_failure_event_notification=top.eviction_failure_event_notification,
        metrics_providers=providers,
        single_node=top.single_node,
    )


def _providers(given: Any, findings: Findings) -> tuple[MetricsProvider, ...]:
    if not isinstance(given, list | tuple):
        return ()
    providers: list[MetricsProvider] = []
    for place, item in enumerate(given):
        path = f"metricsProviders[{place}]"
        provider = findings.read(MetricsProvider, item, path)
        if provider is None:
            continue
        if any(other.source == provider.source for other in providers):
            findings.refuse(f"{path}.source", f"{provider.source} may be given once only")
        providers.append(provider)
    return tuple(providers)


def _profiles(given: Any, findings: Findings) -> tuple[Profile, ...]:
    items = findings.sequence(given, "profiles")
    if items == []:
        findings.refuse("profiles", "at least one profile is required: without one nothing would ever be done")
    profiles: list[Profile] = []
    named: set[str] = set()
    for place, item in enumerate(items or ()):
        path = f"profiles[{place}]"
        document = findings.mapping(item, path)
        if document is None:
            continue
        findings.refuse_unknown(document, ("name", "pluginConfig", "plugins"), path)
        name = document.get("name")
        if name is None or name == "":
            name = f"profile-{place + 1}"
            findings.warn(path, f"has no name and is called {name}")
        elif not isinstance(name, str):
            findings.refuse(f"{path}.name", f"must be a string, not {shown(name)}")
            name = ""
        if name in named:
            findings.refuse(f"{path}.name", f"{name!r} is the name of another profile already")
        named.add(name)
        profiles.append(_profile(name, document, path, findings))
    return tuple(profiles)


def _profile(name: str, document: Mapping[str, Any], path: str, findings: Findings) -> Profile:
    evictor, args, places = _plugin_config(document.get("pluginConfig"), f"{path}.pluginConfig", findings)
    loaded = _asking_for_real_load(document.get("pluginConfig"))
    enabled = _plugins(document.get("plugins"), set(places), f"{path}.plugins", findings)
    for strategy, place in places.items():
        if strategy != EVICTOR and not any(strategy in names for names in enabled.values()):
            findings.warn(place, f"{strategy} is configured and not enabled in plugins: it does nothing")
    for names in enabled.values():
        for strategy in names:
            if strategy in loaded:
                findings.refuse(f"{places[strategy]}.args.metricsUtilization", REAL_LOAD_REFUSED)
    if not any(enabled.values()):
        findings.warn(path, f"profile {name} enables no strategy and does nothing")
    uses = {
        point: tuple(PluginUse(strategy, args[strategy]) for strategy in enabled[point] if strategy in args)
        for point in _STRATEGY_POINTS
    }
    return Profile(name, evictor, uses["deschedule"], uses["balance"])


def _asking_for_real_load(given: Any) -> set[str]:
    """Return the plugins that are configured to look at real load, whether or not their arguments are right otherwise."""
    asking = set()
    for item in given if isinstance(given, list | tuple) else ():
        args = item.get("args") if isinstance(item, Mapping) else None
        metrics = args.get("metricsUtilization") if isinstance(args, Mapping) else None
        if isinstance(metrics, Mapping) and (metrics.get("source") or metrics.get("metricsServer")):
            asking.add(str(item.get("name")))
    return asking


def _plugin_config(
    given: Any, path: str, findings: Findings
) -> tuple[DefaultEvictorArgs, dict[str, StrategyArgs], dict[str, str]]:
    """Return the evictor's arguments, those of each strategy that are right, and where each plugin is configured."""
    evictor = DefaultEvictorArgs()
    args: dict[str, StrategyArgs] = {}
    places: dict[str, str] = {}
    known = (EVICTOR, *CATALOGUE)
    for place, item in enumerate(findings.sequence(given, path) or ()):
        here = f"{path}[{place}]"
        document = findings.mapping(item, here)
        if document is None:
            continue
        findings.refuse_unknown(document, ("name", "args"), here)
        name = document.get("name")
        if not isinstance(name, str) or name not in known:
            near = nearest_name(name, known) if isinstance(name, str) else None
            expected = "is required" if name is None else f"must be the name of a plugin, not {shown(name)}"
            findings.refuse(f"{here}.name", expected, near)
            continue
        if name in places:
            findings.refuse(f"{here}.name", f"{name} is configured already, in {places[name]}")
            continue
        places[name] = here
        if name == EVICTOR:
            evictor = findings.read(DefaultEvictorArgs, document.get("args"), f"{here}.args") or evictor
        elif (read := findings.read(CATALOGUE[name].args, document.get("args"), f"{here}.args")) is not None:
            args[name] = read
    return evictor, args, places


def _plugins(given: Any, configured: set[str], path: str, findings: Findings) -> dict[ExtensionPoint, list[str]]:
    """Return the enabled strategies of each extension point, in order."""
    enabled: dict[ExtensionPoint, list[str]] = {point: [] for point in _STRATEGY_POINTS}
    document = findings.mapping(given, path)
    if document is None:
        return enabled
    points = (*_IDLE_POINTS, *_STRATEGY_POINTS, *_EVICTOR_POINTS)
    findings.refuse_unknown(document, (*points, *_SPELLINGS), path)
    for other, plain in _SPELLINGS.items():
        if other in document and plain in document:
            findings.refuse(f"{path}.{other}", f"is another spelling of {plain}, which is given too")
    for key, value in document.items():
        point = _SPELLINGS.get(key, key)
        if point not in points:
            continue
        here = f"{path}.{key}"
        section = findings.mapping(value, here)
        if section is None:
            continue
        findings.refuse_unknown(section, ("enabled", "disabled"), here)
        if findings.names(section.get("disabled"), f"{here}.disabled"):
            findings.warn(f"{here}.disabled", "has no effect, as in the descheduler: what is not enabled is off")
        chosen = findings.names(section.get("enabled"), f"{here}.enabled")
        if point in _IDLE_POINTS:
            findings.warn(here, "has no effect, as in the descheduler")
            continue
        for place, name in chosen:
            if _belongs(name, point, f"{here}.enabled[{place}]", findings):
                _enable(name, point, configured, enabled, f"{here}.enabled[{place}]", findings)
    return enabled


def _belongs(name: str, point: str, path: str, findings: Findings) -> bool:
    """Tell whether a plugin may stand at an extension point; where not, say which is the right one."""
    right: tuple[str, ...]
    if name == EVICTOR:
        right = _EVICTOR_POINTS
    elif name in CATALOGUE:
        right = tuple(sorted(CATALOGUE[name].extension_points))
    else:
        near = nearest_name(name, (EVICTOR, *CATALOGUE))
        findings.refuse(path, f"must be the name of a plugin, not {shown(name)}", near)
        return False
    if point not in right:
        findings.refuse(path, f"{name} cannot stand under {point}: use {' or '.join(right)}")
        return False
    return True


def _enable(
    name: str,
    point: str,
    configured: set[str],
    enabled: dict[ExtensionPoint, list[str]],
    path: str,
    findings: Findings,
) -> None:
    for known in _STRATEGY_POINTS:
        if point != known:
            continue
        if name in enabled[known]:
            findings.warn(path, f"{name} is enabled already: the second time has no effect")
            return
        if name not in configured:
            findings.refuse(path, f"{name} is enabled and has no entry in pluginConfig")
        enabled[known].append(name)
