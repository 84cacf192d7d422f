"""Who may do what: tokens, RBAC from Role objects, impersonation, and the record of what was asked."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from rebalancer.sim.access import Ask, User
from rebalancer.sim.answering import OpenWatch
from rebalancer.sim.cluster import EmbeddedCluster
from rebalancer.sim.kinds import SERVICE_ACCOUNT, kind_named
from rebalancer.sim.requests import Request

RBAC = "rbac.authorization.k8s.io"
ROBOT = "system:serviceaccount:default:robot"


@pytest.fixture
def quiet() -> EmbeddedCluster:
    """The rules alone, with a ServiceAccount ``robot``."""
    cluster = EmbeddedCluster(seed=1, controllers=False, sockets=False)
    cluster.registry.create(SERVICE_ACCOUNT, "default", {"metadata": {"name": "robot"}})
    return cluster


def role(cluster: EmbeddedCluster, rules: list[dict[str, Any]], *, everywhere: bool = False) -> None:
    """Give the robot rules, in its namespace or everywhere."""
    prefix, namespace = ("cluster", "") if everywhere else ("", "default")
    kind = "ClusterRole" if everywhere else "Role"
    body = {"metadata": {"name": "r"}, "rules": rules}
    cluster.registry.create(kind_named(f"{prefix}roles", RBAC), namespace, body)
    binding = {
        "metadata": {"name": "b"},
        "roleRef": {"kind": kind, "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}],
    }
    cluster.registry.create(kind_named(f"{prefix}rolebindings", RBAC), namespace, binding)


def send(cluster: EmbeddedCluster, method: str, path: str, **more: Any) -> tuple[int, Any]:
    """Send a request without sockets; return status and body."""
    answer = cluster.front.answer(Request(method, path, **more))
    assert not isinstance(answer, OpenWatch)
    return answer.status, orjson.loads(answer.body)


def token_of(cluster: EmbeddedCluster) -> str:
    """Have a token made for the robot."""
    path = "/api/v1/namespaces/default/serviceaccounts/robot/token"
    status, body = send(cluster, "POST", path, authorization="Bearer admin-token", body=b'{"spec":{"expirationSeconds":600}}')
    assert status == 201
    return str(body["status"]["token"])


@pytest.mark.parametrize(
    ("rule", "ask", "allowed"),
    [
        ({"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}, Ask("list", "", "pods", "default"), True),
        ({"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}, Ask("watch", "", "pods", "default"), False),
        ({"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}, Ask("list", "", "pods", "kube-system"), False),
        ({"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}, Ask("list", "", "pods"), False),
        ({"verbs": ["create"], "apiGroups": [""], "resources": ["pods"]}, Ask("create", "", "pods/eviction", "default"), False),
        ({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, Ask("create", "", "pods/eviction", "default"), True),
        ({"verbs": ["*"], "apiGroups": [""], "resources": ["*/eviction"]}, Ask("create", "", "pods/eviction", "default"), True),
        (
            {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]},
            Ask("get", "", "pods", "default", "b"),
            False,
        ),
        (
            {"verbs": ["get"], "apiGroups": ["apps"], "resources": ["deployments"]},
            Ask("get", "", "deployments", "default"),
            False,
        ),
    ],
    ids=[
        "the verb",
        "another verb",
        "another namespace",
        "every namespace",
        "a subresource is not its parent",
        "everything",
        "any resource's subresource",
        "another name",
        "another group",
    ],
)
def test_a_rule_grants_what_it_names_and_no_more(quiet: EmbeddedCluster, rule: dict[str, Any], ask: Ask, allowed: bool) -> None:
    """Verb, group, resource, subresource, name and namespace must all match."""
    role(quiet, [rule])
    assert quiet.access.allows(User(ROBOT), ask) is allowed


def test_a_cluster_role_binding_holds_everywhere(quiet: EmbeddedCluster) -> None:
    """What is bound cluster-wide is allowed in every namespace and for all of them."""
    role(quiet, [{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}], everywhere=True)
    for namespace in ("", "default", "kube-system"):
        assert quiet.access.allows(User(ROBOT), Ask("list", "", "pods", namespace))


def test_a_token_has_the_rights_of_its_account_and_is_recorded(quiet: EmbeddedCluster) -> None:
    """It may what the Role says, is refused in the server's words, and every question of it is kept."""
    role(quiet, [{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}])
    header = f"Bearer {token_of(quiet)}"
    assert send(quiet, "GET", "/api/v1/namespaces/default/pods", authorization=header)[0] == 200
    status, body = send(quiet, "GET", "/api/v1/nodes", authorization=header)
    assert status == 403
    assert body["message"] == (
        f'nodes is forbidden: User "{ROBOT}" cannot list resource "nodes" in API group "" at the cluster scope'
    )
    assert quiet.access.asked_by(ROBOT) == {("list", "", "pods"), ("list", "", "nodes")}


def test_an_expired_or_revoked_token_is_nobody() -> None:
    """ServiceAccount tokens end with their time; a revoked token at once."""
    from datetime import UTC, datetime, timedelta

    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    cluster = EmbeddedCluster(seed=1, controllers=False, sockets=False, clock=lambda: now[0])
    cluster.registry.create(SERVICE_ACCOUNT, "default", {"metadata": {"name": "robot"}})
    header = f"Bearer {token_of(cluster)}"
    assert send(cluster, "GET", "/version", authorization=header)[0] == 200
    now[0] += timedelta(seconds=599)
    assert send(cluster, "GET", "/version", authorization=header)[0] == 200
    now[0] += timedelta(seconds=1)
    assert send(cluster, "GET", "/version", authorization=header)[0] == 401
    cluster.tokens.revoke("weak-token")
    assert send(cluster, "GET", "/version", authorization="Bearer weak-token")[0] == 401


def test_impersonation_needs_its_own_right(quiet: EmbeddedCluster) -> None:
    """An administrator may act as the robot; the robot may not act as anybody."""
    admin = {"authorization": "Bearer admin-token", "impersonated_user": ROBOT}
    assert send(quiet, "GET", "/api/v1/nodes", **admin)[0] == 403
    robot = {"authorization": f"Bearer {token_of(quiet)}", "impersonated_user": "admin"}
    status, body = send(quiet, "GET", "/api/v1/nodes", **robot)
    assert status == 403
    assert "cannot impersonate" in body["message"]
