"""Happenings become traces, with the descheduler's span names where they match. Needs the extra ``otel``.

Source of the names: https://github.com/kubernetes-sigs/descheduler/blob/master/pkg/tracing/tracing.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from rebalancer.control.happenings import Asked, Happening, Looked, RunEnded, RunStarted
from rebalancer.errors import Mistake, SettingsError

SERVICE = "rebalancer"


class Span(Protocol):
    """What is needed of a span."""

    def set_attribute(self, key: str, value: Any) -> None:
        """Note a value."""

    def end(self, end_time: int | None = None) -> None:
        """End it, at a moment in nanoseconds since the epoch."""


class Tracer(Protocol):
    """What is needed of a tracer."""

    def start_span(self, name: str, context: Any = None, *, start_time: int | None = None) -> Span:
        """Start a span, at a moment in nanoseconds since the epoch."""


class TraceListener:
    """Makes a span of each run, and below it one of each evaluation and of each eviction."""

    def __init__(self, tracer: Tracer, below: Callable[[Span], Any], now: Callable[[], float]) -> None:
        """Trace. below: the context in which spans are children of a span. now: seconds since the epoch."""
        self._tracer = tracer
        self._below = below
        self._now = now
        self._run: Span | None = None

    def __call__(self, happening: Happening) -> None:
        """Trace a happening."""
        match happening:
            case RunStarted(number, batch):
                self._run = self._tracer.start_span("runDeschedulerLoop", start_time=self._nanoseconds())
                self._run.set_attribute("run", number)
                self._run.set_attribute("triggers", [str(trigger.kind) for trigger in batch.triggers])
            case Looked():
                plan = happening.plan
                self._child(
                    "RunDeschedulerStrategies",
                    happening.seconds,
                    {"look": happening.look, "approved": len(plan.approved), "refused": sum(plan.refused_counts.values())},
                )
            case Asked():
                approval = happening.approval
                self._child(
                    "EvictPod",
                    happening.seconds,
                    {
                        "podName": approval.pod,
                        "nodeName": approval.node,
                        "strategy": approval.strategy,
                        "reason": approval.reason,
                        "result": type(happening.answer).__name__,
                    },
                )
            case RunEnded() if self._run is not None:
                self._run.set_attribute("ending", happening.ending)
                self._run.set_attribute("evicted", happening.accepted)
                self._run.end(end_time=self._nanoseconds())
                self._run = None
            case _:
                pass

    def _child(self, name: str, seconds: float, values: Mapping[str, Any]) -> None:
        end = self._nanoseconds()
        context = self._below(self._run) if self._run is not None else None
        span = self._tracer.start_span(name, context, start_time=end - int(seconds * 1e9))
        for key, value in values.items():
            span.set_attribute(key, value)
        span.end(end_time=end)

    def _nanoseconds(self) -> int:
        return int(self._now() * 1e9)


def trace_listener(endpoint: str, now: Callable[[], float]) -> tuple[TraceListener, Callable[[], None]]:
    """Return a listener that sends to an OTLP endpoint over HTTP, and what sends the rest at the end.

    Raises SettingsError where the extra is not installed.
    """
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        wanted = "needs the extra otel: pip install 'rebalancer[otel]'"
        raise SettingsError("environment", [Mistake("REBALANCER_OTLP_ENDPOINT", wanted)]) from error
    provider = TracerProvider(resource=Resource.create({"service.name": SERVICE}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    return TraceListener(provider.get_tracer(SERVICE), trace.set_span_in_context, now), provider.shutdown
