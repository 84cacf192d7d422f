"""The rendered roles hold what each enabled feature needs and no more (H7)."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.kube.resources import RESOURCES
from tests.chart.rendering import of_kind, only, rules

WATCHING = {(verb, each.rbac_name, "") for each in RESOURCES for verb in ("list", "watch")}
EVICTING = {("create", "pods/eviction", "")}
ROLLOUT = {("patch", "deployments.apps", "")}
LEASE = {("create", "leases.coordination.k8s.io", "")} | {
    (verb, "leases.coordination.k8s.io", "descheduler") for verb in ("get", "update")
}
STATE = {("create", "configmaps", "")} | {(verb, "configmaps", "rebalancer-state") for verb in ("get", "patch")}
EVENTS = {(verb, "events.events.k8s.io", "") for verb in ("create", "patch")}
REVIEWS = {
    ("create", "tokenreviews.authentication.k8s.io", ""),
    ("create", "subjectaccessreviews.authorization.k8s.io", ""),
}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param({}, WATCHING | EVICTING | LEASE | STATE | EVENTS, id="defaults"),
        pytest.param({"kind": "CronJob"}, WATCHING | EVICTING | LEASE | STATE | EVENTS, id="cronjob"),
        pytest.param({"settings": {"dryRun": "plan"}}, WATCHING, id="dry-run-that-only-reports"),
        pytest.param({"settings": {"dryRun": "server"}}, WATCHING | EVICTING | LEASE, id="dry-run-on-the-server"),
        pytest.param(
            {"settings": {"singleReplica": "surge"}},
            WATCHING | EVICTING | ROLLOUT | LEASE | STATE | EVENTS,
            id="replacement-first",
        ),
        pytest.param(
            {"settings": {"singleReplica": "surge", "dryRun": "plan"}}, WATCHING, id="replacement-first-that-only-reports"
        ),
        pytest.param({"settings": {"events": False}}, WATCHING | EVICTING | LEASE | STATE, id="no-events"),
        pytest.param({"settings": {"leaderElection": False}}, WATCHING | EVICTING | STATE | EVENTS, id="no-election"),
        pytest.param(
            {"settings": {"metricsNeedToken": True}},
            WATCHING | EVICTING | LEASE | STATE | EVENTS | REVIEWS,
            id="metrics-with-token",
        ),
        pytest.param(
            {"rbac": {"tokenReviews": True}}, WATCHING | EVICTING | LEASE | STATE | EVENTS | REVIEWS, id="status-with-token"
        ),
        pytest.param(
            {"kind": "CronJob", "rbac": {"tokenReviews": True}},
            WATCHING | EVICTING | LEASE | STATE | EVENTS,
            id="nobody-asks-a-job",
        ),
        pytest.param({"rbac": {"create": False}}, set(), id="roles-of-ones-own"),
    ],
)
def test_exactly_what_the_features_use_is_granted(values: dict[str, Any], expected: set[tuple[str, str, str]]) -> None:
    """Verb by verb; what is watched is the program's own list of kinds."""
    assert rules(values) == expected


def test_nothing_can_be_deleted_or_read_that_is_secret() -> None:
    """Pods go by eviction alone, so that budgets can refuse; Secrets are never read; no rule has a wildcard."""
    everything = rules({"settings": {"singleReplica": "surge", "metricsNeedToken": True}})
    assert not [each for each in everything if each[0] in ("delete", "deletecollection", "*", "bind", "escalate", "impersonate")]
    assert not [each for each in everything if "*" in each[1] or each[1] in ("secrets", "pods/exec")]
    assert {verb for verb, resource, _ in everything if resource == "pods"} == {"list", "watch"}


def test_names_of_lease_and_state_are_followed() -> None:
    """Under other names, in another namespace, the Role moves along."""
    values = {"settings": {"leaseName": "l", "stateName": "s", "leaseNamespace": "infra"}}
    assert ("update", "leases.coordination.k8s.io", "l") in rules(values)
    assert ("patch", "configmaps", "s") in rules(values)
    assert only("Role", values)["metadata"]["namespace"] == only("RoleBinding", values)["metadata"]["namespace"] == "infra"
    upstream = {"leaderElection": {"resourceName": "l", "resourceNamespace": "infra"}}
    assert ("update", "leases.coordination.k8s.io", "l") in rules(upstream)
    assert only("Role", upstream)["metadata"]["namespace"] == "infra"


def test_cluster_wide_rights_are_for_what_is_in_every_namespace() -> None:
    """Lease and state are granted in one namespace only."""
    granted = {resource for rule in only("ClusterRole", {})["rules"] for resource in rule["resources"]}
    assert not granted & {"leases", "configmaps"}
    assert of_kind("Role", {"settings": {"dryRun": "plan"}}) == []
