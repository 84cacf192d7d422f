"""The whole controller beside the embedded cluster with its Deployment controller, in virtual time and without sockets.

On two nodes there are workloads of one replica, all on the node that is about to get a taint; what they depend on is written down
at the moment at which it happens.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Any

from rebalancer.control.happenings import Asked, Settled
from rebalancer.model.plan import Plan
from rebalancer.placement.profile import DEFAULT
from rebalancer.policy import load
from rebalancer.service.life import Stop, serve
from rebalancer.service.logs import LogListener
from rebalancer.service.parts import Parts, build
from rebalancer.settings import load_settings
from rebalancer.sim.answering import OpenWatch
from rebalancer.sim.cluster import EmbeddedCluster
from rebalancer.sim.history import Event
from rebalancer.sim.kinds import BUDGET, DEPLOYMENT, NODE, Kind
from rebalancer.sim.nodes import NodeShape
from rebalancer.sim.requests import Answer, Request
from tests.builders import Object
from tests.control.virtual import Heard, VirtualClock
from tests.histories.network import Line
from tests.histories.processes import VirtualLoop

SETTINGS = {
    "REBALANCER_SINGLE_REPLICA": "surge",
    "REBALANCER_DEBOUNCE_QUIET_SECONDS": "1",
    "REBALANCER_NODE_SETTLE_SECONDS": "1",
    "REBALANCER_TICK_SECONDS": "20",
    "REBALANCER_SETTLE_TIMEOUT_SECONDS": "30",
    "REBALANCER_COOLDOWN_SECONDS": "600",
    "REBALANCER_LEADER_ELECTION": "false",
}
POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: default
  pluginConfig: [{name: RemovePodsViolatingNodeTaints}]
  plugins:
    deschedule: {enabled: [RemovePodsViolatingNodeTaints]}
"""
HOME, ELSEWHERE = "node-01", "node-02"
Struck = Callable[["Theatre", Request], None]


@dataclass(frozen=True, slots=True)
class Sent:
    """One request of the controller that would change something. at: seconds of the loop."""

    at: float
    method: str
    path: str
    query: Mapping[str, str]
    body: Any


class Log:
    """Keeps every line."""

    def __init__(self) -> None:
        """Start without any."""
        self.lines: list[dict[str, Any]] = []

    def debug(self, event: str, **values: Any) -> None:
        """Keep a line."""
        self.lines.append({"event": event, **values})

    info = warning = debug


