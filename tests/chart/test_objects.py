"""Whatever the values, each object is one that the API servers of every supported version take."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest

from tests.chart.rendering import objects, of_kind, only, pod_template, values_of

VERSIONS = ("1.33", "1.34", "1.35", "1.36", "1.37")
# Kinds of operators: the package of schemas does not know them.
FOREIGN = {"ServiceMonitor", "PrometheusRule"}
EVERYTHING: dict[str, Any] = {
    "service": {"enabled": True},
    "serviceMonitor": {"enabled": True},
    "prometheusRule": {"enabled": True, "runbookURL": "https://wiki.example/runbook"},
    "grafanaDashboard": {"enabled": True, "namespace": "monitoring", "annotations": {"folder": "Kubernetes"}},
    "networkPolicy": {"enabled": True, "apiServerBlocks": ["10.0.0.1/32"], "ingressFrom": [{"namespaceSelector": {}}]},
}
MATRIX: dict[str, dict[str, Any]] = {
    "defaults": {},
    "cronjob": {"kind": "CronJob", "timeZone": "Europe/Berlin", "suspend": True, "startingDeadlineSeconds": 0},
    "cronjob-limits": {"kind": "CronJob", "successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 2, "jobLabels": {"a": "b"}},
    "job": {"kind": "Job", "ttlSecondsAfterFinished": 0, "activeDeadlineSeconds": 900},
    "three-replicas": {"replicas": 3},
    "no-replicas": {"replicas": 0},
    "dry-run": {"settings": {"dryRun": "plan"}},
    "everything": EVERYTHING,
    "everything-as-cronjob": EVERYTHING | {"kind": "CronJob"},
    "surge-and-tokens": {"settings": {"singleReplica": "surge", "metricsNeedToken": True}},
    "budget-in-percent": {"podDisruptionBudget": {"enabled": True, "maxUnavailable": "50%"}},
    "policy-of-variables": {"policyVariables": {"STRATEGIES": "RemoveDuplicates"}},
    "policy-from-elsewhere": {
        "settings": {"policyFile": "/somewhere/policy.yaml"},
        "extraEnvFrom": [{"secretRef": {"name": "s"}}],
    },
    "own-names": {"fullnameOverride": "moves", "namespaceOverride": "infra", "commonLabels": {"team": "platform"}},
    "no-roles": {"rbac": {"create": False}, "serviceAccount": {"create": False, "name": "given"}},
    "upstream-defaults": values_of("upstream-0.36-values.yaml"),
    "upstream-options": values_of("upstream-0.36-optional-values.yaml"),
    "upstream-0.20": values_of("upstream-0.20-values.yaml"),
}


@cache
def _check(document: str, version: str) -> None:
    kubernetes_validate.validate(json.loads(document), version, strict=True)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", MATRIX)
def test_every_object_fits_the_schema_of_every_supported_version(name: str, version: str) -> None:
    """Unknown fields, wrong types and missing fields are refused by each version alike, so none may be rendered."""
    found = [document for document in objects(MATRIX[name]) if document["kind"] not in FOREIGN]
    assert found
    for document in found:
        _check(json.dumps(document, sort_keys=True), version)


@pytest.mark.parametrize("name", MATRIX)
def test_no_two_objects_have_one_name(name: str) -> None:
    """Two objects of one kind, namespace and name would overwrite each other."""
    named = [(found["kind"], found["metadata"].get("namespace"), found["metadata"]["name"]) for found in objects(MATRIX[name])]
    assert len(named) == len(set(named))


@pytest.mark.parametrize("name", MATRIX)
def test_every_object_belongs_to_the_namespace_that_was_asked_for(name: str) -> None:
    """Only the Role for the lease and what operators watch may be elsewhere; without one it would depend on kubectl's."""
    expected = MATRIX[name].get("namespaceOverride") or "kube-system"
    for found in objects(MATRIX[name]):
        if found["kind"] in ("ClusterRole", "ClusterRoleBinding"):
            assert "namespace" not in found["metadata"]
        elif found["kind"] in ("Role", "RoleBinding"):
            assert found["metadata"]["namespace"] == "kube-system"
        elif found["kind"] not in FOREIGN and not found["metadata"]["name"].endswith("-dashboard"):
            assert found["metadata"]["namespace"] == expected


@pytest.mark.parametrize("name", [name for name in MATRIX if MATRIX[name].get("kind", "Deployment") == "Deployment"])
def test_selectors_find_the_pods(name: str) -> None:
    """Deployment, Service, budget, policy and spread select by labels that the pods carry."""
    labels = pod_template(MATRIX[name])["metadata"]["labels"]
    wanted = [only("Deployment", MATRIX[name])["spec"]["selector"]["matchLabels"]]
    wanted += [found["spec"]["selector"] for found in of_kind("Service", MATRIX[name])]
    wanted += [found["spec"]["selector"]["matchLabels"] for found in of_kind("PodDisruptionBudget", MATRIX[name])]
    wanted += [found["spec"]["podSelector"]["matchLabels"] for found in of_kind("NetworkPolicy", MATRIX[name])]
    for selector in wanted:
        assert selector.items() <= labels.items()


