"""The eviction subresource: which pods go, which a budget holds, and in which order that is asked.

Source: kubernetes/kubernetes pkg/registry/core/pod/storage/eviction.go. In order: names, dry run; finished, pending and
terminating pods go without a look at budgets; more than one budget is an error; an unready pod may go where the budget has
enough healthy ones, or its policy says AlwaysAllow; else the budget is spent before the delete, whose preconditions are
checked last.
"""

from __future__ import annotations

from typing import Any

from rebalancer.sim.deletion import DeleteOptions, check_preconditions, delete
from rebalancer.sim.history import Object
from rebalancer.sim.kinds import BUDGET, POD
from rebalancer.sim.problems import ApiProblem, bad_request, forbidden, too_many_requests
from rebalancer.sim.registry import Registry
from rebalancer.sim.selecting import owned_selector

_REFUSAL = "Cannot evict pod as it would violate the pod's disruption budget."
_TWO_BUDGETS = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_MAX_DISRUPTED = 2000
_DONE = frozenset({"Succeeded", "Failed"})
SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def evict(registry: Registry, namespace: str, name: str, body: dict[str, Any], query_dry_run: bool = False) -> Object:
    """Evict a pod and return the Status of success. Raises ApiProblem for every other answer."""
    if (body.get("metadata") or {}).get("name", "") != name:
        raise bad_request("name in URL does not match name in Eviction object")
    options = DeleteOptions.of(_with_dry_run(body.get("deleteOptions"), query_dry_run))
    pod = registry.get(POD, namespace, name)
    if _goes_unasked(pod):
        _mark_and_delete(registry, pod, options)
        return SUCCESS
    budgets = budgets_of(registry, pod)
    if len(budgets) > 1:
        raise ApiProblem(500, _TWO_BUDGETS)
    if budgets and not _unready_may_go(pod, budgets[0]):
        _spend(registry, pod, budgets[0], options.dry_run)
    _mark_and_delete(registry, pod, options)
    return SUCCESS


def _with_dry_run(options: dict[str, Any] | None, query_dry_run: bool) -> dict[str, Any]:
    options = dict(options or {})
    if query_dry_run and not options.get("dryRun"):
        options["dryRun"] = ["All"]
    return options


def _goes_unasked(pod: Object) -> bool:
    phase = pod.get("status", {}).get("phase")
    return phase in _DONE or phase == "Pending" or "deletionTimestamp" in pod["metadata"]


def _unready_may_go(pod: Object, budget: Object) -> bool:
    if is_ready(pod):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget["status"]
    return bool(0 < status.get("desiredHealthy", 0) <= status.get("currentHealthy", 0))


def is_ready(pod: Object) -> bool:
    """Say whether a pod's Ready condition is True."""
    conditions = pod.get("status", {}).get("conditions", ())
    return any(item["type"] == "Ready" and item.get("status") == "True" for item in conditions)


def budgets_of(registry: Registry, pod: Object) -> list[Object]:
    """Return the budgets that select a pod: an empty selector selects every pod of the namespace, an absent one none."""
    metadata = pod["metadata"]
    labels = metadata.get("labels") or {}
    found = []
    for budget in registry.store.objects(BUDGET.storage, metadata["namespace"]):
        selector = owned_selector(budget["spec"].get("selector"))
        if selector is not None and selector.matches(labels):
            found.append(budget)
    return found


def _spend(registry: Registry, pod: Object, budget: Object, dry_run: bool) -> None:
    name = budget["metadata"]["name"]
    status: dict[str, Any] = budget["status"]
    allowed = status.get("disruptionsAllowed", 0)
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise too_many_requests(_REFUSAL, f"The disruption budget {name} is still being processed by the server.", 10)
    if allowed < 0:
        raise forbidden("policy", "poddisruptionbudget", name, "pdb disruptions allowed is negative")
    disrupted = status.get("disruptedPods") or {}
    if len(disrupted) > _MAX_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden("policy", "poddisruptionbudget", name, why)
    if allowed == 0:
        raise _held(name, status)
    if dry_run:
        return
    spent = {**status, "disruptionsAllowed": allowed - 1}
    spent["disruptedPods"] = {**disrupted, pod["metadata"]["name"]: registry.now()}
    if allowed == 1:
        generation = status.get("observedGeneration", 0)
        spent["conditions"] = disruption_condition(spent, generation, registry.now())
    registry.store.put(BUDGET.storage, {**budget, "metadata": dict(budget["metadata"]), "status": _ordered(spent)})


def _held(name: str, status: dict[str, Any]) -> ApiProblem:
    healthy, wanted = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    condition: Object = next((c for c in status.get("conditions", ()) if c["type"] == "DisruptionAllowed"), {})
    said = condition.get("message", "") if condition.get("status") == "False" else ""
    cause = f"The disruption budget {name} does not allow evicting pods currently"
    if said and condition.get("reason") == "SyncFailed":
        cause += f" because it failed sync: {said}"
    elif healthy <= wanted:
        cause = f"The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently"
    elif said:
        cause += f" ({condition.get('reason', '')}): {said}"
    return too_many_requests(_REFUSAL, cause)


def disruption_condition(status: dict[str, Any], generation: int, now: str) -> list[dict[str, Any]]:
    """Return a budget's conditions with DisruptionAllowed as its count says.

    Source: k8s.io/component-helpers/apps/poddisruptionbudget.
    """
    allowed = status.get("disruptionsAllowed", 0) > 0
    condition = {
        "type": "DisruptionAllowed",
        "status": "True" if allowed else "False",
        "observedGeneration": generation,
        "lastTransitionTime": now,
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "message": "",
    }
    kept = []
    for item in status.get("conditions", ()):
        if item["type"] != "DisruptionAllowed":
            kept.append(item)
        elif item["status"] == condition["status"]:
            condition["lastTransitionTime"] = item["lastTransitionTime"]
    return [*kept, condition]


def _ordered(status: dict[str, Any]) -> dict[str, Any]:
    first = {name: status[name] for name in ("observedGeneration", "disruptedPods") if name in status}
    return first | {name: value for name, value in status.items() if name not in first}


def _mark_and_delete(registry: Registry, pod: Object, options: DeleteOptions) -> None:
    check_preconditions(POD, pod, options)
    metadata = pod["metadata"]
    if not options.dry_run:
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": registry.now(),
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }
        conditions = pod.get("status", {}).get("conditions", [])
        if not any(_same_condition(item, condition) for item in conditions):
            kept = [item for item in conditions if item["type"] != "DisruptionTarget"]
            status = {**pod.get("status", {}), "conditions": [*kept, condition]}
            pod = registry.store.put(POD.storage, {**pod, "metadata": dict(metadata), "status": status})
        if options.version:
            options = DeleteOptions(options.grace_seconds, options.uid, pod["metadata"]["resourceVersion"])
    delete(registry, POD, metadata["namespace"], metadata["name"], options)


def _same_condition(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(one.get(name) == other.get(name) for name in ("type", "status", "reason", "message"))
