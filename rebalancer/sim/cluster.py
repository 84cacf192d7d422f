"""The embedded cluster put together: store, rules, HTTP skin, controllers, scheduler, kubelets.

async with EmbeddedCluster(nodes=3, seed=1) as cluster:
    cluster.url, cluster.kubeconfig(path), cluster.add_node("n9"), cluster.faults
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rebalancer.sim.access import Access, Tokens
from rebalancer.sim.answering import Front
from rebalancer.sim.controllers.loop import Controller
from rebalancer.sim.dump import load_dump
from rebalancer.sim.faults import Faults
from rebalancer.sim.history import Object
from rebalancer.sim.identities import Identities
from rebalancer.sim.kinds import NAMESPACE, NODE
from rebalancer.sim.kubeconfig import kubeconfig
from rebalancer.sim.kubelet import KubeletTimes, set_node_ready
from rebalancer.sim.moments import Clock, wall_clock
from rebalancer.sim.nodes import NodeShape, new_node, node_like
from rebalancer.sim.parts import Parts
from rebalancer.sim.paths import PathAnswers
from rebalancer.sim.registry import Registry
from rebalancer.sim.server import Server
from rebalancer.sim.store import Store

_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


class EmbeddedCluster:
    """A cluster in this process.

    nodes: how many to begin with, all of ``shape`` over the ``zones``. dump: objects of a real cluster to begin with.
    controllers: False leaves controllers, scheduler and kubelets out. sockets: False leaves HTTP out.
    metrics: True serves the metrics API, for ``kubectl top``. write_events: False lets the parts write no Events.
    clock: the present moment, aware. seed: of everything random. lag_seconds: how far the scheduler is behind.
    store, registry, tokens, access, faults: the parts, for tests and tools.
    """

    def __init__(
        self,
        *,
        nodes: int = 0,
        shape: NodeShape = NodeShape(),  # noqa: B008 - frozen
        zones: int = 1,
        dump: Iterable[Object] = (),
        controllers: bool = True,
        seed: int = 0,
        port: int = 0,
        clock: Clock = wall_clock,
        history_limit: int = 20_000,
        sockets: bool = True,
        bookmark_seconds: float = 60.0,
        times: KubeletTimes = KubeletTimes(),  # noqa: B008 - frozen
        lag_seconds: tuple[float, float] = (0.05, 0.5),
        write_events: bool = True,
        metrics: bool = False,
    ) -> None:
        self._source = random.Random(seed)
        self._shape = shape
        self._zones = zones
        self.store = Store(history_limit)
        self.registry = Registry(self.store, clock, Identities(self._source))
        self.tokens = Tokens(clock)
        self.access = Access(self.store)
        self.faults = Faults()
        self.front = Front(self.registry, self.tokens, self.access, PathAnswers(metrics=metrics))
        self._sockets = sockets
        self._bookmark_seconds = bookmark_seconds
        self._port = port
        self._server: Server | None = None
        self._running: list[asyncio.Task[None]] = []
        load_dump(self.registry, dump)
        for name in _NAMESPACES:
            if self.store.get(NAMESPACE.storage, "", name) is None:
                self.add_namespace(name)
        self._parts: Parts | None = None
        if controllers:
            self._parts = Parts(self.registry, self._source, times, lag_seconds, write_events=write_events)
            self._parts.adopt()
        for number in range(1, nodes + 1):
            self.add_node(f"node-{number:0{max(2, len(str(nodes)))}}", ready=True)

    async def __aenter__(self) -> Self:
        if self._sockets:
            await self._serve()
        if self._parts is not None:
            self._running = [_start(part) for part in self._parts.all()]
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for task in self._running:
            task.cancel()
        results = await asyncio.gather(*self._running, return_exceptions=True)
        if self._server is not None:
            await self._server.stop()
        for result in results:
            if isinstance(result, Exception) and error is None:
                raise result

    async def _serve(self) -> None:
        self._server = Server(self.front, self.faults, self._source, self._port, self._bookmark_seconds)
        await self._server.start()
        self._port = self._server.port

    @property
    def url(self) -> str:
        """Where the API server listens."""
        return f"http://127.0.0.1:{self._port}"

    def kubeconfig(self, path: Path, token: str = "admin-token") -> Path:
        """Write a kubeconfig for this cluster and return its path."""
        path.write_text(kubeconfig(self.url, token))
        return path

    def add_namespace(self, name: str) -> Object:
        """Create a namespace."""
        return self.registry.create(NAMESPACE, "", {"metadata": {"name": name}})

    def add_node(self, name: str = "", *, like: str = "", shape: NodeShape | None = None, ready: bool = False) -> Object:
        """Let a node join, in the likeness of another or of a shape.

        It becomes Ready after a while, or at once if ``ready``. Raises ApiProblem if the name is taken or ``like`` unknown.
        """
        number = self.store.count(NODE.storage) + 1
        name = name or self._free_name(number)
        if like:
            node = node_like(name, self.registry.get(NODE, "", like), number)
        else:
            chosen = shape or self._shape
            if not chosen.zone and self._zones > 1:
                zone = f"zone-{'abcdefghijklmnopqrstuvwxyz'[(number - 1) % self._zones % 26]}"
                chosen = NodeShape(chosen.cpu, chosen.memory, chosen.pods, zone, chosen.labels, chosen.taints)
            node = new_node(name, chosen, number)
        created = self.registry.create_read(NODE, "", node)
        if ready:
            set_node_ready(self.registry, name, "True", "KubeletReady", "kubelet is posting ready status")
            created = self._untainted(name)
        if self._parts is not None:
            self._parts.kubelets.manage(name)
        return created

    def _free_name(self, number: int) -> str:
        while self.store.get(NODE.storage, "", f"node-{number:02}") is not None:
            number += 1
        return f"node-{number:02}"

    def _untainted(self, name: str) -> Object:
        node = self.registry.get(NODE, "", name)
        spec: dict[str, Any] = {field: value for field, value in node["spec"].items() if field != "taints"}
        kept = [taint for taint in node["spec"].get("taints", ()) if taint["key"] != "node.kubernetes.io/not-ready"]
        if kept:
            spec["taints"] = kept
        return self.store.put(NODE.storage, {**node, "metadata": dict(node["metadata"]), "spec": spec})

    def lose_node(self, name: str) -> None:
        """Let a node fall silent: its kubelet stops, Ready becomes Unknown."""
        if self._parts is not None:
            self._parts.kubelets.lose(name)

    async def restart(self, *, history_gone: bool = False, down_seconds: float = 0.0) -> None:
        """Stop the API server and start it again on the same port; watches end, and the history may be gone."""
        if self._server is not None:
            await self._server.stop()
        if history_gone:
            self.store.compact()
        self.store.incarnation += 1
        if down_seconds:
            await asyncio.sleep(down_seconds)
        if self._sockets:
            await self._serve()

    def drop_watches(self) -> None:
        """End every open watch over HTTP; clients may come back at once."""
        if self._server is not None:
            self._server.drop_watches()


def _start(part: Controller) -> asyncio.Task[None]:
    return asyncio.create_task(part.run(), name=f"sim/{type(part).__name__}")
