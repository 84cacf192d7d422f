"""PodDisruptionBudgets: how many healthy pods there are, how many there must be, how many may go.

Source: kubernetes/kubernetes pkg/controller/disruption/disruption.go
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from rebalancer.model.selector import LabelSelector, Operator
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


class _Members:
    """Which budgets select which pods, found by one label where the selector allows it.

    A namespace may hold thousands of pods and dozens of budgets, and every pod event asks.
    """

    def __init__(self) -> None:
        self._selectors: dict[Key, LabelSelector | None] = {}
        self._by_label: dict[tuple[str, str, str], dict[Key, None]] = {}
        self._loose: dict[str, dict[Key, None]] = {}

    def set(self, key: Key, selector: LabelSelector | None) -> None:
        """Take over a budget's selector."""
        self.drop(key)
        self._selectors[key] = selector
        if selector is not None:
            self._place(key, selector)[key] = None

    def drop(self, key: Key) -> None:
        """Forget a budget."""
        selector = self._selectors.pop(key, None)
        if selector is not None:
            self._place(key, selector).pop(key, None)

    def _place(self, key: Key, selector: LabelSelector) -> dict[Key, None]:
        for requirement in selector.requirements:
            if requirement.operator is Operator.IN and len(requirement.values) == 1:
                return self._by_label.setdefault((key[0], requirement.key, requirement.values[0]), {})
        return self._loose.setdefault(key[0], {})

    def selecting(self, namespace: str, labels: Mapping[str, str]) -> Iterator[Key]:
        """Yield the budgets that select a pod with these labels."""
        places = [self._by_label.get((namespace, name, value)) for name, value in labels.items()]
        for place in (*places, self._loose.get(namespace)):
            for key in place or ():
                selector = self._selectors[key]
                if selector is not None and selector.matches(labels):
                    yield key

    def in_namespace(self, namespace: str) -> list[Key]:
        """Return the budgets of a namespace."""
        return [key for key in self._selectors if key[0] == namespace]


class BudgetController:
    """Writes the status of every budget."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._loop = Loop(self.reconcile)
        self._members = _Members()
        self._pods: dict[Key, dict[Key, None]] = {}
        registry.store.listen(BUDGET.storage, self._on_budget)
        registry.store.listen("pods", self._on_pod)
        for storage in _SCALED.values():
            registry.store.listen(storage, self._on_workload)
        for budget in registry.store.objects(BUDGET.storage):
            self._members.set(key_of(budget), owned_selector(budget["spec"].get("selector")))
            self._pods[key_of(budget)] = {}
            self._loop.add(key_of(budget))
        if self._pods:
            for pod in registry.store.objects("pods"):
                metadata = pod["metadata"]
                for key in self._members.selecting(metadata["namespace"], metadata.get("labels") or {}):
                    self._pods[key][key_of(pod)] = None

    async def run(self) -> None:
        """Work until cancelled."""
        await self._loop.run()

    def _on_budget(self, event: Event) -> None:
        key, budget = event.key, event.after
        if budget is None:
            self._members.drop(key)
            self._pods.pop(key, None)
            return
        if event.before is None or event.before["spec"] != budget["spec"]:
            selector = owned_selector(budget["spec"].get("selector"))
            self._members.set(key, selector)
            pods = self._registry.store.objects("pods", key[0])
            found = [pod for pod in pods if selector and selector.matches(pod["metadata"].get("labels") or {})]
            self._pods[key] = {key_of(pod): None for pod in found}
        self._loop.add(key)

    def _on_pod(self, event: Event) -> None:
        before = (event.before or {}).get("metadata", {}).get("labels") or {}
        after = (event.after or {}).get("metadata", {}).get("labels") or {}
        if event.before is not None and (event.after is None or before != after):
            for key in self._members.selecting(event.key[0], before):
                self._pods[key].pop(event.key, None)
                self._loop.add(key)
        if event.after is not None:
            for key in self._members.selecting(event.key[0], after):
                self._pods[key][event.key] = None
                self._loop.add(key)

    def _on_workload(self, event: Event) -> None:
        before = (event.before or {}).get("spec", {}).get("replicas")
        after = (event.after or {}).get("spec", {}).get("replicas")
        if before != after:
            for key in self._members.in_namespace(event.key[0]):
                self._loop.add(key)

    def reconcile(self, key: Key) -> float | None:
        """Write the status of one budget."""
        budget = self._registry.store.get(BUDGET.storage, *key)
        if budget is None:
            return None
        found = (self._registry.store.get("pods", *pod) for pod in tuple(self._pods.get(key, ())))
        pods = [pod for pod in found if pod is not None]
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
