"""PodDisruptionBudgets: how many healthy pods there are, how many there must be, how many may go.

Source: kubernetes/kubernetes pkg/controller/disruption/disruption.go
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from rebalancer.model.selector import LabelSelector
from rebalancer.sim.controllers.deployments import share
from rebalancer.sim.controllers.indexes import controller_of
from rebalancer.sim.controllers.loop import Loop
from rebalancer.sim.controllers.pods import is_ready, write_status
from rebalancer.sim.eviction import disruption_condition
from rebalancer.sim.history import Event, Key, Object
from rebalancer.sim.kinds import BUDGET
from rebalancer.sim.moments import moment_of
from rebalancer.sim.registry import Registry
from rebalancer.sim.selecting import owned_selector
from rebalancer.sim.store import key_of

_FORGOTTEN = timedelta(minutes=2)
_SCALED = {
    "ReplicaSet": "replicasets.apps",
    "StatefulSet": "statefulsets.apps",
    "ReplicationController": "replicationcontrollers",
    "Deployment": "deployments.apps",
}


class BudgetController:
    """Writes the status of every budget."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._loop = Loop(self.reconcile)
        self._selectors: dict[str, dict[str, LabelSelector | None]] = {}
        registry.store.listen(BUDGET.storage, self._on_budget)
        registry.store.listen("pods", self._on_pod)
        for storage in _SCALED.values():
            registry.store.listen(storage, self._on_workload)
        for budget in registry.store.objects(BUDGET.storage):
            self._note(key_of(budget), budget)

    async def run(self) -> None:
        """Work until cancelled."""
        await self._loop.run()

    def _note(self, key: Key, budget: Object) -> None:
        self._selectors.setdefault(key[0], {})[key[1]] = owned_selector(budget["spec"].get("selector"))
        self._loop.add(key)

    def _on_budget(self, event: Event) -> None:
        if event.after is not None:
            self._note(event.key, event.after)
        else:
            self._selectors.get(event.key[0], {}).pop(event.key[1], None)

    def _on_pod(self, event: Event) -> None:
        selectors = self._selectors.get(event.key[0])
        if not selectors:
            return
        states = [pod["metadata"].get("labels") or {} for pod in (event.before, event.after) if pod is not None]
        if len(states) == 2 and states[0] == states[1]:
            states.pop()
        for name, selector in selectors.items():
            if selector is not None and any(map(selector.matches, states)):
                self._loop.add((event.key[0], name))

    def _on_workload(self, event: Event) -> None:
        before = (event.before or {}).get("spec", {}).get("replicas")
        after = (event.after or {}).get("spec", {}).get("replicas")
        if before != after:
            for name in self._selectors.get(event.key[0], ()):
                self._loop.add((event.key[0], name))

    def reconcile(self, key: Key) -> float | None:
        """Write the status of one budget."""
        budget = self._registry.store.get(BUDGET.storage, *key)
        if budget is None:
            return None
        selector = owned_selector(budget["spec"].get("selector"))
        everywhere = self._registry.store.objects("pods", key[0])
        pods = [pod for pod in everywhere if selector and selector.matches(pod["metadata"].get("labels") or {})]
        try:
            expected, desired = self._counts(budget["spec"], pods)
        except LookupError as problem:
            self._failed(budget, str(problem))
            return None
        disrupted, again = self._disrupted(budget, {pod["metadata"]["name"]: pod for pod in pods})
        healthy = sum(
            "deletionTimestamp" not in pod["metadata"] and pod["metadata"]["name"] not in disrupted and is_ready(pod)
            for pod in pods
        )
        allowed = max(0, healthy - desired) if expected > 0 else 0
        generation = budget["metadata"].get("generation", 0)
        status: dict[str, Any] = {
            "observedGeneration": generation,
            "disruptedPods": disrupted or None,
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
        }
        old = {**status, "conditions": budget["status"].get("conditions", ())}
        status["conditions"] = disruption_condition(old, generation, self._registry.now())
        write_status(self._registry, BUDGET, budget, status)
        return again

    def _counts(self, spec: dict[str, Any], pods: list[Object]) -> tuple[int, int]:
        if "maxUnavailable" in spec:
            expected = self._scale(pods)
            return expected, max(0, expected - share(spec["maxUnavailable"], expected, up=True))
        least = spec.get("minAvailable", 0)
        if isinstance(least, int):
            return len(pods), least
        expected = self._scale(pods)
        return expected, share(least, expected, up=True)

    def _scale(self, pods: list[Object]) -> int:
        """Return the replicas that the owners of the pods want together; pods without an owner do not count."""
        wanted: dict[str, int] = {}
        for pod in pods:
            owner = controller_of(pod)
            if owner is None or owner[2] in wanted:
                continue
            kind, name, uid = owner
            storage = _SCALED.get(kind)
            found = self._registry.store.get(storage, pod["metadata"]["namespace"], name) if storage else None
            if found is None or found["metadata"]["uid"] != uid:
                raise LookupError(f'found no controllers for pod "{pod["metadata"]["name"]}"')
            above = controller_of(found)
            if above is not None and above[0] == "Deployment":
                deployment = self._registry.store.get("deployments.apps", pod["metadata"]["namespace"], above[1])
                if deployment is not None and deployment["metadata"]["uid"] == above[2]:
                    wanted[above[2]] = deployment["spec"].get("replicas", 0)
                    wanted.setdefault(uid, 0)
                    continue
            wanted[uid] = found["spec"].get("replicas", 0)
        return sum(wanted.values())

    def _disrupted(self, budget: Object, pods: dict[str, Object]) -> tuple[dict[str, str], float | None]:
        kept: dict[str, str] = {}
        again: float | None = None
        for name, since in (budget["status"].get("disruptedPods") or {}).items():
            pod = pods.get(name)
            left = (moment_of(since) + _FORGOTTEN - self._registry.clock()).total_seconds()
            if pod is not None and "deletionTimestamp" not in pod["metadata"] and left > 0:
                kept[name] = since
                again = left if again is None else min(again, left)
        return kept, again

    def _failed(self, budget: Object, why: str) -> None:
        generation = budget["metadata"].get("generation", 0)
        kept = [item for item in budget["status"].get("conditions", ()) if item["type"] != "DisruptionAllowed"]
        old: Object = next((item for item in budget["status"].get("conditions", ()) if item["type"] == "DisruptionAllowed"), {})
        now = self._registry.now()
        failed = {
            "type": "DisruptionAllowed",
            "status": "False",
            "observedGeneration": generation,
            "lastTransitionTime": old.get("lastTransitionTime", now) if old.get("status") == "False" else now,
            "reason": "SyncFailed",
            "message": why,
        }
        status = {**budget["status"], "disruptionsAllowed": 0, "observedGeneration": generation, "conditions": [*kept, failed]}
        write_status(self._registry, BUDGET, budget, status)
