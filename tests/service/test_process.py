"""The controller as a real process: reaction time, stopping, one-shot runs, and what goes wrong at the start."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from rebalancer.sim.cluster import EmbeddedCluster
from rebalancer.sim.nodes import NodeShape
from tests.service.process import Deletions, controller, placed, ready_pods

pytestmark = pytest.mark.e2e


@pytest_asyncio.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    """Return a cluster of two full nodes."""
    async with EmbeddedCluster(nodes=2, shape=NodeShape(cpu="4", memory="16Gi"), seed=3) as cluster:
        yield cluster


@pytest.fixture
def kubeconfig(cluster: EmbeddedCluster, tmp_path: Path) -> Path:
    """Return the way to the cluster."""
    return cluster.kubeconfig(tmp_path / "kubeconfig")


async def until_node_ready(cluster: EmbeddedCluster, name: str) -> float:
    """Return the moment at which a node can take pods."""
    while True:
        node = cluster.store.get("nodes", "", name)
        assert node is not None
        if not node["spec"].get("taints"):
            return asyncio.get_running_loop().time()
        await asyncio.sleep(0.002)


async def test_the_first_eviction_follows_a_node_within_a_second(
    cluster: EmbeddedCluster, kubeconfig: Path, tmp_path: Path
) -> None:
    """From the end of debounce and node settle time to the first eviction less than a second passes."""
    await placed(cluster, 4, 3)
    deletions = Deletions(cluster)
    async with controller(kubeconfig, tmp_path) as running:
        await running.logs("run ended")
        assert deletions.moments == {}
        cluster.add_node("n3")
        ready_at = await until_node_ready(cluster, "n3")
        async with asyncio.timeout(10):
            await deletions.came.wait()
        delay = min(deletions.moments.values()) - ready_at - 0.5 - 0.5
        print(f"\nfirst eviction {delay * 1000:.0f} ms after debounce and node settle")
        assert 0 <= delay < 1.0
        (trigger,) = [line for line in running.events("trigger") if line["kind"] == "node-joined"]
        assert trigger["subject"] == "n3"
        await running.logs("run ended", count=2)
        assert ready_pods(cluster) == 12
        assert any("requested_percent" in str(line) for line in running.events("nodes classified"))
        assert all(line["reason"] for line in running.events("evicted"))


@pytest.mark.parametrize("moment", ["at the start", "waiting", "in the middle of a run"])
async def test_sigterm_ends_it_within_five_seconds(
    cluster: EmbeddedCluster, kubeconfig: Path, tmp_path: Path, moment: str
) -> None:
    """Exit code 0 in less than 5 s at any moment; the lease is given back."""
    await placed(cluster, 4, 3)
    async with controller(kubeconfig, tmp_path) as running:
        if moment == "at the start":
            await running.logs("starting")
        else:
            await running.logs("run ended")
        if moment == "in the middle of a run":
            cluster.add_node("n3")
            await running.logs("evicted")
        began = asyncio.get_running_loop().time()
        running.process.send_signal(signal.SIGTERM)
        assert await running.end(5.0) == 0
        print(f"ended {asyncio.get_running_loop().time() - began:.2f} s after SIGTERM")
    lease = cluster.store.get("leases.coordination.k8s.io", "kube-system", "descheduler")
    assert lease is None or not lease["spec"].get("holderIdentity")


async def test_a_second_signal_forces_the_end(cluster: EmbeddedCluster, kubeconfig: Path, tmp_path: Path) -> None:
    """Where an orderly end would take time (the API server hangs), the second SIGTERM does not wait."""
    async with controller(kubeconfig, tmp_path) as running:
        await running.logs("run ended")
        cluster.faults.partitioned = True
        running.process.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.2)
        running.process.send_signal(signal.SIGTERM)
        assert await running.end(1.0) in (0, 128 + signal.SIGTERM)
        cluster.faults.clear()


async def test_sigterm_ends_it_although_the_api_server_hangs(cluster: EmbeddedCluster, kubeconfig: Path, tmp_path: Path) -> None:
    """Nobody answers any more: it still ends with 0 in less than 5 s, and the lease is left to expire."""
    async with controller(kubeconfig, tmp_path) as running:
        await running.logs("run ended")
        cluster.faults.partitioned = True
        await asyncio.sleep(0.5)
        running.process.send_signal(signal.SIGTERM)
        assert await running.end(5.0) == 0
        cluster.faults.clear()


async def test_an_absurdly_short_tick_starves_nothing(cluster: EmbeddedCluster, kubeconfig: Path, tmp_path: Path) -> None:
    """However short the period, signals are heard: it ends with 0 in less than 5 s."""
    async with controller(kubeconfig, tmp_path, more={"REBALANCER_TICK_SECONDS": "1e-300"}) as running:
        await running.logs("trigger", count=3)
        running.process.send_signal(signal.SIGTERM)
        assert await running.end(5.0) == 0


async def test_once_makes_one_run_and_writes_its_events(cluster: EmbeddedCluster, kubeconfig: Path, tmp_path: Path) -> None:
    """For a Job: evicts what is to be evicted, waits for the replacements, exits 0, and no Event is lost."""
    await placed(cluster, 4, 3)
    cluster.add_node("n3", ready=True)
    async with controller(kubeconfig, tmp_path, command="once") as running:
        assert await running.end(30.0) == 0
        evicted = running.events("evicted")
    assert evicted
    assert ready_pods(cluster) == 12
    events = [each for each in cluster.store.objects("events") if each.get("action") == "Descheduled"]
    about = {each["involvedObject"]["name"] for each in events if each["involvedObject"]["kind"] == "Pod"}
    assert about == {line["pod"].partition("/")[2] for line in evicted}


@pytest.mark.parametrize("mode", ["plan", "server"])
async def test_a_dry_run_moves_nothing_and_names_everything(
    cluster: EmbeddedCluster, kubeconfig: Path, tmp_path: Path, mode: str
) -> None:
    """Both kinds of dry run tell what would go; in the cluster nothing goes."""
    await placed(cluster, 4, 3)
    cluster.add_node("n3", ready=True)
    deletions = Deletions(cluster)
    async with controller(kubeconfig, tmp_path, command="once", more={"REBALANCER_DRY_RUN": mode}) as running:
        assert await running.end(30.0) == 0
        assert running.events("would evict")
        assert not running.events("evicted")
    assert deletions.moments == {}


async def test_probes_metrics_status_and_the_manual_trigger_answer(
    cluster: EmbeddedCluster, kubeconfig: Path, tmp_path: Path
) -> None:
    """Over HTTP: alive, ready, metrics, status, and a run on demand."""
    await placed(cluster, 2, 2)
    async with controller(kubeconfig, tmp_path) as running, aiohttp.ClientSession() as session:
        (listening,) = await running.logs("listening")
        await running.logs("run ended")
        base = f"http://127.0.0.1:{listening['port']}"
        for path in ("/healthz", "/readyz"):
            async with session.get(base + path) as reply:
                assert (reply.status, await reply.text()) == (200, "ok\n")
        async with session.get(base + "/metrics") as reply:
            assert 'rebalancer_runs_total{ending="done"} 1.0' in await reply.text()
        async with session.get(base + "/status") as reply:
            status = await reply.json()
        assert status["leader"]["leading"]
        assert status["gate"] == {"closedBecause": None}
        assert status["runs"][0]["ending"] == "done"
        async with session.post(base + "/-/run") as reply:
            assert reply.status == 202
        await running.logs("run ended", count=2)


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        ({"REBALANCER_TIKC_SECONDS": "3"}, 2, "REBALANCER_TIKC_SECONDS"),
        ({"REBALANCER_TICK_SECONDS": "soon"}, 2, "REBALANCER_TICK_SECONDS"),
        ({"REBALANCER_POLICY_FILE": "/nowhere/policy.yaml"}, 2, "/nowhere/policy.yaml"),
        ({"REBALANCER_KUBECONFIG": "/nowhere/kubeconfig"}, 1, "/nowhere/kubeconfig"),
    ],
    ids=["unknown name", "wrong type", "no policy", "no kubeconfig"],
)
async def test_bad_input_is_answered_in_words(
    cluster: EmbeddedCluster, kubeconfig: Path, tmp_path: Path, more: dict[str, str], code: int, words: str
) -> None:
    """Exit code 2 for what a user wrote, 1 for what is not there; the message names it, without a traceback."""
    async with controller(kubeconfig, tmp_path, more=more) as running:
        assert await running.end() == code
        text = "\n".join(str(line) for line in running.logged)
    assert words in text
    assert "Traceback" not in text


async def test_no_cluster_reachable_is_a_sentence(tmp_path: Path) -> None:
    """Nobody listens at the server's address: exit 1, and the address is in the message."""
    from rebalancer.sim.kubeconfig import kubeconfig

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    path = tmp_path / "kubeconfig"
    path.write_text(kubeconfig(address, "token"))
    async with controller(path, tmp_path) as running:
        assert await running.end() == 1
        text = "\n".join(str(line) for line in running.logged)
    assert address in text
    assert "Traceback" not in text


