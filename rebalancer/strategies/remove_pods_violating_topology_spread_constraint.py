"""Move pods from crowded topology domains to empty ones, all constraints of a pod together.

Source: https://github.com/kubernetes-sigs/descheduler#removepodsviolatingtopologyspreadconstraint
All matching live pods are counted, only pods that carry the constraint are moved (F2, F38), the cheapest first (F1), and only
where some landing lowers the violations of all of the pod's constraints together (F3).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from rebalancer.eligibility.objection import Objection
from rebalancer.model.pod import Pod, PodShape, SpreadConstraint
from rebalancer.model.trigger import TriggerKind
from rebalancer.strategies.arguments import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY
from rebalancer.strategies.arguments import RemovePodsViolatingTopologySpreadConstraintArgs as Args
from rebalancer.strategies.label_index import LabelIndex
from rebalancer.strategies.order import ShapeRank, rank
from rebalancer.strategies.scope import in_scope
from rebalancer.strategies.topology_balance import surplus
from rebalancer.strategies.topology_groups import Group, KnownDomains, Outlook, group_for, groups_of
from rebalancer.strategies.view import Aim, Demand, Keeper, LandingJudge, Strategy, Verdict, View


class Excess:
    """One group with what still has to leave its domains. average: of its domains when the strategy began."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.average = group.average()
        self.leaving: dict[str, int] = {}
        if group.upheld and not group.is_even():
            sizes = {name: group.count(name) for name in group.domains.names}
            self.leaving = surplus(sizes, group.constraint.max_skew, group.constraint.min_domains)
        self._receivers: frozenset[str] | None = None

    @property
    def receivers(self) -> frozenset[str]:
        """The nodes of domains that were below average when somebody first asked."""
        if self._receivers is None:
            small = {name for name in self.group.domains.names if self.group.count(name) < self.average}
            self._receivers = frozenset(name for name, domain in self.group.domains.of.items() if domain in small)
        return self._receivers

    def wants_away(self, node: str) -> bool:
        """Tell whether a pod should leave that node's domain."""
        return bool(self.leaving) and self.leaving.get(self.group.domains.of.get(node, ""), 0) > 0


