"""Move pods off nodes whose taints they do not tolerate (any more).

Source: https://github.com/kubernetes-sigs/descheduler#removepodsviolatingnodetaints
NoExecute is never acted on: its own controller does that. Taints that the node controller sets (``node.kubernetes.io/…``)
are left alone unless ``includedTaints`` lists them: cordoning a node is not draining it (F36).
"""

from __future__ import annotations

from rebalancer.eligibility.objection import Objection
from rebalancer.model.node import Node, Taint, TaintEffect
from rebalancer.model.pod import Pod, PodShape
from rebalancer.model.trigger import TriggerKind
from rebalancer.strategies.arguments import RemovePodsViolatingNodeTaintsArgs as Args
from rebalancer.strategies.order import cheapest_first
from rebalancer.strategies.scope import in_scope
from rebalancer.strategies.taints import untolerated
from rebalancer.strategies.view import Aim, Keeper, LandingJudge, Strategy, View

NODE_CONTROLLER_PREFIX = "node.kubernetes.io/"


def is_listed(taint: Taint, listed: tuple[str, ...]) -> bool:
    """Tell whether a list of ``KEY`` and ``KEY=VALUE`` names the taint."""
    return taint.key in listed or f"{taint.key}={taint.value}" in listed


def upheld(node: Node, args: Args) -> tuple[Taint, ...]:
    """Return the taints of a node that the strategy acts on."""
    effects = {TaintEffect.NO_SCHEDULE} | ({TaintEffect.PREFER_NO_SCHEDULE} if args.include_prefer_no_schedule else set())

    def counts(taint: Taint) -> bool:
        if taint.effect not in effects:
            return False
        if args.included_taints:
            return is_listed(taint, args.included_taints)
        return not taint.key.startswith(NODE_CONTROLLER_PREFIX) and not is_listed(taint, args.excluded_taints)

    return tuple(taint for taint in node.taints if counts(taint))


def propose(view: View, args: Args) -> None:
    """Ask for every pod that does not tolerate a taint of its node that is upheld."""
    looks_at = in_scope(args.namespaces, args.label_selector)
    effects = frozenset({TaintEffect.NO_SCHEDULE, TaintEffect.PREFER_NO_SCHEDULE})
    for node in view.nodes:
        taints = upheld(node, args)
        if not taints:
            continue
        verdicts: dict[PodShape, Taint | None] = {}
        for pod in cheapest_first(pod for pod in view.on(node.name) if not pod.finished):
            shape = pod.shape
            if shape not in verdicts:
                verdicts[shape] = untolerated(shape, taints, effects) if looks_at(shape) else None
            taint = verdicts[shape]
            if taint is None:
                continue

            def judge(landing: str, shape: PodShape = shape) -> Objection | None:
                there = untolerated(shape, upheld(view.node(landing), args), effects)
                return Objection("prefer-taint-there", (landing, there)) if there else None

            verdict = view.ask(pod, f"it does not tolerate taint {taint} of its node", Aim(judge))
            if verdict.ends_run:
                return
            if verdict.ends_node:
                break


def keeps(view: View, args: Args) -> Keeper:
    """Keep pods off nodes with taints that they do not tolerate and that are upheld."""
    looks_at = in_scope(args.namespaces, args.label_selector)
    effects = frozenset({TaintEffect.NO_SCHEDULE, TaintEffect.PREFER_NO_SCHEDULE})

    def keeper(pod: Pod) -> LandingJudge | None:
        if not args.include_prefer_no_schedule or not looks_at(pod.shape):
            return None

        def judge(landing: str) -> Objection | None:
            there = untolerated(pod.shape, upheld(view.node(landing), args), effects)
            return Objection("undone-taint", (landing, there)) if there is not None else None

        return judge

    return keeper


STRATEGY = Strategy(
    "RemovePodsViolatingNodeTaints",
    Args,
    "deschedule",
    frozenset({TriggerKind.TICK, TriggerKind.NODE_CHANGED, TriggerKind.NODE_JOINED, TriggerKind.POD_CHANGED}),
    propose,
    keeps,
)
