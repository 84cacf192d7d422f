"""Traces: which spans are made, below which, and what is said where the extra is not installed."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from rebalancer.control.debounce import Batch
from rebalancer.control.happenings import Asked, Looked, RunEnded, RunStarted
from rebalancer.errors import SettingsError
from rebalancer.model.answer import Accepted
from rebalancer.model.plan import Plan
from rebalancer.service.traces import TraceListener, trace_listener
from tests.control.cluster import a_pod, an_approval


class KeptSpan:
    """A span that keeps what it is told."""

    def __init__(self, name: str, parent: Any, began: int) -> None:
        """Begin."""
        self.name, self.parent, self.began = name, parent, began
        self.ended = 0
        self.values: dict[str, Any] = {}

    def set_attribute(self, key: str, value: Any) -> None:
        """Keep a value."""
        self.values[key] = value

    def end(self, end_time: int | None = None) -> None:
        """Keep the end."""
        self.ended = end_time or 0


class KeptSpans:
    """A tracer that keeps its spans."""

    def __init__(self) -> None:
        """Start without any."""
        self.spans: list[KeptSpan] = []

    def start_span(self, name: str, context: Any = None, *, start_time: int | None = None) -> KeptSpan:
        """Keep a span."""
        span = KeptSpan(name, context, start_time or 0)
        self.spans.append(span)
        return span


def test_a_run_is_a_span_with_its_evaluations_and_evictions_below() -> None:
    """The names are the descheduler's; children end when they are told and began so many seconds before."""
    spans, moment = KeptSpans(), 100.0
    listener = TraceListener(spans, lambda span: span, lambda: moment)
    listener(RunStarted(1, Batch(())))
    moment = 103.0
    listener(Looked(1, 1, Plan(evaluated_at=0.0), 2.0, 3, 30))
    listener(Asked(1, an_approval(a_pod("p")), Accepted(), 0.5))
    listener(RunEnded(1, "done", "", 1, 0, 0, 3.0))
    run, look, eviction = spans.spans
    assert [span.name for span in spans.spans] == ["runDeschedulerLoop", "RunDeschedulerStrategies", "EvictPod"]
    assert look.parent is run
    assert eviction.parent is run
    assert (run.began, run.ended) == (100_000_000_000, 103_000_000_000)
    assert (look.began, look.ended) == (101_000_000_000, 103_000_000_000)
    assert eviction.values["podName"] == "ns/p"
    assert run.values["evicted"] == 1


@pytest.mark.skipif(importlib.util.find_spec("opentelemetry") is not None, reason="the extra is installed")
def test_without_the_extra_an_endpoint_is_a_mistake_that_names_it() -> None:
    """Whoever asks for traces is told what to install."""
    with pytest.raises(SettingsError, match=r"rebalancer\[otel\]"):
        trace_listener("http://collector:4318/v1/traces", lambda: 0.0)
