"""Whoever answers at the API server's address: no rights, no API server, no answer. A sentence, exit code 1, nothing evicted."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rebalancer.sim.cluster import EmbeddedCluster
from rebalancer.sim.kubeconfig import kubeconfig
from rebalancer.sim.nodes import NodeShape
from tests.service.process import POLICY, Deletions, placed

pytestmark = pytest.mark.e2e

REPLIES = {
    "HTML": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 15\r\n\r\n<html>hi</html>",
    "a bad gateway": b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 15\r\n\r\n<html>no</html>",
    "no HTTP": b"\x00\xff\x15\x03 nonsense\r\n\r\n",
    "half a reply": b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"a":',
    "an unknown token": b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}",
    "an empty object": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    "a list": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n[1,2]",
    "a number": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n7",
    "an endless header": b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
    "nothing": b"",
}


@asynccontextmanager
async def a_server(reply: bytes) -> AsyncIterator[str]:
    """Answer everything with the same bytes, and yield the address."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65_536)
        writer.write(reply)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def run(folder: Path, command: str, access: Path, **more: str) -> tuple[int, str]:
    """Run a command against a cluster until it ends; return exit code and standard error."""
    policy = folder / "policy.yaml"
    policy.write_text(POLICY)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "rebalancer", command, "--policy", str(policy)),
        env={**os.environ, "REBALANCER_KUBECONFIG": str(access), "REBALANCER_LISTEN_PORT": "0", **more},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        _, said = await process.communicate()
    assert process.returncode is not None
    return process.returncode, said.decode()


@pytest.mark.parametrize("command", ["once", "plan"])
@pytest.mark.parametrize("name", REPLIES)
async def test_what_is_no_api_server_is_named_by_its_address(name: str, command: str, tmp_path: Path) -> None:
    """Whatever comes back, the last word is a sentence about that server or its answer."""
    async with a_server(REPLIES[name]) as address:
        access = tmp_path / "kubeconfig"
        access.write_text(kubeconfig(address, "token"))
        code, said = await run(tmp_path, command, access)
    assert code == 1
    assert "Traceback" not in said
    words = said.strip().splitlines()[-1]
    assert address in words or words.startswith(("cannot get /version", "cannot list nodes", "the list of nodes")), words


@pytest.mark.parametrize("command", ["once", "plan"])
async def test_missing_rights_are_named_by_verb_and_resource_at_once(command: str, tmp_path: Path) -> None:
    """A user who may nothing: exit code 1 within seconds, the verb and the resource as a Role writes them."""
    async with EmbeddedCluster(nodes=2, shape=NodeShape(cpu="4", memory="16Gi"), seed=3) as cluster:
        access = cluster.kubeconfig(tmp_path / "kubeconfig", token="weak-token")
        code, said = await run(tmp_path, command, access)
    assert code == 1
    assert "Traceback" not in said
    assert "not permitted to list nodes" in said
    if command == "once":
        assert "poddisruptionbudgets.policy" in said
        assert "priorityclasses.scheduling.k8s.io" in said


@pytest.mark.parametrize("text", ["", "a: [", "kind: Pod", "kind: KubeSchedulerConfiguration\nprofile: []"], ids=repr)
async def test_a_broken_scheduler_configuration_stops_the_start(text: str, tmp_path: Path) -> None:
    """Exit code 2, and nothing is evicted although there would be something to move."""
    broken = tmp_path / "scheduler.yaml"
    broken.write_text(text)
    async with EmbeddedCluster(nodes=2, shape=NodeShape(cpu="4", memory="16Gi"), seed=3) as cluster:
        await placed(cluster, 2, 2)
        cluster.add_node("n3", ready=True)
        deletions = Deletions(cluster)
        access = cluster.kubeconfig(tmp_path / "kubeconfig")
        code, said = await run(tmp_path, "once", access, REBALANCER_SCHEDULER_CONFIG_FILE=str(broken))
    assert code == 2
    assert "Traceback" not in said
    assert "KubeSchedulerConfiguration" in said or "not YAML" in said or "kubescheduler.config.k8s.io" in said
    assert deletions.moments == {}
