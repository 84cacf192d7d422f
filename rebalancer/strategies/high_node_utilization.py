"""Empty nodes that are requested little, so that they can be switched off.

Source: https://github.com/kubernetes-sigs/descheduler#highnodeutilization
A node is judged only by resources that it has (F13); sources go by their highest share, the lowest first (F39); where a
landing is looked at, it is outside the sources. Packing needs a scheduler that packs (NodeResourcesFit with MostAllocated).
"""

from __future__ import annotations

from rebalancer.eligibility.objection import Objection
from rebalancer.model.pod import Pod, PodShape
from rebalancer.model.trigger import TriggerKind
from rebalancer.strategies.arguments import ONLY_THRESHOLDING_RESOURCES
from rebalancer.strategies.arguments import HighNodeUtilizationArgs as Args
from rebalancer.strategies.order import cheapest_first
from rebalancer.strategies.taints import untolerated
from rebalancer.strategies.utilization import Room, Usage, all_resources, is_at_or_below, set_limits, usage_of
from rebalancer.strategies.view import Aim, Demand, Strategy, Verdict, View


class Packer:
    """One pass of the strategy: sources and destinations as classified."""

    def __init__(self, view: View, args: Args) -> None:
        self.view = view
        self.args = args
        self.resources = all_resources(args.thresholds)
        self.full = dict.fromkeys(args.thresholds, 100.0)
        self.usages = {node.name: usage_of(view, node, self.resources) for node in view.nodes}
        self.sources: dict[str, Usage] = {}
        self.destinations: dict[str, Usage] = {}
        for name, usage in self.usages.items():
            set_limits(usage, self.full)
            self._classify(name, usage)
        self._tolerated: dict[PodShape, bool] = {}

    def _classify(self, name: str, usage: Usage) -> None:
        verdict = "appropriate"
        if not any(resource in usage.offered for resource in self.args.thresholds):
            verdict = "unjudged"
        elif is_at_or_below(usage, self.args.thresholds):
            verdict = "under"
            self.sources[name] = usage
        elif not usage.node.unschedulable:
            self.destinations[name] = usage
        shares = {resource: usage.percent(resource) for resource in self.resources if resource in usage.offered}
        self.view.classify(name, verdict, shares)

    def fullness(self, usage: Usage) -> float:
        """Return the highest share of a resource named in thresholds."""
        return usage.worst_share(self.args.thresholds)

    def stops_early(self) -> str | None:
        """Return why there is nothing to do, or None (K2)."""
        if not self.sources:
            return "no node is under-used"
        if len(self.sources) <= self.args.number_of_nodes:
            return f"{len(self.sources)} nodes are under-used, more than numberOfNodes {self.args.number_of_nodes} are asked for"
        if len(self.sources) == len(self.usages):
            return "all nodes are under-used"
        if not self.destinations:
            return "no node is left that could take pods"
        return None

    def run(self) -> None:
        """Empty each under-used node, the emptiest first."""
        order = sorted(self.sources.values(), key=lambda usage: (usage.worst_share(self.resources), usage.node.name))
        if len(self.sources) == len(self.usages) and len(order) > 1 and self.args.drain_least_used:
            order = self._choose_one(order)
        if why := self.stops_early():
            self.view.note(f"HighNodeUtilization: nothing to do, {why}")
            return
        self.room = Room(self.destinations.values(), self.resources)
        for source in order:
            if self._empty(source).ends_run:
                return

    def _choose_one(self, order: list[Usage]) -> list[Usage]:
        """Make the emptiest node the only source, and the others that are in use destinations (drainLeastUsed).

        A node without any pod that may be moved has been drained already: to fill it would only change which one is empty.
        A later look of a run goes on with the node that an earlier one began with, and drains no second one.
        """
        filled = [usage for usage in order if any(self.view.filter(pod) is None for pod in self._pods(usage))]
        begun = self.view.left
        chosen = next((usage for usage in filled if not begun or usage.node.name in begun), None)
        if chosen is None:
            return order
        rest = [usage for usage in filled if usage is not chosen]
        self.sources = {chosen.node.name: chosen}
        self.destinations = {usage.node.name: usage for usage in rest if not usage.node.unschedulable}
        return [chosen]

    def _pods(self, usage: Usage) -> list[Pod]:
        return [pod for group in self.view.live(usage.node.name).values() for pod in group]

    def _empty(self, source: Usage) -> Verdict:
        for pod in cheapest_first(self._pods(source)):
            if not self.room.is_left():
                break
            objection = self.view.filter(pod) or self.own_objection(pod)
            if objection is not None:
                self.view.refuse(pod, objection)
                continue
            verdict = self._ask(pod, source)
            if verdict.ends_node:
                return verdict
        return Verdict()

    def own_objection(self, pod: Pod) -> Objection | None:
        """Return what the strategy itself has against moving the pod."""
        if not self.args.evictable_namespaces.admits(pod.namespace):
            return Objection("excluded-namespace", (pod.namespace,))
        requests = pod.shape.requests
        if ONLY_THRESHOLDING_RESOURCES in self.args.eviction_modes and not any(
            requests.amount(resource) > 0 for resource in self.args.thresholds
        ):
            return Objection("not-thresholding", (", ".join(self.args.thresholds),))
        if not self.is_tolerated(pod.shape):
            return Objection("untolerated-destinations", (len(self.destinations),))
        return None

    def is_tolerated(self, shape: PodShape) -> bool:
        """Tell whether the shape tolerates the repelling taints of at least one destination (F5)."""
        known = self._tolerated.get(shape)
        if known is None:
            known = any(untolerated(shape, usage.node.taints) is None for usage in self.destinations.values())
            self._tolerated[shape] = known
        return known

    def _ask(self, pod: Pod, source: Usage) -> Verdict:
        here = self.fullness(source)
        aim = Aim(lambda landing: self.judge(landing, here), even_in_fit=True, refusal="scheduler-spreads")
        shares = ", ".join(
            f"{resource} {source.percent(resource):.1f} % requested, threshold {limit:g} %"
            for resource, limit in self.args.thresholds.items()
            if resource in source.offered
        )
        verdict = self.view.ask(pod, f"node {source.node.name} is under-used: {shares}", aim)
        if verdict.approved:
            self.room.take(pod.shape.requests)
        return verdict

    def judge(self, landing: str, here: float) -> Objection | None:
        """Say why landing there packs nothing: it is not a destination, or no fuller than the source."""
        there = self.destinations.get(landing)
        if there is None:
            return Objection("not-a-destination", (landing,))
        share = self.fullness(there)
        if self.view.demand is Demand.IMPROVEMENT and share < here:
            return Objection("emptier-there", (landing, f"{share:.1f}", f"{here:.1f}"))
        return None


def propose(view: View, args: Args) -> None:
    """Empty under-used nodes."""
    Packer(view, args).run()


STRATEGY = Strategy("HighNodeUtilization", Args, "balance", frozenset({TriggerKind.TICK, TriggerKind.NODE_CHANGED}), propose)
