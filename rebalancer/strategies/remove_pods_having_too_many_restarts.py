"""Move pods that keep restarting, so that they may land on a healthier node.

Source: https://github.com/kubernetes-sigs/descheduler#removepodshavingtoomanyrestarts
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from rebalancer.eligibility.rules import prefers_no_eviction
from rebalancer.model.pod import Pod
from rebalancer.model.trigger import TriggerKind
from rebalancer.strategies.arguments import RemovePodsHavingTooManyRestartsArgs as Args
from rebalancer.strategies.scope import in_scope
from rebalancer.strategies.view import Strategy, View


def restarts(pod: Pod, args: Args) -> int:
    """Return the restarts of a pod's containers, of its init containers too where they count."""
    return pod.main.restarts + (pod.init.restarts if args.including_init_containers else 0)


def in_states(pod: Pod, args: Args) -> bool:
    """Tell whether the pod's phase, or what one of its containers waits for, is among the states asked for."""
    if not args.states or pod.phase.value in args.states:
        return True
    waiting = pod.main.waiting + (pod.init.waiting if args.including_init_containers else ())
    return any(reason in args.states for reason in waiting)


def _most(pods: Iterable[Pod]) -> int:
    return max((pod.main.restarts + pod.init.restarts for pod in pods), default=0)


def _dearness(args: Args, pod: Pod) -> tuple[int, bool, str, str, str]:
    return -restarts(pod, args), prefers_no_eviction(pod.shape), pod.shape.namespace, pod.name, pod.uid


def propose(view: View, args: Args) -> None:
    """Ask for every pod at or over the threshold, on each node the most restarted first."""
    looks_at = in_scope(args.namespaces, args.label_selector)
    threshold = args.pod_restart_threshold
    for node in view.nodes:
        if view.of_node(node, "most restarts", partial(_most, view.on(node.name))) < threshold:
            continue
        suspects = [
            pod
            for pod in view.on(node.name)
            if pod.main.restarts + pod.init.restarts >= threshold
            and restarts(pod, args) >= threshold
            and looks_at(pod.shape)
            and in_states(pod, args)
        ]
        for pod in sorted(suspects, key=partial(_dearness, args)):
            verdict = view.ask(pod, f"{restarts(pod, args)} restarts, threshold {threshold}")
            if verdict.ends_run:
                return
            if verdict.ends_node:
                break


STRATEGY = Strategy(
    "RemovePodsHavingTooManyRestarts", Args, "deschedule", frozenset({TriggerKind.TICK, TriggerKind.POD_CHANGED}), propose
)
