"""Move pods that share a node or a topology domain with pods that their required anti-affinity forbids.

Source: https://github.com/kubernetes-sigs/descheduler#removepodsviolatinginterpodantiaffinity
The holder of the rule leaves, the cheapest first (K11). Terminating pods are no conflict (F11); a pod is told from others by
its UID, and namespaceSelector counts (F17). Pods outside the strategy's scope neither go nor count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rebalancer.model.node import Node
from rebalancer.model.pod import AffinityTerm, Pod, PodShape
from rebalancer.model.selector import LabelSelector, Operator
from rebalancer.model.trigger import TriggerKind
from rebalancer.strategies.arguments import RemovePodsViolatingInterPodAntiAffinityArgs as Args
from rebalancer.strategies.order import cheapest_first
from rebalancer.strategies.scope import in_scope
from rebalancer.strategies.view import Aim, Strategy, View


class Conflicts:
    """Finds what a term forbids, and keeps counts per topology domain up to date as pods go."""

    def __init__(self, view: View, looks_at: Callable[[PodShape], bool]) -> None:
        self._view = view
        self._looks_at = looks_at
        self._nodes = {node.name: node for node in view.nodes}
        self._selected: dict[AffinityTerm, tuple[PodShape, ...]] = {}
        self._by_label: dict[tuple[str, str], dict[str, list[PodShape]]] = {}

    def with_pod(self, pod: Pod) -> tuple[AffinityTerm, Pod] | None:
        """Return the first of the pod's terms that another pod breaks, with that pod, or None."""
        node = self._nodes[pod.node or ""]
        for term in pod.shape.anti_affinity:
            for shape in self.selected(term):
                for name, others in self._view.where(shape).items():
                    there = self._nodes.get(name)
                    if there is None or not _together(node, there, term.topology_key):
                        continue
                    other = next((each for each in others if each.uid != pod.uid), None)
                    if other is not None:
                        return term, other
        return None

    def selected(self, term: AffinityTerm) -> tuple[PodShape, ...]:
        """Return the shapes in scope that a term selects."""
        known = self._selected.get(term)
        if known is None:
            view = self._view
            names = view.namespaces() if term.namespace_selector is not None else sorted(term.namespaces)
            known = self._selected[term] = tuple(
                shape
                for namespace in names
                for shape in self._candidates(namespace, term.selector)
                if self._looks_at(shape) and term.selects(namespace, view.namespace_labels(namespace), shape.labels)
            )
        return known

    def _candidates(self, namespace: str, selector: LabelSelector) -> Iterable[PodShape]:
        """Return the shapes of a namespace that may match: those with one of the values of an In requirement, if there is one."""
        wanted = next((each for each in selector.requirements if each.operator is Operator.IN), None)
        if wanted is None:
            return self._view.shapes(namespace)
        index = self._by_label.get((namespace, wanted.key))
        if index is None:
            index = self._by_label[namespace, wanted.key] = {}
            for shape in self._view.shapes(namespace):
                value = shape.labels.get(wanted.key)
                if value is not None:
                    index.setdefault(value, []).append(shape)
        return [shape for value in wanted.values for shape in index.get(value, ())]


def _together(one: Node, other: Node, topology_key: str) -> bool:
    if one.name == other.name:
        return True
    value = one.labels.get(topology_key)
    return value is not None and other.labels.get(topology_key) == value


def propose(view: View, args: Args) -> None:
    """Ask for each holder of a broken rule, node by node, the cheapest first; each approval may mend others."""
    looks_at = in_scope(args.namespaces, args.label_selector)
    conflicts = Conflicts(view, looks_at)
    for node in view.nodes:
        holders = [pod for shape, pods in view.live(node.name).items() if shape.anti_affinity and looks_at(shape) for pod in pods]
        for pod in cheapest_first(holders):
            found = conflicts.with_pod(pod)
            if found is None:
                continue
            term, other = found
            reason = f"its anti-affinity to {term.selector} ({term.topology_key}) is broken by {other.key} on {other.node}"
            verdict = view.ask(pod, reason, Aim())
            if verdict.ends_run:
                return
            if verdict.ends_node:
                break


STRATEGY = Strategy(
    "RemovePodsViolatingInterPodAntiAffinity",
    Args,
    "deschedule",
    frozenset({TriggerKind.TICK, TriggerKind.NODE_CHANGED, TriggerKind.NODE_JOINED, TriggerKind.POD_CHANGED}),
    propose,
)
