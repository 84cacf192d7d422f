"""Disruption budgets as the API server judges them, and a local account of what a run has spent.

Source: https://github.com/kubernetes/kubernetes/blob/master/pkg/registry/core/pod/storage/eviction.go
"""

from __future__ import annotations

from rebalancer.eligibility.objection import Objection
from rebalancer.model.budget import Budget
from rebalancer.model.pod import Phase, Pod, PodShape
from rebalancer.model.snapshot import Snapshot


def selecting(snapshot: Snapshot, shape: PodShape) -> tuple[Budget, ...]:
    """Return the budgets that select the pods of a shape; an empty selector selects all of the namespace, a null one none."""
    group = snapshot.budgets.get(shape.namespace, ())
    return tuple(budget for budget in group if budget.selector.matches(shape.labels))


def is_checked(pod: Pod) -> bool:
    """Tell whether the server looks at budgets for this pod: not once it is finished, pending or terminating."""
    return pod.phase not in (Phase.SUCCEEDED, Phase.FAILED, Phase.PENDING) and pod.deleted_at is None


def is_free(pod: Pod, budget: Budget) -> bool:
    """Tell whether the server lets a pod go that is not Ready without charging the budget.

    With AlwaysAllow always; with IfHealthyBudget (the default) while enough others are healthy.
    """
    if pod.ready:
        return False
    return budget.always_allow_unhealthy or (budget.current_healthy >= budget.desired_healthy and budget.desired_healthy > 0)


def objection(pod: Pod, budgets: tuple[Budget, ...], spent: int = 0) -> Objection | None:
    """Say what the server would answer to an eviction of the pod.

    budgets: those that select it. spent: evictions charged to the budget that its status does not show yet.
    """
    if not budgets or not is_checked(pod):
        return None
    if len(budgets) > 1:
        return Objection("budgets-several", (" and ".join(f"{each.namespace}/{each.name}" for each in budgets),))
    budget = budgets[0]
    if is_free(pod, budget):
        return None
    name = f"{budget.namespace}/{budget.name}"
    if budget.observed_generation < budget.generation:
        return Objection("budget-stale", (name,))
    left = budget.disruptions_allowed - spent
    return Objection("budget", (name, max(left, 0))) if left <= 0 else None


class Account:
    """What a run has taken from the budgets of one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._selecting: dict[PodShape, tuple[Budget, ...]] = {}
        self._spent: dict[str, int] = {}

    def objection(self, pod: Pod) -> Objection | None:
        """Say whether the budgets let the pod go, with what the run has taken already."""
        budgets = self._of(pod.shape)
        if not budgets:
            return None
        return objection(pod, budgets, self._spent.get(budgets[0].uid, 0))

    def is_spent_here(self, pod: Pod) -> bool:
        """Tell whether only what the run has taken already keeps the pod: later, with its replacements ready, it may go."""
        return self.objection(pod) is not None and objection(pod, self._of(pod.shape)) is None

    def spend(self, pod: Pod) -> None:
        """Charge the pod's eviction to its budget."""
        budgets = self._of(pod.shape)
        if len(budgets) == 1 and is_checked(pod) and not is_free(pod, budgets[0]):
            self._spent[budgets[0].uid] = self._spent.get(budgets[0].uid, 0) + 1

    def _of(self, shape: PodShape) -> tuple[Budget, ...]:
        try:
            return self._selecting[shape]
        except KeyError:
            budgets = self._selecting[shape] = selecting(self._snapshot, shape)
            return budgets
