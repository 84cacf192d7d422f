"""SIGTERM at any moment: exit code 0 in less than five seconds; a second signal does not wait.

That it holds in random histories, in virtual time and with every fault, is checked in ``tests/histories``.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from rebalancer.sim.cluster import EmbeddedCluster
from rebalancer.sim.faults import Fault, Trouble
from rebalancer.sim.kinds import DEPLOYMENT
from rebalancer.sim.nodes import NodeShape
from tests.e2e.fleet import POLICY, SETTINGS

pytestmark = pytest.mark.e2e
MOST_SECONDS = 5.0
LEASE = ("leases.coordination.k8s.io", "kube-system", "descheduler")


class Running:
    """A process, and what it has said."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        """Listen to it."""
        self.process = process
        self.said: list[str] = []
        self._heard = asyncio.Event()
        self._listening = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self.said.append(line.decode(errors="replace"))
            self._heard.set()
        self._heard.set()

    async def says(self, event: str, seconds: float = 40.0) -> None:
        """Wait until it has logged an event."""
        try:
            async with asyncio.timeout(seconds):
                while not any(f'"event": "{event}"' in line or f'"event":"{event}"' in line for line in self.said):
                    self._heard.clear()
                    assert not self._listening.done(), self.said[-20:]
                    await self._heard.wait()
        except TimeoutError:
            raise AssertionError(f"{event!r} was not said: {self.said[-20:]}") from None

    async def meets(self, fault: Fault) -> None:
        """Wait until it has met a fault."""
        while not fault.met:
            assert self.process.returncode is None, self.said[-20:]
            await asyncio.sleep(0.02)

    async def listens_to_signals(self) -> None:
        """Wait until it has a handler for SIGTERM; before, while Python starts, there is nothing to be finished."""
        status = Path(f"/proc/{self.process.pid}/status")
        while True:
            lines = (await asyncio.to_thread(status.read_text)).splitlines()
            caught = next(line for line in lines if line.startswith("SigCgt:"))
            if int(caught.split()[1], 16) & 1 << (signal.SIGTERM - 1):
                return
            await asyncio.sleep(0.05)

    async def end(self, *signals: float) -> tuple[int, float]:
        """Send SIGTERM, and again after each of these pauses; return the exit code, and the seconds since the last one."""
        self.process.send_signal(signal.SIGTERM)
        for pause in signals:
            await asyncio.sleep(pause)
            self.process.send_signal(signal.SIGTERM)
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        async with asyncio.timeout(30):
            code = await self.process.wait()
        seconds = loop.time() - began_at
        await self._listening
        return code, seconds

    async def close(self) -> None:
        """End it whatever it does."""
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()
        await self._listening


@pytest_asyncio.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    """Return a cluster in which there is always something to evict."""
    async with EmbeddedCluster(nodes=3, shape=NodeShape(cpu="8", memory="32Gi"), seed=5, write_events=False) as cluster:
        for number in range(4):
            labels = {"app": f"app{number}"}
            container = {"name": "main", "image": "image:1", "resources": {"requests": {"cpu": "200m"}}}
            template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
            spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
            cluster.registry.create(DEPLOYMENT, "default", {"metadata": {"name": labels["app"]}, "spec": spec})
        yield cluster
        cluster.faults.clear()


@asynccontextmanager
async def controller(cluster: EmbeddedCluster, folder: Path, *command: str) -> AsyncIterator[Running]:
    """Run a controller on the cluster while the block runs."""
    (folder / "policy.yaml").write_text(POLICY)
    ours = {
        "REBALANCER_KUBECONFIG": str(cluster.kubeconfig(folder / "kubeconfig")),
        "REBALANCER_POLICY_FILE": str(folder / "policy.yaml"),
    }
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("REBALANCER_", "KUBE"))}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        *(command or ("rebalancer", "run")),
        env={**clean, **SETTINGS, **ours},
        stderr=asyncio.subprocess.PIPE,
    )
    running = Running(process)
    try:
        yield running
    finally:
        await running.close()


def held(cluster: EmbeddedCluster) -> bool:
    """Say whether somebody holds the lease."""
    lease = cluster.store.get(*LEASE)
    return lease is not None and bool(lease["spec"].get("holderIdentity"))


@pytest.mark.parametrize("event", ["starting", "listening", "synced", "run started", "evicted", "settled", "run ended"])
async def test_it_ends_in_time_whatever_it_has_just_done(cluster: EmbeddedCluster, tmp_path: Path, event: str) -> None:
    """From the first line it says to the middle of a run."""
    async with controller(cluster, tmp_path) as running:
        await running.says(event)
        code, seconds = await running.end()
    print(f"after {event!r}: {seconds:.2f} s")
    assert (code, held(cluster)) == (0, False)
    assert seconds < MOST_SECONDS


async def test_it_ends_in_the_middle_of_an_evaluation(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    """An evaluation that would go on for half a minute, without ever giving way, does not hold up the end."""
    async with controller(cluster, tmp_path, "tests.e2e.slow_evaluation") as running:
        await running.says("evaluating")
        await asyncio.sleep(0.5)
        code, seconds = await running.end()
        assert not any("run ended" in line for line in running.said)
    print(f"in the middle of an evaluation: {seconds:.2f} s")
    assert (code, held(cluster)) == (0, False)
    assert seconds < MOST_SECONDS


async def test_the_request_in_flight_is_finished(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    """An eviction whose answer takes two seconds is waited for, and told; then the lease is given back."""
    slow = cluster.faults.add(Fault(Trouble.SLOW, "/eviction", times=1, delay_seconds=2.0))
    async with controller(cluster, tmp_path) as running:
        await running.meets(slow)
        code, seconds = await running.end()
        assert any('"evicted"' in line for line in running.said), running.said[-20:]
    assert (code, held(cluster)) == (0, False)
    assert 1.5 < seconds < MOST_SECONDS


async def test_a_request_without_reply_leaves_the_lease_to_expire(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    """After three seconds the reply is given up; who takes over has to wait for the lease to end."""
    silent = cluster.faults.add(Fault(Trouble.SILENT, "/eviction", watches=False))
    async with controller(cluster, tmp_path) as running:
        await running.meets(silent)
        code, seconds = await running.end()
    print(f"with a request that is never answered: {seconds:.2f} s")
    assert (code, held(cluster)) == (0, True)
    assert seconds < MOST_SECONDS


@pytest.mark.parametrize("from_the_start", [True, False], ids=["from the start", "later"])
async def test_it_ends_in_time_although_the_api_server_hangs(
    cluster: EmbeddedCluster, tmp_path: Path, from_the_start: bool
) -> None:
    """Connections are accepted and nothing is ever answered."""
    cluster.faults.partitioned = from_the_start
    async with controller(cluster, tmp_path) as running:
        if from_the_start:
            await running.listens_to_signals()
            await asyncio.sleep(0.5)
        else:
            await running.says("evicted")
            cluster.faults.partitioned = True
            await asyncio.sleep(0.3)
        code, seconds = await running.end()
    print(f"while the API server hangs: {seconds:.2f} s")
    assert code == 0
    assert seconds < MOST_SECONDS


async def test_a_second_signal_does_not_wait(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    """A reply is outstanding, which would be waited for: the second SIGTERM ends it at once, and the exit code says so."""
    silent = cluster.faults.add(Fault(Trouble.SILENT, "/eviction", watches=False))
    async with controller(cluster, tmp_path) as running:
        await running.meets(silent)
        code, seconds = await running.end(0.3)
    assert code == 128 + signal.SIGTERM
    assert seconds < 1.0
