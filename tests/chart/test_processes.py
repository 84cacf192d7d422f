"""What the chart renders, run as a local process against the embedded cluster: arguments, environment, probes, policy, stop."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from rebalancer.sim.cluster import EmbeddedCluster
from rebalancer.sim.nodes import NodeShape
from tests.chart.operating import AT_ONCE, LONGEST_SECONDS, TOKEN, deploy, furnish, install, quiet_cluster
from tests.chart.rendering import container, environment, policy_text
from tests.chart.test_monitoring import WATCHED

pytestmark = pytest.mark.e2e


class Mount:
    """A ConfigMap as a kubelet mounts it: the directory's files are links through ``..data``, which one rename replaces."""

    def __init__(self, folder: Path) -> None:
        """Mount nothing yet."""
        self.file = folder / "policy.yaml"
        self._folder = folder
        self._number = 0
        folder.mkdir()

    def put(self, text: str) -> None:
        """Let the ConfigMap hold this text, as the kubelet does it."""
        self._number += 1
        made = self._folder / f"..{self._number}"
        made.mkdir()
        (made / "policy.yaml").write_text(text)
        link = self._folder / "..data_tmp"
        link.symlink_to(made.name)
        link.rename(self._folder / "..data")
        if not self.file.is_symlink():
            self.file.symlink_to("..data/policy.yaml")


