"""How many may go in one run: the policy's limits in upstream's order (K5), then the caps of the settings."""

from __future__ import annotations

from collections import Counter

from rebalancer.decide.guards import Guards, Spent
from rebalancer.decide.singles import Singles
from rebalancer.decide.world import World
from rebalancer.eligibility.objection import Objection
from rebalancer.model.cap import Cap
from rebalancer.model.pod import Pod
from rebalancer.policy import Policy
from rebalancer.strategies.view import Scope


class Limits:
    """Counts approvals and says when a limit is reached."""

    def __init__(self, policy: Policy, guards: Guards | None, world: World, singles: Singles) -> None:
        self._policy = policy
        self._singles = singles
        self._guards = guards
        self._world = world
        spent = guards.spent if guards is not None else Spent()
        self._total = spent.total
        self._by_node: Counter[str] = Counter(spent.by_node)
        self._by_namespace: Counter[str] = Counter(spent.by_namespace)
        self._by_workload: Counter[str] = Counter(spent.by_workload)
        self._caps: dict[tuple[str, str], int | None] = {}

    def objection(self, pod: Pod) -> tuple[Objection, Scope] | None:
        """Return the limit that one more eviction would break, and what else it holds for."""
        node, namespace, policy = pod.node or "", pod.namespace, self._policy
        if policy.max_total is not None and self._total >= policy.max_total:
            return Objection("limit-total", (policy.max_total,)), Scope.RUN
        if policy.max_per_node is not None and self._by_node[node] >= policy.max_per_node:
            return Objection("limit-node", (policy.max_per_node, node)), Scope.NODE
        if policy.max_per_namespace is not None and self._by_namespace[namespace] >= policy.max_per_namespace:
            return Objection("limit-namespace", (policy.max_per_namespace, namespace)), Scope.NAMESPACE
        return self._cap_objection(pod) if self._guards is not None else None

    def count(self, pod: Pod) -> None:
        """Note an approval."""
        self._total += 1
        self._by_node[pod.node or ""] += 1
        self._by_namespace[pod.namespace] += 1
        if uid := self._singles.workload_uid(pod):
            self._by_workload[uid] += 1

    def _cap_objection(self, pod: Pod) -> tuple[Objection, Scope] | None:
        assert self._guards is not None
        guards, node, namespace = self._guards, pod.node or "", pod.namespace
        total = self._cap("total", "", guards.total)
        if total is not None and self._total >= total:
            return Objection("cap-total", (total,)), Scope.RUN
        per_node = self._cap("node", node, guards.node)
        if per_node is not None and self._by_node[node] >= per_node:
            return Objection("cap-node", (per_node, node)), Scope.NODE
        per_namespace = self._cap("namespace", namespace, guards.namespace)
        if per_namespace is not None and self._by_namespace[namespace] >= per_namespace:
            return Objection("cap-namespace", (per_namespace, namespace)), Scope.NAMESPACE
        owner = pod.shape.owner
        if owner is not None:
            uid = self._singles.workload_uid(pod)
            per_workload = self._cap("workload", uid, guards.workload)
            if per_workload is not None and self._by_workload[uid] >= per_workload:
                return Objection("cap-workload", (per_workload, f"{owner.kind}/{owner.name}")), Scope.POD
        return None

    def _cap(self, kind: str, key: str, cap: Cap | None) -> int | None:
        if cap is None or cap.number is not None:
            return cap.number if cap is not None else None
        if (kind, key) not in self._caps:
            self._caps[kind, key] = cap.limit(self._whole(kind, key))
        return self._caps[kind, key]

    def _whole(self, kind: str, key: str) -> int:
        if kind == "node":
            return self._world.pods_on(key) + self._by_node[key]  # What this run has moved off was there when it began.
        if kind == "namespace":
            return self._world.pods_in(key)
        if kind == "workload":
            workload = self._world.snapshot.workloads.get(key)
            return workload.replicas if workload is not None else self._world.live_owned(key)
        return self._world.all_pods()
