"""Probes, metrics, status, manual trigger: who may ask, and what is answered. What the faces say is tested where it is made."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
import pytest_asyncio
from aiohttp.test_utils import TestClient, TestServer
from aiohttp.web import Application, Request

from rebalancer.web.app import application
from rebalancer.web.faces import Faces
from rebalancer.web.metrics import Metrics
from rebalancer.web.server import AddressInUse, serving


@dataclass
class Behind:
    """What stands behind the faces, and can be set by a test."""

    stuck: tuple[str, ...] = ()
    unready: tuple[str, ...] = ()
    asked: list[str] = field(default_factory=list)
    reviewed: list[tuple[str, str, str]] = field(default_factory=list)
    good_token: str = "good"

    async def may(self, token: str, verb: str, path: str) -> bool:
        """Review."""
        self.reviewed.append((token, verb, path))
        return token == self.good_token

    def faces(self, *, metrics_need_token: bool = False) -> Faces:
        """Return faces that show this."""
        metrics = Metrics(descheduler_names=True)
        metrics.runs.labels("done").inc()
        assert metrics.compatible is not None
        metrics.compatible.pods_evicted.labels("success", "RemoveDuplicates", "default", "ns", "n1").inc(2)
        return Faces(
            stuck=lambda: self.stuck,
            unready=lambda: self.unready,
            status=lambda: {"leader": {"leading": True}},
            trigger=self.asked.append,
            may=self.may,
            registry=metrics.registry,
            metrics_need_token=metrics_need_token,
        )


@pytest.fixture
def behind() -> Behind:
    """Return something to stand behind the faces."""
    return Behind()


@pytest_asyncio.fixture
async def client(behind: Behind) -> AsyncIterator[TestClient[Request, Application]]:
    """Return a client on loopback."""
    async with TestClient(TestServer(application(behind.faces()))) as client:
        yield client


async def test_liveness_fails_only_for_a_loop_that_is_stuck(behind: Behind, client: TestClient[Request, Application]) -> None:
    """An API outage alone does not fail it; a loop that does not turn does, and is named."""
    behind.unready = ("Pod: disconnected for 12 s",)
    assert (await client.get("/healthz")).status == 200
    behind.stuck = ("runs: last turned 100 s ago",)
    reply = await client.get("/healthz")
    assert reply.status == 503
    assert "runs: last turned" in await reply.text()


async def test_readiness_says_which_cache_is_not_fresh(behind: Behind, client: TestClient[Request, Application]) -> None:
    """Not ready means a sentence per kind."""
    assert (await client.get("/readyz")).status == 200
    behind.unready = ("pods: forbidden to list pods", "Node: not listed yet")
    reply = await client.get("/readyz")
    assert reply.status == 503
    assert (await reply.text()).splitlines() == list(behind.unready)


async def test_metrics_have_our_names_and_the_deschedulers_with_their_deprecated_twins(
    client: TestClient[Request, Application],
) -> None:
    """K16: dashboards made for the descheduler find their series; build_info is 1."""
    text = await (await client.get("/metrics")).text()
    labels = '{namespace="ns",node="n1",profile="default",result="success",strategy="RemoveDuplicates"}'
    assert f"descheduler_pods_evicted_total{labels} 2.0" in text
    assert f"descheduler_pods_evicted{labels} 2.0" in text
    assert 'rebalancer_runs_total{ending="done"} 1.0' in text
    for name in ("descheduler_loop_duration_seconds", "descheduler_descheduler_loop_duration_seconds"):
        assert f"{name}_count" in text
    (info,) = [line for line in text.splitlines() if line.startswith("descheduler_build_info{")]
    assert info.endswith(" 1.0")


def test_the_deschedulers_names_can_be_left_out() -> None:
    """With the switch off no series has another tool's name."""
    from prometheus_client import generate_latest

    assert b"descheduler_" not in generate_latest(Metrics(descheduler_names=False).registry)


async def test_a_run_is_asked_for_by_post_on_loopback(behind: Behind, client: TestClient[Request, Application]) -> None:
    """POST triggers, GET does not, and no token is needed from the machine itself."""
    assert (await client.get("/-/run")).status == 405
    assert behind.asked == []
    assert (await client.post("/-/run")).status == 202
    assert len(behind.asked) == 1
    assert behind.reviewed == []


async def test_status_is_json(client: TestClient[Request, Application]) -> None:
    """The status is one JSON document."""
    assert await (await client.get("/status")).json() == {"leader": {"leading": True}}


async def test_a_page_in_a_browser_cannot_use_loopback(behind: Behind, client: TestClient[Request, Application]) -> None:
    """A request that names another host in its Host header is not taken for one of this machine."""
    assert (await client.post("/-/run", headers={"Host": "evil.example:8080"})).status == 401
    assert behind.asked == []


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (None, 401),
        ("Basic Z29vZA==", 401),
        ("Bearer ", 401),
        ("Bearer bad", 403),
        ("Bearer good", 202),
    ],
    ids=["no token", "no bearer token", "an empty token", "a token that may not", "a token that may"],
)
async def test_from_elsewhere_a_token_is_needed_that_passes_the_review(behind: Behind, header: str | None, status: int) -> None:
    """Not on loopback: 401 without a token, 403 with one that the API server does not let do this."""
    app = application(behind.faces())
    async with TestClient(TestServer(app)) as client:
        headers = {"Host": "rebalancer.example", **({"Authorization": header} if header else {})}
        reply = await client.post("/-/run", headers=headers)
    assert reply.status == status
    assert len(behind.asked) == (status == 202)
    if status in (202, 403):
        assert behind.reviewed == [((header or "").split()[-1], "post", "/-/run")]


async def test_probes_stay_open_when_metrics_want_a_token(behind: Behind) -> None:
    """Metrics by setting, probes never."""
    async with TestClient(TestServer(application(behind.faces(metrics_need_token=True)))) as client:
        elsewhere = {"Host": "rebalancer.example"}
        assert (await client.get("/metrics", headers=elsewhere)).status == 401
        assert (await client.get("/healthz", headers=elsewhere)).status == 200
        assert (await client.get("/readyz", headers=elsewhere)).status == 200


async def test_an_address_in_use_is_a_sentence(behind: Behind) -> None:
    """A taken port is named, and no traceback is needed to understand it."""
    async with serving(behind.faces(), "127.0.0.1", 0) as port:
        with pytest.raises(AddressInUse, match=f"127.0.0.1:{port} cannot be listened on"):
            async with serving(behind.faces(), "127.0.0.1", port):
                raise AssertionError("two listen on one port")
