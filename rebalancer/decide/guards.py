"""What settings add to a policy: caps, protected namespaces, rests, and what this run has used already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rebalancer.model.cap import Cap


class SingleReplicas(StrEnum):
    """What becomes of the only replica of a workload.

    EVICT: the same as of others, so that a budget may keep it. SKIP: it stays.
    SURGE: a rollout of its Deployment replaces it, the replacement first; where that cannot be, it stays.
    """

    EVICT = "evict"
    SKIP = "skip"
    SURGE = "surge"


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run has evicted before this evaluation; counts against the policy's limits and the caps.

    by_workload: by the owner's UID; by the Deployment's where a rollout replaced the pod.
    """

    total: int = 0
    by_node: Mapping[str, int] = field(default_factory=dict)
    by_namespace: Mapping[str, int] = field(default_factory=dict)
    by_workload: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Guards:
    """Limits and protections beside those of the policy. With guards, workloads in a rollout, scaled to zero or gone stay too.

    node, namespace, workload, total: caps per run; None for none. Percentages are of the pods there (of the replicas wanted).
    protected_namespaces: nothing leaves them.
    cooldowns: (owner UID, node) to the time (seconds since the epoch) until which moving that owner off that node rests.
    stopped: owner UID to the two strategies that would undo each other on it.
    In both it is the Deployment's UID where a rollout replaces the pod, for each rollout has a ReplicaSet of its own.
    single_replicas: what becomes of the only replica of a workload.
    spent: what the run has used already.
    """

    node: Cap | None = None
    namespace: Cap | None = None
    workload: Cap | None = None
    total: Cap | None = None
    protected_namespaces: frozenset[str] = frozenset()
    cooldowns: Mapping[tuple[str, str], float] = field(default_factory=dict)
    single_replicas: SingleReplicas = SingleReplicas.EVICT
    stopped: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    spent: Spent = Spent()
