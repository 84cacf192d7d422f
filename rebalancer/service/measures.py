"""Happenings become metrics."""

from __future__ import annotations

from rebalancer.control.happenings import (
    Asked,
    GateChanged,
    Happening,
    LeadershipChanged,
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
from rebalancer.control.tally import namespace_of
from rebalancer.model.answer import Accepted, InBackground, Unknown
from rebalancer.web.metrics import Metrics

# What the descheduler writes into the label ``result`` (pkg/descheduler/evictions/errors.go).
_LIMITS = {
    "limit-total": "maximum number of evicted pods per a descheduling cycle reached",
    "limit-node": "maximum number of evicted pods per node reached",
    "limit-namespace": "maximum number of evicted pods per namespace reached",
}


class MetricsListener:
    """Counts."""

    def __init__(self, metrics: Metrics) -> None:
        """Count in these metrics."""
        self._metrics = metrics

    def __call__(self, happening: Happening) -> None:
        """Count one happening."""
        metrics = self._metrics
        match happening:
            case TriggerSeen(trigger):
                metrics.triggers.labels(str(trigger.kind)).inc()
            case RunStarted(_, batch):
                metrics.debounce_seconds.observe(batch.waited_seconds)
            case Looked():
                metrics.evaluation_seconds.observe(happening.seconds)
                for code, count in happening.plan.refused_counts.items():
                    metrics.refused.labels(code).inc(count)
                self._limited(happening)
            case Asked():
                self._asked(happening)
            case Passed():
                metrics.passed.labels(happening.code).inc()
            case RunEnded():
                metrics.runs.labels(happening.ending).inc()
                metrics.run_seconds.observe(happening.seconds)
                if metrics.compatible is not None:
                    metrics.compatible.loop(happening.seconds)
            case Settled():
                self._settled(happening)
            case LeadershipChanged(leading, _, _):
                metrics.leading.set(leading)
            case GateChanged(reasons):
                metrics.open.set(not reasons)
            case StrategyFailed():
                metrics.strategy_failures.labels(happening.profile, happening.strategy).inc()
            case Noticed():
                metrics.noticed.labels(happening.code).inc()
            case _:
                pass

    def _asked(self, asked: Asked) -> None:
        approval, answer, metrics = asked.approval, asked.answer, self._metrics
        metrics.evictions.labels(type(answer).__name__, approval.profile, approval.strategy).inc()
        metrics.eviction_seconds.observe(asked.seconds)
        if metrics.compatible is not None:
            result = "error"
            if isinstance(answer, Accepted | Reported | Surged | Unknown):
                # Upstream counts in a dry run, too.
                result = "success"
            elif isinstance(answer, InBackground):
                result = "background"
            labels = (result, approval.strategy, approval.profile, namespace_of(approval), approval.node)
            metrics.compatible.pods_evicted.labels(*labels).inc()

    def _limited(self, looked: Looked) -> None:
        """Count pods that a limit of the policy held back as the descheduler does, once a run: under a sentence."""
        compatible = self._metrics.compatible
        if compatible is None or looked.look > 1:
            return
        for refusal in looked.plan.refused:
            if (result := _LIMITS.get(refusal.code)) is not None:
                namespace = refusal.pod.partition("/")[0]
                compatible.pods_evicted.labels(result, refusal.strategy, refusal.profile, namespace, refusal.node).inc()

    def _settled(self, settled: Settled) -> None:
        self._metrics.settled.labels(settled.outcome).inc()
        if settled.ready_seconds is not None:
            self._metrics.settle_seconds.observe(settled.ready_seconds)
        if settled.expected is not None:
            self._metrics.landings.labels(str(settled.expected).lower()).inc()
