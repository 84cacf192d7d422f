"""Move pods from nodes that are requested too much to nodes that are requested little.

Source: https://github.com/kubernetes-sigs/descheduler#lownodeutilization
Sources go by their worst overshoot (F6); a pod that requests nothing of what is exceeded relieves nothing and stays (F7).
Where nothing is demanded of landings, the room of all destinations is one sum, as upstream's; otherwise each landing has to
stay at or below its own target (F8). Where improvement is demanded, the cheapest pods with the largest gain go first.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from rebalancer.eligibility.objection import Objection
from rebalancer.model.pod import Pod, PodShape
from rebalancer.model.trigger import TriggerKind
from rebalancer.strategies.arguments import LowNodeUtilizationArgs as Args
from rebalancer.strategies.order import cheapest_first, rank
from rebalancer.strategies.taints import untolerated
from rebalancer.strategies.utilization import (
    Room,
    Usage,
    after,
    all_resources,
    overshoot,
    set_limits,
    shifted,
    subtract,
    usage_of,
)
from rebalancer.strategies.view import Aim, Demand, Keeper, LandingJudge, Strategy, Verdict, View

_WORTH_WAITING = 1.25


class Balancer:
    """One pass of the strategy: the nodes as classified, and what has been moved since."""

    def __init__(self, view: View, args: Args) -> None:
        self.view = view
        self.args = args
        self.resources = all_resources(args.thresholds)
        self.usages = {node.name: usage_of(view, node, self.resources) for node in view.nodes}
        self.low: Mapping[str, float] = args.thresholds
        self.target: Mapping[str, float] = args.target_thresholds
        if args.use_deviation_thresholds:
            self.low = shifted(self.usages.values(), args.thresholds, args.thresholds, -1)
            self.target = shifted(self.usages.values(), args.thresholds, args.target_thresholds, +1)
        self.under: dict[str, Usage] = {}
        self.over: dict[str, Usage] = {}
        for name, usage in self.usages.items():
            set_limits(usage, self.target)
            self._classify(name, usage)
        self.room = Room(self.under.values(), self.resources)
        self.evicted: dict[str, int] = {}
        self._tolerated: dict[PodShape, bool] = {}

    def _classify(self, name: str, usage: Usage) -> None:
        def percents() -> Mapping[str, float]:
            return {resource: usage.percent(resource) for resource in self.resources if resource in usage.offered}

        shares = self.view.of_node(usage.node, ("shares", self.resources), percents)
        verdict = "appropriate"
        if not usage.node.unschedulable and all(shares[each] <= limit for each, limit in self.low.items() if each in shares):
            verdict = "under"
            self.under[name] = usage
        elif any(shares[each] > limit for each, limit in self.target.items() if each in shares):
            verdict = "over"
            self.over[name] = usage
        self.view.classify(name, verdict, shares)

    def stops_early(self) -> str | None:
        """Return why there is nothing to do, or None (K2)."""
        if not self.under:
            return "no node is under-used"
        if len(self.under) <= self.args.number_of_nodes:
            return f"{len(self.under)} nodes are under-used, more than numberOfNodes {self.args.number_of_nodes} are asked for"
        if len(self.under) == len(self.usages):
            return "all nodes are under-used"
        if not self.over:
            return "no node is over-used"
        return None

    def run(self) -> None:
        """Relieve each over-used node, the worst first."""
        if why := self.stops_early():
            self.view.note(f"LowNodeUtilization: nothing to do, {why}")
            return
        for name in sorted(self.room.unknown):
            self.view.note(f"LowNodeUtilization: no under-used node offers {name}, so pods that request it stay")
        # Upstream relieves one node after the other; where improvement is demanded, the node that is worst by now gives next.
        waiting = [(-overshoot(usage, self.target), name) for name, usage in self.over.items()]
        heapq.heapify(waiting)
        candidates: dict[str, list[Pod]] = {}
        while waiting:
            _, name = heapq.heappop(waiting)
            source = self.over[name]
            if name not in candidates:
                candidates[name] = self._removable(name)
            verdict = self._relieve(source, candidates[name])
            if verdict.ends_run:
                return
            if verdict.ends_node:
                continue
            if candidates[name] and self.goes_on(source):
                heapq.heappush(waiting, (-overshoot(source, self.target), name))
            elif self.goes_on(source):
                self._refuse_the_rest(name)

    def _removable(self, name: str) -> list[Pod]:
        """Return the pods of a node that the evictor lets go, in the order in which they are given up."""
        pods = (pod for group in self.view.live(name).values() for pod in group)
        return cheapest_first(pod for pod in pods if self.view.filter(pod) is None)

    def _refuse_the_rest(self, name: str) -> None:
        """Record what keeps the other pods of a node that stays over-used."""
        for group in self.view.live(name).values():
            for pod in group:
                if (objection := self.view.filter(pod)) is not None:
                    self.view.refuse(pod, objection)

    def _refuse_waiting(self, candidates: Sequence[Pod]) -> None:
        """Record what bars the pods that are worth waiting for: their budget is spent until replacements are ready."""
        for pod in candidates:
            if (objection := self.view.barred(pod)) is not None:
                self.view.refuse(pod, objection)

    def goes_on(self, source: Usage) -> bool:
        """Tell whether the node is still over-used and there is room for what leaves it."""
        return bool(source.over()) and (self.view.demand is Demand.IMPROVEMENT or self.room.is_left())

    def _relieve(self, source: Usage, candidates: list[Pod]) -> Verdict:
        """Ask for pods until the node is fine or nobody is left; where improvement is demanded, until one is approved."""
        one_by_one = self.view.demand is Demand.IMPROVEMENT
        while candidates and self.goes_on(source):
            pod = best_gain(self, candidates, source) if one_by_one else candidates[0]
            if pod is None:
                self._refuse_waiting(candidates)
                candidates.clear()
                break
            candidates.remove(pod)
            objection = self.own_objection(pod, source)
            if objection is not None:
                self.view.refuse(pod, objection)
                if objection.code == "limit-strategy-node":
                    candidates.clear()
                continue
            verdict = self._ask(pod, source)
            if verdict.ends_node or (one_by_one and verdict.approved):
                return verdict
        return Verdict()

    def own_objection(self, pod: Pod, source: Usage) -> Objection | None:
        """Return what the strategy itself has against moving the pod."""
        limit = self.args.eviction_limits.node
        if limit is not None and self.evicted.get(source.node.name, 0) >= limit:
            return Objection("limit-strategy-node", (limit, source.node.name))
        if not self.args.evictable_namespaces.admits(pod.namespace):
            return Objection("excluded-namespace", (pod.namespace,))
        if not self.is_tolerated(pod.shape):
            return Objection("untolerated-destinations", (len(self.under),))
        exceeded = source.over()
        if not any(pod.shape.requests.amount(resource) > 0 for resource in exceeded):
            return Objection("relieves-nothing", (", ".join(exceeded),))
        scarce = [resource for resource in self.room.unknown if pod.shape.requests.amount(resource) > 0]
        return Objection("no-fit", (f"no under-used node offers {', '.join(sorted(scarce))}",)) if scarce else None

    def is_tolerated(self, shape: PodShape) -> bool:
        """Tell whether the shape tolerates the repelling taints of at least one destination (F5)."""
        known = self._tolerated.get(shape)
        if known is None:
            known = any(untolerated(shape, usage.node.taints) is None for usage in self.under.values())
            self._tolerated[shape] = known
        return known

    def _ask(self, pod: Pod, source: Usage) -> Verdict:
        before = source.worst_share(self.args.thresholds)
        exceeded = ", ".join(
            f"{resource} {source.percent(resource):.1f} % requested, target {self.target.get(resource, 100.0):g} %"
            for resource in source.over()
        )
        aim = Aim(lambda landing: self.judge(pod.shape, landing, before, source), even_in_fit=True)
        verdict = self.view.ask(pod, f"node {source.node.name} is over-used: {exceeded}", aim)
        if verdict.approved:
            subtract(source, pod.shape)
            self.room.take(pod.shape.requests)
            self.evicted[source.node.name] = self.evicted.get(source.node.name, 0) + 1
            if verdict.landing is not None:
                there = self.usage_at(verdict.landing)
                for resource in there.used:
                    there.used[resource] += pod.shape.requests.amount(resource)
        return verdict

    def usage_at(self, name: str) -> Usage:
        """Return the usage of any node, one outside the strategy's nodes included."""
        usage = self.usages.get(name)
        if usage is None:
            usage = self.usages[name] = usage_of(self.view, self.view.node(name), self.resources)
            set_limits(usage, self.target)
        return usage

    def judge(self, shape: PodShape, landing: str, before: float, source: Usage) -> Objection | None:
        """Say why landing there is no improvement: above the target, or as hot as the source was."""
        if landing == source.node.name:
            return Objection("back-again", (landing,))
        if self.view.demand is Demand.FIT and landing not in self.under:
            return Objection("not-a-destination", (landing,))
        there = self.usage_at(landing)
        for resource, limit in there.limits.items():
            amount = there.used[resource] + shape.requests.amount(resource)
            if amount > limit and shape.requests.amount(resource) > 0:
                share = f"{after(there, shape, resource):.1f}"
                return Objection("over-target-there", (landing, share, resource, f"{self.target.get(resource, 100.0):g}"))
        for resource in self.args.thresholds:
            share_after = after(there, shape, resource)
            if resource in there.offered and share_after >= before:
                return Objection("hotter-there", (landing, f"{share_after:.1f}", resource, f"{before:.1f}"))
        return None


