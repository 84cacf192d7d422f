"""The arguments of every strategy: names, types, defaults, units and rules. The documentation is made from these models.

Source: https://github.com/kubernetes-sigs/descheduler#policy-default-evictor-and-strategy-plugins (names and defaults).
What a strategy does with its arguments is in its own file; documents as a whole are read in ``policy``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from rebalancer.parse.argument_types import (
    METRIC_RESOURCE,
    Count,
    EvictableNamespaces,
    Items,
    Namespaces,
    OwnerKinds,
    Percentages,
    Selector,
    choice,
)
from rebalancer.parse.arguments import Arguments

ExtensionPoint = Literal["deschedule", "balance"]

REQUIRED_NODE_AFFINITY = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED_NODE_AFFINITY = "preferredDuringSchedulingIgnoredDuringExecution"
DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"
ONLY_THRESHOLDING_RESOURCES = "OnlyThresholdingResources"

POD_PHASES = ("Running", "Pending", "Succeeded", "Failed", "Unknown")
POD_REASONS = ("NodeAffinity", "NodeLost", "Shutdown", "UnexpectedAdmissionError")
WAITING_REASONS = (
    "PodInitializing",
    "ContainerCreating",
    "ImagePullBackOff",
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "ErrImagePull",
    "CreateContainerError",
    "InvalidImageName",
)
TERMINATED_REASONS = (
    "OOMKilled",
    "Error",
    "Completed",
    "DeadlineExceeded",
    "Evicted",
    "ContainerCannotRun",
    "StartError",
)


class StrategyArgs(Arguments):
    """The base of a strategy's arguments."""


class RemoveDuplicatesArgs(StrategyArgs):
    """Arguments of RemoveDuplicates."""

    namespaces: Namespaces = Field(Namespaces(), description="Namespaces that are looked at; all where not given.")
    exclude_owner_kinds: Items[str] = Field((), description="Pods with an owner of one of these kinds are left alone.")


class EvictionLimits(Arguments):
    """Limits of one strategy, beside those of the whole policy."""

    node: Count | None = Field(None, description="Most evictions per node and run (pods); no limit where not given.")


class PrometheusQuery(Arguments):
    """How a node's load is asked of Prometheus."""

    query: str = Field("", description="PromQL giving a value from 0 to 1 per node, the node's name in label instance.")