class Container:
    """The program's container as a process. lines: what it has logged so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        """Read what a process logs."""
        self.process = process
        self.lines: list[dict[str, Any]] = []
        self.other: list[str] = []
        self._changed = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            try:
                self.lines.append(json.loads(line))
            except ValueError:
                self.other.append(line.decode())
            self._changed.set()
        self._changed.set()

    async def logged(self, **values: Any) -> dict[str, Any]:
        """Wait for a line with these values, and return it."""
        async with asyncio.timeout(LONGEST_SECONDS):
            while True:
                for line in self.lines:
                    if values.items() <= line.items():
                        return line
                assert not self._reading.done(), f"it ended without {values}: {self.lines} {self.other}"
                self._changed.clear()
                await self._changed.wait()

    async def ended(self) -> int:
        """Wait for its end and return the exit code."""
        async with asyncio.timeout(LONGEST_SECONDS):
            code = await self.process.wait()
            await self._reading
        return code


@asynccontextmanager
async def started(cluster: EmbeddedCluster, values: dict[str, Any], folder: Path) -> AsyncIterator[tuple[Container, Mount]]:
    """Start the rendered container as a process: its arguments, its environment, its mount."""
    mount = Mount(folder / "policy")
    mount.put(policy_text(values))
    found = container(values)
    assert "command" not in found
    environ = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ} | environment(values)
    assert environ["REBALANCER_POLICY_FILE"] == f"{found['volumeMounts'][0]['mountPath']}/{mount.file.name}"
    environ |= AT_ONCE | {
        "REBALANCER_POLICY_FILE": str(mount.file),
        "REBALANCER_POLICY_CHECK_SECONDS": "0.1",
        "KUBECONFIG": str(cluster.kubeconfig(folder / "kubeconfig", TOKEN)),
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "rebalancer", *found["args"], env=environ, stderr=asyncio.subprocess.PIPE
    )
    running = Container(process)
    try:
        yield running, mount
    finally:
        if process.returncode is None:
            process.kill()
        await running.ended()


def placed(cluster: EmbeddedCluster) -> dict[str, list[str]]:
    """Return the names of the Ready pods by node."""
    found: dict[str, list[str]] = {}
    for pod in cluster.store.objects("pods"):
        conditions = {each["type"]: each["status"] for each in pod.get("status", {}).get("conditions", ())}
        if conditions.get("Ready") == "True":
            found.setdefault(pod["spec"]["nodeName"], []).append(pod["metadata"]["name"])
    return found


async def asked(port: int, path: str) -> tuple[int, str]:
    """Return status and body of a GET, as a kubelet or Prometheus would ask."""
    async with aiohttp.ClientSession() as client, client.get(f"http://127.0.0.1:{port}{path}") as reply:
        return reply.status, await reply.text()


async def until(wanted: Callable[[], Awaitable[bool]]) -> None:
    """Ask again and again, as a kubelet does, until the answer is yes."""
    async with asyncio.timeout(LONGEST_SECONDS):
        yes = await wanted()
        while not yes:
            await asyncio.sleep(0.05)
            yes = await wanted()


async def probed(port: int, values: dict[str, Any]) -> set[int]:
    """Return what the rendered probes get."""
    found = container(values)
    (named,) = found["ports"]
    paths = [found[name]["httpGet"] for name in ("livenessProbe", "readinessProbe")]
    assert all(each["port"] == named["name"] for each in paths)
    return {(await asked(port, each["path"]))[0] for each in paths}


async def test_the_deployment_becomes_ready_reacts_to_a_node_follows_its_policy_and_stops(tmp_path: Path) -> None:
    """One life of the pod with the rights of the rendered roles: a node joins two that are 75 % full, and pods come to it."""
    values: dict[str, Any] = {}
    async with EmbeddedCluster(nodes=2, shape=NodeShape(cpu="4"), seed=3) as cluster:
        install(cluster, values)
        deploy(cluster, 10, "600m")

        async def ready() -> bool:
            return await probed(port, values) == {200}

        async def full() -> bool:
            return [len(pods) for pods in placed(cluster).values()] == [5, 5]

        async def come() -> bool:
            return len(placed(cluster).get("node-03", ())) >= 2

        await until(full)
        async with started(cluster, values, tmp_path) as (running, mount):
            port = (await running.logged(event="listening"))["port"]
            await running.logged(event="synced")
            await until(ready)
            cluster.add_node("node-03", ready=True)
            await running.logged(event="trigger", kind="node-joined", subject="node-03")
            await until(come)

            mount.put(policy_text({"deschedulerPolicy": {"maxNoOfPodsToEvictTotal": 1}}))
            await running.logged(event="trigger", kind="policy-changed")

            status, metrics = await asked(port, "/metrics")
            assert status == 200
            assert {line.split()[0] for line in metrics.splitlines() if not line.startswith("#")} >= WATCHED
            assert "rebalancer_leading 1.0" in metrics

            running.process.send_signal(signal.SIGTERM)
            assert await running.ended() == 0
        lease = cluster.store.get("leases.coordination.k8s.io", "kube-system", "descheduler")
    assert lease is not None
    assert not lease["spec"].get("holderIdentity")
    assert [line for line in running.lines if line["level"] == "error"] == []
    assert running.other == []


async def test_a_second_replica_waits_ready_for_the_lease_of_the_first(tmp_path: Path) -> None:
    """Readiness is about knowing, not about leading: otherwise a rollout of two replicas would never end."""
    values: dict[str, Any] = {"replicas": 2}
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    async with quiet_cluster() as cluster:
        install(cluster, values)
        async with started(cluster, values, tmp_path / "a") as (first, _):
            await first.logged(event="synced")
            async with started(cluster, values, tmp_path / "b") as (second, _):
                port = (await second.logged(event="listening"))["port"]
                await second.logged(event="synced")
                assert await probed(port, values) == {200}
                assert "rebalancer_leading 0.0" in (await asked(port, "/metrics"))[1]
                first.process.send_signal(signal.SIGTERM)
                assert await first.ended() == 0

                async def leading() -> bool:
                    return "rebalancer_leading 1.0" in (await asked(port, "/metrics"))[1]

                await until(leading)
                second.process.send_signal(signal.SIGTERM)
                assert await second.ended() == 0


@pytest.mark.parametrize("kind", ["CronJob", "Job"])
async def test_a_job_makes_one_run_and_ends(kind: str, tmp_path: Path) -> None:
    """It evicts what there is to evict, writes its Events, gives the lease back and exits with 0."""
    values = {"kind": kind}
    async with quiet_cluster() as cluster:
        install(cluster, values)
        furnish(cluster)
        async with started(cluster, values, tmp_path) as (running, _):
            assert await running.ended() == 0
        (await_pod,) = [each for each in cluster.store.objects("pods") if each["metadata"]["name"] == "web-1"]
        events = list(cluster.store.objects("events"))
        lease = cluster.store.get("leases.coordination.k8s.io", "kube-system", "descheduler")
    assert await_pod["metadata"].get("deletionTimestamp")
    assert len(events) == 2
    assert lease is not None
    assert not lease["spec"].get("holderIdentity")


async def test_a_wrong_value_ends_the_process_with_all_mistakes(tmp_path: Path) -> None:
    """Exit code 2 and each mistake by name, so that the pod's last log line is the answer."""
    values = {"settings": {"leaseDurationSeconds": 5, "cooldownMaximumSeconds": 1}}
    async with quiet_cluster() as cluster:
        install(cluster, values)
        async with started(cluster, values, tmp_path) as (running, _):
            assert await running.ended() == 2
    told = "".join(running.other)
    assert "REBALANCER_COOLDOWN_MAXIMUM_SECONDS" in told
    assert "REBALANCER_LEASE_RENEW_SECONDS" in told