async def test_a_port_in_use_is_a_sentence(cluster: EmbeddedCluster, kubeconfig: Path, tmp_path: Path) -> None:
    """The port is taken: exit 1, and it is named."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        async with controller(kubeconfig, tmp_path, more={"REBALANCER_LISTEN_PORT": str(port)}) as running:
            assert await running.end() == 1
            text = "\n".join(str(line) for line in running.logged)
    assert f"127.0.0.1:{port} cannot be listened on" in text
    assert "Traceback" not in text


async def test_a_missing_permission_is_named_by_resource_and_fails_readiness(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    """A user who may nothing: it stays up, is not ready, and says which resource it may not list (H7)."""
    kubeconfig = cluster.kubeconfig(tmp_path / "kubeconfig", token="weak-token")
    async with controller(kubeconfig, tmp_path) as running, aiohttp.ClientSession() as session:
        (listening,) = await running.logs("listening")
        await running.logs("cannot-be-read", count=5)
        async with session.get(f"http://127.0.0.1:{listening['port']}/readyz") as reply:
            assert reply.status == 503
            text = await reply.text()
        assert "poddisruptionbudgets.policy" in text
        assert "nodes" in text
        async with session.get(f"http://127.0.0.1:{listening['port']}/healthz") as reply:
            assert reply.status == 200
        assert running.process.returncode is None


async def test_once_outside_of_every_window_does_nothing_and_says_why(
    cluster: EmbeddedCluster, kubeconfig: Path, tmp_path: Path
) -> None:
    """A CronJob that comes at the wrong time ends at once with 0 and a reason."""
    await placed(cluster, 2, 2)
    windows = '[{"cron": "0 0 1 1 *", "duration": "1m"}]'
    async with controller(kubeconfig, tmp_path, command="once", more={"REBALANCER_WINDOWS": windows}) as running:
        assert await running.end() == 0
        (ended,) = running.events("run ended")
    assert ended["ending"] == "closed"
    assert "window" in ended["reason"]


async def test_once_gives_up_when_another_keeps_the_lease(cluster: EmbeddedCluster, kubeconfig: Path, tmp_path: Path) -> None:
    """A controller is at work already: the one-shot run waits for the lease, at most its deadline, and ends with 1."""
    async with controller(kubeconfig, tmp_path) as first:
        await first.logs("leading")
        short = {"REBALANCER_RUN_DEADLINE_SECONDS": "2"}
        async with controller(kubeconfig, tmp_path, command="once", more=short) as second:
            assert await second.end() == 1
            (ended,) = second.events("run ended")
    assert ended["ending"] == "unavailable"
    assert "holds the lease" in ended["reason"]