class MetricsUtilization(Arguments):
    """Where a node's real load is read; requests are used where not given."""

    source: Annotated[str, choice("", "KubernetesMetrics", "Prometheus")] = Field(
        "", description="KubernetesMetrics or Prometheus; empty for requests."
    )
    metrics_server: bool = Field(False, description="Deprecated form of source: KubernetesMetrics.")
    prometheus: PrometheusQuery | None = Field(None, description="Needed where source is Prometheus.")

    def rules(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Refuse sources that contradict each other, and Prometheus without a query."""
        if self.source == "KubernetesMetrics" and self.metrics_server:
            yield ("source", "metrics_server"), "metricsServer must not be set beside source KubernetesMetrics"
        if self.source == "KubernetesMetrics" and self.prometheus is not None:
            yield ("source", "prometheus"), "prometheus must not be set where source is KubernetesMetrics"
        if self.source == "Prometheus" and (self.prometheus is None or not self.prometheus.query):
            yield ("source", "prometheus"), "prometheus.query is required where source is Prometheus"


class LowNodeUtilizationArgs(StrategyArgs):
    """Arguments of LowNodeUtilization."""

    thresholds: Percentages = Field(
        description="A node is under-used when every resource is at or below this (percent of allocatable, requested)."
    )
    target_thresholds: Percentages = Field(
        description="A node is over-used when any resource is above this (percent of allocatable, requested)."
    )
    use_deviation_thresholds: bool = Field(
        False, description="Read both thresholds as distances from the mean of all nodes (percentage points)."
    )
    number_of_nodes: Count = Field(0, description="Act only when more than this many nodes are under-used (nodes).")
    evictable_namespaces: EvictableNamespaces = Field(
        EvictableNamespaces(), description="Namespaces whose pods stay, though they count as usage."
    )
    eviction_limits: EvictionLimits = Field(EvictionLimits(), description="Limits of this strategy alone.")
    metrics_utilization: MetricsUtilization | None = Field(None, description="Judge nodes by real load.")

    def rules(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Refuse thresholds that name different resources, cross each other, or do not fit the source of the load."""
        both = ("thresholds", "target_thresholds")
        if self.thresholds.keys() != self.target_thresholds.keys():
            yield both, "thresholds and targetThresholds must name the same resources"
        elif not self.use_deviation_thresholds:
            for resource, low in self.thresholds.items():
                if low > self.target_thresholds[resource]:
                    yield (
                        (*both, "use_deviation_thresholds"),
                        f"thresholds.{resource} ({low:g}) must not be above targetThresholds.{resource} "
                        f"({self.target_thresholds[resource]:g})",
                    )
        prometheus = self.metrics_utilization is not None and self.metrics_utilization.source == "Prometheus"
        named = self.thresholds.keys() | self.target_thresholds.keys()
        if prometheus and named != {METRIC_RESOURCE}:
            yield (*both, "metrics_utilization"), f"with Prometheus both thresholds must name {METRIC_RESOURCE} alone"
        if not prometheus and METRIC_RESOURCE in named:
            yield (*both, "metrics_utilization"), f"{METRIC_RESOURCE} can be used with source Prometheus only"


class HighNodeUtilizationArgs(StrategyArgs):
    """Arguments of HighNodeUtilization."""

    thresholds: Percentages = Field(
        description="A node is under-used when every resource is at or below this (percent of allocatable, requested)."
    )
    number_of_nodes: Count = Field(0, description="Act only when more than this many nodes are under-used (nodes).")
    evictable_namespaces: EvictableNamespaces = Field(
        EvictableNamespaces(), description="Namespaces whose pods stay, though they count as usage."
    )
    eviction_modes: Items[Annotated[str, choice(ONLY_THRESHOLDING_RESOURCES)]] = Field(
        (), description="OnlyThresholdingResources: move only pods that request a resource named in thresholds."
    )
    drain_least_used: bool = Field(
        False,
        description="Where every node is under-used, empty the least used one, a node per run (ours; upstream does nothing).",
    )

    def rules(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Refuse the resource that stands for a Prometheus query, which this strategy cannot ask."""
        if METRIC_RESOURCE in self.thresholds:
            yield ("thresholds",), f"{METRIC_RESOURCE} can be used in LowNodeUtilization only"


class RemovePodsViolatingInterPodAntiAffinityArgs(StrategyArgs):
    """Arguments of RemovePodsViolatingInterPodAntiAffinity."""

    namespaces: Namespaces = Field(Namespaces(), description="Namespaces that are looked at; all where not given.")
    label_selector: Selector | None = Field(None, description="Only pods that it matches; all where not given.")


class RemovePodsViolatingNodeAffinityArgs(StrategyArgs):
    """Arguments of RemovePodsViolatingNodeAffinity."""

    node_affinity_type: Items[Annotated[str, choice(REQUIRED_NODE_AFFINITY, PREFERRED_NODE_AFFINITY)]] = Field(
        min_length=1, description="Which kinds of node affinity are upheld: required…, preferred…, or both."
    )
    namespaces: Namespaces = Field(Namespaces(), description="Namespaces that are looked at; all where not given.")
    label_selector: Selector | None = Field(None, description="Only pods that it matches; all where not given.")


class RemovePodsViolatingNodeTaintsArgs(StrategyArgs):
    """Arguments of RemovePodsViolatingNodeTaints."""

    include_prefer_no_schedule: bool = Field(False, description="Uphold PreferNoSchedule taints as well as NoSchedule.")
    excluded_taints: Items[str] = Field((), description="Taints that are ignored (KEY or KEY=VALUE).")
    included_taints: Items[str] = Field(
        (), description="Only these taints (KEY or KEY=VALUE); all but those of the node controller where not given."
    )
    namespaces: Namespaces = Field(Namespaces(), description="Namespaces that are looked at; all where not given.")
    label_selector: Selector | None = Field(None, description="Only pods that it matches; all where not given.")

    def rules(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Refuse both lists at once."""
        if self.excluded_taints and self.included_taints:
            yield ("excluded_taints", "included_taints"), "only one of excludedTaints and includedTaints may be set"

    def cautions(self) -> Iterator[str]:
        """Say that an empty list of taints is taken as no list (F19)."""
        if "included_taints" in self.model_fields_set and not self.included_taints:
            yield "includedTaints is empty and is taken as not given: every taint counts"


class RemovePodsViolatingTopologySpreadConstraintArgs(StrategyArgs):
    """Arguments of RemovePodsViolatingTopologySpreadConstraint."""

    constraints: Items[Annotated[str, choice(DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)]] = Field(
        (DO_NOT_SCHEDULE,), description="Which constraints are upheld, by their whenUnsatisfiable."
    )
    topology_balance_node_fit: bool = Field(True, description="Move only pods that fit a node of a domain that is below average.")
    namespaces: Namespaces = Field(Namespaces(), description="Namespaces that are looked at; all where not given.")
    label_selector: Selector | None = Field(None, description="Only pods that it matches; all where not given.")

    def upholds(self, when_unsatisfiable: str) -> bool:
        """Tell whether constraints of this kind count; an empty list stands for the default."""
        return when_unsatisfiable in (self.constraints or (DO_NOT_SCHEDULE,))


class RemovePodsHavingTooManyRestartsArgs(StrategyArgs):
    """Arguments of RemovePodsHavingTooManyRestarts."""

    pod_restart_threshold: int = Field(ge=1, description="Restarts from which on a pod counts (summed over its containers).")
    including_init_containers: bool = Field(False, description="Count the restarts of init containers too.")
    states: Items[Annotated[str, choice("Running", "CrashLoopBackOff")]] = Field(
        (), description="Only pods in one of these states: Running, CrashLoopBackOff; all where not given."
    )
    namespaces: Namespaces = Field(Namespaces(), description="Namespaces that are looked at; all where not given.")
    label_selector: Selector | None = Field(None, description="Only pods that it matches; all where not given.")


class PodConditionFilter(Arguments):
    """One pod condition to look for; every field that is given has to match."""

    type: str = Field("", description="Type of the condition, as in Ready.")
    status: str = Field("", description="Status of the condition: True, False or Unknown.")
    reason: str = Field("", description="Reason of the condition.")
    min_time_since_last_transition_seconds: Count | None = Field(
        None, description="The condition has been so for at least this long (seconds)."
    )

    def rules(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Refuse a condition that says nothing."""
        if not (self.type or self.status or self.reason or self.min_time_since_last_transition_seconds is not None):
            fields = ("type", "status", "reason", "min_time_since_last_transition_seconds")
            yield fields, "at least one of type, status, reason, minTimeSinceLastTransitionSeconds is required"


class PodLifeTimeArgs(StrategyArgs):
    """Arguments of PodLifeTime. A pod counts when it meets every criterion given; within a list one value is enough."""

    max_pod_life_time_seconds: Count | None = Field(None, description="Pods older than this (seconds since creation).")
    states: Items[Annotated[str, choice(*POD_PHASES, *POD_REASONS, *WAITING_REASONS, *TERMINATED_REASONS)]] = Field(
        (), description="Pod phases, pod reasons, or waiting or terminated reasons of containers."
    )
    conditions: Items[PodConditionFilter] = Field((), description="Pod conditions.")
    exit_codes: Items[int] = Field((), description="Exit codes of terminated containers.")
    owner_kinds: OwnerKinds = Field(OwnerKinds(), description="Which pods, by the kind of their owners.")
    including_init_containers: bool = Field(False, description="Look at init containers too.")
    including_ephemeral_containers: bool = Field(False, description="Look at ephemeral containers too.")
    namespaces: Namespaces = Field(Namespaces(), description="Namespaces that are looked at; all where not given.")
    label_selector: Selector | None = Field(None, description="Only pods that it matches; all where not given.")

    def rules(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Refuse arguments that would let every pod count."""
        if self.max_pod_life_time_seconds is None and not (self.states or self.conditions or self.exit_codes):
            fields = ("max_pod_life_time_seconds", "states", "conditions", "exit_codes")
            yield fields, "at least one of maxPodLifeTimeSeconds, states, conditions, exitCodes is required"


class RemoveFailedPodsArgs(StrategyArgs):
    """Arguments of RemoveFailedPods."""

    min_pod_lifetime_seconds: Count = Field(3600, description="Only pods at least this old (seconds since creation).")
    reasons: Items[str] = Field((), description="Only these reasons of the pod or of its containers; any where not given.")
    exit_codes: Items[int] = Field((), description="Only these exit codes of its containers; any where not given.")
    including_init_containers: bool = Field(False, description="Look at init containers too.")
    exclude_owner_kinds: Items[str] = Field((), description="Pods with an owner of one of these kinds are left alone.")
    namespaces: Namespaces = Field(Namespaces(), description="Namespaces that are looked at; all where not given.")
    label_selector: Selector | None = Field(None, description="Only pods that it matches; all where not given.")


class CatalogueEntry(NamedTuple):
    """What a policy may say of one strategy: its arguments, and where it is enabled."""

    args: type[StrategyArgs]
    extension_points: frozenset[ExtensionPoint]


_DESCHEDULE: frozenset[ExtensionPoint] = frozenset({"deschedule"})
_BALANCE: frozenset[ExtensionPoint] = frozenset({"balance"})

CATALOGUE: Mapping[str, CatalogueEntry] = MappingProxyType(
    {
        "RemoveDuplicates": CatalogueEntry(RemoveDuplicatesArgs, _BALANCE),
        "LowNodeUtilization": CatalogueEntry(LowNodeUtilizationArgs, _BALANCE),
        "HighNodeUtilization": CatalogueEntry(HighNodeUtilizationArgs, _BALANCE),
        "RemovePodsViolatingInterPodAntiAffinity": CatalogueEntry(RemovePodsViolatingInterPodAntiAffinityArgs, _DESCHEDULE),
        "RemovePodsViolatingNodeAffinity": CatalogueEntry(RemovePodsViolatingNodeAffinityArgs, _DESCHEDULE),
        "RemovePodsViolatingNodeTaints": CatalogueEntry(RemovePodsViolatingNodeTaintsArgs, _DESCHEDULE),
        "RemovePodsViolatingTopologySpreadConstraint": CatalogueEntry(RemovePodsViolatingTopologySpreadConstraintArgs, _BALANCE),
        "RemovePodsHavingTooManyRestarts": CatalogueEntry(RemovePodsHavingTooManyRestartsArgs, _DESCHEDULE),
        "PodLifeTime": CatalogueEntry(PodLifeTimeArgs, _DESCHEDULE),
        "RemoveFailedPods": CatalogueEntry(RemoveFailedPodsArgs, _DESCHEDULE),
    }
)
