"""Another Kubernetes client than ours works against the embedded cluster: the synchronous ``kubernetes`` package."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest
from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException

from rebalancer.sim.cluster import EmbeddedCluster
from rebalancer.sim.kubelet import KubeletTimes

pytestmark = pytest.mark.e2e

T = TypeVar("T")
QUICK = KubeletTimes(start=(0.05, 0.1), ready=(0.02, 0.05), stop=(0.05, 0.1))


async def run(call: Callable[..., T], *arguments: Any, **named: Any) -> T:
    """Call the synchronous client beside the event loop on which the cluster runs."""
    return await asyncio.to_thread(call, *arguments, **named)


async def test_it_lists_watches_evicts_and_holds_a_lease(tmp_path: Path) -> None:
    """A Deployment is created, listed in pages, watched while a pod is evicted under a budget; a Lease is fought over."""
    async with EmbeddedCluster(nodes=2, seed=1, times=QUICK, lag_seconds=(0.01, 0.02)) as cluster:
        path = cluster.kubeconfig(tmp_path / "kubeconfig")
        api = await run(config.new_client_from_config, str(path))
        core, apps, policy = client.CoreV1Api(api), client.AppsV1Api(api), client.PolicyV1Api(api)
        await run(apps.create_namespaced_deployment, "default", deployment("web", 3))
        await run(policy.create_namespaced_pod_disruption_budget, "default", budget("web"))
        pods = await ready_pods(core, 3)

        page = await run(core.list_namespaced_pod, "default", limit=2)
        rest = await run(core.list_namespaced_pod, "default", limit=2, _continue=page.metadata._continue)
        assert len(page.items) + len(rest.items) == 3
        assert page.metadata.remaining_item_count == 1

        name = pods[0].metadata.name
        seen = asyncio.create_task(run(until_deleted, core, name, page.metadata.resource_version))
        await asyncio.sleep(0.2)
        await run(core.create_namespaced_pod_eviction, name, "default", eviction(name))
        other = pods[1].metadata.name
        with pytest.raises(ApiException) as caught:
            await run(core.create_namespaced_pod_eviction, other, "default", eviction(other))
        assert caught.value.status == 429
        assert "disruption budget" in caught.value.body
        assert await seen == ["MODIFIED", "DELETED"]
        assert name not in [pod.metadata.name for pod in await ready_pods(core, 3)]
        await hold_a_lease(client.CoordinationV1Api(api))
        await run(api.close)


async def ready_pods(core: client.CoreV1Api, count: int) -> list[Any]:
    """Return the pods once so many are ready."""
    async with asyncio.timeout(20):
        while True:
            items = (await run(core.list_namespaced_pod, "default", label_selector="app=web")).items
            states = [c.status for pod in items for c in pod.status.conditions or () if c.type == "Ready"]
            if len(items) == count and states == ["True"] * count:
                return list(items)
            await asyncio.sleep(0.1)


def until_deleted(core: client.CoreV1Api, name: str, version: str) -> list[str]:
    """Return the first and the last kind of event about a pod."""
    kinds = []
    for event in watch.Watch().stream(core.list_namespaced_pod, "default", resource_version=version, timeout_seconds=15):
        if event["object"].metadata.name == name:
            kinds.append(event["type"])
            if event["type"] == "DELETED":
                break
    return [kinds[0], kinds[-1]]


async def hold_a_lease(api: client.CoordinationV1Api) -> None:
    """Create a Lease, renew it, and lose a race for it."""
    now = datetime.now(UTC)
    spec = client.V1LeaseSpec(holder_identity="a", lease_duration_seconds=15, acquire_time=now, renew_time=now)
    lease = client.V1Lease(metadata=client.V1ObjectMeta(name="l"), spec=spec)
    held = await run(api.create_namespaced_lease, "default", lease)
    held.spec.renew_time = datetime.now(UTC)
    renewed = await run(api.replace_namespaced_lease, "l", "default", held)
    assert renewed.metadata.resource_version != held.metadata.resource_version
    with pytest.raises(ApiException) as caught:
        await run(api.replace_namespaced_lease, "l", "default", held)
    assert caught.value.status == 409


def deployment(name: str, replicas: int) -> client.V1Deployment:
    """A small Deployment."""
    labels = {"app": name}
    pod = client.V1PodSpec(containers=[client.V1Container(name="c", image="i")], termination_grace_period_seconds=1)
    template = client.V1PodTemplateSpec(metadata=client.V1ObjectMeta(labels=labels), spec=pod)
    spec = client.V1DeploymentSpec(replicas=replicas, selector=client.V1LabelSelector(match_labels=labels), template=template)
    return client.V1Deployment(metadata=client.V1ObjectMeta(name=name), spec=spec)


def budget(name: str) -> client.V1PodDisruptionBudget:
    """A budget that lets one pod go at a time."""
    selector = client.V1LabelSelector(match_labels={"app": name})
    spec = client.V1PodDisruptionBudgetSpec(max_unavailable=1, selector=selector)
    return client.V1PodDisruptionBudget(metadata=client.V1ObjectMeta(name=name), spec=spec)


def eviction(name: str) -> client.V1Eviction:
    """An eviction of a pod."""
    return client.V1Eviction(metadata=client.V1ObjectMeta(name=name))
