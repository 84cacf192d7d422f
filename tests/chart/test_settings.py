"""Every setting is reachable as a value, and the chart knows no variable that the program does not."""

from __future__ import annotations

from typing import Any

import pytest

from deploy.schema import value_name
from rebalancer.policy import policy_variables
from rebalancer.settings import SettingRow, load_policy, load_settings, reference_rows, setting_names
from tests.chart.rendering import container, environment, of_kind, pod_template

# A value of each setting that differs from its default, so that it must have come through.
GIVEN: dict[str, Any] = {
    "dryRun": "server",
    "placement": "fit",
    "singleReplica": "skip",
    "protectedNamespaces": ["kube-system", "infra"],
    "backgroundEvictions": True,
    "policyFile": "/etc/other/policy.yaml",
    "policyCheckSeconds": 7,
    "debounceQuietSeconds": 0,
    "debounceMaximumSeconds": 90.5,
    "tickSeconds": 600,
    "nodeSettleSeconds": 0,
    "runDeadlineSeconds": 1200,
    "capNode": "none",
    "capNamespace": "10%",
    "capWorkload": 2,
    "capTotal": 1000000,
    "evictionsPerMinute": 0,
    "maxInFlight": 9,
    "maxInFlightPerWorkload": 2,
    "evictionTimeoutSeconds": 4,
    "settleTimeoutSeconds": 200,
    "cooldownSeconds": 700,
    "cooldownMaximumSeconds": 100000,
    "events": False,
    "windows": [{"cron": "0 22 * * *", "duration": "6h", "timeZone": "Europe/Berlin", "profiles": ["default"]}],
    "blackouts": [{"cron": "0 9 * * 1", "durationSeconds": 3600}],
    "pausePendingPods": "5%",
    "pauseNotReadyNodes": 3,
    "leaderElection": False,
    "leaseName": "other",
    "leaseNamespace": "infra",
    "leaseDurationSeconds": 30,
    "leaseRenewSeconds": 12,
    "leaseRetrySeconds": 4,
    "stateName": "other-state",
    "staleDisconnectedSeconds": 20,
    "staleSilentSeconds": 120,
    "listenAddress": "::",
    "listenPort": 9090,
    "metricsNeedToken": True,
    "deschedulerMetrics": False,
    "logLevel": "debug",
    "logFormat": "json",
    "otlpEndpoint": "http://collector:4318",
    "kubeconfig": "/kube/config",
    "kubeContext": "other",
    "schedulerConfigFile": "/etc/other/scheduler.yaml",
}


@pytest.mark.parametrize("row", list(reference_rows()), ids=lambda row: row.name)
def test_each_setting_is_a_value_that_reaches_the_program(row: SettingRow) -> None:
    """A value becomes its variable, and the program reads from it what the program would not have had without."""
    name = value_name(row.name)
    given = environment({"settings": {name: GIVEN[name]}})
    assert row.name in given
    default, ours = load_settings({}), load_settings({row.name: given[row.name]})
    assert getattr(getattr(ours, row.subject), row.field) != getattr(getattr(default, row.subject), row.field)


def test_all_settings_together_start_the_program() -> None:
    """They contradict neither each other nor what the chart sets by itself."""
    settings = load_settings(environment({"settings": GIVEN}))
    assert settings.caps.cap_node is None
    assert settings.caps.evictions_per_minute == 0
    assert settings.pauses.windows[0].time_zone == "Europe/Berlin"
    assert settings.mode.protected_namespaces == ("kube-system", "infra")


def test_there_is_a_value_for_each_setting_and_no_other() -> None:
    """The chart's names and the program's are the same list."""
    assert set(GIVEN) == {value_name(name) for name in setting_names()}


def test_an_empty_or_null_value_leaves_the_default() -> None:
    """Helm takes null for gone; a text that a values file left empty is no wish either."""
    given = environment({"settings": {"logLevel": "", "capNode": None}})
    assert "REBALANCER_LOG_LEVEL" not in given
    assert "REBALANCER_CAP_NODE" not in given


def test_the_word_off_that_yaml_reads_as_false_is_understood() -> None:
    """Unquoted, off is a boolean in YAML 1.1."""
    assert load_settings(environment({"settings": {"dryRun": False, "placement": False}})).mode.placement == "off"


def test_as_installed_little_may_be_evicted() -> None:
    """3 per node, 20 per run, 10 a minute, one per workload at a time, never in kube-system, only with a gain: written out."""
    given = environment({})
    settings = load_settings(given)
    assert str(settings.caps.cap_node) == "3"
    assert str(settings.caps.cap_total) == "20"
    assert settings.caps.evictions_per_minute == 10
    assert settings.caps.max_in_flight_per_workload == 1
    assert settings.mode.protected_namespaces == ("kube-system",)
    assert settings.mode.placement == "required"
    written = {"CAP_NODE", "CAP_TOTAL", "EVICTIONS_PER_MINUTE", "MAX_IN_FLIGHT_PER_WORKLOAD", "PROTECTED_NAMESPACES"}
    assert {f"REBALANCER_{name}" for name in written} <= set(given)


def test_a_policy_of_variables_needs_no_document() -> None:
    """The variables reach the program, the document is neither mounted nor named: a policy has one source."""
    values = {
        "policyVariables": {
            "STRATEGIES": "LowNodeUtilization,RemoveDuplicates",
            "STRATEGY__LOW_NODE_UTILIZATION__THRESHOLDS": {"cpu": 20},
            "STRATEGY__LOW_NODE_UTILIZATION__TARGET_THRESHOLDS": {"cpu": 50},
            "POLICY__MAX_NO_OF_PODS_TO_EVICT_TOTAL": 5,
        }
    }
    given = environment(values)
    loaded = load_policy(load_settings(given), given, read=lambda path: b"")
    assert loaded.policy.max_total == 5
    assert of_kind("ConfigMap", values) == []
    assert "volumes" not in pod_template(values)["spec"]
    assert set(values["policyVariables"]) <= {name.removeprefix("REBALANCER_") for name in policy_variables()}


def test_more_variables_can_be_given() -> None:
    """What is secret comes from a Secret, next to the rest."""
    secret = {"name": "OTEL_EXPORTER_OTLP_HEADERS", "valueFrom": {"secretKeyRef": {"name": "otel", "key": "headers"}}}
    assert secret in container({"extraEnv": [secret]})["env"]
