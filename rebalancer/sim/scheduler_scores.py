"""How good a node is for a pod, with the weights of kube-scheduler's default profile.

Source: kubernetes/kubernetes pkg/scheduler/framework/plugins: NodeResourcesFit (LeastAllocated), BalancedAllocation,
TaintToleration, NodeAffinity, PodTopologySpread, InterPodAffinity.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from rebalancer.sim.fitting import term_matches, tolerates
from rebalancer.sim.scheduler_cache import NodeInfo, PodInfo
from rebalancer.sim.scheduler_filters import Namespaces, Term
from rebalancer.sim.selecting import owned_selector

_BEST = 100
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_DEFAULT_SPREAD = (("kubernetes.io/hostname", 3), ("topology.kubernetes.io/zone", 5))


def scores(
    pod: PodInfo, nodes: list[NodeInfo], everything: list[NodeInfo], namespaces: Namespaces, owner: Mapping[str, Any] | None
) -> dict[str, int]:
    """Return the weighted score of each feasible node.

    everything: all nodes, whose pods count for affinity. owner: the selector of the pod's workload, for default spreading.
    """
    spec = pod.obj["spec"]
    total = {node.name: _least_allocated(pod, node) + _balanced(pod, node) for node in nodes}
    _weigh(total, _reversed({node.name: _soft_taints(spec, node) for node in nodes}), 3)
    _weigh(total, _scaled({node.name: _node_affinity(spec, node) for node in nodes}), 2)
    _weigh(total, _spread(pod, nodes, everything, owner), 2)
    _weigh(total, _pod_affinity(pod, nodes, everything, namespaces), 2)
    return total


def _weigh(total: dict[str, int], part: Mapping[str, int], weight: int) -> None:
    for name, score in part.items():
        total[name] += weight * score


def _least_allocated(pod: PodInfo, node: NodeInfo) -> int:
    parts = []
    for name in ("cpu", "memory"):
        capacity = node.allocatable.get(name, 0)
        used = node.scored.get(name, 0) + pod.scored.get(name, 0)
        parts.append((capacity - used) * _BEST // capacity if 0 < capacity >= used else 0)
    return sum(parts) // len(parts)


def _balanced(pod: PodInfo, node: NodeInfo) -> int:
    if not any(pod.requests.get(name) for name in ("cpu", "memory")):
        return 0
    shares = []
    for name in ("cpu", "memory"):
        capacity = node.allocatable.get(name, 0)
        if capacity:
            shares.append(min(1.0, (node.requested.get(name, 0) + pod.requests.get(name, 0)) / capacity))
    deviation = abs(shares[0] - shares[1]) / 2 if len(shares) == 2 else 0.0
    return int((1 - deviation) * _BEST)


def _soft_taints(spec: Mapping[str, Any], node: NodeInfo) -> int:
    taints = node.obj["spec"].get("taints", ()) if node.obj else ()
    tolerations = [item for item in spec.get("tolerations", ()) if item.get("effect", "") in {"", "PreferNoSchedule"}]
    soft = [taint for taint in taints if taint.get("effect") == "PreferNoSchedule"]
    return sum(not any(tolerates(toleration, taint) for toleration in tolerations) for taint in soft)


def _node_affinity(spec: Mapping[str, Any], node: NodeInfo) -> int:
    terms = (spec.get("affinity") or {}).get("nodeAffinity", {}).get(_PREFERRED, ())
    if not terms or node.obj is None:
        return 0
    return sum(item["weight"] for item in terms if term_matches(item["preference"], node.obj))


def _spread(pod: PodInfo, nodes: list[NodeInfo], everything: list[NodeInfo], owner: Mapping[str, Any] | None) -> dict[str, int]:
    own = pod.obj["spec"].get("topologySpreadConstraints", ())
    soft = [
        (item["topologyKey"], item["maxSkew"], owned_selector(item.get("labelSelector")))
        for item in own
        if item.get("whenUnsatisfiable") == "ScheduleAnyway"
    ]
    needs_all_keys = bool(soft)
    if not own and owner is not None:
        selector = owned_selector(owner)
        soft = [(key, skew, selector) for key, skew in _DEFAULT_SPREAD]
    if not soft:
        return {}
    keys = [key for key, _, _ in soft]
    counted = [node for node in nodes if not needs_all_keys or all(key in node.labels for key in keys)]
    raw = {node.name: 0.0 for node in counted}
    for key, skew, selector in soft:
        domains = {node.labels[key] for node in counted if key in node.labels}
        size = len(counted) if key == "kubernetes.io/hostname" else len(domains)
        counts: Counter[str] = Counter()
        for node in everything:
            value = node.labels.get(key)
            if value in domains and value is not None and selector is not None:
                counts[value] += sum(
                    other.namespace == pod.namespace and not other.terminating and selector.matches(other.labels)
                    for other in node.pods.values()
                )
        for node in counted:
            if key in node.labels:
                raw[node.name] += counts[node.labels[key]] * math.log(size + 2) + (skew - 1)
    return _spread_normalised({name: round(value) for name, value in raw.items()}, nodes)


def _spread_normalised(raw: dict[str, int], nodes: list[NodeInfo]) -> dict[str, int]:
    if not raw:
        return {}
    low, high = min(raw.values()), max(raw.values())
    if high == 0:
        return {node.name: _BEST if node.name in raw else 0 for node in nodes}
    return {name: _BEST * (high + low - value) // high for name, value in raw.items()}


def _pod_affinity(pod: PodInfo, nodes: list[NodeInfo], everything: list[NodeInfo], namespaces: Namespaces) -> dict[str, int]:
    affinity = pod.obj["spec"].get("affinity") or {}
    wishes = [
        (Term(item["podAffinityTerm"], pod), sign * item["weight"])
        for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1))
        for item in affinity.get(kind, {}).get(_PREFERRED, ())
    ]
    if not wishes:
        return {}
    sums: Counter[tuple[str, str]] = Counter()
    for node in everything:
        for term, weight in wishes:
            value = node.labels.get(term.topology)
            if value is not None:
                sums[term.topology, value] += weight * sum(term.means(other, namespaces) for other in node.pods.values())
    raw = {
        node.name: sum(sums[term.topology, node.labels[term.topology]] for term, _ in wishes if term.topology in node.labels)
        for node in nodes
    }
    low, high = min(raw.values()), max(raw.values())
    if high == low:
        return dict.fromkeys(raw, 0)
    return {name: int(_BEST * (value - low) / (high - low)) for name, value in raw.items()}


def _scaled(raw: dict[str, int]) -> dict[str, int]:
    high = max(raw.values(), default=0)
    return {name: _BEST * value // high for name, value in raw.items()} if high else raw


def _reversed(raw: dict[str, int]) -> dict[str, int]:
    high = max(raw.values(), default=0)
    return {name: _BEST - _BEST * value // high for name, value in raw.items()} if high else dict.fromkeys(raw, _BEST)
