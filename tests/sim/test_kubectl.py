"""A session with kubectl over every verb that people use, each step with its output and its effect."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from rebalancer.sim.cluster import EmbeddedCluster
from rebalancer.sim.kubelet import KubeletTimes
from tests.sim.kubectl import Kubectl, programs

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

QUICK = KubeletTimes(start=(0.05, 0.1), ready=(0.02, 0.05), stop=(0.05, 0.1), run=(0.2, 0.4), node_ready=(0.05, 0.1))
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: c, image: "nginx:1", resources: {requests: {cpu: 100m, memory: 64Mi}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
"""


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    """Three nodes in two zones, quick kubelets, metrics served."""
    async with EmbeddedCluster(nodes=3, zones=2, seed=3, times=QUICK, lag_seconds=(0.01, 0.03), metrics=True) as cluster:
        yield cluster


@pytest.fixture(params=programs(), ids=lambda path: "pinned" if "venv" in path or "/bin/" not in path else Path(path).parent.name)
def kubectl(request: pytest.FixtureRequest, cluster: EmbeddedCluster, tmp_path: Path) -> Kubectl:
    """A kubectl that may do everything in the cluster."""
    return Kubectl(request.param, cluster.kubeconfig(tmp_path / "kubeconfig"), tmp_path)


def deployment(cluster: EmbeddedCluster, name: str = "web") -> dict[str, Any]:
    """Return a Deployment as it is stored."""
    found = cluster.store.get("deployments.apps", "default", name)
    assert found is not None
    return found


async def deployed(kubectl: Kubectl) -> None:
    """Have the Deployment and its budget in place and rolled out."""
    said = await kubectl.ok("apply", "-f", "-", stdin=WEB)
    assert "deployment.apps/web created" in said
    assert "poddisruptionbudget.policy/web created" in said
    said = await kubectl.ok("rollout", "status", "deploy/web", "--timeout=20s")
    assert 'deployment "web" successfully rolled out' in said


async def test_get_shows_tables_and_every_output_format(kubectl: Kubectl, cluster: EmbeddedCluster) -> None:
    """Tables, wide, json, yaml, name, jsonpath, selectors, chunks, labels as columns."""
    await deployed(kubectl)
    table = (await kubectl.ok("get", "nodes")).splitlines()
    assert table[0].split() == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert [line.split()[:2] for line in table[1:]] == [["node-01", "Ready"], ["node-02", "Ready"], ["node-03", "Ready"]]
    wide = await kubectl.ok("get", "pods", "-o", "wide")
    assert wide.splitlines()[0].split()[:7] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE"]
    assert wide.count("1/1") == 3
    listed = json.loads(await kubectl.ok("get", "pods", "-o", "json"))
    assert {item["status"]["phase"] for item in listed["items"]} == {"Running"}
    assert "kind: Deployment" in await kubectl.ok("get", "deploy", "web", "-o", "yaml")
    names = (await kubectl.ok("get", "pods", "-l", "app=web", "-o", "name")).split()
    assert len(names) == 3
    assert all(name.startswith("pod/web-") for name in names)
    node = listed["items"][0]["spec"]["nodeName"]
    path = "{.items[*].spec.nodeName}"
    on_node = await kubectl.ok("get", "pods", "--field-selector", f"spec.nodeName={node}", "-o", f"jsonpath={path}")
    assert set(on_node.split()) == {node}
    chunked = await kubectl.ok("get", "pods", "--chunk-size=1", "-A")
    assert chunked.count("web-") == 3
    assert "APP" in (await kubectl.ok("get", "pods", "-L", "app")).splitlines()[0]
    everything = await kubectl.ok("get", "all")
    for kind in ("pod/", "deployment.apps/", "replicaset.apps/"):
        assert kind in everything
    assert "No resources found" in (await kubectl("get", "jobs")).all


async def test_get_watches(kubectl: Kubectl, cluster: EmbeddedCluster) -> None:
    """``get -w`` shows what changes while it runs."""
    watching = asyncio.create_task(kubectl("get", "pods", "-w", "--request-timeout=3s"))
    await asyncio.sleep(0.7)
    await kubectl.ok("run", "solo", "--image=x")
    assert "pod/solo condition met" in await kubectl.ok("wait", "--for=condition=Ready", "pod/solo", "--timeout=10s")
    said = await watching
    states = [line.split()[1:3] for line in said.out.splitlines() if line.startswith("solo")]
    assert ["0/1", "Pending"] in states
    assert ["1/1", "Running"] in states


