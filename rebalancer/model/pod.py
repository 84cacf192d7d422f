"""Pods: one small record each, and the shape that pods of one owner share.

A record costs some hundred bytes; everything that comes from the pod's template is in its PodShape, which is interned, so
that two pods of equal shape have the *same* shape object and whatever is computed for one holds for the other.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rebalancer.model.node import Toleration
from rebalancer.model.resources import Resources
from rebalancer.model.selector import LabelSelector, NodeSelector, PreferredNodeTerm


class Phase(StrEnum):
    """https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-phase."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class QosClass(StrEnum):
    """https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/."""

    BEST_EFFORT = "BestEffort"
    BURSTABLE = "Burstable"
    GUARANTEED = "Guaranteed"


@dataclass(frozen=True, slots=True)
class Owner:
    """An owner reference. controller: it is the managing one."""

    kind: str
    name: str
    uid: str
    api_version: str
    controller: bool


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """A required pod (anti-)affinity term, ready to be evaluated.

    selector: with matchLabelKeys and mismatchLabelKeys of the pod already merged in.
    topology_key: never empty.
    namespaces: namespaces by name; the pod's own where the term names none and has no selector.
    namespace_selector: None where the term has none; EVERYTHING means all namespaces.
    """

    selector: LabelSelector
    topology_key: str
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None

    def selects(self, namespace: str, namespace_labels: Mapping[str, str], labels: Mapping[str, str]) -> bool:
        """Say whether a pod with these labels in that namespace is meant."""
        if namespace not in self.namespaces and not (
            self.namespace_selector is not None and self.namespace_selector.matches(namespace_labels)
        ):
            return False
        return self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class PreferredAffinityTerm:
    """A pod (anti-)affinity term that adds to (or takes from) a node's score. weight: 1 to 100."""

    weight: int
    term: AffinityTerm


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """A topology spread constraint: https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/.

    hard: DoNotSchedule; otherwise ScheduleAnyway.
    selector: with matchLabelKeys already merged in; NOTHING where the pod gave none.
    min_domains: None means 1.
    honor_affinity, honor_taints: nodeAffinityPolicy and nodeTaintsPolicy are Honor.
    """

    max_skew: int
    topology_key: str
    hard: bool
    selector: LabelSelector
    min_domains: int | None
    honor_affinity: bool
    honor_taints: bool


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port that the pod takes on its node. ip: 0.0.0.0 conflicts with every address."""

    ip: str
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class VolumeUse:
    """A volume that matters for placement or protection.

    kind: ``emptyDir``, ``hostPath``, ``persistentVolumeClaim``, ``ephemeral``, or an in-tree disk (``gcePersistentDisk`` …).
    name: the claim's name, or the disk's identity, or empty.
    read_only: as the volume source says.
    """

    kind: str
    name: str = ""
    read_only: bool = False


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class PodShape:
    """What the pods of one template share. Interned: equal shapes are the same object, so ``is`` and ``hash`` are cheap.

    namespace, labels, owners: as in the metadata; ``owner`` is the managing owner, or the first one.
    annotations: only those that mean something to this project.
    priority: None where the pod has none. preempts: preemptionPolicy is not Never.
    requests: effective requests as kube-scheduler sums them, ``pods`` is 1.
    nonzero_cpu_millicores, nonzero_memory_bytes: the same with 100m and 200Mi for each container that names none.
    required_node: nodeSelector is apart, in ``node_selector``.
    images: of containers, in order. init_images: of init containers.
    volumes: those that matter. resource_claims: it uses dynamic resource allocation.
    qos: as the status says. grace_seconds: terminationGracePeriodSeconds.
    static: the pod is a mirror or static pod of a kubelet.
    """

    namespace: str
    labels: Mapping[str, str]
    owners: tuple[Owner, ...]
    annotations: Mapping[str, str]
    priority: int | None
    preempts: bool
    scheduler_name: str
    qos: QosClass
    grace_seconds: int
    requests: Resources
    nonzero_cpu_millicores: int
    nonzero_memory_bytes: int
    tolerations: tuple[Toleration, ...]
    node_selector: Mapping[str, str]
    required_node: NodeSelector | None
    preferred_node: tuple[PreferredNodeTerm, ...]
    affinity: tuple[AffinityTerm, ...]
    anti_affinity: tuple[AffinityTerm, ...]
    preferred_affinity: tuple[PreferredAffinityTerm, ...]
    preferred_anti_affinity: tuple[PreferredAffinityTerm, ...]
    spread: tuple[SpreadConstraint, ...]
    host_ports: tuple[HostPort, ...]
    volumes: tuple[VolumeUse, ...]
    resource_claims: bool
    images: tuple[str, ...]
    init_images: tuple[str, ...]
    static: bool

    @property
    def owner(self) -> Owner | None:
        """The managing owner; where none is marked as such, the first one; None for a bare pod."""
        for owner in self.owners:
            if owner.controller:
                return owner
        return self.owners[0] if self.owners else None

    @property
    def has_local_storage(self) -> bool:
        """It has an emptyDir or a hostPath volume."""
        return any(volume.kind in ("emptyDir", "hostPath") for volume in self.volumes)

    @property
    def claims(self) -> tuple[str, ...]:
        """Names of the persistent volume claims it uses."""
        return tuple(volume.name for volume in self.volumes if volume.kind == "persistentVolumeClaim")


@dataclass(frozen=True, slots=True)
class Termination:
    """How a container ended."""

    reason: str
    exit_code: int


@dataclass(frozen=True, slots=True)
class ContainerStates:
    """What the status says of one group of containers (main, init or ephemeral). Interned: most pods share one value.

    restarts: summed over the group.
    waiting: reasons of waiting containers, in order.
    terminated: of containers whose current state is terminated, in order.
    last_terminated: of containers whose *last* state was terminated, in order.
    """

    restarts: int = 0
    waiting: tuple[str, ...] = ()
    terminated: tuple[Termination, ...] = ()
    last_terminated: tuple[Termination, ...] = ()


NO_STATES = ContainerStates()


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition in a pod's status. since: last transition, seconds since the epoch; 0 where unknown."""

    type: str
    status: str
    reason: str
    since: float