def best_gain(balancer: Balancer, ordered: Sequence[Pod], source: Usage) -> Pod | None:
    """Return the pod of the lowest priority whose move takes most from the imbalance, or None to wait for a better one.

    ordered: who may go, in upstream's order, which breaks ties. The gain is what the sum of squared shares of the exceeded
    resources loses, weighted over the landings. A pod that only waits for its budget, spent in this run, and would gain clearly
    more than anybody who may go now is worth waiting for: the run looks again, and one move does what would take two.
    """
    cheapest = _group(ordered[0].shape)
    exceeded = source.over()
    first_of: dict[PodShape, Pod] = {}
    for pod in ordered:
        if _group(pod.shape) != cheapest:
            break
        first_of.setdefault(pod.shape, pod)
    # The gain on the coolest destination bounds every gain from above; whoever cannot win by it is not predicted.
    coolest = {name: min(usage.percent(name) for usage in balancer.under.values()) for name in exceeded}
    bounded = [
        (-sum(_step(shape, source, name, coolest[name]) for name in exceeded), place, pod)
        for place, (shape, pod) in enumerate(first_of.items())
    ]
    best, best_value, waiting_value = ordered[0], float("-inf"), float("-inf")
    for bound, _, pod in sorted(bounded, key=lambda entry: entry[:2]):
        if -bound <= best_value:
            break
        waits = balancer.view.waits(pod)
        if balancer.own_objection(pod, source) is not None or (not waits and balancer.view.barred(pod) is not None):
            continue
        value = _gain(balancer, pod, source, exceeded)
        if waits:
            waiting_value = max(waiting_value, value)
        elif value > best_value:
            best, best_value = pod, value
    return None if waiting_value > _WORTH_WAITING * max(best_value, 0.0) else best


