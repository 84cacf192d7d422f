"""Injected faults do over HTTP what they say, to the requests that they are meant for, as often as they say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import aiohttp
import pytest

from rebalancer.sim.cluster import EmbeddedCluster
from rebalancer.sim.faults import Fault, Trouble
from rebalancer.sim.kinds import POD

pytestmark = pytest.mark.e2e

ADMIN = {"Authorization": "Bearer admin-token"}
PODS = "/api/v1/namespaces/s/pods"


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    """A client."""
    async with aiohttp.ClientSession(headers=ADMIN) as session:
        yield session


def add(cluster: EmbeddedCluster, name: str) -> None:
    """Create a pod."""
    cluster.registry.create(POD, "s", {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}})


@pytest.mark.parametrize(
    ("fault", "status", "header"),
    [
        (Fault(Trouble.THROTTLED, retry_after_seconds=3), 429, "3"),
        (Fault(Trouble.THROTTLED), 429, None),
        (Fault(Trouble.INTERNAL), 500, None),
        (Fault(Trouble.BAD_GATEWAY), 502, None),
        (Fault(Trouble.UNAVAILABLE, retry_after_seconds=1), 503, "1"),
        (Fault(Trouble.UNAUTHORIZED), 401, None),
        (Fault(Trouble.GONE), 410, None),
    ],
    ids=["429 with a time", "429 without", "500", "502 with HTML", "503", "401", "410"],
)
async def test_a_fault_answers_instead_of_the_server(
    bare: EmbeddedCluster, session: aiohttp.ClientSession, fault: Fault, status: int, header: str | None
) -> None:
    """Once, with its status and Retry-After; the next request is served."""
    bare.faults.add(fault)
    async with session.get(bare.url + PODS) as response:
        assert (response.status, response.headers.get("Retry-After")) == (status, header)
        assert ("<html>" in await response.text()) is (status == 502)
    async with session.get(bare.url + PODS) as response:
        assert response.status == 200
    assert fault.met == 1


async def test_a_fault_meets_only_what_it_is_meant_for(bare: EmbeddedCluster, session: aiohttp.ClientSession) -> None:
    """Path, method and kind of request must match."""
    bare.faults.add(Fault(Trouble.INTERNAL, path="/eviction", method="POST", times=None))
    bare.faults.add(Fault(Trouble.INTERNAL, watches=True, times=None))
    async with session.get(bare.url + PODS) as response:
        assert response.status == 200
    async with session.get(bare.url + PODS, params={"watch": "1"}) as response:
        assert response.status == 500


async def test_a_watch_is_cut_in_the_middle_of_a_line(bare: EmbeddedCluster, session: aiohttp.ClientSession) -> None:
    """Whole lines first, then half a line and a broken connection."""
    for name in ("a", "b"):
        add(bare, name)
    bare.faults.add(Fault(Trouble.CUT_LINE, watches=True, after_lines=1))
    received: list[bytes] = []
    with pytest.raises(aiohttp.ClientError):
        await read_into(received, session, bare.url + PODS)
    first, half = b"".join(received).split(b"\n")
    assert json.loads(first)["object"]["metadata"]["name"] == "a"
    with pytest.raises(json.JSONDecodeError):
        json.loads(half)


async def read_into(received: list[bytes], session: aiohttp.ClientSession, url: str) -> None:
    """Read a watch until it ends or breaks."""
    async with session.get(url, params={"watch": "1"}) as response:
        async for chunk in response.content.iter_any():
            received.append(chunk)  # noqa: PERF401 - what came before the break is looked at


async def test_a_watch_ends_with_gone_in_the_stream(bare: EmbeddedCluster, session: aiohttp.ClientSession) -> None:
    """An ERROR line with a 410 Status, then the end."""
    add(bare, "a")
    bare.faults.add(Fault(Trouble.GONE_IN_STREAM, watches=True))
    async with session.get(bare.url + PODS, params={"watch": "1"}) as response:
        lines = [json.loads(line) async for line in response.content]
    assert [(line["type"], line["object"]["code"]) for line in lines] == [("ERROR", 410)]


async def test_a_silent_watch_says_nothing_and_stays_open(bare: EmbeddedCluster, session: aiohttp.ClientSession) -> None:
    """The connection is there; no byte comes."""
    add(bare, "a")
    bare.faults.add(Fault(Trouble.SILENT, watches=True))
    async with session.get(bare.url + PODS, params={"watch": "1"}) as response:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await response.content.readline()


async def test_a_slow_answer_comes_late_and_right(bare: EmbeddedCluster, session: aiohttp.ClientSession) -> None:
    """The answer is the server's own, after the delay."""
    bare.faults.add(Fault(Trouble.SLOW, delay_seconds=0.2))
    began = asyncio.get_running_loop().time()
    async with session.get(bare.url + PODS) as response:
        assert response.status == 200
    assert asyncio.get_running_loop().time() - began >= 0.2


async def test_a_partition_lets_nothing_through_until_it_heals(bare: EmbeddedCluster, session: aiohttp.ClientSession) -> None:
    """Requests wait, and are answered afterwards."""
    bare.faults.partitioned = True
    asked = asyncio.ensure_future(session.get(bare.url + PODS))
    done, _ = await asyncio.wait([asked], timeout=0.3)
    assert not done
    bare.faults.partitioned = False
    response = await asked
    assert response.status == 200
    response.release()


async def test_a_restart_without_history_expires_old_versions(bare: EmbeddedCluster, session: aiohttp.ClientSession) -> None:
    """Open watches end; a watch from before is told 410 in the stream; a new list works on the same port."""
    add(bare, "a")
    async with session.get(bare.url + PODS) as response:
        version = (await response.json())["metadata"]["resourceVersion"]
    add(bare, "b")
    await bare.restart(history_gone=True)
    async with session.get(bare.url + PODS, params={"watch": "1", "resourceVersion": version}) as response:
        lines = [json.loads(line) async for line in response.content]
    assert lines[0]["object"]["code"] == 410
    async with session.get(bare.url + PODS) as response:
        assert len((await response.json())["items"]) == 2