def test_a_cronjob_never_runs_twice_at_once() -> None:
    """Two runs side by side would each have the caps for themselves."""
    cronjob = only("CronJob", {"kind": "CronJob", "timeZone": "Europe/Berlin", "schedule": "0 3 * * *"})["spec"]
    assert cronjob["concurrencyPolicy"] == "Forbid"
    assert (cronjob["schedule"], cronjob["timeZone"]) == ("0 3 * * *", "Europe/Berlin")
    assert cronjob["jobTemplate"]["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    assert cronjob["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["args"] == ["once"]


def test_limits_of_a_cronjob_that_are_not_given_are_not_set() -> None:
    """A starting deadline of 0 would keep it from ever starting; 0 is written only where it was asked for."""
    names = ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    assert not set(names) & set(only("CronJob", {"kind": "CronJob"})["spec"])
    spec = only("CronJob", {"kind": "CronJob", **dict.fromkeys(names, 0)})["spec"]
    assert [spec[name] for name in names] == [0, 0, 0]
    job = only("Job", {"kind": "Job"})["spec"]
    assert "ttlSecondsAfterFinished" not in job
    assert job["activeDeadlineSeconds"] == 900
    assert only("Job", {"kind": "Job", "settings": {"runDeadlineSeconds": 60.5}})["spec"]["activeDeadlineSeconds"] == 361


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param({}, None, id="one-replica"),
        pytest.param({"replicas": 2}, {"minAvailable": 1}, id="two-replicas"),
        pytest.param({"replicas": 2, "podDisruptionBudget": {"enabled": False}}, None, id="switched-off"),
        pytest.param({"podDisruptionBudget": {"enabled": True}}, {"minAvailable": 1}, id="switched-on"),
        pytest.param({"replicas": 2, "podDisruptionBudget": {"maxUnavailable": 1}}, {"maxUnavailable": 1}, id="maximum"),
        pytest.param({"replicas": 2, "podDisruptionBudget": {"minAvailable": 0}}, {"minAvailable": 0}, id="zero"),
        pytest.param({"kind": "CronJob", "replicas": 2}, None, id="cronjob"),
    ],
)
def test_a_budget_comes_with_the_second_replica(values: dict[str, Any], expected: dict[str, Any] | None) -> None:
    """One replica with a budget would block every drain; two without could go together."""
    found = of_kind("PodDisruptionBudget", values)
    assert [{key: each["spec"][key] for key in each["spec"] if key in ("minAvailable", "maxUnavailable")} for each in found] == (
        [expected] if expected else []
    )


def test_several_replicas_prefer_different_nodes_and_zones() -> None:
    """The one node that fails may not take the standby along; what the user says wins."""
    assert "affinity" not in pod_template({})["spec"]
    spec = pod_template({"replicas": 2})["spec"]
    (term,) = spec["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"
    assert [each["topologyKey"] for each in spec["topologySpreadConstraints"]] == ["topology.kubernetes.io/zone"]
    own: dict[str, Any] = {"nodeAffinity": {}}
    assert pod_template({"replicas": 2, "affinity": own})["spec"]["affinity"] == own


def test_two_replicas_without_election_are_refused() -> None:
    """They would evict side by side."""
    with pytest.raises(Exception, match="leader election"):
        objects({"replicas": 2, "leaderElection": {"enabled": False}})
    with pytest.raises(Exception, match="leader election"):
        objects({"replicas": 2, "settings": {"leaderElection": False}})


def test_a_network_policy_lets_in_the_port_and_out_dns_and_the_api_server() -> None:
    """Nothing else is needed, and a listening port that was moved is followed."""
    spec = only("NetworkPolicy", {"networkPolicy": {"enabled": True}, "settings": {"listenPort": 9090}})["spec"]
    assert [port["port"] for rule in spec["ingress"] for port in rule["ports"]] == [9090]
    assert sorted({port["port"] for rule in spec["egress"] for port in rule["ports"]}) == [53, 443, 6443]
    assert only("NetworkPolicy", {"networkPolicy": {"enabled": True}, "kind": "CronJob"})["spec"]["ingress"] == []


def test_the_image_is_that_of_the_version_unless_said_otherwise() -> None:
    """No tag that moves; a digest wins over a tag."""
    from rebalancer import __version__

    image = {"repository": "registry.example/r", "tag": "t"}
    assert pod_template({})["spec"]["containers"][0]["image"] == f"rebalancer/rebalancer:{__version__}"
    assert pod_template({"image": image})["spec"]["containers"][0]["image"] == "registry.example/r:t"
    pinned = image | {"digest": "sha256:0"}
    assert pod_template({"image": pinned})["spec"]["containers"][0]["image"] == "registry.example/r@sha256:0"
