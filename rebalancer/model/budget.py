"""A PodDisruptionBudget and the status that the disruption controller wrote for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rebalancer.model.selector import LabelSelector


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget (policy/v1): https://kubernetes.io/docs/tasks/run-application/configure-pdb/.

    selector: empty matches every pod of the namespace, null none.
    generation, observed_generation: while the second is smaller, the server refuses to spend.
    disruptions_allowed, current_healthy, desired_healthy, expected_pods: the status.
    disrupted: pod name to the time (seconds since the epoch) its eviction was accepted.
    always_allow_unhealthy: unhealthyPodEvictionPolicy is AlwaysAllow.
    min_available, max_unavailable: as written, number or percentage text.
    resource_version: of the object as parsed.
    """

    namespace: str
    name: str
    uid: str
    selector: LabelSelector
    generation: int
    observed_generation: int
    disruptions_allowed: int
    current_healthy: int
    desired_healthy: int
    expected_pods: int
    disrupted: Mapping[str, float]
    always_allow_unhealthy: bool
    min_available: int | str | None
    max_unavailable: int | str | None
    resource_version: str
