"""Move pods from crowded topology domains to empty ones, all constraints of a pod together.

Source: https://github.com/kubernetes-sigs/descheduler#removepodsviolatingtopologyspreadconstraint
All matching live pods are counted, only pods that carry the constraint are moved (F2, F38), the cheapest first (F1), and only
where some landing lowers the violations of all of the pod's constraints together (F3).
"""

from __future__ import annotations

from collections.abc import Callable

from rebalancer.eligibility.objection import Objection
from rebalancer.model.pod import Pod, PodShape, SpreadConstraint
from rebalancer.model.trigger import TriggerKind
from rebalancer.strategies.arguments import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY
from rebalancer.strategies.arguments import RemovePodsViolatingTopologySpreadConstraintArgs as Args
from rebalancer.strategies.label_index import LabelIndex
from rebalancer.strategies.order import rank
from rebalancer.strategies.scope import in_scope
from rebalancer.strategies.topology_balance import surplus
from rebalancer.strategies.topology_groups import Group, KnownDomains, Outlook, groups_of
from rebalancer.strategies.view import Aim, Demand, Strategy, Verdict, View


class NamespaceSpread:
    """The constraints of one namespace, and what still has to leave each domain."""

    def __init__(self, view: View, args: Args, groups: list[Group]) -> None:
        self.view = view
        self.args = args
        self.groups = groups
        self.leaving: list[dict[str, int]] = []
        self.average: list[float] = []
        for group in groups:
            constraint, wanted = group.constraint, {}
            if group.upheld and not group.is_even():
                sizes = {name: group.count(name) for name in group.domains.names}
                wanted = surplus(sizes, constraint.max_skew, constraint.min_domains)
            self.leaving.append(wanted)
            self.average.append(group.average())

    def run(self) -> Verdict:
        """Ask for pods until every surplus has left or nobody else can; return the verdict that ended the run, if one did."""
        candidates = self.candidates()
        full: set[str] = set()
        while candidates:
            pod = min(candidates, key=self._order)
            candidates.remove(pod)
            if pod.node in full or not self._needs(pod):
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
        for group, leaving in zip(self.groups, self.leaving, strict=True):
            for shape in group.members if leaving else ():
                for name, pods in self.view.where(shape).items():
                    if group.domains.of.get(name) in leaving:
                        found.update((pod.uid, pod) for pod in pods)
        return list(found.values())

    def _needs(self, pod: Pod) -> int:
        """Return how many constraints that the pod carries would have it leave."""
        node = pod.node or ""
        return sum(
            1
            for group, leaving in zip(self.groups, self.leaving, strict=True)
            if pod.shape in group.members and leaving.get(group.domains.of.get(node, ""), 0) > 0
        )

    def _order(self, pod: Pod) -> tuple[int, bool, object, str, str]:
        shape = pod.shape
        tied = bool(shape.node_selector or shape.required_node or shape.affinity or shape.anti_affinity)
        return (-self._needs(pod), tied, rank(shape), pod.name, pod.uid)

    def _try(self, pod: Pod) -> Verdict:
        objection = self.view.filter(pod) or self._misfit(pod)
        if objection is not None:
            self.view.refuse(pod, objection)
            return Verdict(objection)
        carried = [group for group in self.groups if pod.shape in group.members and (group.upheld or group.constraint.hard)]
        outlooks = [(group, Outlook(group, pod.node or "")) for group in carried if pod.shape in group.counted]
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
        names: dict[str, None] = {}
        for group, average, leaving in zip(self.groups, self.average, self.leaving, strict=True):
            if pod.shape in group.members and leaving:
                names.update((name, None) for name, domain in group.domains.of.items() if group.count(domain) < average)
        why = self.view.fits_elsewhere(pod, names)
        return Objection("topology-node-fit", (str(why),)) if why is not None else None

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
        for group, average in zip(self.groups, self.average, strict=True):
            if pod.shape in group.members and group.upheld:
                there, here = group.domains.of.get(landing), group.domains.of.get(pod.node or "")
                if there is None or here is None:
                    return False
                return group.count(there) < average and group.count(there) + 1 < group.count(here)
        return False

    def _moved(self, pod: Pod, landing: str | None) -> None:
        node = pod.node or ""
        for group, leaving in zip(self.groups, self.leaving, strict=True):
            if pod.shape not in group.counted:
                continue
            group.left(node)
            domain = group.domains.of.get(node, "")
            if leaving.get(domain, 0) > 0:
                leaving[domain] -= 1
            if landing is not None:
                group.joined(landing)
            else:
                # Nobody looked where it goes: the scheduler would take the smallest domain.
                group.joined_smallest()

    def _reason(self, pod: Pod) -> str:
        parts = []
        for group in self.groups:
            domain = group.domains.of.get(pod.node or "")
            if domain is not None and group.upheld and pod.shape in group.members:
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


STRATEGY = Strategy(
    "RemovePodsViolatingTopologySpreadConstraint",
    Args,
    "balance",
    frozenset({TriggerKind.TICK, TriggerKind.NODE_JOINED, TriggerKind.NODE_CHANGED, TriggerKind.POD_CHANGED}),
    propose,
)
