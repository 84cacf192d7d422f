"""Alerts and dashboard speak of metrics and labels that the program has, and of nothing that cannot happen."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from deploy.dashboard import ROWS, dashboard
from rebalancer.model.answer import Answer
from rebalancer.web.metrics import Metrics
from tests.chart.rendering import container, of_kind, only

WATCHED = {
    "rebalancer_in_flight",
    "rebalancer_cooldowns",
    "rebalancer_caches_unfresh",
    "rebalancer_pods",
    "rebalancer_nodes",
}
"""Gauges that the service adds; the test of the running Deployment finds them in what is really served."""

RULE = {"prometheusRule": {"enabled": True}}


def known() -> set[str]:
    """Return the names of all series that are served."""
    families = list(Metrics(descheduler_names=True).registry.collect())
    names = {f"{family.name}{ending}" for family in families for ending in ("", "_total", "_bucket", "_sum", "_count")}
    return names | WATCHED


def alerts(values: dict[str, Any]) -> dict[str, str]:
    """Return the expression of each alert."""
    (group,) = only("PrometheusRule", values)["spec"]["groups"]
    return {rule["alert"]: rule["expr"] for rule in group["rules"]}


@pytest.mark.parametrize("alert", alerts(RULE))
def test_an_alert_looks_at_series_that_exist(alert: str) -> None:
    """An alert on a misspelt metric never fires."""
    names = set(re.findall(r"\b(?:rebalancer|descheduler|process)_\w+", alerts(RULE)[alert]))
    assert names
    assert names <= known()


def test_answers_that_alert_are_answers() -> None:
    """The label is the name of an answer's type."""
    wanted = re.findall(r'answer=~"([^"]+)"', alerts(RULE)["RebalancerEvictionsFail"])[0].split("|")
    assert set(wanted) <= {answer.__name__ for answer in Answer.__args__}


def test_braces_and_quotes_of_every_expression_match() -> None:
    """A template that loses one makes Prometheus refuse the whole group."""
    for expression in alerts(RULE).values():
        assert expression.count("{") == expression.count("}") > 0
        assert expression.count('"') % 2 == 0
        assert 'namespace="kube-system",pod=~"rebalancer-.*"' in expression


@pytest.mark.parametrize("settings", [{"dryRun": "plan"}, {"leaderElection": False}], ids=["plan", "no-election"])
def test_nobody_is_alerted_for_want_of_a_leader_where_none_is_elected(settings: dict[str, Any]) -> None:
    """In a dry run of the kind plan there is no election, and the gauge stays 0."""
    assert {"RebalancerNoLeader", "RebalancerSeveralLeaders"} <= set(alerts(RULE))
    assert not {"RebalancerNoLeader", "RebalancerSeveralLeaders"} & set(alerts(RULE | {"settings": settings}))


def test_alerts_link_to_their_runbook_entries() -> None:
    """Where an address is given; without one no link leads nowhere."""
    linked = {"prometheusRule": {"enabled": True, "runbookURL": "https://wiki.example/r"}}
    (group,) = only("PrometheusRule", linked)["spec"]["groups"]
    for rule in group["rules"]:
        assert rule["annotations"]["runbook_url"] == f"https://wiki.example/r#{rule['alert'].lower()}"
    assert "runbook_url" not in str(only("PrometheusRule", RULE))


def test_the_dashboard_looks_at_series_that_exist() -> None:
    """Every query of every panel, each over the jobs that were chosen."""
    found = [target for panel in json.loads(dashboard())["panels"] for target in panel.get("targets", [])]
    assert len(found) > 20
    for target in found:
        names = set(re.findall(r"\b(?:rebalancer|descheduler|process)_\w+", target["expr"]))
        assert names
        assert names <= known(), target["expr"]
        assert 'job=~"$job"' in target["expr"]
        assert "{}" not in target["expr"]


def test_panels_do_not_overlap() -> None:
    """Grafana would shuffle them."""
    taken: set[tuple[int, int]] = set()
    panels = json.loads(dashboard())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) == len(ROWS) + sum(map(len, ROWS.values()))
    for panel in panels:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken
        assert place["x"] + place["w"] <= 24
        taken |= cells


def test_the_dashboard_is_found_by_grafanas_sidecar() -> None:
    """By its label, as the whole document under one key."""
    (found,) = [
        each for each in of_kind("ConfigMap", {"grafanaDashboard": {"enabled": True}}) if "policy.yaml" not in each["data"]
    ]
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(found["data"]["rebalancer.json"]) == json.loads(dashboard())


def test_the_service_monitor_finds_the_port() -> None:
    """Through a Service that is made for it, by plain HTTP, with a token only where one is demanded."""
    values: dict[str, Any] = {"serviceMonitor": {"enabled": True, "interval": "30s"}}
    (endpoint,) = only("ServiceMonitor", values)["spec"]["endpoints"]
    (port,) = only("Service", values)["spec"]["ports"]
    assert (endpoint["port"], endpoint["scheme"], endpoint["path"]) == (port["name"], "http", "/metrics")
    assert port["targetPort"] in [each["name"] for each in container(values)["ports"]]
    assert "bearerTokenFile" not in endpoint
    (endpoint,) = only("ServiceMonitor", values | {"settings": {"metricsNeedToken": True}})["spec"]["endpoints"]
    assert endpoint["bearerTokenFile"].endswith("/token")
