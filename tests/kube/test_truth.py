"""List, watch and cache against the embedded cluster: whatever changes or goes wrong, the cache ends equal to the truth."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalancer.cache.store import Cache
from rebalancer.kube.config import Access
from rebalancer.kube.credentials import Fixed
from rebalancer.kube.reflector import Reflector, Times
from rebalancer.kube.resources import RESOURCES, Resource
from rebalancer.kube.transport import Transport
from rebalancer.model.change import Disconnected, Listed, Report
from rebalancer.model.snapshot import Snapshot, snapshot_of
from rebalancer.parse.objects import parse_objects
from rebalancer.sim.answering import OpenWatch
from rebalancer.sim.cluster import EmbeddedCluster
from rebalancer.sim.faults import Fault, Trouble
from rebalancer.sim.requests import Request

# A connection that is accepted while the embedded server stops belongs to nobody; the garbage collector closes it.
pytestmark = [pytest.mark.e2e, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]

QUICK = Times(silent=0.3, watch_shortest=1, watch_longest=2, request=0.5, first_delay=0.001, longest_delay=0.02, unreadable=0.02)
WATCHED = tuple(each for each in RESOURCES if each.kind in ("Node", "Pod", "PodDisruptionBudget"))
NAMES = ("a", "b", "c", "d")


class World:
    """An embedded cluster, a cache that follows it over HTTP, and ways to change things past every fault."""

    def __init__(self, cluster: EmbeddedCluster, streamed: bool) -> None:
        """Put the parts together."""
        self.cluster = cluster
        self.cache = Cache(kinds=[each.kind for each in WATCHED])
        self.reports: list[Report] = []
        self.heard = asyncio.Event()
        self.streamed = streamed

    async def take(self, report: Report) -> None:
        """Apply a report as the service does."""
        await self.cache.receive(report)
        self.reports.append(report)
        self.heard.set()

    def ask(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> int:
        """Send a request without a socket; faults do not meet it."""
        raw = json.dumps(body).encode() if body is not None else b""
        answer = self.cluster.front.answer(
            Request(
                method=method,
                path=path,
                query={},
                body=raw,
                content_type=content_type,
                accept="application/json",
                authorization="Bearer admin-token",
                user_agent="a test",
            )
        )
        assert not isinstance(answer, OpenWatch)
        return answer.status

    def truth(self) -> Snapshot:
        """What the server has, parsed in one go."""
        found = {
            each.kind: [obj for storage, obj in self.cluster.store.everything() if storage == each.rbac_name] for each in WATCHED
        }
        parsed = parse_objects({**obj, "kind": kind} for kind, objects in found.items() for obj in objects)
        assert not parsed.problems
        return snapshot_of(0.0, nodes=parsed.of("Node"), pods=parsed.of("Pod"), budgets=parsed.of("PodDisruptionBudget"))

    async def settled(self) -> None:
        """Wait until every kind is connected and the cache shows the truth; fail if it never does."""
        async with asyncio.timeout(10):
            while self.cache.unfresh() or seen(self.cache.snapshot()) != seen(self.truth()):
                self.heard.clear()
                await self.heard.wait()


def seen(snapshot: Snapshot) -> Any:
    """Everything that a snapshot says, as values that compare."""

    def pod(each: Any) -> tuple[Any, ...]:
        return each.key, each.uid, each.node, each.ready, each.phase, each.deleted_at, dict(each.shape.labels), each.main

    return (
        dict(snapshot.nodes),
        {name: [pod(each) for each in bucket] for name, bucket in snapshot.pods.items()},
        [pod(each) for each in snapshot.unplaced],
        dict(snapshot.budgets),
    )


def create_pod(world: World, name: str, node: str) -> None:
    """Create a pod, bound or not."""
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 1}
    if node:
        spec["nodeName"] = node
    world.ask("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": name, "labels": {"app": "a"}}, "spec": spec})


def touch_pod(world: World, name: str, value: str) -> None:
    """Change a pod's labels and readiness."""
    path, merge = f"/api/v1/namespaces/default/pods/{name}", "application/merge-patch+json"
    world.ask("PATCH", path, {"metadata": {"labels": {"v": value}}}, merge)
    condition = {"type": "Ready", "status": "True" if value in "ab" else "False"}
    world.ask("PATCH", f"{path}/status", {"status": {"phase": "Running", "conditions": [condition]}}, merge)


def delete_pod(world: World, name: str, grace: str) -> None:
    """Delete a pod, at once or gracefully."""
    world.ask("DELETE", f"/api/v1/namespaces/default/pods/{name}", {"gracePeriodSeconds": 0 if grace in "ab" else 30})


def create_node(world: World, name: str, _: str) -> None:
    """Create a node."""
    world.ask("POST", "/api/v1/nodes", {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "4"}}})


