"""Every promised default in one test: a change here is a change of behaviour for whoever upgrades."""

from __future__ import annotations

from typing import Any

from rebalancer.model.cap import Cap
from rebalancer.settings import Settings, load_settings

PROMISED: dict[str, dict[str, Any]] = {
    "mode": {
        "dry_run": "off",
        "placement": "required",
        "single_replica": "auto",
        "protected_namespaces": ("kube-system",),
        "background_evictions": False,
    },
    "policy": {"policy_file": None, "policy_check_seconds": 5.0},
    "triggers": {
        "debounce_quiet_seconds": 5.0,
        "debounce_maximum_seconds": 60.0,
        "tick_seconds": 300.0,
        "node_settle_seconds": 10.0,
        "run_deadline_seconds": 600.0,
    },
    "caps": {
        "cap_node": Cap(number=3),
        "cap_namespace": None,
        "cap_workload": None,
        "cap_total": Cap(number=20),
        "evictions_per_minute": 10,
        "max_in_flight": 5,
        "max_in_flight_per_workload": 1,
    },
    "evictions": {
        "eviction_timeout_seconds": 3.0,
        "settle_timeout_seconds": 300.0,
        "cooldown_seconds": 600.0,
        "cooldown_maximum_seconds": 21_600.0,
        "events": True,
    },
    "pauses": {"windows": (), "blackouts": (), "pause_pending_pods": None, "pause_not_ready_nodes": None},
    "lease": {
        "leader_election": True,
        "lease_name": "descheduler",
        "lease_namespace": "kube-system",
        "lease_duration_seconds": 15.0,
        "lease_renew_seconds": 10.0,
        "lease_retry_seconds": 2.0,
        "state_name": "rebalancer-state",
    },
    "watch": {"stale_disconnected_seconds": 10.0, "stale_silent_seconds": 90.0},
    "serving": {
        "listen_address": "0.0.0.0",
        "listen_port": 8080,
        "metrics_need_token": False,
        "descheduler_metrics": True,
        "log_level": "info",
        "log_format": "auto",
        "otlp_endpoint": None,
    },
    "cluster": {"kubeconfig": None, "kube_context": None, "scheduler_config_file": None},
}


def values(settings: Settings) -> dict[str, dict[str, Any]]:
    """Return all settings by group and name."""
    groups = {subject: getattr(settings, subject) for subject in PROMISED}
    return {subject: {name: getattr(group, name) for name in type(group).model_fields} for subject, group in groups.items()}


def test_every_promised_default() -> None:
    """Nothing in the environment gives exactly these values, and there are no others."""
    assert values(load_settings({})) == PROMISED


def test_a_value_made_without_an_environment_has_the_same_defaults() -> None:
    """What tests and the embedded cluster use is what an operator gets."""
    assert Settings() == load_settings({})