@dataclass(frozen=True, slots=True, eq=False)
class Pod:
    """One pod.

    name, uid: identity; the namespace is the shape's.
    shape: what it shares with its siblings.
    node: the node it is bound to; None while unscheduled. nominated_node: where preemption makes room for it.
    phase, ready: from the status. reason: status.reason (``Evicted``, ``NodeLost`` …), empty where there is none.
    deleted_at: the deletion timestamp (the end of the grace period), seconds since the epoch; None while not terminating.
    created_at: seconds since the epoch. started_at: the kubelet saw it; None before.
    main, init, ephemeral: container states.
    gated: it has scheduling gates, so no scheduler looks at it yet.
    condition_kinds, condition_times: packed; read ``conditions``.
    """

    name: str
    uid: str
    shape: PodShape
    node: str | None
    nominated_node: str | None
    phase: Phase
    ready: bool
    reason: str
    deleted_at: float | None
    created_at: float
    started_at: float | None
    main: ContainerStates
    init: ContainerStates
    ephemeral: ContainerStates
    gated: bool
    condition_kinds: tuple[tuple[str, str, str], ...] = ()
    condition_times: bytes = field(default=b"", repr=False)

    @property
    def namespace(self) -> str:
        """The namespace."""
        return self.shape.namespace

    @property
    def key(self) -> str:
        """``namespace/name``, as people write it."""
        return f"{self.shape.namespace}/{self.name}"

    @property
    def terminating(self) -> bool:
        """Somebody has asked for its deletion."""
        return self.deleted_at is not None

    @property
    def finished(self) -> bool:
        """It has Succeeded or Failed: it holds no room any more."""
        return self.phase is Phase.SUCCEEDED or self.phase is Phase.FAILED

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions, in the order of the status."""
        times = struct.unpack(f"<{len(self.condition_kinds)}I", self.condition_times)
        return tuple(
            Condition(kind, status, reason, float(since))
            for (kind, status, reason), since in zip(self.condition_kinds, times, strict=True)
        )
