"""A dump of a real cluster: loaded as it was, and alive."""

from __future__ import annotations

import asyncio
import copy
import gzip
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rebalancer.sim.cluster import EmbeddedCluster
from rebalancer.sim.eviction import evict
from rebalancer.sim.kinds import DAEMON_SET, DEPLOYMENT, STATEFUL_SET
from rebalancer.sim.kubelet import KubeletTimes
from tests.sim.kubectl import Kubectl, programs

RECORDED = sorted((Path(__file__).parent.parent / "conformance" / "upstream").glob("*.json.gz"))
BEGIN = datetime(2026, 12, 1, tzinfo=UTC)


def recorded(path: Path) -> dict[str, Any]:
    """Return a recorded case."""
    with gzip.open(path) as file:
        loaded: dict[str, Any] = json.load(file)
    return loaded


def owner_of(pod: dict[str, Any]) -> tuple[str, str] | None:
    """Return kind and name of a pod's controller."""
    owners = pod["metadata"].get("ownerReferences", ())
    return next(((owner["kind"], owner["name"]) for owner in owners if owner.get("controller")), None)


def a_case_with_a_replica_set() -> list[dict[str, Any]]:
    """Return the objects of a recorded cluster in which some ReplicaSet has ready pods."""
    for path in RECORDED:
        objects = recorded(path)["objects"]
        running = [obj for obj in objects if obj["kind"] == "Pod" and (owner_of(obj) or ("", ""))[0] == "ReplicaSet"]
        if len(running) >= 3:
            return list(objects)
    raise AssertionError("no recorded case has a ReplicaSet")


@pytest.mark.looptime
async def test_a_dump_keeps_uids_versions_and_owners_and_stands_still() -> None:
    """Nothing is moved, made or deleted by loading; missing owners are there with the uid that pods refer to."""
    objects = a_case_with_a_replica_set()
    clock = lambda: BEGIN + timedelta(seconds=asyncio.get_running_loop().time())  # noqa: E731
    async with EmbeddedCluster(dump=objects, sockets=False, clock=clock) as cluster:
        await asyncio.sleep(20)
        for obj in objects:
            if obj["kind"] != "Pod":
                continue
            metadata = obj["metadata"]
            held = cluster.store.get("pods", metadata["namespace"], metadata["name"])
            if metadata.get("deletionTimestamp") or obj.get("status", {}).get("phase") == "Pending":
                continue
            assert held is not None, metadata["name"]
            assert held["metadata"]["uid"] == metadata["uid"]
            for owner in metadata.get("ownerReferences", ()):
                if owner["kind"] == "ReplicaSet":
                    made = cluster.store.get("replicasets.apps", metadata["namespace"], owner["name"])
                    assert made is not None
                    assert made["metadata"]["uid"] == owner["uid"]


def a_workload(kind: str, **spec: Any) -> dict[str, Any]:
    """Return a StatefulSet or DaemonSet of one container, its pods labelled with its name."""
    labels = {"app": kind.lower()}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "main"}]}}
    metadata = {"name": kind.lower(), "namespace": "default"}
    return {"metadata": metadata, "spec": {"selector": {"matchLabels": labels}, "template": template, **spec}}


@pytest.mark.parametrize("revision", ["5d8f7c9b", None], ids=["a revision of the real cluster", "no revision at all"])
@pytest.mark.looptime
async def test_a_dump_without_revisions_rolls_nothing(revision: str | None) -> None:
    """kubectl's lists of StatefulSets, DaemonSets and pods come without ControllerRevisions; all pods stay all the same."""
    clock = lambda: BEGIN + timedelta(seconds=asyncio.get_running_loop().time())  # noqa: E731
    async with EmbeddedCluster(nodes=3, sockets=False, clock=clock) as cluster:
        cluster.registry.create(STATEFUL_SET, "default", a_workload("StatefulSet", replicas=2, serviceName="statefulset"))
        cluster.registry.create(DAEMON_SET, "default", a_workload("DaemonSet"))
        await asyncio.sleep(20)
        kinds = ("nodes", "pods", "statefulsets.apps", "daemonsets.apps")
        objects = copy.deepcopy([obj for kind in kinds for obj in cluster.store.objects(kind)])
    pods = [obj for obj in objects if obj["kind"] == "Pod"]
    assert len(pods) == 5
    for pod in pods:
        del pod["metadata"]["labels"]["controller-revision-hash"]
        if revision is not None:
            prefix = "statefulset-" if pod["metadata"]["name"].startswith("statefulset") else ""
            pod["metadata"]["labels"]["controller-revision-hash"] = f"{prefix}{revision}"
    async with EmbeddedCluster(dump=objects, sockets=False, clock=clock) as cluster:
        await asyncio.sleep(60)
        held = {pod["metadata"]["uid"] for pod in cluster.store.objects("pods")}
    assert held == {pod["metadata"]["uid"] for pod in pods}


