"""The embedded cluster put together: store, rules, HTTP skin, controllers, scheduler, kubelets.

async with EmbeddedCluster(nodes=3, seed=1) as cluster:
    cluster.url, cluster.kubeconfig(path), cluster.add_node("n9"), cluster.faults
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rebalancer.sim.access import Access, Tokens
from rebalancer.sim.answering import Front
from rebalancer.sim.faults import Faults
from rebalancer.sim.identities import Identities
from rebalancer.sim.kinds import NAMESPACE
from rebalancer.sim.kubeconfig import kubeconfig
from rebalancer.sim.moments import Clock, wall_clock
from rebalancer.sim.paths import PathAnswers
from rebalancer.sim.registry import Registry
from rebalancer.sim.server import Server
from rebalancer.sim.store import Store

_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


class EmbeddedCluster:
    """A cluster in this process.

    store: the objects. registry: the rules without sockets. tokens, access: who may what. faults: what goes wrong.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        port: int = 0,
        clock: Clock = wall_clock,
        history_limit: int = 20_000,
        sockets: bool = True,
        bookmark_seconds: float = 60.0,
    ) -> None:
        self._source = random.Random(seed)
        self.store = Store(history_limit)
        self.registry = Registry(self.store, clock, Identities(self._source))
        self.tokens = Tokens(clock)
        self.access = Access(self.store)
        self.faults = Faults()
        self.front = Front(self.registry, self.tokens, self.access, PathAnswers())
        self._sockets = sockets
        self._bookmark_seconds = bookmark_seconds
        self._port = port
        self._server: Server | None = None
        for name in _NAMESPACES:
            self.add_namespace(name)

    async def __aenter__(self) -> Self:
        if self._sockets:
            await self._serve()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._server is not None:
            await self._server.stop()

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

    def add_namespace(self, name: str) -> dict[str, Any]:
        """Create a namespace."""
        return self.registry.create(NAMESPACE, "", {"metadata": {"name": name}})

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
