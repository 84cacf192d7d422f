"""Happenings become log lines: at the default level a run can be followed from its triggers to its totals."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any, Protocol

import orjson
import structlog

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
from rebalancer.model.answer import Accepted, HeldByBudget, InBackground, Throttled
from rebalancer.model.plan import NodeClass, Plan

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
# How many nodes of one class are named in a line; the rest are counted.
_NAMED_NODES = 10


class Log(Protocol):
    """What is needed of a logger."""

    def debug(self, event: str, **values: Any) -> Any:
        """Log for those who look closely."""

    def info(self, event: str, **values: Any) -> Any:
        """Log for everybody."""

    def warning(self, event: str, **values: Any) -> Any:
        """Log what somebody should look at."""


def configure_logging(level: str, form: str) -> Log:
    """Set logging up for the process and return our logger. form: ``json``, ``console`` or ``auto`` (a terminal gets console)."""
    console = form == "console" or (form == "auto" and sys.stderr.isatty())
    shared: list[Any] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    if console:
        renderer: Any = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), pad_event_to=0)
        factory: Any = structlog.PrintLoggerFactory(sys.stderr)
    else:
        renderer = structlog.processors.JSONRenderer(serializer=_dumps)
        factory = structlog.BytesLoggerFactory(sys.stderr.buffer)
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=factory,
        cache_logger_on_first_use=True,
    )
    # Libraries log through the standard library: only what is wrong is of interest.
    logging.basicConfig(
        level=max(_LEVELS[level], logging.WARNING), stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s"
    )
    log: Log = structlog.get_logger()
    return log


def _dumps(document: Any, **_: Any) -> bytes:
    return orjson.dumps(document, default=str)


class LogListener:
    """Writes a line (or a few) for each happening."""

    def __init__(self, log: Log) -> None:
        """Write to this logger."""
        self._log = log
        self._acts: Mapping[type, Callable[[Any], None]] = {
            TriggerSeen: self._trigger,
            RunStarted: self._started,
            Looked: self._looked,
            Asked: self._asked,
            Passed: self._passed,
            LimitReached: self._limit,
            RunEnded: self._ended,
            Settled: self._settled,
            LeadershipChanged: self._leadership,
            GateChanged: self._gate,
            StrategyFailed: self._strategy_failed,
            Noticed: self._noticed,
        }

    def __call__(self, happening: Happening) -> None:
        """Write."""
        self._acts[type(happening)](happening)

    def _trigger(self, seen: TriggerSeen) -> None:
        trigger = seen.trigger
        self._log.info("trigger", kind=str(trigger.kind), subject=trigger.subject, detail=trigger.detail)

    def _started(self, started: RunStarted) -> None:
        batch = started.batch
        kinds = {str(kind): len(list(group)) for kind, group in groupby(sorted(str(trigger.kind) for trigger in batch.triggers))}
        subjects = [trigger.subject for trigger in batch.triggers if trigger.subject][:_NAMED_NODES]
        self._log.info(
            "run started",
            run=started.number,
            triggers=kinds,
            subjects=subjects,
            collapsed=batch.collapsed,
            waited_seconds=round(batch.waited_seconds, 2),
        )

    def _looked(self, looked: Looked) -> None:
        plan = looked.plan
        # Later looks of a run are variations of the first.
        write = self._log.info if looked.look == 1 else self._log.debug
        for (profile, strategy), group in groupby(plan.nodes, key=lambda each: (each.profile, each.strategy)):
            write("nodes classified", run=looked.number, profile=profile, strategy=strategy, **_classes(list(group)))
        for note in plan.notes:
            write("note", run=looked.number, note=note)
        self._log.info(
            "evaluated",
            run=looked.number,
            look=looked.look,
            nodes=looked.node_count,
            pods=looked.pod_count,
            approved=len(plan.approved),
            refused=_refusals(plan),
            seconds=round(looked.seconds, 3),
        )
        for refusal in plan.refused:
            self._log.debug(
                "refused", run=looked.number, pod=refusal.pod, node=refusal.node, code=refusal.code, reason=refusal.reason
            )

    def _asked(self, asked: Asked) -> None:
        approval, answer = asked.approval, asked.answer
        values: dict[str, Any] = {
            "run": asked.number,
            "pod": approval.pod,
            "node": approval.node,
            "strategy": approval.strategy,
            "profile": approval.profile,
            "reason": approval.reason,
        }
        if approval.rollout:
            values["rollout"] = approval.rollout
        if isinstance(answer, Accepted | InBackground | Surged):
            likely = sorted(approval.landings.items(), key=lambda item: (-item[1], item[0]))[:3]
            self._log.info(
                "surged" if isinstance(answer, Surged) else "evicted",
                **values,
                landings={node: round(share, 3) for node, share in likely},
            )
        elif isinstance(answer, Reported):
            self._log.info("would evict", **values)
        else:
            expected = isinstance(answer, HeldByBudget | Throttled)
            write = self._log.info if expected else self._log.warning
            write("not evicted", **values, answer=type(answer).__name__, message=answer.message)

    def _passed(self, passed: Passed) -> None:
        self._log.info("passed over", run=passed.number, pod=passed.approval.pod, code=passed.code, reason=passed.reason)

    def _limit(self, reached: LimitReached) -> None:
        self._log.info("limit reached", run=reached.number, limit=reached.limit)

    def _ended(self, ended: RunEnded) -> None:
        self._log.info(
            "run ended",
            run=ended.number,
            ending=ended.ending,
            reason=ended.reason,
            evicted=ended.accepted,
            refused=ended.refused,
            left=ended.left,
            seconds=round(ended.seconds, 2),
        )

    def _settled(self, settled: Settled) -> None:
        self._log.info(
            "settled",
            pod=settled.approval.pod,
            outcome=settled.outcome,
            replacement=settled.replacement,
            node=settled.landed,
            was_on=settled.approval.node,
            as_expected=settled.expected,
            ready_after_seconds=None if settled.ready_seconds is None else round(settled.ready_seconds, 1),
        )

    def _leadership(self, changed: LeadershipChanged) -> None:
        self._log.info("leading" if changed.leading else "not leading", holder=changed.holder, reason=changed.reason)

    def _gate(self, changed: GateChanged) -> None:
        if changed.reasons:
            self._log.info("waiting", reasons=list(changed.reasons))
        else:
            self._log.info("evictions may go out")

    def _strategy_failed(self, failed: StrategyFailed) -> None:
        self._log.warning("strategy failed", profile=failed.profile, strategy=failed.strategy, error=failed.error)

    def _noticed(self, noticed: Noticed) -> None:
        write = self._log.warning if noticed.loud else self._log.info
        write(noticed.code, text=noticed.text, **{key: value for key, value in noticed.values.items() if key != "event"})


def _classes(nodes: Iterable[NodeClass]) -> dict[str, Any]:
    """Return the nodes of each class with their requested percentages, the first few by name."""
    told: dict[str, Any] = {}
    ordered = sorted(nodes, key=lambda each: (each.verdict, each.node))
    for verdict, group in groupby(ordered, key=lambda each: each.verdict):
        members = list(group)
        told[f"{verdict}_count"] = len(members)
        told[verdict] = {
            member.node: {f"{name}_requested_percent": round(share, 1) for name, share in sorted(member.usage_percent.items())}
            for member in members[:_NAMED_NODES]
        }
    return told


def _refusals(plan: Plan) -> dict[str, int]:
    return dict(sorted(plan.refused_counts.items()))
