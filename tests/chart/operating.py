"""The program at work on the embedded cluster with no more rights than what the chart grants.

A small cluster in which the default policy has something to do: a pod that keeps restarting and may land elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

from rebalancer.api import typed_scheduler
from rebalancer.control.happenings import Asked, Happening, Noticed
from rebalancer.errors import KubeError
from rebalancer.kube.config import find_access
from rebalancer.kube.discovery import discover
from rebalancer.kube.transport import Transport
from rebalancer.policy import load
from rebalancer.service.life import Stop, run_once, serve
from rebalancer.service.parts import Parts, build
from rebalancer.settings import load_settings
from rebalancer.sim.access import User
from rebalancer.sim.cluster import EmbeddedCluster
from rebalancer.sim.kinds import DEPLOYMENT, kind_of
from tests.chart.rendering import environment, objects, policy_text

ACCOUNT = "system:serviceaccount:kube-system:rebalancer"
TOKEN = "account-token"
LONGEST_SECONDS = 20.0
# Nothing has to be waited for in a cluster where nothing else goes on.
AT_ONCE = {
    "REBALANCER_DEBOUNCE_QUIET_SECONDS": "0",
    "REBALANCER_NODE_SETTLE_SECONDS": "0",
    "REBALANCER_SETTLE_TIMEOUT_SECONDS": "0.2",
    "REBALANCER_LISTEN_ADDRESS": "127.0.0.1",
    "REBALANCER_LISTEN_PORT": "0",
}
RBAC = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
Watched = Callable[["Operation"], bool]


class Operation:
    """One life of the program. heard: what happened, in order. refused: what it was told that it may not do, in words."""

    def __init__(self, parts: Parts) -> None:
        """Listen to a program that has not started yet."""
        self.parts = parts
        self.heard: list[Happening] = []
        self.changed = asyncio.Event()
        parts.tell.listen(self._note)

    def _note(self, happening: Happening) -> None:
        self.heard.append(happening)
        self.changed.set()

    def answers(self) -> list[str]:
        """Return the kinds of answers that evictions got."""
        return [type(each.answer).__name__ for each in self.heard if isinstance(each, Asked)]

    def words(self) -> str:
        """Return everything that an operator could read: what happened and what readiness says."""
        return "\n".join([*map(str, self.heard), *self.parts.cache.unfresh()])


def quiet_cluster() -> EmbeddedCluster:
    """Return a cluster in which nothing moves by itself, so that whatever happens is the program's doing."""
    return EmbeddedCluster(controllers=False)


def install(cluster: EmbeddedCluster, values: dict[str, Any], without: tuple[str, str] | None = None) -> None:
    """Create the chart's account, roles and bindings in a cluster. without: a verb and a resource to leave out."""
    for found in objects(values):
        if found["kind"] not in RBAC:
            continue
        if without is not None and "rules" in found:
            found["rules"] = [rule for each in found["rules"] for rule in _reduced(each, *without)]
        kind = kind_of(found["apiVersion"], found["kind"])
        assert kind is not None
        cluster.registry.create(kind, found["metadata"].get("namespace", ""), found)
    groups = frozenset({"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"})
    cluster.tokens.add(TOKEN, User(ACCOUNT, groups))


def _reduced(rule: dict[str, Any], verb: str, resource: str) -> list[dict[str, Any]]:
    """Return a rule as one per resource, without one verb on one resource (written as people do, with its group)."""
    (group,) = rule["apiGroups"]
    rules = []
    for each in rule["resources"]:
        hit = resource == (f"{each}.{group}" if group else each)
        verbs = [known for known in rule["verbs"] if not (hit and known == verb)]
        rules.append({**rule, "resources": [each], "verbs": verbs})
    return [each for each in rules if each["verbs"]]


def deploy(cluster: EmbeddedCluster, replicas: int, cpu: str) -> None:
    """Create a Deployment whose pods ask for so much CPU each."""
    labels = {"app": "load"}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    cluster.registry.create(DEPLOYMENT, "default", {"metadata": {"name": "load"}, "spec": spec | {"template": template}})


def furnish(cluster: EmbeddedCluster) -> None:
    """Put in two nodes and a workload of two, one of which restarts without end on the first node."""
    for name in ("n1", "n2"):
        cluster.store.put("nodes", _node(name))
    _workload(cluster, "web", (("web-1", "n1", 200), ("web-2", "n2", 0)))


