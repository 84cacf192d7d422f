"""Everything that is to be said about one pod: each strategy, each rule, limits and budgets, and where it would go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rebalancer.decide.evaluate import decide
from rebalancer.decide.guards import Guards
from rebalancer.decide.landing import Landings
from rebalancer.decide.record import Record
from rebalancer.decide.view import Run
from rebalancer.eligibility import budgets
from rebalancer.eligibility.objection import Objection
from rebalancer.model.plan import PlacementMode
from rebalancer.model.pod import Pod
from rebalancer.model.snapshot import Snapshot
from rebalancer.placement.profile import DEFAULT, SchedulerConfig
from rebalancer.policy import Policy, Profile

NOT_ASKED = "it did not ask for this pod"


@dataclass(frozen=True, slots=True)
class StrategyAnswer:
    """What became of the pod under one strategy. verdict: ``approved``, ``refused`` or ``not asked``; code: of a refusal."""

    profile: str
    strategy: str
    verdict: str
    reason: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class RuleAnswer:
    """What one rule says. code: empty where it has nothing against the pod."""

    profile: str
    rule: str
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The whole chain for one pod.

    pod, node: as now; the node is empty while unscheduled. strategies, rules: in the order in which they are asked.
    landings: where a replacement would go, by probability. filtered: node to why it is out.
    unpredictable: why scores do not count.
    nodes: how utilisation strategies saw the pod's node. notes: remarks of the run.
    """

    pod: str
    uid: str
    node: str
    strategies: tuple[StrategyAnswer, ...]
    rules: tuple[RuleAnswer, ...]
    landings: Mapping[str, float]
    filtered: Mapping[str, str]
    unpredictable: str | None = None
    nodes: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "pod": self.pod,
            "uid": self.uid,
            "node": self.node,
            "strategies": [
                {
                    "profile": each.profile,
                    "strategy": each.strategy,
                    "verdict": each.verdict,
                    "code": each.code,
                    "reason": each.reason,
                }
                for each in self.strategies
            ],
            "rules": [
                {"profile": each.profile, "rule": each.rule, "code": each.code, "reason": each.reason} for each in self.rules
            ],
            "landings": dict(self.landings),
            "filtered": dict(self.filtered),
            "unpredictable": self.unpredictable,
            "nodes": [dict(each) for each in self.nodes],
            "notes": list(self.notes),
        }

    def lines(self) -> list[str]:
        """Return the text form, line by line."""
        lines = [f"{self.pod} on {self.node or 'no node'}", "", "strategies"]
        lines += [
            f"  {each.profile}/{each.strategy}: {each.verdict}" + (f" [{each.code}]" if each.code else "") + f": {each.reason}"
            for each in self.strategies
        ] or ["  the policy enables none"]
        lines += ["", "rules"]
        for each in self.rules:
            answer = f"[{each.code}] {each.reason}" if each.code else "ok"
            lines.append(f"  {each.profile}/{each.rule}: {answer}")
        lines += ["", "where its replacement would go"]
        best = sorted(self.landings.items(), key=lambda item: (-item[1], item[0]))
        lines += [f"  {name}: {weight * 100:.1f} %" for name, weight in best[:_SHOWN]] or ["  nowhere: no node can take it"]
        if len(best) > _SHOWN:
            lines.append(f"  and {len(best) - _SHOWN} more nodes")
        if self.unpredictable:
            lines.append(f"  judged by filters only: {self.unpredictable}")
        lines += [f"  not {name}: {why}" for name, why in list(self.filtered.items())[:_SHOWN]]
        if len(self.filtered) > _SHOWN:
            lines.append(f"  nor {len(self.filtered) - _SHOWN} more nodes")
        if self.nodes:
            lines += ["", "how its node was seen"]
            for seen in self.nodes:
                shares = ", ".join(f"{name} {share:g} %" for name, share in seen["requestedPercent"].items())
                lines.append(f"  {seen['profile']}/{seen['strategy']}: {seen['verdict']} (requested: {shares})")
        if self.notes:
            lines += ["", "notes", *(f"  {note}" for note in self.notes)]
        return lines


_SHOWN = 10


def explain(
    snapshot: Snapshot,
    policy: Policy,
    pod_key: str,
    *,
    guards: Guards | None = None,
    placement: PlacementMode = PlacementMode.REQUIRED,
    scheduler: SchedulerConfig = DEFAULT,
) -> Explanation:
    """Explain one pod, by ``namespace/name``; the arguments are those of ``evaluate``.

    Raises LookupError where the snapshot has no such pod.
    """
    pod = next((each for each in snapshot.all_pods() if each.key == pod_key), None)
    if pod is None:
        raise LookupError(f"there is no pod {pod_key}")
    record = Record(watched_uid=pod.uid)
    run = decide(snapshot, policy, guards, placement, scheduler, record)
    filtered: Mapping[str, str] = {}
    landings: Mapping[str, float] = {}
    unpredictable = None
    if pod.node is not None and not pod.finished:
        prediction = Landings(snapshot, placement, scheduler, surged=run.singles.surged).prediction(pod)
        landings, filtered, unpredictable = prediction.landings, prediction.filtered, prediction.unpredictable
    return Explanation(
        pod=pod.key,
        uid=pod.uid,
        node=pod.node or "",
        strategies=_strategies(pod, policy, record),
        rules=tuple(answer for profile in policy.profiles for answer in _rules(pod, profile, run)),
        landings=landings,
        filtered=filtered,
        unpredictable=unpredictable,
        nodes=tuple(each.to_dict() for each in record.nodes if each.node == pod.node),
        notes=tuple(record.notes),
    )


def _strategies(pod: Pod, policy: Policy, record: Record) -> tuple[StrategyAnswer, ...]:
    answers = []
    for profile, use in policy.uses():
        found = [
            StrategyAnswer(profile.name, use.name, "approved", each.why)
            for each in record.approved
            if each.uid == pod.uid and (each.profile, each.strategy) == (profile.name, use.name)
        ]
        found += [
            StrategyAnswer(profile.name, use.name, "refused", str(each.objection), each.objection.code)
            for each in record.refused
            if each.pod.uid == pod.uid and (each.profile, each.strategy) == (profile.name, use.name)
        ]
        answers += found or [StrategyAnswer(profile.name, use.name, "not asked", NOT_ASKED)]
    return tuple(answers)


def _rules(pod: Pod, profile: Profile, run: Run) -> list[RuleAnswer]:
    answers: list[tuple[str, Objection | None]] = list(run.evictor(profile).every(pod))
    answers.append(("guards", run.guard_objection(pod)))
    limit = run.limits.objection(pod)
    answers.append(("limits at the end of the run", limit[0] if limit is not None else None))
    if run.account is not None:
        asked = () if run.singles.rollout(pod) is not None else budgets.selecting(run.world.snapshot, pod.shape)
        answers.append(("budgets", budgets.objection(pod, asked)))
    return [
        RuleAnswer(profile.name, name, objection.code if objection else "", str(objection) if objection else "")
        for name, objection in answers
    ]
