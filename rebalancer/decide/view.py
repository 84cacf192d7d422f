"""A run as one strategy of one profile sees it: every question answered by evictor, guards, limits, budgets and landing.

The order of an answer: the evictor's rules, what the guards protect, limits, budgets, and last the landing, which costs most.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import compress

from rebalancer.decide import workloads
from rebalancer.decide.guards import Guards
from rebalancer.decide.landing import Landing, Landings, demand_of, destinations_of
from rebalancer.decide.limits import Limits
from rebalancer.decide.record import Record
from rebalancer.decide.singles import Singles
from rebalancer.decide.world import Result, World
from rebalancer.eligibility.budgets import Account
from rebalancer.eligibility.evictor import Evictor
from rebalancer.eligibility.objection import Objection
from rebalancer.model.node import Node
from rebalancer.model.plan import NodeClass, PlacementMode
from rebalancer.model.pod import Pod, PodShape
from rebalancer.model.resources import Resources
from rebalancer.policy import Policy, Profile
from rebalancer.strategies.view import ANYWHERE, Aim, Demand, Keeper, Scope, Verdict


class Run:
    """What all strategies of one evaluation share."""

    def __init__(
        self,
        world: World,
        policy: Policy,
        guards: Guards | None,
        mode: PlacementMode,
        landings: Landings,
        record: Record,
        singles: Singles,
    ) -> None:
        self.world = world
        self.guards = guards
        self.mode = mode
        self.landings = landings
        self.record = record
        self.singles = singles
        self.limits = Limits(policy, guards, world, singles)
        self.account = Account(world.snapshot) if mode is not PlacementMode.OFF else None
        self.nodes = tuple(
            node for node in world.snapshot.nodes.values() if node.ready and policy.node_selector.matches(node.labels)
        )
        self._evictors: dict[str, Evictor] = {}

    def evictor(self, profile: Profile) -> Evictor:
        """Return the evictor of a profile."""
        evictor = self._evictors.get(profile.name)
        if evictor is None:
            evictor = self._evictors[profile.name] = Evictor(profile.evictor, self.world.snapshot, self.world.live_ready)
        return evictor

    def close(self) -> None:
        """End the run: nothing may be asked any more."""
        self.landings.close()
        self.world.close()

    def guard_objection(self, pod: Pod) -> Objection | None:
        """Return what the guards protect the pod by, limits aside."""
        guards, snapshot = self.guards, self.world.snapshot
        if guards is None:
            return None
        if pod.namespace in guards.protected_namespaces:
            return Objection("protected-namespace", (pod.namespace,))
        owner = pod.shape.owner
        if owner is None:
            return None
        name, uid = f"{owner.kind}/{owner.name}", self.singles.workload_uid(pod)
        if uid in guards.stopped:
            return Objection("owner-stopped", (name, *guards.stopped[uid]))
        until = guards.cooldowns.get((uid, pod.node or ""))
        if until is not None and until > snapshot.now:
            return Objection("cooldown", (name, pod.node, f"{until - snapshot.now:.0f}"))
        if pod.finished:
            return None
        return self.singles.objection(pod) or workloads.objection(snapshot, pod)

    def budget_objection(self, pod: Pod) -> Objection | None:
        """Return what budgets have against an eviction of the pod, with what the run has taken; a rollout asks none."""
        if self.account is None or self.singles.rollout(pod) is not None:
            return None
        return self.account.objection(pod)


class RunView:
    """The View of one strategy of one profile; see ``strategies.view``."""

    def __init__(self, run: Run, profile: Profile, strategy: str, keepers: Sequence[Keeper] = ()) -> None:
        """See a run. keepers: of strategies whose work this one must not undo."""
        self._run = run
        self._keepers = keepers
        self._world = run.world
        self._profile = profile
        self._strategy = strategy
        self._evictor = run.evictor(profile)
        self._node_fit = profile.evictor.node_fit
        self._demand = demand_of(run.mode, self._node_fit)
        self._destinations = destinations_of(profile.evictor, run.world.snapshot.nodes.values())
        self._as_upstream = run.mode is PlacementMode.OFF and not self._node_fit

    @property
    def now(self) -> float:
        """Seconds since the epoch."""
        return self._world.snapshot.now

    @property
    def nodes(self) -> Sequence[Node]:
        """Ready nodes within the policy's nodeSelector, in the order of names."""
        return self._run.nodes

    @property
    def demand(self) -> Demand:
        """What is asked of landings."""
        return self._demand

    @property
    def node_fit(self) -> bool | None:
        """The profile's own nodeFit; None where it does not say."""
        return self._node_fit

    @property
    def left(self) -> frozenset[str]:
        """The nodes that earlier looks of the same run have moved pods off."""
        guards = self._run.guards
        return frozenset(guards.spent.by_node) if guards is not None else frozenset()

    def node(self, name: str) -> Node:
        """Return any node of the cluster."""
        return self._world.snapshot.nodes[name]

    def on(self, node: str) -> Sequence[Pod]:
        """Return all pods on a node as the run has left it."""
        return self._world.on(node)

    def live(self, node: str) -> Mapping[PodShape, Sequence[Pod]]:
        """Return the live pods of a node by shape."""
        return self._world.live(node)

    def requested(self, node: str) -> Resources:
        """Return what the live pods of a node request."""
        return self._world.requested(node)

    def of_node(self, node: Node, what: Hashable, compute: Callable[[], Result]) -> Result:
        """Return what follows from a node and its pods alone."""
        return self._world.of_node(node, what, compute)

    def shapes(self, namespace: str) -> Sequence[PodShape]:
        """Return the shapes of live pods in a namespace."""
        return self._world.shapes(namespace)

    def namespaces(self) -> Sequence[str]:
        """Return the namespaces that have live pods."""
        return self._world.namespaces()

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Return a namespace's labels."""
        return self._world.snapshot.namespace_labels(namespace)

    def where(self, shape: PodShape) -> Mapping[str, Sequence[Pod]]:
        """Return the live pods of a shape by node."""
        return self._world.where(shape)

    def filter(self, pod: Pod) -> Objection | None:
        """Return what the evictor has against the pod; a stand-in is on its way already."""
        if pod.uid in self._world.stand_ins:
            return Objection("terminating")
        return self._evictor.filter(pod)

    def screen(self, pod: Pod) -> Objection | None:
        """Return what Filter and PreEvictionFilter have against the pod; a profile's own nodeFit belongs to the second."""
        objection = self.filter(pod) or self._evictor.pre_eviction(pod.shape)
        if objection is None and self._node_fit:
            return self._run.landings.fits_elsewhere(pod, self._destinations, as_upstream=False)
        return objection

    def ask(self, pod: Pod, reason: str, aim: Aim = ANYWHERE) -> Verdict:
        """Decide about a pod, record the decision, and let an approval show."""
        run = self._run
        if pod.uid in run.world.gone or pod.uid in run.world.stand_ins:
            return Verdict(Objection("terminating"))
        if (barred := self._barred(pod)) is not None:
            if barred[1] is not Scope.POD:
                run.record.note(str(barred[0]))
            return self._refused(pod, *barred)
        landing = self._landing(pod, self._kept(pod, aim))
        if landing.note is not None:
            run.record.note(landing.note)
        if landing.objection is not None:
            return self._refused(pod, landing.objection)
        rollout = run.singles.rollout(pod)
        run.limits.count(pod)
        if run.account is not None and rollout is None:
            run.account.spend(pod)
        run.landings.approve(pod, landing.node)
        run.world.move(pod, landing.node if run.mode is not PlacementMode.OFF else None)
        run.record.approve(pod, self._profile.name, self._strategy, reason, landing.landings or {}, rollout)
        return Verdict(None, Scope.POD, landing.node)

    def refuse(self, pod: Pod, objection: Objection) -> None:
        """Record what a strategy found against a pod; a stand-in is nobody's business."""
        if pod.uid not in self._world.stand_ins:
            self._run.record.refuse(pod, self._profile.name, self._strategy, objection)

    def fits_elsewhere(self, pod: Pod, nodes: Iterable[str] | None = None) -> Objection | None:
        """Say why no other node (of the given ones) can take the pod, or None."""
        return self._run.landings.fits_elsewhere(pod, nodes, as_upstream=self._as_upstream)

    def barred(self, pod: Pod) -> Objection | None:
        """Return what would refuse the pod before its landing is looked at."""
        answer = self._barred(pod)
        return answer[0] if answer is not None else None

    def waits(self, pod: Pod) -> bool:
        """Tell whether only what this run has taken from its budget bars the pod."""
        barred = self.barred(pod)
        account = self._run.account
        return barred is not None and barred.code == "budget" and account is not None and account.is_spent_here(pod)

    def fitting(self, pod: Pod) -> frozenset[str]:
        """Return the other nodes that can take the pod's replacement now."""
        landings = self._run.landings
        return frozenset(compress(landings.view.nodes, landings.takers(pod).tolist()))

    def landings(self, pod: Pod) -> Mapping[str, float]:
        """Return the landings that kube-scheduler may choose for the pod's replacement."""
        return self._run.landings.prediction(pod).landings

    def classify(self, node: str, verdict: str, usage_percent: Mapping[str, float]) -> None:
        """Record how a node was seen."""
        self._run.record.nodes.append(NodeClass(self._profile.name, self._strategy, node, verdict, dict(usage_percent)))

    def note(self, text: str) -> None:
        """Record a remark."""
        self._run.record.note(text)

    def _barred(self, pod: Pod) -> tuple[Objection, Scope] | None:
        run = self._run
        objection = self._evictor.filter(pod) or self._evictor.pre_eviction(pod.shape) or run.guard_objection(pod)
        if objection is not None:
            return objection, Scope.POD
        if (limit := run.limits.objection(pod)) is not None:
            return limit
        objection = run.budget_objection(pod)
        return (objection, Scope.POD) if objection is not None else None

    def _kept(self, pod: Pod, aim: Aim) -> Aim:
        """Return the aim with what strategies of higher precedence would undo added to it."""
        if self._demand is not Demand.IMPROVEMENT or aim.forced:
            return aim
        keeping = [kept for keeper in self._keepers if (kept := keeper(pod)) is not None]
        if not keeping:
            return aim
        own = aim.judge

        def judge(landing: str) -> Objection | None:
            objection = own(landing) if own is not None else None
            if objection is None and landing != pod.node:
                objection = next((found for kept in keeping if (found := kept(landing)) is not None), None)
            return objection

        return replace(aim, judge=judge)

    def _landing(self, pod: Pod, aim: Aim) -> Landing:
        return self._run.landings.judge(pod, aim, self._demand, self._destinations, other_node=bool(self._node_fit))

    def _refused(self, pod: Pod, objection: Objection, scope: Scope = Scope.POD) -> Verdict:
        self._run.record.refuse(pod, self._profile.name, self._strategy, objection)
        return Verdict(objection, scope)
