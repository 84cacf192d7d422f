"""What a policy will do, in plain words, and which of its parts fight each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rebalancer.eligibility.arguments import (
    CRITICAL_PRIORITY,
    DEFAULT_PROTECTIONS,
    DefaultEvictorArgs,
    Protection,
)
from rebalancer.model.selector import LabelSelector
from rebalancer.parse.argument_types import EvictableNamespaces, Namespaces
from rebalancer.parse.duration import duration_text
from rebalancer.parse.selector_text import text_of_selector
from rebalancer.policy.policy import PluginUse, Policy
from rebalancer.strategies import arguments as of

_PROTECTED: Mapping[Protection, str] = {
    Protection.LOCAL_STORAGE: "pods with local storage (emptyDir or hostPath)",
    Protection.DAEMON_SET: "pods of DaemonSets",
    Protection.SYSTEM_CRITICAL: f"system critical pods (priority {CRITICAL_PRIORITY} and more)",
    Protection.FAILED_BARE: "pods without an owner, failed ones too",
    Protection.PVC: "pods with a persistent volume claim",
    Protection.WITHOUT_PDB: "pods that no PodDisruptionBudget selects",
    Protection.RESOURCE_CLAIMS: "pods with resource claims",
    Protection.SAFE_TO_EVICT_FALSE: 'pods annotated cluster-autoscaler.kubernetes.io/safe-to-evict: "false"',
    Protection.DO_NOT_DISRUPT: 'pods annotated karpenter.sh/do-not-disrupt: "true"',
}
_SPREADING = ("LowNodeUtilization", "RemoveDuplicates", "RemovePodsViolatingTopologySpreadConstraint")


def describe(policy: Policy, *, scheduler_packs: bool = False) -> list[str]:
    """Return what the policy will do, a sentence per line, and a warning for each pair of parts that fight.

    scheduler_packs: whether kube-scheduler is known to fill nodes (MostAllocated) rather than to spread over them.
    """
    lines = [_nodes(policy), *_limits(policy)]
    said: dict[tuple[str, ...], str] = {}
    for profile in policy.profiles:
        lines.append(f"Profile {profile.name}")
        rules = tuple(_evictor(profile.evictor))
        first = said.setdefault(rules, profile.name)
        lines += [f"  {line}" for line in (rules if first == profile.name else [f"May move the same pods as {first}."])]
        lines += [f"  {use.name}: {_strategy(use)}" for use in (*profile.deschedule, *profile.balance)]
        if not profile.deschedule and not profile.balance:
            lines.append("  No strategy is enabled: this profile does nothing.")
    order = [use.name for _, use in policy.uses()]
    if len(order) > 1:
        lines.append(f"Order of a run: {', '.join(order)}.")
    return lines + [f"Warning: {conflict}" for conflict in conflicts(policy, scheduler_packs=scheduler_packs)]


def conflicts(policy: Policy, *, scheduler_packs: bool = False) -> tuple[str, ...]:
    """Return a sentence for each combination in the policy that works against itself or against the scheduler."""
    used = {use.name for _, use in policy.uses()}
    found = []
    if "HighNodeUtilization" in used:
        if "LowNodeUtilization" in used:
            found.append(
                "LowNodeUtilization spreads pods and HighNodeUtilization packs them, on the same nodes: "
                "each undoes the work of the other. Enable one of them."
            )
        found += [
            f"{name} spreads pods over the nodes that HighNodeUtilization wants to empty: each may undo the work of the other."
            for name in _SPREADING[1:]
            if name in used
        ]
        if not scheduler_packs:
            found.append(
                "HighNodeUtilization empties nodes, but kube-scheduler spreads pods over the least used ones unless it is "
                "configured with MostAllocated: replacements would come back to the nodes that were emptied."
            )
    if policy.max_total == 0 or policy.max_per_node == 0 or policy.max_per_namespace == 0:
        found.append("a limit of 0 allows no eviction at all: leave it out where no limit is meant.")
    return tuple(found)


def _nodes(policy: Policy) -> str:
    chosen = text_of_selector(policy.node_selector)
    which = f"Ready nodes that match {chosen}" if chosen else "all Ready nodes"
    alone = "with one Ready node only Deschedule strategies run" if policy.single_node else "at least two are needed"
    return f"Looks at {which}; {alone}."


def _limits(policy: Policy) -> Iterable[str]:
    limits = ((policy.max_total, "in all"), (policy.max_per_node, "per node"), (policy.max_per_namespace, "per namespace"))
    given = [f"{_pods(limit)} {where}" for limit, where in limits if limit is not None]
    yield f"Evicts per run at most {', '.join(given)}." if given else "The policy sets no limit on evictions per run."
    if policy.grace_period_seconds is not None:
        yield f"Each evicted pod gets {policy.grace_period_seconds} s to stop."
    if policy.eviction_failure_event_notification:
        yield "Failed evictions are written as Events, too."


def _evictor(args: DefaultEvictorArgs) -> Iterable[str]:
    on = args.protections
    protected = "; ".join(_PROTECTED[name] for name in Protection if name in on)
    yield f"Leaves alone: mirror, static and terminating pods; {protected}."
    off = [name for name in DEFAULT_PROTECTIONS if name not in on]
    if off:
        yield f"Protection switched off for: {'; '.join(_PROTECTED[name] for name in off)}."
    threshold = args.priority_threshold
    if threshold.name:
        yield f"Moves only pods below the priority of class {threshold.name}."
    elif threshold.value is not None:
        yield f"Moves only pods below priority {threshold.value}."
    for selector, what in ((args.label_selector, "pods"), (args.namespace_label_selector, "pods of namespaces")):
        if selector is not None:
            yield f"Moves only {what} that match {selector}."
    if args.protected_storage_classes and args.protects(Protection.PVC):
        yield f"Of claims, only those of storage class {_either(args.protected_storage_classes)} protect."
    if args.min_replicas > 1:
        yield f"Moves only pods whose owner has at least {args.min_replicas} live, ready pods."
    if args.min_pod_age:
        yield f"Moves only pods that started at least {duration_text(args.min_pod_age)} ago."
    if args.no_eviction_is_mandatory:
        yield "The annotation prefer-no-eviction protects a pod."
    if args.node_fit is True:
        yield "Moves only pods that fit another node" + _among(args.node_selector) + "."
    elif args.node_fit is False:
        yield "Asks neither for a node that fits nor for a gain (nodeFit: false)."


def _among(selector: LabelSelector) -> str:
    chosen = text_of_selector(selector)
    return f" among those that match {chosen}" if chosen else ""


def _strategy(use: PluginUse) -> str:
    return _SENTENCES[type(use.args)](use.args) + _scope(use.args)


def _scope(args: of.StrategyArgs) -> str:
    """Say to which namespaces and pods a strategy is limited."""
    parts = []
    namespaces = getattr(args, "namespaces", None)
    if isinstance(namespaces, Namespaces) and namespaces.include:
        parts.append(f"only in {_either(namespaces.include)}")
    elif isinstance(namespaces, Namespaces) and namespaces.exclude:
        parts.append(f"not in {_either(namespaces.exclude)}")
    evictable = getattr(args, "evictable_namespaces", None)
    if isinstance(evictable, EvictableNamespaces) and evictable.exclude:
        parts.append(f"pods of {_either(evictable.exclude)} stay, though they count as usage")
    selector = getattr(args, "label_selector", None)
    if selector is not None:
        parts.append(f"only pods that match {selector}")
    kinds = getattr(args, "exclude_owner_kinds", ())
    if kinds:
        parts.append(f"not pods of a {_either(kinds)}")
    return f" Scope: {'; '.join(parts)}." if parts else ""


def _duplicates(args: of.RemoveDuplicatesArgs) -> str:
    return "moves replicas of one owner off nodes that hold more than their even share."


def _low(args: of.LowNodeUtilizationArgs) -> str:
    if args.use_deviation_thresholds:
        low = _percentages(args.thresholds, " and ", "at least {} points of {} below the mean")
        high = _percentages(args.target_thresholds, " or ", "more than {} points of {} above it")
    else:
        low = _percentages(args.thresholds, " and ", "at or below {} % requested {}")
        high = _percentages(args.target_thresholds, " or ", "above {} % requested {}")
    sentence = f"nodes {low} are under-used, nodes {high} are over-used; moves pods from over-used towards under-used nodes"
    limit = args.eviction_limits.node
    return sentence + _threshold_count(args.number_of_nodes) + (f", at most {limit} per node" if limit is not None else "") + "."


def _high(args: of.HighNodeUtilizationArgs) -> str:
    low = _percentages(args.thresholds, " and ", "at or below {} % requested {}")
    sentence = f"nodes {low} are under-used; moves their pods onto fuller nodes" + _threshold_count(args.number_of_nodes)
    if args.eviction_modes:
        sentence += ", only pods that request one of these resources"
    return sentence + (". Where all nodes are under-used, empties the least used one." if args.drain_least_used else ".")


def _threshold_count(count: int) -> str:
    return f", once more than {count} nodes are under-used" if count else ""


def _anti_affinity(args: of.RemovePodsViolatingInterPodAntiAffinityArgs) -> str:
    return "moves pods whose required anti-affinity is violated by another pod, the lowest priority first."


def _node_affinity(args: of.RemovePodsViolatingNodeAffinityArgs) -> str:
    parts = []
    if of.REQUIRED_NODE_AFFINITY in args.node_affinity_type:
        parts.append("pods whose node no longer matches their node selector or required node affinity")
    if of.PREFERRED_NODE_AFFINITY in args.node_affinity_type:
        parts.append("pods that another node suits better by their preferred node affinity")
    return f"moves {' and '.join(parts)}."


def _taints(args: of.RemovePodsViolatingNodeTaintsArgs) -> str:
    effects = "NoSchedule or PreferNoSchedule" if args.include_prefer_no_schedule else "NoSchedule"
    which = " except those set by the node controller"
    if args.included_taints:
        which = f" among {_either(args.included_taints)}"
    elif args.excluded_taints:
        which += f" and {_either(args.excluded_taints)}"
    return f"moves pods that do not tolerate a {effects} taint of their node,{which}."


def _spread(args: of.RemovePodsViolatingTopologySpreadConstraintArgs) -> str:
    kinds = [kind for kind in (of.DO_NOT_SCHEDULE, of.SCHEDULE_ANYWAY) if args.upholds(kind)]
    fit = ", only where they fit a node of a domain below average" if args.topology_balance_node_fit else ""
    return f"moves pods that violate their topology spread constraints ({' and '.join(kinds)}){fit}."


def _restarts(args: of.RemovePodsHavingTooManyRestartsArgs) -> str:
    init = ", init containers included" if args.including_init_containers else ""
    states = f", in state {_either(args.states)}" if args.states else ""
    return f"moves pods with {args.pod_restart_threshold} or more restarts{init}{states}, the most restarted first."


def _lifetime(args: of.PodLifeTimeArgs) -> str:
    parts = []
    if args.max_pod_life_time_seconds is not None:
        parts.append(f"older than {duration_text(args.max_pod_life_time_seconds)}")
    if args.states:
        parts.append(f"in state {_either(args.states)}")
    if args.conditions:
        parts.append("with condition " + " or ".join(_condition(condition) for condition in args.conditions))
    if args.exit_codes:
        parts.append(f"with exit code {_either(map(str, args.exit_codes))}")
    if args.owner_kinds.include:
        parts.append(f"owned by a {_either(args.owner_kinds.include)}")
    if args.owner_kinds.exclude:
        parts.append(f"not owned by a {_either(args.owner_kinds.exclude)}")
    return f"removes pods {' and '.join(parts)}, the oldest first."


def _condition(condition: of.PodConditionFilter) -> str:
    text = condition.type or "any"
    text += f"={condition.status}" if condition.status else ""
    text += f" ({condition.reason})" if condition.reason else ""
    since = condition.min_time_since_last_transition_seconds
    return text + (f" for {duration_text(since)}" if since is not None else "")


def _failed(args: of.RemoveFailedPodsArgs) -> str:
    parts = [f"at least {duration_text(args.min_pod_lifetime_seconds)} old"]
    if args.reasons:
        parts.append(f"with reason {_either(args.reasons)}")
    if args.exit_codes:
        parts.append(f"with exit code {_either(map(str, args.exit_codes))}")
    return f"removes failed pods {' and '.join(parts)}."


_SENTENCES: Mapping[type[of.StrategyArgs], Callable[[Any], str]] = {
    of.RemoveDuplicatesArgs: _duplicates,
    of.LowNodeUtilizationArgs: _low,
    of.HighNodeUtilizationArgs: _high,
    of.RemovePodsViolatingInterPodAntiAffinityArgs: _anti_affinity,
    of.RemovePodsViolatingNodeAffinityArgs: _node_affinity,
    of.RemovePodsViolatingNodeTaintsArgs: _taints,
    of.RemovePodsViolatingTopologySpreadConstraintArgs: _spread,
    of.RemovePodsHavingTooManyRestartsArgs: _restarts,
    of.PodLifeTimeArgs: _lifetime,
    of.RemoveFailedPodsArgs: _failed,
}


def _percentages(percentages: Mapping[str, float], glue: str, form: str) -> str:
    """Say each percentage, resources of the same percentage together."""
    groups: dict[float, list[str]] = {}
    for resource, value in percentages.items():
        groups.setdefault(value, []).append(resource)
    return glue.join(form.format(f"{value:g}", _joined(names, glue.strip())) for value, names in groups.items())


def _pods(count: int) -> str:
    return "no pod" if count == 0 else "1 pod" if count == 1 else f"{count} pods"


def _either(names: Iterable[str]) -> str:
    return _joined(names, "or")


def _joined(names: Iterable[str], word: str) -> str:
    *most, last = names
    return f"{', '.join(most)} {word} {last}" if most else last
