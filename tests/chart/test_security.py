"""The pods meet the restricted Pod Security Standard and carry nothing that they do not need.

https://kubernetes.io/docs/concepts/security/pod-security-standards/
"""

from __future__ import annotations

import pytest

from tests.chart.rendering import container, only, pod_template
from tests.chart.test_objects import MATRIX


@pytest.mark.parametrize("name", MATRIX)
def test_the_pod_is_restricted_whatever_the_values(name: str) -> None:
    """Every demand of the restricted level, on the pod and its container; the descheduler's values keep them."""
    spec = pod_template(MATRIX[name])["spec"]
    own = container(MATRIX[name])["securityContext"]
    assert own["allowPrivilegeEscalation"] is False
    assert own["capabilities"] == {"drop": ["ALL"]}
    assert own["runAsNonRoot"] is True
    assert own["runAsUser"] > 0
    assert own["readOnlyRootFilesystem"] is True
    assert own.get("privileged", False) is False
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not any(spec.get(key) for key in ("hostNetwork", "hostPID", "hostIPC"))
    assert all(set(volume) & {"configMap", "projected", "secret", "emptyDir"} for volume in spec.get("volumes", []))


@pytest.mark.parametrize("name", MATRIX)
def test_no_service_can_set_variables_of_ours(name: str) -> None:
    """A Service named rebalancer would otherwise make Kubernetes set REBALANCER_PORT and the like."""
    assert pod_template(MATRIX[name])["spec"]["enableServiceLinks"] is False


def test_the_pod_is_important_and_stops_in_time() -> None:
    """It is not the first to go when room runs out; what is on the wire is finished before it stops."""
    spec = pod_template({})["spec"]
    assert spec["priorityClassName"] == "system-cluster-critical"
    assert spec["terminationGracePeriodSeconds"] == 30


def test_the_pod_runs_as_its_own_service_account() -> None:
    """Roles are bound to the account that the pod uses, also where names are given."""
    values = {"serviceAccount": {"name": "mover"}, "namespaceOverride": "infra"}
    (subject,) = only("ClusterRoleBinding", values)["subjects"]
    assert (subject["name"], subject["namespace"]) == ("mover", "infra")
    assert only("RoleBinding", values)["subjects"] == [subject]
    assert pod_template(values)["spec"]["serviceAccountName"] == only("ServiceAccount", values)["metadata"]["name"] == "mover"


def test_probes_ask_the_real_endpoints() -> None:
    """Also where values of the descheduler's chart point them at its HTTPS port."""
    foreign = {"livenessProbe": {"httpGet": {"path": "/healthz", "port": 10258, "scheme": "HTTPS"}, "periodSeconds": 21}}
    found = container(foreign)
    assert found["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert found["livenessProbe"]["periodSeconds"] == 21
    assert found["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
    assert container({"settings": {"listenPort": 9090}})["ports"][0]["containerPort"] == 9090
