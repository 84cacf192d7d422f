"""A node, as far as placing and moving pods is concerned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from rebalancer.model.resources import Resources


class TaintEffect(StrEnum):
    """What a taint does to pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint: https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/."""

    key: str
    value: str
    effect: TaintEffect

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration.

    key: empty with operator Exists means every taint.
    operator: Equal, Exists, or the numeric Gt and Lt (Kubernetes 1.35 and later).
    effect: None means every effect.
    """

    key: str
    operator: str
    value: str
    effect: TaintEffect | None

    def tolerates(self, taint: Taint) -> bool:
        """Say whether this toleration covers the taint (k8s.io/api/core/v1 ``ToleratesTaint``)."""
        if self.effect is not None and self.effect is not taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        if self.operator == "Equal":
            return self.value == taint.value
        try:
            bound, value = int(self.value), int(taint.value)
        except ValueError:
            return False
        return value > bound if self.operator == "Gt" else value < bound


@dataclass(frozen=True, slots=True)
class Node:
    """A node.

    name, uid: identity.
    labels: never changed after parsing.
    taints: as in the spec, in its order; a cordon shows as ``unschedulable`` and usually as a taint besides.
    unschedulable: cordoned.
    ready: the Ready condition is True, or there is no Ready condition (K4).
    ready_since: when Ready last changed, seconds since the epoch; None where the node does not say.
    allocatable, capacity: what it offers; where allocatable is missing, it equals capacity.
    resource_names: every resource the node names, zero amounts included.
    images: image name to size in bytes, every alias.
    created_at: seconds since the epoch.
    annotations: only those that mean something to this project.
    """

    name: str
    uid: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    unschedulable: bool
    ready: bool
    ready_since: float | None
    allocatable: Resources
    capacity: Resources
    resource_names: frozenset[str]
    images: Mapping[str, int]
    created_at: float
    annotations: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class NodeDrivers:
    """How many volumes each CSI driver can attach to a node (a CSINode). None: no limit known."""

    node: str
    limits: Mapping[str, int | None]