def _group(shape: PodShape) -> tuple[bool, int, bool]:
    has_priority, priority, _, stays = rank(shape)
    return has_priority, priority, stays


def _gain(balancer: Balancer, pod: Pod, source: Usage, exceeded: tuple[str, ...]) -> float:
    """Return the expected gain over all landings."""
    total = 0.0
    for landing, weight in balancer.view.landings(pod).items():
        there = balancer.usage_at(landing)
        total += weight * sum(_step(pod.shape, source, resource, there.percent(resource)) for resource in exceeded)
    return total


def _step(shape: PodShape, source: Usage, resource: str, there: float) -> float:
    share = shape.requests.amount(resource) / max(source.offered.get(resource, 0), 1) * 100
    return 2 * share * (source.percent(resource) - there - share)


class MovingTarget:
    """The targets at a distance from the mean, were a pod on another node: of nodes of another size it is another share."""

    def __init__(self, view: View, args: Args, resources: tuple[str, ...], pod: Pod) -> None:
        self._by = args.target_thresholds
        self._shape = pod.shape
        self._nodes = frozenset(node.name for node in view.nodes)
        self._sums: dict[str, float] = dict.fromkeys(self._by, 0.0)
        self._counts: dict[str, int] = dict.fromkeys(self._by, 0)
        for node in view.nodes:
            usage = usage_of(view, node, resources)
            if node.name == pod.node:
                subtract(usage, pod.shape)
            for name in self._by:
                if name in usage.offered:
                    self._sums[name] += usage.percent(name)
                    self._counts[name] += 1

    def on(self, there: Usage) -> dict[str, float]:
        """Return the targets once the pod is there, within 0 and 100."""
        listed = there.node.name in self._nodes
        targets = {}
        for name, by in self._by.items():
            added = after(there, self._shape, name) - there.percent(name) if listed and name in there.offered else 0.0
            mean = (self._sums[name] + added) / self._counts[name] if self._counts[name] else 0.0
            targets[name] = min(100.0, max(0.0, mean + by))
        return targets


def keeps(view: View, args: Args) -> Keeper:
    """Keep pods from nodes that they would bring above their target, where this strategy would move pods off again."""
    resources = all_resources(args.thresholds)

    def keeper(pod: Pod) -> LandingJudge:
        moving = MovingTarget(view, args, resources, pod) if args.use_deviation_thresholds else None

        def judge(landing: str) -> Objection | None:
            there = usage_of(view, view.node(landing), resources)
            target: Mapping[str, float] = moving.on(there) if moving is not None else args.target_thresholds
            set_limits(there, target)
            for resource, limit in there.limits.items():
                if resource in target and there.used[resource] + pod.shape.requests.amount(resource) > limit:
                    share = f"{after(there, pod.shape, resource):.1f}"
                    return Objection("undone-levelling", (landing, share, resource, f"{target[resource]:g}"))
            return None

        return judge

    return keeper


def propose(view: View, args: Args) -> None:
    """Relieve over-used nodes."""
    Balancer(view, args).run()


STRATEGY = Strategy(
    "LowNodeUtilization",
    Args,
    "balance",
    frozenset({TriggerKind.TICK, TriggerKind.NODE_JOINED, TriggerKind.NODE_CHANGED}),
    propose,
    keeps,
)