def furnish_single(cluster: EmbeddedCluster) -> None:
    """Put in a Deployment whose only pod restarts without end."""
    spec: dict[str, Any] = {
        "replicas": 1,
        **_spec("one"),
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
    }
    status = {"replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
    cluster.store.put("deployments.apps", _object("apps/v1", "Deployment", "one", spec, status))
    _workload(cluster, "one", (("one-1", "n2", 200),), {"kind": "Deployment", "name": "one", "uid": "deployment-one"})


def _workload(
    cluster: EmbeddedCluster, name: str, pods: Iterable[tuple[str, str, int]], owner: dict[str, Any] | None = None
) -> None:
    """Put in a ReplicaSet with its pods, each with its name, its node and its restarts."""
    pods = tuple(pods)
    count = len(pods)
    status = {"replicas": count, "readyReplicas": count, "availableReplicas": count, "observedGeneration": 1}
    found = _object("apps/v1", "ReplicaSet", name, {"replicas": count, **_spec(name)}, status)
    if owner is not None:
        found["metadata"]["ownerReferences"] = [{"apiVersion": "apps/v1", "controller": True, **owner}]
    cluster.store.put("replicasets.apps", found)
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": f"replicaset-{name}", "controller": True}
    for pod, place, restarts in pods:
        cluster.store.put("pods", _pod(pod, name, place, restarts, reference))


def _spec(name: str) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {"selector": {"matchLabels": labels}, "template": template}


def _object(version: str, kind: str, name: str, spec: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": f"{kind.lower()}-{name}", "generation": 1}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
        "status": {"observedGeneration": 1, **status},
    }


def _node(name: str) -> dict[str, Any]:
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"node-{name}", "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def _pod(name: str, app: str, place: str, restarts: int, owner: dict[str, Any]) -> dict[str, Any]:
    started = "2026-01-01T00:00:00Z"
    state = {
        "name": "c",
        "image": "i",
        "imageID": "",
        "ready": True,
        "restartCount": restarts,
        "state": {"running": {"startedAt": started}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"pod-{name}",
            "labels": {"app": app},
            "creationTimestamp": started,
            "ownerReferences": [owner],
        },
        "spec": {
            "nodeName": place,
            "schedulerName": "default-scheduler",
            "terminationGracePeriodSeconds": 30,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}],
        },
        "status": {
            "phase": "Running",
            "startTime": started,
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [state],
        },
    }


async def prepared(cluster: EmbeddedCluster, values: dict[str, Any], folder: Path, **policy: Any) -> Operation:
    """Build the program as the rendered container would: its environment, its policy, the account's token.

    policy: keys of the whole policy that are set besides the chart's. Raises KubeError where the cluster cannot be asked.
    """
    kubeconfig = str(cluster.kubeconfig(folder / "kubeconfig", TOKEN))
    environ = environment(values) | AT_ONCE | {"KUBECONFIG": kubeconfig}
    values = values | {"deschedulerPolicy": policy} if policy else values
    transport = Transport(find_access(environment=environ))
    try:
        await discover(transport, timeout_seconds=5.0)
    except KubeError:
        await transport.close()
        raise
    loaded = load(policy_text(values), source="policy.yaml")
    return Operation(build(load_settings(environ), loaded.policy, typed_scheduler(None), transport, [], random=Random(1)))


async def run_until(operation: Operation, enough: Watched, *, then: Callable[[int], Any] | None = None) -> None:
    """Run the controller until something has happened, then stop it as a signal would. then: awaited before, with the port."""
    stop = Stop()
    running = asyncio.create_task(serve(operation.parts, stop, policy_file=None), name="program")
    try:
        async with asyncio.timeout(LONGEST_SECONDS):
            while not enough(operation) and not running.done():
                operation.changed.clear()
                await operation.parts.clock.wait_for(operation.changed, 0.1)
        if then is not None:
            await then(port_of(operation))
    finally:
        stop.event.set()
        await running


async def run_one(operation: Operation) -> None:
    """Make the one run of a Job."""
    async with asyncio.timeout(LONGEST_SECONDS):
        await run_once(operation.parts, Stop())


def port_of(operation: Operation) -> int:
    """Return the port that the program listens on."""
    (port,) = [each.values["port"] for each in operation.heard if isinstance(each, Noticed) and each.code == "listening"]
    assert isinstance(port, int)
    return port