@pytest.mark.looptime
async def test_a_dump_written_by_hand_gets_the_servers_defaults() -> None:
    """Fields that every server fills in may be missing: the workload still runs, and so does whatever comes later."""
    clock = lambda: BEGIN + timedelta(seconds=asyncio.get_running_loop().time())  # noqa: E731
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", **a_workload("Deployment", replicas=2)}
    async with EmbeddedCluster(nodes=2, dump=[deployment], sockets=False, clock=clock) as cluster:
        cluster.registry.create(DEPLOYMENT, "default", {**a_workload("Deployment", replicas=1), "metadata": {"name": "later"}})
        await asyncio.sleep(20)
        running = [pod for pod in cluster.store.objects("pods") if pod["status"]["phase"] == "Running"]
    assert len(running) == 3
    assert "strategy" not in deployment["spec"], "the caller's objects stay as they are"


@pytest.mark.looptime
async def test_an_evicted_pod_of_a_dump_comes_back() -> None:
    """Its owner, made from its pods, replaces it by one of the same shape."""
    objects = a_case_with_a_replica_set()
    clock = lambda: BEGIN + timedelta(seconds=asyncio.get_running_loop().time())  # noqa: E731
    async with EmbeddedCluster(dump=objects, sockets=False, clock=clock) as cluster:
        pod = next(
            pod
            for pod in cluster.store.objects("pods")
            if (owner_of(pod) or ("", ""))[0] == "ReplicaSet" and pod["status"].get("phase") == "Running"
        )
        metadata, owner = pod["metadata"], owner_of(pod)
        before = Counter(owner_of(one) for one in cluster.store.objects("pods"))
        known = {one["metadata"]["uid"] for one in cluster.store.objects("pods")}
        evict(cluster.registry, metadata["namespace"], metadata["name"], {"metadata": {"name": metadata["name"]}})
        await asyncio.sleep(60)
        assert cluster.store.get("pods", metadata["namespace"], metadata["name"]) is None
        assert Counter(owner_of(one) for one in cluster.store.objects("pods"))[owner] == before[owner]
        (new,) = [one for one in cluster.store.objects("pods") if one["metadata"]["uid"] not in known and owner_of(one) == owner]
        asked = [container["resources"] for container in pod["spec"]["containers"]]
        assert [container["resources"] for container in new["spec"]["containers"]] == asked
        labels = {k: v for k, v in metadata.get("labels", {}).items() if k in new["metadata"]["labels"]}
        assert new["metadata"]["labels"] == labels


@pytest.mark.parametrize("path", RECORDED[::9], ids=lambda path: path.name.removesuffix(".json.gz"))
def test_every_kind_of_recorded_cluster_loads(path: Path) -> None:
    """All nodes and pods of a recorded cluster are there afterwards."""
    objects = recorded(path)["objects"]
    cluster = EmbeddedCluster(dump=objects, sockets=False, controllers=False)
    kinds = Counter(obj["kind"] for obj in objects)
    assert cluster.store.count("pods") == kinds["Pod"]
    assert cluster.store.count("nodes") == kinds["Node"]


@pytest.mark.e2e
async def test_kubectl_shows_a_dump_and_a_node_that_joins_like_another(tmp_path: Path) -> None:
    """The dump's nodes and pods are listed; a node in another's likeness has its room and labels."""
    objects = a_case_with_a_replica_set()
    times = KubeletTimes(node_ready=(0.05, 0.1))
    async with EmbeddedCluster(dump=objects, times=times) as cluster:
        kubectl = Kubectl(programs()[0], cluster.kubeconfig(tmp_path / "kubeconfig"), tmp_path)
        nodes = [obj["metadata"]["name"] for obj in objects if obj["kind"] == "Node"]
        listed = (await kubectl.ok("get", "nodes", "-o", "name")).split()
        assert sorted(listed) == sorted(f"node/{name}" for name in nodes)
        cluster.add_node("twin", like=nodes[0])
        await kubectl.ok("wait", "--for=condition=Ready", "node/twin", "--timeout=10s")
        paths = "jsonpath={.status.allocatable}"
        assert await kubectl.ok("get", "node", "twin", "-o", paths) == await kubectl.ok("get", "node", nodes[0], "-o", paths)
