"""Move pods that share a node or a topology domain with pods that their required anti-affinity forbids.

Source: https://github.com/kubernetes-sigs/descheduler#removepodsviolatinginterpodantiaffinity
The holder of the rule leaves, the cheapest first (K11). Terminating pods are no conflict (F11); a pod is told from others by
its UID, and namespaceSelector counts (F17). Pods outside the strategy's scope neither go nor count.
"""

from __future__ import annotations

from collections.abc import Callable

from rebalancer.model.pod import AffinityTerm, Pod, PodShape
from rebalancer.model.trigger import TriggerKind
from rebalancer.strategies.arguments import RemovePodsViolatingInterPodAntiAffinityArgs as Args
from rebalancer.strategies.label_index import LabelIndex
from rebalancer.strategies.order import cheapest_first
from rebalancer.strategies.scope import in_scope
from rebalancer.strategies.view import Aim, Strategy, View


class Conflicts:
    """Finds what a term forbids. Pods that a term selects are counted per topology domain, anew after each approval."""

    def __init__(self, view: View, looks_at: Callable[[PodShape], bool]) -> None:
        self._view = view
        self._looks_at = looks_at
        self._nodes = {node.name: node for node in view.nodes}
        self._selected: dict[AffinityTerm, tuple[PodShape, ...]] = {}
        self._counts: dict[AffinityTerm, dict[str, int]] = {}
        self._index = LabelIndex(view)

    def with_pod(self, pod: Pod) -> tuple[AffinityTerm, Pod] | None:
        """Return the first of the pod's terms that another pod breaks, with that pod, or None."""
        here = pod.node or ""
        for term in pod.shape.anti_affinity:
            count = self._count(term).get(self._domain(here, term.topology_key), 0)
            if count > (1 if pod.shape in self.selected(term) else 0):
                return term, self._other(pod, term)
        return None

    def holders(self) -> frozenset[PodShape]:
        """Return the shapes in scope that have a rule."""
        view = self._view
        return frozenset(
            shape
            for namespace in view.namespaces()
            for shape in view.shapes(namespace)
            if shape.anti_affinity and self._looks_at(shape)
        )

    def suspects(self) -> frozenset[PodShape]:
        """Return the holders of a rule that is broken somewhere: a domain has more pods that the term selects than a holder."""
        return frozenset(shape for shape in self.holders() if any(self._is_crowded(term, shape) for term in shape.anti_affinity))

    def _is_crowded(self, term: AffinityTerm, shape: PodShape) -> bool:
        return max(self._count(term).values(), default=0) > (1 if shape in self.selected(term) else 0)

    def forget(self, pod: Pod) -> None:
        """Count anew what selects a pod that has gone."""
        for term in [term for term in self._counts if pod.shape in self.selected(term)]:
            del self._counts[term]

    def _count(self, term: AffinityTerm) -> dict[str, int]:
        counts = self._counts.get(term)
        if counts is None:
            counts = self._counts[term] = {}
            for shape in self.selected(term):
                for name, pods in self._view.where(shape).items():
                    if name in self._nodes:
                        domain = self._domain(name, term.topology_key)
                        counts[domain] = counts.get(domain, 0) + len(pods)
        return counts

    def _domain(self, node: str, topology_key: str) -> str:
        """Return the topology value of a node; one without the label is a domain of its own."""
        value = self._nodes[node].labels.get(topology_key)
        return f"={value}" if value is not None else node

    def _other(self, pod: Pod, term: AffinityTerm) -> Pod:
        domain = self._domain(pod.node or "", term.topology_key)
        return next(
            other
            for shape in self.selected(term)
            for name, others in self._view.where(shape).items()
            if name in self._nodes and self._domain(name, term.topology_key) == domain
            for other in others
            if other.uid != pod.uid
        )

    def selected(self, term: AffinityTerm) -> tuple[PodShape, ...]:
        """Return the shapes in scope that a term selects."""
        known = self._selected.get(term)
        if known is None:
            view = self._view
            names = view.namespaces() if term.namespace_selector is not None else sorted(term.namespaces)
            known = self._selected[term] = tuple(
                shape
                for namespace in names
                for shape in self._index.selected(namespace, term.selector)
                if self._looks_at(shape) and term.selects(namespace, view.namespace_labels(namespace), shape.labels)
            )
        return known


def propose(view: View, args: Args) -> None:
    """Ask for each holder of a broken rule, node by node, the cheapest first; each approval may mend others."""
    looks_at = in_scope(args.namespaces, args.label_selector)
    conflicts = Conflicts(view, looks_at)
    suspects = conflicts.suspects()
    for node in view.nodes if suspects else ():
        holders = [pod for shape, pods in view.live(node.name).items() if shape in suspects for pod in pods]
        for pod in cheapest_first(holders):
            found = conflicts.with_pod(pod)
            if found is None:
                continue
            term, other = found
            reason = f"its anti-affinity to {term.selector} ({term.topology_key}) is broken by {other.key} on {other.node}"
            verdict = view.ask(pod, reason, Aim())
            if verdict.approved:
                conflicts.forget(pod)
                suspects = conflicts.holders()  # Where its replacement is expected, a rule that was kept may be broken.
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
