"""Remove pods that failed and are left lying about.

Source: https://github.com/kubernetes-sigs/descheduler#removefailedpods
"""

from __future__ import annotations

from rebalancer.model.pod import Phase, Pod
from rebalancer.model.trigger import TriggerKind
from rebalancer.strategies.arguments import RemoveFailedPodsArgs as Args
from rebalancer.strategies.container_states import current_reasons, exit_codes
from rebalancer.strategies.order import cheapest_first
from rebalancer.strategies.pod_life_time import age_seconds
from rebalancer.strategies.scope import in_scope, owner_kinds
from rebalancer.strategies.view import Strategy, View


def matches(pod: Pod, args: Args, now: float) -> bool:
    """Tell whether the pod failed long enough ago, for one of the reasons and with one of the exit codes asked for."""
    if pod.phase is not Phase.FAILED or age_seconds(pod, now) < args.min_pod_lifetime_seconds:
        return False
    init = args.including_init_containers
    if args.reasons and not {pod.reason, *current_reasons(pod, init=init)} & set(args.reasons):
        return False
    if args.exit_codes and not set(exit_codes(pod, init=init)) & set(args.exit_codes):
        return False
    return not any(kind in args.exclude_owner_kinds for kind in owner_kinds(pod.shape))


def propose(view: View, args: Args) -> None:
    """Ask for every failed pod that matches, node by node."""
    looks_at = in_scope(args.namespaces, args.label_selector)
    now = view.now
    for node in view.nodes:
        failed = [pod for pod in view.on(node.name) if matches(pod, args, now) and looks_at(pod.shape)]
        for pod in cheapest_first(failed):
            cause = next(iter((*filter(None, (pod.reason,)), *current_reasons(pod, init=True))), "no reason given")
            age = f"{age_seconds(pod, now):.0f} s old, at least {args.min_pod_lifetime_seconds} s are asked for"
            verdict = view.ask(pod, f"failed ({cause}), {age}")
            if verdict.ends_run:
                return
            if verdict.ends_node:
                break


STRATEGY = Strategy("RemoveFailedPods", Args, "deschedule", frozenset({TriggerKind.TICK, TriggerKind.POD_CHANGED}), propose)
