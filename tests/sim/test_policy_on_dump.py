"""A recorded cluster is loaded, a policy is run on it by the controller, and kubectl shows how it came out."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from rebalancer.sim.cluster import EmbeddedCluster
from rebalancer.sim.kubelet import KubeletTimes
from tests.service.process import controller
from tests.sim.kubectl import Kubectl, programs

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CASE = Path(__file__).parent.parent / "conformance" / "upstream" / "RemoveDuplicates-1115.json.gz"
QUICK = KubeletTimes(start=(0.05, 0.1), ready=(0.02, 0.05), stop=(0.05, 0.1))


async def owned_pods(kubectl: Kubectl) -> list[dict[str, Any]]:
    """Return the pods with an owner that are not on their way out, as kubectl shows them."""
    items = json.loads(await kubectl.ok("get", "pods", "-A", "-o", "json"))["items"]
    return [pod for pod in items if pod["metadata"].get("ownerReferences") and "deletionTimestamp" not in pod["metadata"]]


def owner(pod: dict[str, Any]) -> str:
    """Return the uid of a pod's owner."""
    return str(pod["metadata"]["ownerReferences"][0]["uid"])


def pairs(pods: list[dict[str, Any]]) -> int:
    """Count the pairs of pods that have both owner and node in common."""
    places = Counter((owner(pod), pod["spec"].get("nodeName")) for pod in pods)
    return sum(count * (count - 1) // 2 for count in places.values())


async def settled_pods(kubectl: Kubectl) -> list[dict[str, Any]]:
    """Return the owned pods once none waits to be started."""
    async with asyncio.timeout(30):
        while True:
            pods = await owned_pods(kubectl)
            if all(pod["status"]["phase"] != "Pending" for pod in pods):
                return pods
            await asyncio.sleep(0.2)


async def test_duplicates_of_a_recorded_cluster_are_spread(tmp_path: Path) -> None:
    """After one run fewer pods share a node with another of their owner, none is missing, and all are placed."""
    with gzip.open(CASE) as file:
        case = json.load(file)
    async with EmbeddedCluster(dump=case["objects"], times=QUICK, lag_seconds=(0.01, 0.05), seed=1) as cluster:
        kubeconfig = cluster.kubeconfig(tmp_path / "kubeconfig")
        kubectl = Kubectl(programs()[0], kubeconfig, tmp_path)
        before = await owned_pods(kubectl)
        async with controller(kubeconfig, tmp_path, command="once", policy=yaml.safe_dump(case["policy"])) as running:
            assert await running.end(60.0) == 0, running.logged[-20:]
            evicted = running.events("evicted")
        assert evicted
        after = await settled_pods(kubectl)
        assert pairs(after) < pairs(before)
        assert Counter(map(owner, after)) == Counter(map(owner, before))
        assert all(pod["spec"].get("nodeName") for pod in after)
        print(f"{len(evicted)} evictions, pairs {pairs(before)} -> {pairs(after)}")