def touch_node(world: World, name: str, value: str) -> None:
    """Cordon or uncordon a node."""
    merge = "application/merge-patch+json"
    world.ask("PATCH", f"/api/v1/nodes/{name}", {"spec": {"unschedulable": value in "ab"}}, merge)


def delete_node(world: World, name: str, _: str) -> None:
    """Delete a node."""
    world.ask("DELETE", f"/api/v1/nodes/{name}")


def create_budget(world: World, name: str, _: str) -> None:
    """Create a PodDisruptionBudget."""
    spec = {"selector": {"matchLabels": {"app": "a"}}, "minAvailable": 1}
    world.ask("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", {"metadata": {"name": name}, "spec": spec})


CHANGES = (create_pod, touch_pod, delete_pod, create_node, touch_node, delete_node, create_budget)
TROUBLES = tuple(Trouble)

changes = st.tuples(st.sampled_from(CHANGES), st.sampled_from(NAMES), st.sampled_from(NAMES))
faults = st.builds(
    lambda trouble, plural, watches, after: Fault(
        trouble, path=plural, watches=watches, times=2, after_lines=after, delay_seconds=0.05, retry_after_seconds=0
    ),
    st.sampled_from(TROUBLES),
    st.sampled_from(("pods", "nodes", "poddisruptionbudgets", "")),
    st.sampled_from((True, False, None)),
    st.integers(0, 3),
)
upheavals = st.sampled_from(("restart", "restart without history", "compact", "drop watches", "go on", "heal"))


async def follow(history: list[Any], streamed: bool) -> World:
    """Play a history against a cache that follows; return the world once the cache shows the truth."""
    async with EmbeddedCluster(seed=1, bookmark_seconds=0.1) as cluster:
        world = World(cluster, streamed)
        transport = Transport(Access(server=cluster.url, credentials=Fixed("Bearer admin-token"), source="a test"))
        tasks = [asyncio.create_task(_reflector(world, transport, each).run()) for each in WATCHED]
        try:
            for step in ("heal", *history, "heal"):
                await play(world, step)
        finally:
            for task in tasks:
                task.cancel()
            for task in tasks:
                with suppress(asyncio.CancelledError):
                    await task
            await transport.close()
    return world


def _reflector(world: World, transport: Transport, resource: Resource) -> Reflector:
    parse = world.cache.parser(resource.kind)
    return Reflector(transport, resource, parse, world.take, random=Random(1), times=QUICK, page_size=2, streamed=world.streamed)


async def play(world: World, step: Any) -> None:
    """Play one step of a history, and let the rest of the world have its turn."""
    if isinstance(step, Fault):
        world.cluster.faults.add(step)
    elif isinstance(step, tuple):
        change, first, second = step
        change(world, first, second)
    elif step.startswith("restart"):
        await world.cluster.restart(history_gone=step == "restart without history")
    elif step == "compact":
        world.cluster.store.compact()
    elif step == "drop watches":
        world.cluster.faults.add(Fault(Trouble.RESET, watches=True))
    elif step == "heal":
        world.cluster.faults.clear()
        await world.settled()
    else:
        world.heard.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                await world.heard.wait()
    await asyncio.sleep(0)


@given(st.lists(st.one_of(changes, changes, changes, faults, upheavals), min_size=5, max_size=40), st.booleans())
@settings(max_examples=60)
def test_the_cache_ends_equal_to_the_truth(history: list[Any], streamed: bool):
    """Over random changes, every injected fault, restarts and lost history; by pages and by streamed lists."""
    for step in history:
        if isinstance(step, Fault):
            step.met = 0
    asyncio.run(follow(history, streamed))


@pytest.mark.parametrize("streamed", [pytest.param(True, id="streamed"), pytest.param(False, id="paged")])
@pytest.mark.parametrize("trouble", TROUBLES)
async def test_each_fault_is_survived(trouble: Trouble, streamed: bool):
    """One after another on every watch and list of pods, while pods change."""
    history: list[Any] = [(create_node, "a", ""), (create_pod, "a", "a"), "heal"]
    for watches in (True, False):
        history.append(Fault(trouble, path="/pods", watches=watches, times=2, retry_after_seconds=0, after_lines=1))
        history += ["go on", (create_pod, "b", "a"), (touch_pod, "a", "a"), "compact", "go on"]
        history += [(delete_pod, "b", "a"), (touch_pod, "a", "c"), "restart without history"]
    await follow(history, streamed)


async def test_while_nothing_breaks_nothing_is_listed_again():
    """A watch that the server ends goes on from where it was."""
    history: list[Any] = [(create_node, "a", ""), *[(create_pod, name, "a") for name in NAMES]]
    history += ["restart", "heal", (touch_pod, "a", "a"), "restart", "heal", (touch_pod, "b", "b")]
    world = await follow(history, False)
    listed = [report.kind for report in world.reports if isinstance(report, Listed)]
    assert sorted(listed) == ["Node", "Pod", "PodDisruptionBudget"]
    assert any(isinstance(report, Disconnected) for report in world.reports)
