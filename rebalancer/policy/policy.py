"""What a policy says, as frozen values, and how it is written as a v1alpha2 document.

Documents are read in ``v1alpha2`` and ``v1alpha1``, environment variables in ``environment``; all three give these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from rebalancer.eligibility.arguments import DefaultEvictorArgs
from rebalancer.model.selector import EVERYTHING, LabelSelector
from rebalancer.parse.selector_text import text_of_selector
from rebalancer.policy.metrics import MetricsProvider
from rebalancer.strategies.arguments import StrategyArgs

API_VERSION = "descheduler/v1alpha2"
KIND = "DeschedulerPolicy"


@dataclass(frozen=True, slots=True)
class PluginUse:
    """A strategy that a profile enables.

    name: upstream's name, a key of the catalogue.
    args: an instance of the catalogue's model for that name.
    """

    name: str
    args: StrategyArgs


@dataclass(frozen=True, slots=True)
class Profile:
    """Strategies that share the rules of what may be moved.

    name: unique in the policy; stands in metrics and annotations.
    evictor: what may be moved.
    deschedule, balance: the strategies in their order.
    """

    name: str
    evictor: DefaultEvictorArgs = field(default_factory=DefaultEvictorArgs)
    deschedule: tuple[PluginUse, ...] = ()
    balance: tuple[PluginUse, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as a v1alpha2 document writes it."""
        evictor = self.evictor.canonical()
        config = [{"name": "DefaultEvictor", "args": evictor}] if evictor else []
        for use in (*self.deschedule, *self.balance):
            args = use.args.to_dict()
            config.append({"name": use.name, "args": args} if args else {"name": use.name})
        plugins = {
            point: {"enabled": [use.name for use in uses]}
            for point, uses in (("deschedule", self.deschedule), ("balance", self.balance))
            if uses
        }
        return {"name": self.name, "pluginConfig": config, "plugins": plugins}


@dataclass(frozen=True, slots=True)
class Policy:
    """A whole policy.

    profiles: in their order.
    node_selector: only these nodes are looked at, as sources and as destinations of strategies.
    max_per_node, max_per_namespace, max_total: most evictions per run (pods); None for no limit, 0 for none at all.
    grace_period_seconds: sent with each eviction; None for the pod's own.
    eviction_failure_event_notification: write Events about evictions that failed, too.
    metrics_providers: where real load could be read.
    single_node: on fewer than two Ready nodes, let Deschedule strategies run (ours; upstream skips).
    """

    profiles: tuple[Profile, ...]
    node_selector: LabelSelector = EVERYTHING
    max_per_node: int | None = None
    max_per_namespace: int | None = None
    max_total: int | None = None
    grace_period_seconds: int | None = None
    eviction_failure_event_notification: bool = False
    metrics_providers: tuple[MetricsProvider, ...] = ()
    single_node: bool = False

    def uses(self) -> Iterator[tuple[Profile, PluginUse]]:
        """Yield each enabled strategy in the order in which a run takes them: all Deschedule ones, then all Balance ones."""
        for profile in self.profiles:
            for use in profile.deschedule:
                yield profile, use
        for profile in self.profiles:
            for use in profile.balance:
                yield profile, use

    def to_dict(self) -> dict[str, Any]:
        """Return the policy as a v1alpha2 document; reading that gives an equal policy."""
        top = {
            "nodeSelector": text_of_selector(self.node_selector) or None,
            "maxNoOfPodsToEvictPerNode": self.max_per_node,
            "maxNoOfPodsToEvictPerNamespace": self.max_per_namespace,
            "maxNoOfPodsToEvictTotal": self.max_total,
            "gracePeriodSeconds": self.grace_period_seconds,
            "evictionFailureEventNotification": self.eviction_failure_event_notification or None,
            "metricsProviders": [provider.to_dict() for provider in self.metrics_providers] or None,
            "singleNode": self.single_node or None,
        }
        document: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND}
        document.update({key: value for key, value in top.items() if value is not None})
        document["profiles"] = [profile.to_dict() for profile in self.profiles]
        return document

    def to_yaml(self) -> str:
        """Return the policy as the text of a v1alpha2 document."""
        return yaml.safe_dump(self.to_dict(), sort_keys=False, default_flow_style=False, allow_unicode=True)
