"""The metrics: our own, and the descheduler's names beside them where they are wanted.

Source of the latter: https://github.com/kubernetes-sigs/descheduler/blob/master/metrics/metrics.go
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import Metric

from rebalancer import __version__

_LAG_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)

# Alerts look at the increase of these. A counter that first appears with a count has not increased, as Prometheus sees it.
_ALERTED = (
    "cannot-be-read",
    "landings-distrusted",
    "move-did-not-help",
    "state-unreadable",
    "state-unwritten",
    "strategies-at-odds",
)


class Metrics:
    """Every metric of the process, in a registry of its own."""

    def __init__(self, *, descheduler_names: bool) -> None:
        """Make the metrics. descheduler_names: also under the names that the descheduler's dashboards use."""
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        info = Gauge("rebalancer_build_info", "Always 1.", ["version", "python"], registry=registry)
        info.labels(__version__, platform.python_version()).set(1)
        self.triggers = Counter("rebalancer_triggers", "Triggers by kind.", ["kind"], registry=registry)
        self.runs = Counter("rebalancer_runs", "Runs by how they ended.", ["ending"], registry=registry)
        self.run_seconds = Histogram("rebalancer_run_seconds", "Length of a run.", buckets=_SECONDS, registry=registry)
        self.debounce_seconds = Histogram(
            "rebalancer_debounce_seconds", "From the first trigger of a batch to its run.", buckets=_SECONDS, registry=registry
        )
        self.evaluation_seconds = Histogram(
            "rebalancer_evaluation_seconds", "Length of an evaluation.", buckets=_SECONDS, registry=registry
        )
        self.strategy_seconds = Histogram(
            "rebalancer_strategy_seconds",
            "Length of one strategy's part of an evaluation.",
            ["profile", "strategy"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.loop_lag_seconds = Histogram(
            "rebalancer_loop_lag_seconds",
            "How late the event loop turns to a task that is due, sampled every second.",
            buckets=_LAG_SECONDS,
            registry=registry,
        )
        self.evictions = Counter(
            "rebalancer_evictions", "Eviction requests by answer.", ["answer", "profile", "strategy"], registry=registry
        )
        self.eviction_seconds = Histogram(
            "rebalancer_eviction_request_seconds", "Length of an eviction request.", buckets=_SECONDS, registry=registry
        )
        self.refused = Counter(
            "rebalancer_refused", "Pods that a strategy would have moved, by why not.", ["code"], registry=registry
        )
        self.passed = Counter("rebalancer_passed", "Approved pods that were not asked for, by why.", ["code"], registry=registry)
        self.settled = Counter("rebalancer_settled", "Followed replacements by outcome.", ["outcome"], registry=registry)
        self.settle_seconds = Histogram(
            "rebalancer_settle_seconds", "From acceptance to a Ready replacement.", buckets=_SECONDS, registry=registry
        )
        self.landings = Counter(
            "rebalancer_landings", "Replacements by whether they landed as expected.", ["expected"], registry=registry
        )
        self.strategy_failures = Counter(
            "rebalancer_strategy_failures", "Evaluations of a strategy that raised.", ["profile", "strategy"], registry=registry
        )
        self.noticed = Counter("rebalancer_noticed", "Remarks and warnings by code.", ["code"], registry=registry)
        for code in _ALERTED:
            self.noticed.labels(code)
        self.leading = Gauge("rebalancer_leading", "1 while this process holds the lease.", registry=registry)
        self.open = Gauge("rebalancer_gate_open", "1 while evictions may go out.", registry=registry)
        self.compatible = Compatible(registry) if descheduler_names else None

    def strategy_took(self, profile: str, strategy: str, seconds: float) -> None:
        """Note how long one strategy took in one evaluation."""
        self.strategy_seconds.labels(profile, strategy).observe(seconds)
        if self.compatible is not None:
            self.compatible.strategy(profile, strategy, seconds)

    def watch(self, name: str, about: str, value: Callable[[], float]) -> None:
        """Add a gauge whose value is read at each scrape."""
        Gauge(name, about, registry=self.registry).set_function(value)


class Compatible:
    """The descheduler's metrics, deprecated twins included."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Make them."""
        labels = ["result", "strategy", "profile", "namespace", "node"]
        self.pods_evicted = Counter(
            "descheduler_pods_evicted",
            "Number of evicted pods by result, strategy, profile, namespace and node.",
            labels,
            registry=registry,
        )
        self._loops = [
            Histogram(name, "Time taken to complete a full descheduling cycle.", buckets=_SECONDS, registry=registry)
            for name in ("descheduler_loop_duration_seconds", "descheduler_descheduler_loop_duration_seconds")
        ]
        self._strategies = [
            Histogram(name, "Time taken to complete a strategy.", ["strategy", "profile"], buckets=_SECONDS, registry=registry)
            for name in ("descheduler_strategy_duration_seconds", "descheduler_descheduler_strategy_duration_seconds")
        ]
        registry.register(_Twin(self.pods_evicted))
        info = Gauge(
            "descheduler_build_info",
            "Build info.",
            ["GoVersion", "AppVersion", "DeschedulerVersion", "GitBranch", "GitSha1"],
            registry=registry,
        )
        info.labels("", __version__, __version__, "", "").set(1)

    def loop(self, seconds: float) -> None:
        """Note the length of a run."""
        for histogram in self._loops:
            histogram.observe(seconds)

    def strategy(self, profile: str, strategy: str, seconds: float) -> None:
        """Note the length of one strategy."""
        for histogram in self._strategies:
            histogram.labels(strategy, profile).observe(seconds)


class _Twin:
    """Shows ``descheduler_pods_evicted_total`` once more under its old name without the suffix."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def collect(self) -> Iterator[Metric]:
        twin = Metric("descheduler_pods_evicted", "The same as descheduler_pods_evicted_total (deprecated name).", "unknown")
        for sample in _samples(self._counter.collect()):
            twin.add_sample("descheduler_pods_evicted", *sample)
        yield twin

    def describe(self) -> Iterable[Metric]:
        # Nothing to register by name: the names belong to the counter.
        return ()


def _samples(families: Iterable[Metric]) -> Iterator[tuple[dict[str, str], float]]:
    for family in families:
        for sample in family.samples:
            if sample.name.endswith("_total"):
                yield sample.labels, sample.value