class Theatre:
    """A cluster, a controller that is not running yet, and what was seen of both.

    ready: for each app the fewest Ready pods that were not going, once there had been one. before, after: called as a request
    that changes something reaches the server, and when it was answered.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        """Set up in a loop of virtual time."""
        self.clock = VirtualClock()
        self.cluster = EmbeddedCluster(
            nodes=2,
            shape=NodeShape(cpu="4", memory="16Gi"),
            seed=7,
            sockets=False,
            clock=lambda: datetime.fromtimestamp(self.clock.now(), UTC),
            write_events=False,
        )
        self.sent: list[Sent] = []
        self.fewest: dict[str, int] = {}
        self.heard = Heard()
        self.log = Log()
        self.before: Struck = lambda theatre, request: None
        self.after: Struck = lambda theatre, request: None
        self.line = Line(self.cluster.front, self.cluster.faults, self, lambda what: None)
        self.parts: Parts = build(
            load_settings({**SETTINGS, **settings}),
            load(POLICY, source="test").policy,
            DEFAULT,
            self.line,  # type: ignore[arg-type]
            [self.heard, LogListener(self.log)],
            random=Random(1),
            clock=self.clock,
            beside=_at_once,
        )
        self.cluster.store.listen("pods", self._on_pod)

    # What the line tells

    def leaves(self, request: Request) -> None:
        """Nothing is noted before a request arrives."""

    async def on_its_way(self, request: Request) -> None:
        """Have something happen before it arrives."""
        if request.method != "GET":
            self.before(self, request)

    def arrives(self, request: Request, mark: None, answer: Callable[[Request], Answer | OpenWatch]) -> Answer | OpenWatch:
        """Note a request that changes something, and have it answered."""
        if request.method != "GET":
            moment = asyncio.get_running_loop().time()
            body = json.loads(request.body) if request.body else None
            self.sent.append(Sent(moment, request.method, request.path, request.query, body))
        answered = answer(request)
        if request.method != "GET":
            self.after(self, request)
        return answered

    def sent_to(self, part: str) -> list[Sent]:
        """Return the changing requests whose path has this part."""
        return [each for each in self.sent if part in each.path]

    @property
    def rollouts(self) -> list[Sent]:
        """What was sent to Deployments."""
        return self.sent_to("/deployments/")

    @property
    def evictions(self) -> list[Sent]:
        """What was sent to the Eviction API."""
        return self.sent_to("/eviction")

    # What the cluster does

    def _on_pod(self, event: Event) -> None:
        pod = event.after or event.before
        assert pod is not None
        app = pod["metadata"].get("labels", {}).get("app", "")
        ready = len(self.ready(app))
        if ready or app in self.fewest:
            self.fewest[app] = min(ready, self.fewest.get(app, ready))

    def pods(self, app: str) -> list[Object]:
        """Return the pods of an app."""
        return [pod for pod in self.cluster.store.objects("pods") if pod["metadata"].get("labels", {}).get("app") == app]

    def ready(self, app: str) -> list[Object]:
        """Return the Ready pods of an app that are not going."""
        return [
            pod
            for pod in self.pods(app)
            if "deletionTimestamp" not in pod["metadata"]
            and any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", ()))
        ]

    def nodes_of(self, app: str) -> list[str]:
        """Return where the pods of an app are."""
        return [pod["spec"].get("nodeName", "") for pod in self.pods(app)]

    def deployment(self, name: str) -> Object:
        """Return a Deployment as it is now."""
        return self.cluster.registry.get(DEPLOYMENT, "default", name)

    def change(self, kind: Kind, namespace: str, name: str, **spec: Any) -> None:
        """Have somebody change an object's spec."""
        found = self.cluster.registry.get(kind, namespace, name)
        self.cluster.registry.update(kind, found, {**found, "spec": {**found["spec"], **spec}})

    async def furnish(self, *workloads: tuple[Kind, Object], guarded: bool = False) -> None:
        """Have workloads come up on the one node, each with a budget that forbids every eviction if ``guarded``."""
        self.change(NODE, "", ELSEWHERE, unschedulable=True)
        for kind, workload in workloads:
            name = workload["metadata"]["name"]
            self.cluster.registry.create(kind, "default", workload)
            if guarded:
                selector = {"matchLabels": {"app": name}}
                budget = {
                    "metadata": {"name": name},
                    "spec": {"minAvailable": workload["spec"]["replicas"], "selector": selector},
                }
                self.cluster.registry.create(BUDGET, "default", budget)
        await self.until(
            lambda: all(len(self.ready(each["metadata"]["name"])) == each["spec"]["replicas"] for _, each in workloads)
        )
        await asyncio.sleep(2.0)
        self.change(NODE, "", ELSEWHERE, unschedulable=False)

    def taint(self) -> None:
        """Give the node where everything is a taint that nobody tolerates."""
        self.change(NODE, "", HOME, taints=[{"key": "leave", "effect": "NoSchedule"}])

    async def until(self, true: Callable[[], bool], seconds: float = 120.0) -> None:
        """Wait in virtual time until something is true."""
        async with asyncio.timeout(seconds):
            while not true():
                await asyncio.sleep(0.1)

    async def settled(self, count: int = 1) -> list[Settled]:
        """Wait until so many moves have settled."""
        await self.until(lambda: len(self.heard.of(Settled)) >= count)
        return self.heard.of(Settled)

    @property
    def answers(self) -> list[str]:
        """What the controller's requests were answered, by kind."""
        return [type(each.answer).__name__ for each in self.heard.of(Asked)]

    @asynccontextmanager
    async def operating(self) -> AsyncIterator[None]:
        """Run the controller while the block runs; it has to stop without a fault."""
        stop = Stop()
        service = asyncio.create_task(serve(self.parts, stop, policy_file=None, listen=False), name="service")
        try:
            yield
        finally:
            stop.event.set()
            await asyncio.wait_for(service, 30.0)
            await self.line.bury()


async def _at_once(compute: Callable[[], Plan]) -> Plan:
    await asyncio.sleep(0.01)
    return compute()


def a_workload(name: str, replicas: int = 1, *, more: Object | None = None, **spec: Any) -> Object:
    """Return a Deployment or StatefulSet. more: annotations of its pods."""
    container = {"name": "main", "image": "image:1", "resources": {"requests": {"cpu": "200m"}}}
    template = {"metadata": {"labels": {"app": name}, "annotations": more or {}}, "spec": {"containers": [container]}}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template, **spec},
    }


def tell(story: Callable[[Theatre], Awaitable[None]], **settings: str) -> None:
    """Tell a story in a new cluster, in virtual time. settings: those of the controller, without their prefix."""

    async def told() -> None:
        """Tell it."""
        theatre = Theatre({f"REBALANCER_{name.upper()}": value for name, value in settings.items()})
        async with theatre.cluster:
            await story(theatre)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(told())
