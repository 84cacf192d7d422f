"""Move pods that are too old, or stuck in a state, so that they start afresh.

Source: https://github.com/kubernetes-sigs/descheduler#podlifetime
"""

from __future__ import annotations

from rebalancer.eligibility.rules import prefers_no_eviction
from rebalancer.model.pod import Pod
from rebalancer.model.trigger import TriggerKind
from rebalancer.strategies.arguments import PodConditionFilter
from rebalancer.strategies.arguments import PodLifeTimeArgs as Args
from rebalancer.strategies.container_states import current_reasons, exit_codes
from rebalancer.strategies.scope import in_scope, owner_kinds
from rebalancer.strategies.view import Scope, Strategy, View


def age_seconds(pod: Pod, now: float) -> float:
    """Return the age since creation; a creation in the future (a clock ahead of ours) counts as just now (F21)."""
    return max(0.0, now - pod.created_at)


def in_states(pod: Pod, args: Args) -> bool:
    """Tell whether the phase, the pod's reason or a container's reason is among the states asked for."""
    if not args.states or pod.phase.value in args.states or (pod.reason and pod.reason in args.states):
        return True
    reasons = current_reasons(pod, init=args.including_init_containers, ephemeral=args.including_ephemeral_containers)
    return any(reason in args.states for reason in reasons)


def meets(pod: Pod, wanted: PodConditionFilter, now: float) -> bool:
    """Tell whether one of the pod's conditions is as wanted in every field that was given."""
    least = wanted.min_time_since_last_transition_seconds
    return any(
        (not wanted.type or condition.type == wanted.type)
        and (not wanted.status or condition.status == wanted.status)
        and (not wanted.reason or condition.reason == wanted.reason)
        and (least is None or (condition.since > 0 and now - condition.since >= least))
        for condition in pod.conditions
    )


def matches(pod: Pod, args: Args, now: float) -> bool:
    """Tell whether the pod meets every criterion given; the age has to be strictly greater (K6)."""
    if args.max_pod_life_time_seconds is not None and not age_seconds(pod, now) > args.max_pod_life_time_seconds:
        return False
    if not in_states(pod, args):
        return False
    if args.conditions and not any(meets(pod, wanted, now) for wanted in args.conditions):
        return False
    if args.exit_codes:
        codes = exit_codes(pod, init=args.including_init_containers, ephemeral=args.including_ephemeral_containers)
        return any(code in args.exit_codes for code in codes)
    return True


def reason(pod: Pod, args: Args, now: float) -> str:
    """Say why the pod is asked for."""
    parts = []
    if args.max_pod_life_time_seconds is not None:
        parts.append(f"{age_seconds(pod, now):.0f} s old, at most {args.max_pod_life_time_seconds} s are allowed")
    if args.states:
        parts.append(f"in one of the states {', '.join(args.states)}")
    if args.conditions:
        parts.append("it meets one of the conditions")
    if args.exit_codes:
        parts.append(f"a container ended with one of the exit codes {', '.join(map(str, args.exit_codes))}")
    return "; ".join(parts)


def propose(view: View, args: Args) -> None:
    """Ask for every pod that meets the criteria, the oldest first over all nodes; of one age, who asks to stay goes last."""
    looks_at = in_scope(args.namespaces, args.label_selector)
    now = view.now
    found = [
        pod
        for node in view.nodes
        for pod in view.on(node.name)
        if matches(pod, args, now) and looks_at(pod.shape) and args.owner_kinds.admits(owner_kinds(pod.shape))
    ]
    found.sort(key=lambda pod: (pod.created_at, prefers_no_eviction(pod.shape), pod.shape.namespace, pod.name, pod.uid))
    full: set[tuple[Scope, str]] = set()
    for pod in found:
        if (Scope.NODE, pod.node) in full or (Scope.NAMESPACE, pod.namespace) in full:
            continue
        verdict = view.ask(pod, reason(pod, args, now))
        if verdict.ends_run:
            return
        if verdict.scope is Scope.NODE:
            full.add((Scope.NODE, pod.node or ""))
        elif verdict.scope is Scope.NAMESPACE:
            full.add((Scope.NAMESPACE, pod.namespace))


STRATEGY = Strategy("PodLifeTime", Args, "deschedule", frozenset({TriggerKind.TICK}), propose)
