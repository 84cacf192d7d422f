"""The Grafana dashboard: a list of panels becomes the document that Grafana imports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
_WHERE = '{job=~"$job"}'
_COLUMNS = 24


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel.

    title, about: what it shows and how to read it. queries: (expression, legend); ``{}`` stands for the jobs that were chosen.
    kind: Grafana's name of the form. unit: Grafana's name of the unit. width: of 24 columns.
    """

    title: str
    about: str
    queries: Sequence[tuple[str, str]]
    kind: str = "timeseries"
    unit: str = "short"
    width: int = 8


def _quantiles(metric: str) -> list[tuple[str, str]]:
    return [
        (f"histogram_quantile({share}, sum by (le) (rate({metric}_bucket{{}}[$__rate_interval])))", legend)
        for share, legend in ((0.5, "half"), (0.95, "19 of 20"))
    ]


def _counted(metric: str, label: str) -> list[tuple[str, str]]:
    return [(f"sum by ({label}) (increase({metric}_total{{}}[$__rate_interval]))", f"{{{{{label}}}}}")]


ROWS: dict[str, Sequence[Panel]] = {
    "State": (
        Panel("Leaders", "Exactly one works; the others wait.", [("sum(rebalancer_leading{})", "")], "stat", width=4),
        Panel(
            "May evict",
            "1 while leading, fresh, in a window, not paused.",
            [("max(rebalancer_gate_open{})", "")],
            "stat",
            width=4,
        ),
        Panel("Stale kinds", "Not 0: nothing is evicted.", [("max(rebalancer_caches_unfresh{})", "")], "stat", width=4),
        Panel("In flight", "Evicted, replacement not Ready yet.", [("sum(rebalancer_in_flight{})", "")], "stat", width=4),
        Panel("Cooldowns", "Workloads that rest on a node.", [("sum(rebalancer_cooldowns{})", "")], "stat", width=4),
        Panel("Nodes", "Nodes that the leader knows.", [("max(rebalancer_nodes{})", "")], "stat", width=4),
    ),
    "Evictions": (
        Panel("By answer", "What the API server said to each request.", _counted("rebalancer_evictions", "answer")),
        Panel("By strategy", "Which strategy asked.", _counted("rebalancer_evictions", "strategy")),
        Panel("Replacements", "What became of those that were followed.", _counted("rebalancer_settled", "outcome")),
        Panel("Refused", "Pods that a strategy would have moved, and why not.", _counted("rebalancer_refused", "code"), width=12),
        Panel("Passed over", "Approved, but not asked for after all.", _counted("rebalancer_passed", "code"), width=12),
    ),
    "Is it any good": (
        Panel(
            "Landed as predicted",
            "Share of replacements on a node that was expected. Below 0.8 it trusts its predictions less, by itself.",
            [
                (
                    'sum(increase(rebalancer_landings_total{expected="true",job=~"$job"}[6h])) / '
                    "sum(increase(rebalancer_landings_total{}[6h]))",
                    "share",
                )
            ],
            unit="percentunit",
        ),
        Panel("Until Ready", "From acceptance to a Ready replacement.", _quantiles("rebalancer_settle_seconds"), unit="s"),
        Panel("Remarks", "Warnings and remarks by code; the runbook explains each.", _counted("rebalancer_noticed", "code")),
    ),
    "Pace": (
        Panel("Triggers", "Why it looked.", _counted("rebalancer_triggers", "kind"), width=6),
        Panel("Runs", "How they ended.", _counted("rebalancer_runs", "ending"), width=6),
        Panel("From trigger to run", "The debounce.", _quantiles("rebalancer_debounce_seconds"), unit="s", width=6),
        Panel("Evaluation", "Working out a plan.", _quantiles("rebalancer_evaluation_seconds"), unit="s", width=6),
        Panel(
            "Eviction request",
            "Until the API server answered.",
            _quantiles("rebalancer_eviction_request_seconds"),
            unit="s",
            width=6,
        ),
        Panel("Run", "From its start to its end.", _quantiles("rebalancer_run_seconds"), unit="s", width=6),
        Panel("Memory", "Of each process.", [("process_resident_memory_bytes{}", "{{pod}}")], unit="bytes", width=6),
        Panel("CPU", "Of each process, in cores.", [("rate(process_cpu_seconds_total{}[$__rate_interval])", "{{pod}}")], width=6),
    ),
}


def dashboard() -> str:
    """Return the document."""
    panels: list[dict[str, Any]] = []
    top = 0
    for title, row in ROWS.items():
        panels.append(
            {"id": len(panels) + 1, "type": "row", "title": title, "gridPos": {"h": 1, "w": _COLUMNS, "x": 0, "y": top}}
        )
        top += 1
        left = 0
        height = 4 if row[0].kind == "stat" else 8
        for panel in row:
            if left + panel.width > _COLUMNS:
                left, top = 0, top + height
            panels.append(_panel(panel, len(panels) + 1, {"h": height, "w": panel.width, "x": left, "y": top}))
            left += panel.width
        top += height
    document = {
        "title": "rebalancer",
        "uid": "rebalancer",
        "tags": ["kubernetes", "rebalancer"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
                {
                    "name": "job",
                    "type": "query",
                    "datasource": _DATASOURCE,
                    "query": "label_values(rebalancer_build_info, job)",
                    "refresh": 2,
                    "multi": True,
                    "includeAll": True,
                    "label": "Job",
                },
            ]
        },
        "panels": panels,
    }
    return json.dumps(document, indent=2) + "\n"


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "gridPos": place,
        "datasource": _DATASOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + at), "datasource": _DATASOURCE, "expr": query.replace("{}", _WHERE), "legendFormat": legend}
            for at, (query, legend) in enumerate(panel.queries)
        ],
    }
