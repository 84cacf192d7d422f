"""Log lines: at the default level a run can be followed from trigger to totals; every happening has a line."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from rebalancer.control.debounce import Batch
from rebalancer.control.happenings import (
    Asked,
    GateChanged,
    Happening,
    LeadershipChanged,
    LimitReached,
    Looked,
    Noticed,
    Passed,
    RunEnded,
    RunStarted,
    Settled,
    StrategyFailed,
    TriggerSeen,
)
from rebalancer.control.ports import Reported, Surged
from rebalancer.model.answer import Accepted, Forbidden, HeldByBudget
from rebalancer.model.plan import NodeClass, Plan, Refusal
from rebalancer.model.trigger import Trigger, TriggerKind
from rebalancer.service.logs import LogListener
from rebalancer.service.measures import MetricsListener
from rebalancer.web.metrics import Metrics
from tests.control.cluster import a_pod, an_approval

APPROVAL = an_approval(a_pod("p"), n2=0.75, n3=0.25)
TRIGGER = Trigger(TriggerKind.NODE_JOINED, "n3", "ready and settled")
PLAN = Plan(
    evaluated_at=0.0,
    approved=(APPROVAL,),
    refused=(Refusal("ns/q", "u", "n1", "default", "RemoveDuplicates", "budget", "it may not"),),
    refused_counts={"budget": 1},
    nodes=(NodeClass("default", "LowNodeUtilization", "n1", "over", {"cpu": 81.25}),),
)
HAPPENINGS: list[tuple[Happening, str, dict[str, Any]]] = [
    (TriggerSeen(TRIGGER), "trigger", {"kind": "node-joined", "subject": "n3"}),
    (RunStarted(1, Batch((TRIGGER,), 2, 5.0)), "run started", {"run": 1, "triggers": {"node-joined": 1}, "collapsed": 2}),
    (Looked(1, 1, PLAN, 0.5, 3, 30), "evaluated", {"nodes": 3, "pods": 30, "approved": 1, "refused": {"budget": 1}}),
    (Asked(1, APPROVAL, Accepted(), 0.1), "evicted", {"pod": "ns/p", "node": "n1", "landings": {"n2": 0.75, "n3": 0.25}}),
    (Asked(1, APPROVAL, Surged("d"), 0.1), "surged", {"pod": "ns/p"}),
    (Asked(1, APPROVAL, Reported(), 0.1), "would evict", {"pod": "ns/p", "reason": APPROVAL.reason}),
    (Asked(1, APPROVAL, HeldByBudget("b"), 0.1), "not evicted", {"answer": "HeldByBudget", "level": "info"}),
    (Asked(1, APPROVAL, Forbidden("no"), 0.1), "not evicted", {"answer": "Forbidden", "level": "warning"}),
    (Passed(1, APPROVAL, "gone", "it is gone"), "passed over", {"code": "gone"}),
    (LimitReached(1, "3 on node n1 (settings)"), "limit reached", {"limit": "3 on node n1 (settings)"}),
    (RunEnded(1, "done", "nothing left", 3, 1, 0, 2.5), "run ended", {"evicted": 3, "refused": 1, "left": 0}),
    (Settled(APPROVAL, "ready", "ns/r", "n2", True, False, 1.0, 2.0), "settled", {"as_expected": True, "node": "n2"}),
    (LeadershipChanged(True, "me"), "leading", {"holder": "me"}),
    (GateChanged(("stale",)), "waiting", {"reasons": ["stale"]}),
    (StrategyFailed("default", "X", "KeyError: 1"), "strategy failed", {"strategy": "X", "level": "warning"}),
    (Noticed("forbidden", "no", values={"namespace": "ns"}), "forbidden", {"namespace": "ns", "level": "warning"}),
]


class Lines:
    """A logger that keeps its lines."""

    def __init__(self) -> None:
        """Start without any."""
        self.lines: list[dict[str, Any]] = []

    def _keep(self, level: str, event: str, values: dict[str, Any]) -> None:
        self.lines.append({"event": event, "level": level, **values})

    def debug(self, event: str, **values: Any) -> None:
        """Keep a line for those who look closely."""
        self._keep("debug", event, values)

    def info(self, event: str, **values: Any) -> None:
        """Keep a line."""
        self._keep("info", event, values)

    def warning(self, event: str, **values: Any) -> None:
        """Keep a warning."""
        self._keep("warning", event, values)


@pytest.mark.parametrize(("happening", "event", "values"), HAPPENINGS, ids=[event for _, event, _ in HAPPENINGS])
def test_each_happening_has_its_line(happening: Happening, event: str, values: dict[str, Any]) -> None:
    """The line says what happened, with the values that matter."""
    lines = Lines()
    LogListener(lines)(happening)
    (line,) = [line for line in lines.lines if line["event"] == event]
    assert {key: line[key] for key in values} == values


def test_every_kind_of_happening_is_logged_and_counted() -> None:
    """A new happening cannot be forgotten by those who listen."""
    kinds = set(get_args(Happening))
    assert kinds == {type(happening) for happening, _, _ in HAPPENINGS}
    metrics = Metrics(descheduler_names=True)
    for happening, _, _ in HAPPENINGS:
        MetricsListener(metrics)(happening)


def test_nodes_are_classified_with_what_they_requested() -> None:
    """The figures are called requested, for that is what they are."""
    lines = Lines()
    LogListener(lines)(Looked(1, 1, PLAN, 0.5, 3, 30))
    (line,) = [line for line in lines.lines if line["event"] == "nodes classified"]
    assert line["over"] == {"n1": {"cpu_requested_percent": 81.2}}
    assert line["over_count"] == 1


def test_refusals_one_by_one_are_for_those_who_look_closely() -> None:
    """At the default level refusals are counted, at debug each is told."""
    lines = Lines()
    LogListener(lines)(Looked(1, 1, PLAN, 0.5, 3, 30))
    assert [line["level"] for line in lines.lines if line["event"] == "refused"] == ["debug"]