async def test_describe_tells_of_nodes_pods_deployments_and_budgets(kubectl: Kubectl, cluster: EmbeddedCluster) -> None:
    """The descriptions hold what people look for in them."""
    await deployed(kubectl)
    node = await kubectl.ok("describe", "node", "node-01")
    for word in ("Non-terminated Pods", "Allocated resources", "KubeletReady", "topology.kubernetes.io/zone=zone-a"):
        assert word in node
    pod = await kubectl.ok("describe", "pod", await a_pod(kubectl))
    for word in (
        "Successfully assigned default/web-",
        "Controlled By:  ReplicaSet/web-",
        "Burstable",
    ):
        assert word in pod
    described = await kubectl.ok("describe", "deploy", "web")
    assert "3 desired | 3 updated | 3 total | 3 available | 0 unavailable" in described
    assert "Scaled up replica set" in described
    budget = await kubectl.ok("describe", "pdb", "web")
    assert [line.split()[-1] for line in budget.splitlines() if line.startswith("    ")] == ["1", "3", "2", "3"]


async def test_objects_are_created_applied_replaced_and_edited(kubectl: Kubectl, cluster: EmbeddedCluster) -> None:
    """``create``, both kinds of ``apply``, ``replace``, ``edit`` with a scripted editor, ``diff``, dry runs."""
    await deployed(kubectl)
    for what in (
        ("configmap", "settings", "--from-literal=a=b"),
        ("secret", "generic", "hidden", "--from-literal=a=b"),
        ("serviceaccount", "robot"),
        ("namespace", "other"),
        ("job", "once", "--image=x"),
        ("cronjob", "often", "--image=x", "--schedule=*/5 * * * *"),
        ("pdb", "second", "--selector=app=x", "--min-available=1"),
        ("priorityclass", "high", "--value=1000"),
        ("deployment", "made", "--image=nginx", "--replicas=2"),
        ("role", "reader", "--verb=get,list", "--resource=pods"),
        ("rolebinding", "robot-reads", "--role=reader", "--serviceaccount=default:robot"),
        ("service", "clusterip", "svc", "--tcp=80:80"),
    ):
        assert "created" in await kubectl.ok("create", *what), what
    held = cluster.store.get("configmaps", "default", "settings")
    assert held is not None
    assert held["data"] == {"a": "b"}
    assert deployment(cluster, "made")["spec"]["replicas"] == 2
    assert "unchanged" in await kubectl.ok("apply", "-f", "-", stdin=WEB)
    more = WEB.replace("replicas: 3", "replicas: 4")
    assert (await kubectl("diff", "-f", "-", stdin=more)).code == 1
    assert "configured (server dry run)" in await kubectl.ok("apply", "--dry-run=server", "-f", "-", stdin=more)
    assert deployment(cluster)["spec"]["replicas"] == 3
    assert "deployment.apps/web configured" in await kubectl.ok("apply", "-f", "-", stdin=more)
    assert deployment(cluster)["spec"]["replicas"] == 4
    settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: c}\n"
    assert "replaced" in await kubectl.ok("replace", "-f", "-", stdin=settings)
    held = cluster.store.get("configmaps", "default", "settings")
    assert held is not None
    assert held["data"] == {"a": "c"}
    await kubectl.ok("rollout", "status", "deploy/web", "--timeout=20s")
    edited = await kubectl.ok("edit", "deploy", "web", KUBE_EDITOR="sed -i s/replicas:.4/replicas:\\ 2/")
    assert "deployment.apps/web edited" in edited
    assert deployment(cluster)["spec"]["replicas"] == 2
    bad = WEB.replace("image:", "imagine:")
    assert 'unknown field "spec.template.spec.containers[0].imagine"' in await kubectl.fails("apply", "-f", "-", stdin=bad)


