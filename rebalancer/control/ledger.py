"""Our own account of disruption budgets, until the server's status has caught up.

The server takes from a budget when it accepts an eviction, but its watch tells us later; without an account, requests sent in
between would run into refusals. What is spent here is handed back when a budget event shows our pod in ``disruptedPods``
(then the status counts it), or when the pod is seen going and a later budget event came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from rebalancer.eligibility.budgets import is_checked, is_free, objection, selecting
from rebalancer.model.budget import Budget
from rebalancer.model.pod import Pod
from rebalancer.model.snapshot import Snapshot


@dataclass(slots=True)
class _Spending:
    pod_name: str
    pod_uid: str
    pod_key: str
    version: str
    version_when_going: str | None = None


class Ledger:
    """Spends budgets locally. Keys are ``namespace/name`` of a budget."""

    def __init__(self, pod_of: Callable[[str], Pod | None]) -> None:
        """Keep an account. pod_of: returns a pod as it is now by ``namespace/name``."""
        self._pod_of = pod_of
        self._spent: dict[str, dict[str, _Spending]] = {}

    def spend(self, pod: Pod, snapshot: Snapshot) -> None:
        """Charge an eviction that was accepted (or may have been) to the budget that the server charges."""
        for budget in self.charged(pod, snapshot):
            key = _key(budget)
            self._spent.setdefault(key, {})[pod.uid] = _Spending(pod.name, pod.uid, pod.key, budget.resource_version)

    def give_back(self, pod_uid: str) -> None:
        """Take a charge back: the pod was not evicted after all."""
        for spendings in self._spent.values():
            spendings.pop(pod_uid, None)

    def clear(self) -> None:
        """Forget every charge (at the end of a dry run, say)."""
        self._spent.clear()

    def catch_up(self, snapshot: Snapshot) -> None:
        """Drop every charge that the budgets of a snapshot show already."""
        for key, spendings in list(self._spent.items()):
            budget = _find(snapshot, key)
            for uid, spending in list(spendings.items()):
                if budget is None or self._is_shown(spending, budget):
                    del spendings[uid]
            if not spendings:
                del self._spent[key]

    def spent(self, budget: Budget) -> int:
        """Return how many charges the status of the budget does not show yet."""
        return len(self._spent.get(_key(budget), ()))

    @property
    def charges(self) -> dict[str, int]:
        """Every budget with charges that are not shown yet, and their number."""
        return {key: len(spendings) for key, spendings in sorted(self._spent.items())}

    def objection(self, pod: Pod, snapshot: Snapshot) -> tuple[str, str] | None:
        """Return the code and the sentence of why the budgets do not let the pod go now; None where they do."""
        budgets = selecting(snapshot, pod.shape)
        found = objection(pod, budgets, self.spent(budgets[0]) if budgets else 0)
        return (found.code, str(found)) if found else None

    def charged(self, pod: Pod, snapshot: Snapshot) -> tuple[Budget, ...]:
        """Return the budget that the server charges for the pod: none where it does not look, one otherwise."""
        budgets = selecting(snapshot, pod.shape)
        if len(budgets) != 1 or not is_checked(pod) or is_free(pod, budgets[0]):
            return ()
        return budgets

    def lowered(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with our charges taken from the budgets, for an evaluation."""
        if not self._spent:
            return snapshot
        budgets = dict(snapshot.budgets)
        for namespace in {key.partition("/")[0] for key in self._spent}:
            if namespace in budgets:
                budgets[namespace] = tuple(self._lower(budget) for budget in budgets[namespace])
        return replace(snapshot, budgets=budgets)

    def _lower(self, budget: Budget) -> Budget:
        spent = self.spent(budget)
        return replace(budget, disruptions_allowed=max(0, budget.disruptions_allowed - spent)) if spent else budget

    def _is_shown(self, spending: _Spending, budget: Budget) -> bool:
        if budget.resource_version == spending.version:
            return False
        if spending.pod_name in budget.disrupted:
            return True
        pod = self._pod_of(spending.pod_key)
        going = pod is None or pod.uid != spending.pod_uid or pod.terminating
        if not going:
            return False
        if spending.version_when_going is None:
            spending.version_when_going = budget.resource_version
            return False
        return budget.resource_version != spending.version_when_going


def _key(budget: Budget) -> str:
    return f"{budget.namespace}/{budget.name}"


def _find(snapshot: Snapshot, key: str) -> Budget | None:
    namespace, _, name = key.partition("/")
    group: Iterable[Budget] = snapshot.budgets.get(namespace, ())
    return next((budget for budget in group if budget.name == name), None)
