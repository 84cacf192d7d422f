"""What stands behind pods: workloads, services, namespaces, priority classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rebalancer.model.pod import Owner
from rebalancer.model.selector import LabelSelector


@dataclass(frozen=True, slots=True)
class Workload:
    """A ReplicaSet, ReplicationController, StatefulSet, Deployment, DaemonSet or Job.

    selector: which pods are counted as its own.
    replicas: how many are wanted. ready_replicas, updated_replicas, available_replicas: from the status.
    generation, observed_generation: while the second is smaller, its controller has still to look.
    owner: of a ReplicaSet, its Deployment.
    current_revision, update_revision: of a StatefulSet; they differ in the middle of a rollout.
    strategy, max_surge, max_unavailable: of a Deployment (``RollingUpdate`` or ``Recreate``; numbers or percentages).
    paused: of a Deployment; its changes do not roll out.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    selector: LabelSelector
    replicas: int
    status_replicas: int
    ready_replicas: int
    updated_replicas: int
    available_replicas: int
    generation: int
    observed_generation: int
    owner: Owner | None
    current_revision: str
    update_revision: str
    strategy: str
    max_surge: int | str | None
    max_unavailable: int | str | None
    paused: bool


@dataclass(frozen=True, slots=True)
class Service:
    """A Service with its selector; an empty one selects nothing."""

    namespace: str
    name: str
    selector: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace and its labels."""

    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """A priority class and its value."""

    name: str
    value: int
    global_default: bool