class NamespaceSpread:
    """The constraints of one namespace, and what still has to leave each domain."""

    def __init__(self, view: View, args: Args, groups: list[Group]) -> None:
        self.view = view
        self.args = args
        self.groups = groups
        self.excesses = [Excess(group) for group in groups]
        self._carried: dict[PodShape, list[Excess]] = {}
        self._counting: dict[PodShape, list[Excess]] = {}
        self._approved = 0
        self._misfits: dict[str, tuple[Pod, Objection]] = {}
        self._fits: dict[tuple[PodShape, str], Objection | None] = {}
        for excess in self.excesses:
            for shape in excess.group.members:
                self._carried.setdefault(shape, []).append(excess)
            for shape in excess.group.counted:
                self._counting.setdefault(shape, []).append(excess)

    def run(self) -> Verdict:
        """Ask for pods until every surplus has left or nobody else can; return the verdict that ended the run, if one did.

        Who would mend most constraints goes first. What a pod mends only shrinks as others go, so an entry that has become
        smaller is put back.
        """
        full: set[str] = set()
        verdict = Verdict()
        pods, before = self.candidates(), -1
        while pods and self._approved > before:
            before = self._approved
            verdict = self._pass(pods, full)
            if verdict.ends_run:
                break
            # With several constraints, a move may be what makes room for another by the rules: who fitted nowhere tries again.
            pods = [pod for pod, _ in self._misfits.values() if len(self._carried[pod.shape]) > 1]
        for pod, objection in self._misfits.values():
            self.view.refuse(pod, objection)
        return verdict

    def _pass(self, pods: list[Pod], full: set[str]) -> Verdict:
        """Ask for each pod once. full: nodes whose limit is reached."""
        waiting = [(-self._needs(pod), self._order(pod), pod) for pod in pods]
        heapq.heapify(waiting)
        while waiting:
            asked, order, pod = heapq.heappop(waiting)
            needs = self._needs(pod)
            if not needs:
                self._misfits.pop(pod.uid, None)
                continue
            if pod.node in full:
                continue
            if -asked != needs:
                heapq.heappush(waiting, (-needs, order, pod))
                continue
            verdict = self._try(pod)
            if verdict.ends_run:
                return verdict
            if verdict.ends_node:
                full.add(pod.node or "")
        return Verdict()

    def candidates(self) -> list[Pod]:
        """Return the pods that carry an upheld constraint and are in a domain with a surplus."""
        found: dict[str, Pod] = {}
        for excess in self.excesses:
            for shape in excess.group.members if excess.leaving else ():
                for name, pods in self.view.where(shape).items():
                    if excess.wants_away(name):
                        found.update((pod.uid, pod) for pod in pods)
        return list(found.values())

    def _needs(self, pod: Pod) -> int:
        """Return how many constraints that the pod carries would have it leave."""
        node = pod.node or ""
        return sum(excess.wants_away(node) for excess in self._carried[pod.shape])

    def _order(self, pod: Pod) -> tuple[bool, ShapeRank, str, str]:
        shape = pod.shape
        tied = bool(shape.node_selector or shape.required_node or shape.affinity or shape.anti_affinity)
        return (tied, rank(shape), pod.name, pod.uid)

    def _try(self, pod: Pod) -> Verdict:
        if (objection := self.view.filter(pod)) is not None:
            self.view.refuse(pod, objection)
            return Verdict(objection)
        if (objection := self._misfit(pod)) is not None:
            self._misfits[pod.uid] = pod, objection
            return Verdict(objection)
        self._misfits.pop(pod.uid, None)
        carried = [excess.group for excess in self._carried[pod.shape]]
        outlooks = [
            (group, Outlook(group, pod.node or ""))
            for group in carried
            if pod.shape in group.counted and (group.upheld or group.constraint.hard)
        ]
        now = sum(outlook.now for group, outlook in outlooks if group.upheld)
        if self.view.demand is Demand.NOTHING and len(outlooks) > 1 and not self._somewhere_better(outlooks, now):
            objection = Objection("no-spread-gain", (now,))
            self.view.refuse(pod, objection)
            return Verdict(objection)

        def judge(landing: str) -> Objection | None:
            after = sum(outlook.after(landing) for group, outlook in outlooks if group.upheld)
            if after < now or (self.view.demand is Demand.FIT and len(outlooks) == 1 and self._is_receiver(pod, landing)):
                return None
            return Objection("spread-there", (landing, after, now))

        verdict = self.view.ask(pod, self._reason(pod), Aim(judge, even_in_fit=True))
        if verdict.approved:
            self._moved(pod, verdict.landing)
        return verdict

    def _misfit(self, pod: Pod) -> Objection | None:
        """Return why the pod fits no node of a domain below average, where that is asked for."""
        if not self.args.topology_balance_node_fit:
            return None
        key = (pod.shape, pod.node or "")
        if key not in self._fits:
            self._fits[key] = self._fit(pod)
        return self._fits[key]

    def _fit(self, pod: Pod) -> Objection | None:
        concerned = [excess.receivers for excess in self._carried[pod.shape] if excess.leaving]
        why = self.view.fits_elsewhere(pod, concerned[0] if len(concerned) == 1 else frozenset().union(*concerned))
        return Objection("topology-node-fit", (why,)) if why is not None else None

    def _somewhere_better(self, outlooks: list[tuple[Group, Outlook]], now: int) -> bool:
        """Tell whether on some node every hard constraint holds and the violations in all are fewer."""
        for node in self.view.nodes:
            name = node.name
            if any(group.constraint.hard and not outlook.permits(name) for group, outlook in outlooks):
                continue
            if sum(outlook.after(name) for group, outlook in outlooks if group.upheld) < now:
                return True
        return False

    def _is_receiver(self, pod: Pod, landing: str) -> bool:
        """Tell whether a landing is in a domain that the arithmetic fills from the pod's."""
        for excess in self._carried[pod.shape]:
            group = excess.group
            if group.upheld:
                there, here = group.domains.of.get(landing), group.domains.of.get(pod.node or "")
                if there is None or here is None:
                    return False
                return group.count(there) < excess.average and group.count(there) + 1 < group.count(here)
        return False

    def _moved(self, pod: Pod, landing: str | None) -> None:
        node = pod.node or ""
        self._approved += 1
        self._fits.clear()
        for excess in self._counting.get(pod.shape, ()):
            excess.group.left(node)
            domain = excess.group.domains.of.get(node, "")
            if excess.leaving.get(domain, 0) > 0:
                excess.leaving[domain] -= 1
            if landing is not None:
                excess.group.joined(landing)
            else:
                # Nobody looked where it goes: the scheduler would take the smallest domain.
                excess.group.joined_smallest()

    def _reason(self, pod: Pod) -> str:
        parts = []
        for excess in self._carried[pod.shape]:
            group = excess.group
            domain = group.domains.of.get(pod.node or "")
            if domain is not None and group.upheld:
                parts.append(
                    f"{group.count(domain)} pods in {group.constraint.topology_key} {domain}, {group.smallest()} in the "
                    f"smallest domain, maxSkew {group.constraint.max_skew}"
                )
        return "; ".join(parts)


def propose(view: View, args: Args) -> None:
    """Balance the constraints of each namespace."""
    looks_at: Callable[[PodShape], bool] = in_scope(args.namespaces, args.label_selector)

    def upholds(constraint: SpreadConstraint) -> bool:
        return args.upholds(DO_NOT_SCHEDULE if constraint.hard else SCHEDULE_ANYWAY)

    known, index = KnownDomains(view.nodes), LabelIndex(view)
    for namespace in view.namespaces():
        if not args.namespaces.admits(namespace):
            continue
        groups = groups_of(view, namespace, upholds, looks_at, known, index)
        if any(group.upheld for group in groups) and NamespaceSpread(view, args, groups).run().ends_run:
            return


def keeps(view: View, args: Args) -> Keeper:
    """Keep pods from nodes where the soft constraints that are upheld would be violated more; hard ones the scheduler keeps."""
    looks_at = in_scope(args.namespaces, args.label_selector)
    known, index = KnownDomains(view.nodes), LabelIndex(view)

    def keeper(pod: Pod) -> LandingJudge | None:
        if not args.upholds(SCHEDULE_ANYWAY) or not looks_at(pod.shape):
            return None
        soft = [each for each in pod.shape.spread if not each.hard and each.selector.matches(pod.shape.labels)]
        outlooks = [Outlook(group_for(view, pod.shape, each, known, index), pod.node or "") for each in soft]
        now = sum(each.now for each in outlooks)

        def judge(landing: str) -> Objection | None:
            after = sum(each.after(landing) for each in outlooks)
            return Objection("undone-spread", (landing, after, now)) if after > now else None

        return judge if outlooks else None

    return keeper


STRATEGY = Strategy(
    "RemovePodsViolatingTopologySpreadConstraint",
    Args,
    "balance",
    frozenset({TriggerKind.TICK, TriggerKind.NODE_JOINED, TriggerKind.NODE_CHANGED, TriggerKind.POD_CHANGED}),
    propose,
    keeps,
)
