"""An embedded cluster in a process of its own, which notes who asked for what, and when.

Every client has its own token, so the audit tells replicas apart. Times are of the system's monotonic clock, the same in every
process. Commands go over a pipe.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from rebalancer.sim.access import User
from rebalancer.sim.answering import OpenWatch
from rebalancer.sim.cluster import EmbeddedCluster
from rebalancer.sim.deletion import DeleteOptions, delete
from rebalancer.sim.history import Event
from rebalancer.sim.kinds import BUDGET, DEPLOYMENT, NODE
from rebalancer.sim.kubelet import KubeletTimes
from rebalancer.sim.nodes import NodeShape
from rebalancer.sim.requests import Answer, Request

_FILL_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Eviction:
    """A request that arrived. at: monotonic seconds. holder: who had written the Lease last."""

    at: float
    client: str
    uid: str
    pod: str
    status: int
    holder: str


@dataclass(frozen=True, slots=True)
class LeaseWrite:
    """A write of the Lease that was accepted. held: the client holds it from now on; otherwise it gave it back."""

    at: float
    client: str
    held: bool


@dataclass(frozen=True, slots=True)
class Going:
    """A pod that was marked for deletion, as the store saw it."""

    at: float
    uid: str


Record = Eviction | LeaseWrite | Going


@dataclass(frozen=True, slots=True)
class Workload:
    """What runs in the cluster. deployments: how many. replicas: of each. cpu: what each asks for."""

    nodes: int = 4
    deployments: int = 10
    replicas: int = 3
    cpu: str = "500m"
    seed: int = 1


class _Host:
    """The other side of the pipe."""

    def __init__(self, workload: Workload, clients: tuple[str, ...], pipe: Connection) -> None:
        self._workload = workload
        self._pipe = pipe
        self.records: list[Record] = []
        self._holder = ""
        self.cluster = EmbeddedCluster(
            nodes=workload.nodes,
            shape=NodeShape(cpu="16", memory="64Gi"),
            seed=workload.seed,
            times=KubeletTimes(start=(0.2, 0.6), ready=(0.1, 0.3), stop=(0.2, 1.0)),
            write_events=False,
        )
        self._users: dict[str, str] = {}
        for client in clients:
            self.cluster.tokens.add(f"token-{client}", User(client, frozenset({"system:masters", "system:authenticated"})))
            self._users[f"Bearer token-{client}"] = client
        answer = self.cluster.front.answer
        self.cluster.front.answer = lambda request: self._noted(request, answer)  # type: ignore[method-assign]
        self.cluster.store.listen("pods", self._on_pod)

    def _on_pod(self, event: Event) -> None:
        if event.after is None or "deletionTimestamp" not in event.after["metadata"]:
            return
        if event.before is None or "deletionTimestamp" not in event.before["metadata"]:
            self.records.append(Going(time.monotonic(), event.after["metadata"]["uid"]))

    def _noted(self, request: Request, answer: Callable[[Request], Answer | OpenWatch]) -> Answer | OpenWatch:
        given = answer(request)
        client = self._users.get(request.authorization, "")
        if not isinstance(given, Answer):
            return given
        if request.method == "POST" and request.path.endswith("/eviction"):
            body = json.loads(request.body)
            uid = body["deleteOptions"].get("preconditions", {}).get("uid", "")
            name = request.path.split("/")[-2]
            self.records.append(Eviction(time.monotonic(), client, uid, name, given.status, self._holder))
        elif request.method in ("PUT", "POST") and "/leases" in request.path and given.status < 300:
            held = bool(json.loads(request.body)["spec"].get("holderIdentity"))
            self._holder = client if held else ""
            self.records.append(LeaseWrite(time.monotonic(), client, held))
        return given

    async def run(self) -> None:
        async with self.cluster:
            await self._fill()
            self._pipe.send(int(self.cluster.url.rpartition(":")[2]))
            loop = asyncio.get_running_loop()
            while True:
                command, *arguments = await loop.run_in_executor(None, self._pipe.recv)
                if command == "stop":
                    return
                self._pipe.send(getattr(self, command)(*arguments))

    async def _fill(self) -> None:
        for number in range(self._workload.deployments):
            name = f"app{number}"
            self.cluster.registry.create(DEPLOYMENT, "default", _deployment(name, self._workload.replicas, self._workload.cpu))
            if number % 2:
                spec = {"selector": {"matchLabels": {"app": name}}, "maxUnavailable": 1}
                self.cluster.registry.create(BUDGET, "default", {"metadata": {"name": name}, "spec": spec})
        async with asyncio.timeout(_FILL_SECONDS):
            while self.ready_pods() < self._workload.deployments * self._workload.replicas:
                await asyncio.sleep(0.05)

    def ready_pods(self) -> int:
        return sum(
            any(each["type"] == "Ready" and each["status"] == "True" for each in pod.get("status", {}).get("conditions", ()))
            for pod in self.cluster.store.objects("pods")
        )

    def since(self, index: int) -> list[Record]:
        return self.records[index:]

    def join(self, name: str) -> None:
        self.cluster.add_node(name)

    def leave(self, name: str) -> None:
        self.cluster.lose_node(name)
        delete(self.cluster.registry, NODE, "", name, DeleteOptions())

    def ready_since(self, name: str) -> bool:
        node = self.cluster.store.get(NODE.storage, "", name)
        return node is not None and not node["spec"].get("taints")

    def touch(self, count: int, start: int) -> int:
        """Change the status of so many pods, one after another from a place on."""
        keys = self.cluster.store.keys("pods")
        for number in range(start, start + count):
            pod = self.cluster.store.get("pods", *keys[number % len(keys)])
            if pod is not None and "deletionTimestamp" not in pod["metadata"]:
                statuses = [
                    {**each, "restartCount": each.get("restartCount", 0) + 1}
                    for each in pod["status"].get("containerStatuses", ())
                ]
                changed = {**pod["status"], "containerStatuses": statuses}
                self.cluster.store.put("pods", {**pod, "metadata": dict(pod["metadata"]), "status": changed})
        return len(keys)


def _deployment(name: str, replicas: int, cpu: str) -> dict[str, Any]:
    container = {"name": "main", "image": "image:1", "resources": {"requests": {"cpu": cpu, "memory": "256Mi"}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def _main(workload: Workload, clients: tuple[str, ...], pipe: Connection) -> None:
    asyncio.run(_Host(workload, clients, pipe).run())


class ClusterProcess:
    """The cluster, from outside. port: where it listens."""

    def __init__(self, workload: Workload, clients: tuple[str, ...]) -> None:
        """Start it, and wait until all its pods are Ready."""
        self._pipe, there = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self._process = context.Process(target=_main, args=(workload, clients, there), daemon=True)
        self._process.start()
        there.close()
        self.port: int = self._pipe.recv()
        self.records: list[Record] = []
        self._asking = asyncio.Lock()

    async def command(self, name: str, *arguments: Any) -> Any:
        """Give a command and return its answer."""
        async with self._asking:
            return await asyncio.to_thread(self._ask, name, *arguments)

    def _ask(self, name: str, *arguments: Any) -> Any:
        self._pipe.send((name, *arguments))
        return self._pipe.recv()

    async def look(self) -> list[Record]:
        """Return the whole record."""
        self.records += await self.command("since", len(self.records))
        return self.records

    def close(self) -> None:
        """End the process."""
        self._pipe.send(("stop",))
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
