"""Which nodes can take a pod, and the reason why one cannot, in kube-scheduler's words.

Source: kubernetes/kubernetes pkg/scheduler/framework/plugins
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from rebalancer.model.selector import LabelSelector
from rebalancer.sim.fitting import matches_node, untolerated
from rebalancer.sim.history import Object
from rebalancer.sim.scheduler_cache import NodeInfo, PodInfo
from rebalancer.sim.selecting import owned_selector

_HARD = frozenset({"NoSchedule", "NoExecute"})
_UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
Namespaces = Callable[[str], Mapping[str, str]]


class Term:
    """One pod affinity term: which pods it means and over which topology."""

    __slots__ = ("everywhere", "namespace_selector", "namespaces", "selector", "topology")

    def __init__(self, term: Mapping[str, Any], owner: PodInfo) -> None:
        self.topology: str = term["topologyKey"]
        self.selector = _selector_with_keys(term, owner)
        self.namespace_selector = owned_selector(term.get("namespaceSelector"))
        named = set(term.get("namespaces") or ())
        if not named and self.namespace_selector is None:
            named = {owner.namespace}
        self.namespaces = named

    def means(self, pod: PodInfo, namespaces: Namespaces) -> bool:
        """Say whether a pod is one of those that the term is about."""
        if pod.namespace not in self.namespaces:
            selector = self.namespace_selector
            if selector is None or not selector.matches(namespaces(pod.namespace)):
                return False
        return self.selector is not None and self.selector.matches(pod.labels)


def _selector_with_keys(term: Mapping[str, Any], owner: PodInfo) -> LabelSelector | None:
    document = dict(term.get("labelSelector") or {}) if term.get("labelSelector") is not None else None
    if document is None:
        return None
    labels = dict(document.get("matchLabels") or {})
    for key in term.get("matchLabelKeys") or ():
        if key in owner.labels:
            labels[key] = owner.labels[key]
    if labels:
        document["matchLabels"] = labels
    return owned_selector(document)


class Filters:
    """The filters for one pod over one state of the cache."""

    def __init__(self, pod: PodInfo, nodes: list[NodeInfo], namespaces: Namespaces, *, anti_affine: bool) -> None:
        self._pod = pod
        self._spec = pod.obj["spec"]
        self._namespaces = namespaces
        affinity = self._spec.get("affinity") or {}
        self._affine = [Term(term, pod) for term in affinity.get("podAffinity", {}).get(_REQUIRED, ())]
        self._anti = [Term(term, pod) for term in pod.terms]
        self._near: list[Counter[str]] = [self._domains(term, nodes) for term in self._affine]
        self._far: list[Counter[str]] = [self._domains(term, nodes) for term in self._anti]
        self._repelled = self._repelling(nodes) if anti_affine else set()
        self._spread = [
            _Spread(constraint, pod, self._spec, nodes)
            for constraint in self._spec.get("topologySpreadConstraints", ())
            if constraint.get("whenUnsatisfiable") == "DoNotSchedule"
        ]

    def _domains(self, term: Term, nodes: list[NodeInfo]) -> Counter[str]:
        counts: Counter[str] = Counter()
        for node in nodes:
            value = node.labels.get(term.topology)
            if value is not None:
                counts[value] += sum(term.means(pod, self._namespaces) for pod in node.pods.values())
        return counts

    def _repelling(self, nodes: list[NodeInfo]) -> set[tuple[str, str]]:
        found: set[tuple[str, str]] = set()
        for node in nodes:
            if not node.anti_affine:
                continue
            for other in node.pods.values():
                for raw in other.terms:
                    value = node.labels.get(raw["topologyKey"])
                    if value is not None and Term(raw, other).means(self._pod, self._namespaces):
                        found.add((raw["topologyKey"], value))
        return found

    def refusal(self, node: NodeInfo) -> str | None:
        """Return why a node cannot take the pod, or None if it can."""
        obj = node.obj
        if obj is None:
            return "node(s) not found"
        tolerations = self._spec.get("tolerations", ())
        if obj["spec"].get("unschedulable"):
            mock = {"spec": {"taints": [_UNSCHEDULABLE]}}
            if untolerated(mock, tolerations, _HARD) is not None:
                return "node(s) were unschedulable"
        taint = untolerated(obj, tolerations, _HARD)
        if taint is not None:
            shown = f"{taint['key']}: {taint.get('value', '')}"
            return f"node(s) had untolerated taint(s) {{{shown}}}" if shown else None
        if not matches_node(self._spec, obj):
            return "node(s) didn't match Pod's node affinity/selector"
        if any(_clash(port, node.ports) for port in self._pod.ports):
            return "node(s) didn't have free ports for the requested pod ports"
        short = self._short(node)
        if short:
            return short
        return self._topology_refusal(node)

    def _short(self, node: NodeInfo) -> str | None:
        if len(node.pods) + 1 > node.allocatable.get("pods", 0):
            return "Too many pods"
        for name, amount in self._pod.requests.items():
            if amount and amount > node.allocatable.get(name, 0) - node.requested.get(name, 0):
                return f"Insufficient {name}"
        return None

    def _topology_refusal(self, node: NodeInfo) -> str | None:
        for spread in self._spread:
            if not spread.allows(node):
                return "node(s) didn't match pod topology spread constraints"
        if any((key, value) in self._repelled for key, value in node.labels.items()):
            return "node(s) didn't satisfy existing pods anti-affinity rules"
        for term, counts in zip(self._anti, self._far, strict=True):
            value = node.labels.get(term.topology)
            if value is not None and counts[value]:
                return "node(s) didn't match pod anti-affinity rules"
        if self._affine and not self._near_enough(node):
            return "node(s) didn't match pod affinity rules"
        return None

    def _near_enough(self, node: NodeInfo) -> bool:
        values = [node.labels.get(term.topology) for term in self._affine]
        if any(value is None for value in values):
            return False
        if all(counts[value] for counts, value in zip(self._near, values, strict=True) if value is not None):
            return True
        nowhere = not any(sum(counts.values()) for counts in self._near)
        return nowhere and all(term.means(self._pod, self._namespaces) for term in self._affine)


def _clash(port: tuple[str, str, int], used: Mapping[tuple[str, str, int], int]) -> bool:
    address, protocol, number = port
    for (other, other_protocol, other_number), count in used.items():
        same = count > 0 and (protocol, number) == (other_protocol, other_number)
        if same and ("0.0.0.0" in {address, other} or address == other):
            return True
    return False


class _Spread:
    """One hard topology spread constraint."""

    def __init__(self, raw: Mapping[str, Any], pod: PodInfo, spec: Mapping[str, Any], nodes: list[NodeInfo]) -> None:
        self._key: str = raw["topologyKey"]
        self._skew: int = raw["maxSkew"]
        selector = _selector_with_keys(raw, pod)
        self._own = int(selector is not None and selector.matches(pod.labels))
        keys = [
            item["topologyKey"]
            for item in spec.get("topologySpreadConstraints", ())
            if item.get("whenUnsatisfiable") == "DoNotSchedule"
        ]
        self._counts: Counter[str] = Counter()
        honour_taints = raw.get("nodeTaintsPolicy", "Ignore") == "Honor"
        honour_affinity = raw.get("nodeAffinityPolicy", "Honor") == "Honor"
        for node in nodes:
            if node.obj is None or any(key not in node.labels for key in keys):
                continue
            if honour_affinity and not matches_node(spec, node.obj):
                continue
            if honour_taints and untolerated(node.obj, spec.get("tolerations", ()), _HARD) is not None:
                continue
            self._counts[node.labels[self._key]] += sum(
                other.namespace == pod.namespace
                and not other.terminating
                and selector is not None
                and selector.matches(other.labels)
                for other in node.pods.values()
            )
        lowest = min(self._counts.values(), default=0)
        self._lowest = 0 if len(self._counts) < raw.get("minDomains", 1) else lowest

    def allows(self, node: NodeInfo) -> bool:
        value = node.labels.get(self._key)
        if value is None:
            return False
        return self._counts[value] + self._own - self._lowest <= self._skew


def describe(refusals: Counter[str], nodes: int) -> str:
    """Return the message of a FailedScheduling event."""
    if not nodes:
        return "no nodes available to schedule pods"
    parts = sorted(f"{count} {reason}" for reason, count in refusals.items())
    return f"0/{nodes} nodes are available: {', '.join(parts)}."


def pod_scheduled_false(pod: Object, message: str, now: str) -> Object:
    """Return a pod with its PodScheduled condition saying that no node fits."""
    status = pod.get("status", {})
    old: Object = next((item for item in status.get("conditions", ()) if item["type"] == "PodScheduled"), {})
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": old.get("lastTransitionTime", now) if old.get("status") == "False" else now,
        "reason": "Unschedulable",
        "message": message,
    }
    kept = [item for item in status.get("conditions", ()) if item["type"] != "PodScheduled"]
    return {**pod, "metadata": dict(pod["metadata"]), "status": {**status, "conditions": [*kept, condition]}}
