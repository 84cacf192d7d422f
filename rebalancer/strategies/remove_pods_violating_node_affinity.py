"""Move pods off nodes that no longer match their node affinity, or to nodes that they would rather have.

Source: https://github.com/kubernetes-sigs/descheduler#removepodsviolatingnodeaffinity
A plain nodeSelector counts as required (F18). For preferred affinity only nodes that can take the pod are compared (F12).
Unless the profile says ``nodeFit: false``, some node has to fit, in every mode (as upstream does).
"""

from __future__ import annotations

from rebalancer.eligibility.objection import Objection
from rebalancer.model.node import Node
from rebalancer.model.pod import Pod, PodShape
from rebalancer.model.trigger import TriggerKind
from rebalancer.strategies.arguments import PREFERRED_NODE_AFFINITY, REQUIRED_NODE_AFFINITY
from rebalancer.strategies.arguments import RemovePodsViolatingNodeAffinityArgs as Args
from rebalancer.strategies.node_affinity import is_required_match, preferred_weight
from rebalancer.strategies.order import cheapest_first
from rebalancer.strategies.scope import in_scope
from rebalancer.strategies.view import Aim, Demand, Keeper, LandingJudge, Strategy, Verdict, View


def ask_required(view: View, pod: Pod) -> Verdict:
    """Ask for a pod whose node does not match; where nothing is demanded of landings, some listed node still has to fit."""
    if view.demand is Demand.NOTHING and view.node_fit is not False:
        names = [node.name for node in view.nodes if is_required_match(pod.shape, node)]
        objection = view.filter(pod) or view.fits_elsewhere(pod, names)
        if objection is not None:
            view.refuse(pod, objection)
            return Verdict(objection)
    return view.ask(pod, "its node does not match its required node affinity or nodeSelector", Aim(forced=True))


def ask_preferred(view: View, pod: Pod, weights: dict[str, int]) -> Verdict | None:
    """Ask for a pod that some node it fits would suit better. weights: of the listed nodes."""
    here = weights[pod.node or ""]
    better = [name for name, weight in weights.items() if weight > here]
    if not better:
        return None
    objection = view.filter(pod)
    if objection is None and view.demand is Demand.NOTHING and view.node_fit is not False and view.fits_elsewhere(pod, better):
        objection = Objection("no-better-node", (here,))
    if objection is not None:
        view.refuse(pod, objection)
        return Verdict(objection)

    def judge(landing: str) -> Objection | None:
        there = preferred_weight(pod.shape, view.node(landing))
        return None if there > here else Objection("weight-there", (landing, there, here))

    best = max(weights[name] for name in better)
    return view.ask(pod, f"a node with preferred node affinity {best} exists, its own has {here}", Aim(judge, even_in_fit=True))


def propose(view: View, args: Args) -> None:
    """Ask for the pods of each kind of affinity in the order given, node by node."""
    looks_at = in_scope(args.namespaces, args.label_selector)
    for kind in args.node_affinity_type:
        weights: dict[PodShape, dict[str, int]] = {}
        for node in view.nodes:
            concerned = [shape for shape in _concerned(view, node, kind) if looks_at(shape)]
            for pod in cheapest_first(pod for shape in concerned for pod in view.live(node.name)[shape]):
                verdict: Verdict | None
                if kind == REQUIRED_NODE_AFFINITY:
                    verdict = ask_required(view, pod)
                else:
                    if pod.shape not in weights:
                        weights[pod.shape] = {each.name: preferred_weight(pod.shape, each) for each in view.nodes}
                    verdict = ask_preferred(view, pod, weights[pod.shape])
                if verdict is not None and verdict.ends_run:
                    return
                if verdict is not None and verdict.ends_node:
                    break


def _concerned(view: View, node: Node, kind: str) -> tuple[PodShape, ...]:
    """Return the shapes on a node that have a preference, or that the node does not suit."""

    def find() -> tuple[PodShape, ...]:
        live = view.live(node.name)
        if kind == PREFERRED_NODE_AFFINITY:
            return tuple(shape for shape in live if shape.preferred_node)
        return tuple(
            shape for shape in live if (shape.node_selector or shape.required_node) and not is_required_match(shape, node)
        )

    return view.of_node(node, ("node affinity", kind), find)


def keeps(view: View, args: Args) -> Keeper:
    """Keep pods from nodes that they would rather have less than their own, where preferred affinity is upheld."""
    looks_at = in_scope(args.namespaces, args.label_selector)
    upheld = PREFERRED_NODE_AFFINITY in args.node_affinity_type

    def keeper(pod: Pod) -> LandingJudge | None:
        if not upheld or not pod.shape.preferred_node or not looks_at(pod.shape):
            return None
        here = preferred_weight(pod.shape, view.node(pod.node or ""))

        def judge(landing: str) -> Objection | None:
            there = preferred_weight(pod.shape, view.node(landing))
            return Objection("undone-affinity", (landing, there, here)) if there < here else None

        return judge

    return keeper


STRATEGY = Strategy(
    "RemovePodsViolatingNodeAffinity",
    Args,
    "deschedule",
    frozenset({TriggerKind.TICK, TriggerKind.NODE_CHANGED, TriggerKind.NODE_JOINED}),
    propose,
    keeps,
)