async def test_server_side_apply_knows_who_set_what(kubectl: Kubectl, cluster: EmbeddedCluster) -> None:
    """A field set by another manager is a conflict; force takes it over; a field left out goes."""
    assert "serverside-applied" in await kubectl.ok("apply", "--server-side", "-f", "-", stdin=WEB)
    await kubectl.ok("scale", "deploy/web", "--replicas=5")
    said = await kubectl.fails("apply", "--server-side", "-f", "-", stdin=WEB)
    assert "conflict" in said
    assert ".spec.replicas" in said
    assert deployment(cluster)["spec"]["replicas"] == 5
    await kubectl.ok("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=WEB)
    assert deployment(cluster)["spec"]["replicas"] == 3
    without = WEB.replace(", labels: {app: web}}\nspec:\n  replicas", "}\nspec:\n  replicas")
    await kubectl.ok("apply", "--server-side", "-f", "-", stdin=without)
    assert "labels" not in deployment(cluster)["metadata"]
    managers = [entry["manager"] for entry in deployment(cluster)["metadata"]["managedFields"]]
    assert "kubectl" in managers


async def test_patches_labels_annotations_and_taints(kubectl: Kubectl, cluster: EmbeddedCluster) -> None:
    """All three patch types, ``label``, ``annotate``, ``taint``, ``set image``."""
    await deployed(kubectl)
    await kubectl.ok("patch", "deploy", "web", "--type=json", "-p", '[{"op":"replace","path":"/spec/replicas","value":4}]')
    assert deployment(cluster)["spec"]["replicas"] == 4
    await kubectl.ok("patch", "deploy", "web", "--type=merge", "-p", '{"metadata":{"labels":{"q":"r"}}}')
    assert deployment(cluster)["metadata"]["labels"] == {"app": "web", "q": "r"}
    patch = '{"spec":{"template":{"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"1"}]}]}}}}'
    await kubectl.ok("patch", "deploy", "web", "-p", patch)
    (container,) = deployment(cluster)["spec"]["template"]["spec"]["containers"]
    assert (container["image"], container["env"]) == ("nginx:1", [{"name": "A", "value": "1"}])
    await kubectl.ok("set", "image", "deploy/web", "c=nginx:2")
    assert deployment(cluster)["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:2"
    assert "node/node-01 labeled" in await kubectl.ok("label", "node", "node-01", "pool=a")
    assert "node/node-01 annotated" in await kubectl.ok("annotate", "node", "node-01", "why=because")
    assert "node/node-01 tainted" in await kubectl.ok("taint", "node", "node-01", "k=v:NoSchedule")
    node = cluster.store.get("nodes", "", "node-01")
    assert node is not None
    assert node["metadata"]["labels"]["pool"] == "a"
    assert node["metadata"]["annotations"]["why"] == "because"
    assert node["spec"]["taints"] == [{"key": "k", "value": "v", "effect": "NoSchedule"}]
    assert "untainted" in await kubectl.ok("taint", "node", "node-01", "k-")
    assert "Forbidden" in await kubectl.fails("patch", "pod", await a_pod(kubectl), "-p", '{"spec":{"nodeName":"x"}}')


async def a_pod(kubectl: Kubectl) -> str:
    """Return the name of a pod of the Deployment."""
    return (await kubectl.ok("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[0].metadata.name}")).strip()


async def test_scale_and_rollouts(kubectl: Kubectl, cluster: EmbeddedCluster) -> None:
    """``scale``, ``rollout restart``, ``status``, ``history``, ``undo``."""
    await deployed(kubectl)
    assert "scaled" in await kubectl.ok("scale", "deploy/web", "--replicas=4")
    await kubectl.ok("rollout", "status", "deploy/web", "--timeout=20s")
    before = deployment(cluster)["spec"]["template"]
    assert "restarted" in await kubectl.ok("rollout", "restart", "deploy/web")
    await kubectl.ok("rollout", "status", "deploy/web", "--timeout=30s")
    assert deployment(cluster)["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
    assert "2         <none>" in await kubectl.ok("rollout", "history", "deploy/web")
    assert "rolled back" in await kubectl.ok("rollout", "undo", "deploy/web")
    await kubectl.ok("rollout", "status", "deploy/web", "--timeout=30s")
    assert deployment(cluster)["spec"]["template"] == before
    status = deployment(cluster)["status"]
    assert (status["replicas"], status["updatedReplicas"], status["availableReplicas"]) == (4, 4, 4)


async def test_drain_honours_the_budget_and_waits(kubectl: Kubectl, cluster: EmbeddedCluster) -> None:
    """``cordon``, ``uncordon`` and ``drain``: one pod at a time, and the node is empty in the end."""
    await deployed(kubectl)
    assert "cordoned" in await kubectl.ok("cordon", "node-02")
    assert "node-02   Ready,SchedulingDisabled" in await kubectl.ok("get", "nodes")
    assert "uncordoned" in await kubectl.ok("uncordon", "node-02")
    for node in ("node-02", "node-03"):
        await kubectl.ok("cordon", node)
    await kubectl.ok("delete", "pods", "-l", "app=web")
    await kubectl.ok("rollout", "status", "deploy/web", "--timeout=20s")
    for node in ("node-02", "node-03"):
        await kubectl.ok("uncordon", node)
    drained = await kubectl("drain", "node-01", "--ignore-daemonsets", "--timeout=60s", seconds=60)
    assert drained.code == 0, drained.all
    assert "Cannot evict pod as it would violate the pod's disruption budget." in drained.all
    assert "node/node-01 drained" in drained.out
    pods = [pod for pod in cluster.store.objects("pods") if pod["spec"].get("nodeName") == "node-01"]
    assert pods == []


async def test_deletes_with_grace_force_and_cascade(kubectl: Kubectl, cluster: EmbeddedCluster) -> None:
    """``delete`` waits, forces, and deletes or spares what is owned."""
    await deployed(kubectl)
    name = await a_pod(kubectl)
    assert f'pod "{name}" deleted' in await kubectl.ok("delete", "pod", name)
    assert cluster.store.get("pods", "default", name) is None
    name = await a_pod(kubectl)
    assert "force deleted" in await kubectl.ok("delete", "pod", name, "--force", "--grace-period=0")
    await kubectl.ok("delete", "deploy", "web", "--cascade=orphan")
    (orphan,) = [one for one in cluster.store.objects("replicasets.apps") if one["metadata"]["name"].startswith("web")]
    assert "ownerReferences" not in orphan["metadata"]
    await kubectl.ok("delete", "rs", orphan["metadata"]["name"], "--cascade=foreground")
    assert list(cluster.store.objects("pods")) == []
    await kubectl.ok("create", "ns", "gone")
    await kubectl.ok("create", "configmap", "c", "-n", "gone")
    await kubectl.ok("delete", "ns", "gone")
    assert cluster.store.get("configmaps", "gone", "c") is None


async def test_wait_events_and_top(kubectl: Kubectl, cluster: EmbeddedCluster) -> None:
    """``wait --for``, ``events``, ``top``, ``logs``."""
    await deployed(kubectl)
    assert "condition met" in await kubectl.ok("wait", "--for=condition=Available", "deploy/web", "--timeout=10s")
    assert "condition met" in await kubectl.ok("wait", "--for=jsonpath={.status.readyReplicas}=3", "deploy/web", "--timeout=9s")
    await kubectl.ok("create", "job", "once", "--image=x")
    assert "condition met" in await kubectl.ok("wait", "--for=condition=complete", "job/once", "--timeout=10s")
    events = await kubectl.ok("events")
    for reason in ("Scheduled", "SuccessfulCreate", "ScalingReplicaSet", "Completed"):
        assert reason in events
    assert "SuccessfulCreate" in await kubectl.ok("get", "events", "--field-selector", "reason=SuccessfulCreate")
    top = (await kubectl.ok("top", "nodes")).splitlines()
    assert len(top) == 4
    assert "60m" in await kubectl.ok("top", "pods")


async def test_permissions_and_discovery(kubectl: Kubectl, cluster: EmbeddedCluster, tmp_path: Path) -> None:
    """``auth can-i``, ``auth whoami``, ``create token``, ``api-resources``, ``explain``; a token has its rights only."""
    assert (await kubectl.ok("auth", "can-i", "create", "pods")).strip() == "yes"
    assert "admin" in await kubectl.ok("auth", "whoami")
    await kubectl.ok("create", "serviceaccount", "robot")
    await kubectl.ok("create", "role", "reader", "--verb=get,list", "--resource=pods")
    await kubectl.ok("create", "rolebinding", "robot-reads", "--role=reader", "--serviceaccount=default:robot")
    robot = "--as=system:serviceaccount:default:robot"
    assert (await kubectl.ok("auth", "can-i", "list", "pods", robot)).strip() == "yes"
    assert (await kubectl.fails("auth", "can-i", "delete", "pods", robot)).strip().startswith("no")
    token = (await kubectl.ok("create", "token", "robot")).strip()
    as_robot = Kubectl(programs()[0], cluster.kubeconfig(tmp_path / "robot", token), tmp_path)
    assert "No resources found" in (await as_robot("get", "pods")).all
    said = await as_robot.fails("get", "nodes")
    assert 'User "system:serviceaccount:default:robot" cannot list resource "nodes"' in said
    assert ("list", "", "nodes") in cluster.access.asked_by("system:serviceaccount:default:robot")
    resources = await kubectl.ok("api-resources")
    for word in ("poddisruptionbudgets", "deployments", "leases", "priorityclasses"):
        assert word in resources
    explained = await kubectl.ok("explain", "pod.spec.tolerations")
    assert "tolerationSeconds" in explained
    assert "FIELDS" in await kubectl.ok("explain", "deployment.spec.strategy", "--recursive")
    assert "Server Version: v1.36" in await kubectl.ok("version")
