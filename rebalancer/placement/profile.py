"""What one scheduler profile asks and how it weighs: a value. The document it comes from is read in ``scheduler_config``.

Source of the defaults: https://github.com/kubernetes/kubernetes/blob/v1.36.2/pkg/scheduler/apis/config/v1/default_plugins.go
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from rebalancer.model.pod import SpreadConstraint
from rebalancer.model.resources import CPU, MEMORY
from rebalancer.model.selector import NOTHING, NodeSelector, PreferredNodeTerm

DEFAULT_SCHEDULER = "default-scheduler"


class Plugin(StrEnum):
    """The plugins that filter or score. Their order is the order in which the default profile asks them."""

    NODE_UNSCHEDULABLE = "NodeUnschedulable"
    NODE_NAME = "NodeName"
    TAINT_TOLERATION = "TaintToleration"
    NODE_AFFINITY = "NodeAffinity"
    NODE_PORTS = "NodePorts"
    RESOURCES_FIT = "NodeResourcesFit"
    VOLUME_RESTRICTIONS = "VolumeRestrictions"
    VOLUME_LIMITS = "NodeVolumeLimits"
    VOLUME_BINDING = "VolumeBinding"
    VOLUME_ZONE = "VolumeZone"
    TOPOLOGY_SPREAD = "PodTopologySpread"
    INTER_POD_AFFINITY = "InterPodAffinity"
    DYNAMIC_RESOURCES = "DynamicResources"
    BALANCED_ALLOCATION = "NodeResourcesBalancedAllocation"
    IMAGE_LOCALITY = "ImageLocality"


FILTERS = frozenset(Plugin) - {Plugin.BALANCED_ALLOCATION, Plugin.IMAGE_LOCALITY}

WEIGHTS: Mapping[Plugin, int] = MappingProxyType(
    {
        Plugin.TAINT_TOLERATION: 3,
        Plugin.NODE_AFFINITY: 2,
        Plugin.RESOURCES_FIT: 1,
        Plugin.TOPOLOGY_SPREAD: 2,
        Plugin.INTER_POD_AFFINITY: 2,
        Plugin.DYNAMIC_RESOURCES: 2,
        Plugin.BALANCED_ALLOCATION: 1,
        Plugin.IMAGE_LOCALITY: 1,
    }
)

# Real plugins that neither filter by anything a snapshot shows nor score by default.
NEUTRAL_PLUGINS = frozenset(
    {
        "SchedulingGates",
        "PrioritySort",
        "DefaultPreemption",
        "DefaultBinder",
        "NodeDeclaredFeatures",
        "GangScheduling",
        "DeferredPodScheduling",
    }
)

SYSTEM_SPREAD = (
    SpreadConstraint(3, "kubernetes.io/hostname", False, NOTHING, None, True, False),
    SpreadConstraint(5, "topology.kubernetes.io/zone", False, NOTHING, None, True, False),
)


class ScoringKind(StrEnum):
    """How NodeResourcesFit scores."""

    LEAST_ALLOCATED = "LeastAllocated"
    MOST_ALLOCATED = "MostAllocated"
    REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"


@dataclass(frozen=True, slots=True)
class ScoringStrategy:
    """The arguments of NodeResourcesFit's score.

    resources: name and weight, in the order given.
    points: for RequestedToCapacityRatio, utilisation in percent and a score of 0 to 10.
    """

    kind: ScoringKind = ScoringKind.LEAST_ALLOCATED
    resources: tuple[tuple[str, int], ...] = ((CPU, 1), (MEMORY, 1))
    points: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class SchedulerProfile:
    """One profile of a scheduler.

    name: the schedulerName of its pods.
    filters: the plugins that filter. weights: those that score, and how much.
    fit, balanced_resources: arguments of the two plugins for resources.
    ignored_resources, ignored_groups: extended resources that the filter does not look at.
    hard_affinity_weight, ignore_preferred: arguments of InterPodAffinity.
    default_spread: constraints of pods without any. system_spread: they are the built-in ones.
    added_affinity, added_preferred: node affinity added to every pod.
    percentage_to_score: of the nodes; 0 means that it depends on their number.
    foreign: plugins that we do not know; predictions cannot account for them.
    """

    name: str = DEFAULT_SCHEDULER
    filters: frozenset[Plugin] = FILTERS
    weights: Mapping[Plugin, int] = field(default_factory=lambda: WEIGHTS)
    fit: ScoringStrategy = ScoringStrategy()
    balanced_resources: tuple[tuple[str, int], ...] = ((CPU, 1), (MEMORY, 1))
    ignored_resources: frozenset[str] = frozenset()
    ignored_groups: frozenset[str] = frozenset()
    hard_affinity_weight: int = 1
    ignore_preferred: bool = False
    default_spread: tuple[SpreadConstraint, ...] = SYSTEM_SPREAD
    system_spread: bool = True
    added_affinity: NodeSelector | None = None
    added_preferred: tuple[PreferredNodeTerm, ...] = ()
    percentage_to_score: int = 0
    foreign: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """What is known of the cluster's schedulers. extenders: how many webhooks have a say that nothing here can foresee."""

    profiles: tuple[SchedulerProfile, ...] = (SchedulerProfile(),)
    extenders: int = 0

    def profile_for(self, scheduler_name: str) -> SchedulerProfile | None:
        """Return the profile of a pod's scheduler; None where it is unknown, so that only filters can be judged."""
        for profile in self.profiles:
            if profile.name == scheduler_name:
                return profile
        return None


DEFAULT = SchedulerConfig()
UNKNOWN = SchedulerProfile(name="")
