"""Three replicas as processes; the one that leads is killed, frozen or cut off in the middle of runs. Figures, not only verdicts.

python -m tests.service.failover [ROUNDS]
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rebalancer.sim.cluster import EmbeddedCluster
from rebalancer.sim.history import Event
from rebalancer.sim.kubelet import KubeletTimes
from rebalancer.sim.nodes import NodeShape
from tests.service.process import Controller, Deletions, controller, placed

LEASE_SECONDS, RENEW_SECONDS, RETRY_SECONDS = 4.0, 2.5, 0.5
REPLICAS = 3
TIMES = {
    "REBALANCER_LEASE_DURATION_SECONDS": str(LEASE_SECONDS),
    "REBALANCER_LEASE_RENEW_SECONDS": str(RENEW_SECONDS),
    "REBALANCER_LEASE_RETRY_SECONDS": str(RETRY_SECONDS),
    "REBALANCER_EVICTION_TIMEOUT_SECONDS": "1",
    "REBALANCER_MAX_IN_FLIGHT": "2",
    "REBALANCER_TICK_SECONDS": "5",
    "REBALANCER_CAP_NODE": "none",
}


class Proxy:
    """A way to the API server that can be cut: connections end, new ones are not answered."""

    def __init__(self, port: int) -> None:
        """Lead to this port."""
        self._target = port
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.cut = False
        self.port = 0

    async def start(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while self.cut:
                await asyncio.sleep(0.05)
            back_reader, back_writer = await asyncio.open_connection("127.0.0.1", self._target)
            self._writers.add(back_writer)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._copy(reader, back_writer))
                tasks.create_task(self._copy(back_reader, writer))
        except* (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            while self.cut:
                await asyncio.sleep(0.05)
            writer.write(data)
            await writer.drain()
        writer.close()

    async def stop(self) -> None:
        """End every connection."""
        assert self._server is not None
        self._server.close()
        for writer in tuple(self._writers):
            writer.close()


@dataclass
class Replica:
    """One process and its way to the cluster."""

    process: Controller
    proxy: Proxy

    @property
    def identity(self) -> str:
        """Its identity as it said when it led last; empty before."""
        led = self.process.events("leading")
        return str(led[-1]["holder"]) if led else ""


@dataclass
class Figures:
    """What came of it. takeover: seconds from the fault to another leader, by fault."""

    takeover: dict[str, list[float]] = field(default_factory=dict)
    evictions: int = 0
    double: int = 0


class Field:
    """The cluster and its replicas."""

    def __init__(self, cluster: EmbeddedCluster, folder: Path, stack: AsyncExitStack) -> None:
        """Watch the lease and every eviction."""
        self.cluster = cluster
        self.deletions = Deletions(cluster)
        self.replicas: list[Replica] = []
        self.holders: list[tuple[float, str]] = []
        self._folder = folder
        self._stack = stack
        self._number = 0
        cluster.store.listen("leases.coordination.k8s.io", self._on_lease)

    def _on_lease(self, event: Event) -> None:
        holder = (event.after or {}).get("spec", {}).get("holderIdentity") or ""
        if not self.holders or self.holders[-1][1] != holder:
            self.holders.append((asyncio.get_running_loop().time(), holder))

    async def add_replica(self) -> None:
        """Start one more process."""
        self._number += 1
        proxy = Proxy(int(self.cluster.url.rpartition(":")[2]))
        await proxy.start()
        self._stack.push_async_callback(proxy.stop)
        from rebalancer.sim.kubeconfig import kubeconfig

        path = self._folder / f"kubeconfig-{self._number}"
        await asyncio.to_thread(path.write_text, kubeconfig(f"http://127.0.0.1:{proxy.port}", "admin-token"))
        process = await self._stack.enter_async_context(controller(path, self._folder, more=TIMES))
        self.replicas.append(Replica(process, proxy))

    async def leader(self, seconds: float = 30.0) -> Replica:
        """Wait until one of the replicas holds the lease, and return it."""
        async with asyncio.timeout(seconds):
            while True:
                holder = self.holders[-1][1] if self.holders else ""
                for replica in self.replicas:
                    if holder and replica.identity == holder:
                        return replica
                await asyncio.sleep(0.02)

    async def in_the_middle_of_a_run(self) -> Replica:
        """Have a node join, and return the leader once it has begun to evict."""
        leader = await self.leader()
        before = len(self.deletions.moments)
        self.cluster.add_node(ready=True)
        end = asyncio.get_running_loop().time() + 40
        while len(self.deletions.moments) == before:
            if asyncio.get_running_loop().time() > end:
                raise AssertionError("nothing was evicted:\n" + "\n".join(map(str, leader.process.logged[-25:])))
            await asyncio.sleep(0.01)
        return leader

    async def next_holder(self, since: float, not_this: str) -> float:
        """Return when somebody else got the lease."""
        async with asyncio.timeout(60):
            while True:
                for moment, holder in self.holders:
                    if moment > since and holder and holder != not_this:
                        return moment
                await asyncio.sleep(0.02)

    async def fault(self, kind: str) -> float:
        """Have the leader killed, frozen or cut off in the middle of a run; return the seconds until another led."""
        leader = await self.in_the_middle_of_a_run()
        identity, process = leader.identity, leader.process.process
        began = asyncio.get_running_loop().time()
        if kind == "killed":
            process.kill()
        elif kind == "frozen":
            process.send_signal(signal.SIGSTOP)
        else:
            leader.proxy.cut = True
        taken = await self.next_holder(began, identity) - began
        if kind == "killed":
            self.replicas.remove(leader)
            await self.add_replica()
        elif kind == "frozen":
            await asyncio.sleep(1.0)
            process.send_signal(signal.SIGCONT)
            await asyncio.sleep(2.0)
        else:
            await asyncio.sleep(1.0)
            leader.proxy.cut = False
            await asyncio.sleep(2.0)
        await self._shrink()
        return taken

    async def _shrink(self) -> None:
        """Take the newest node away again, so that the next one that joins is needed."""
        from rebalancer.sim.deletion import DeleteOptions, delete
        from rebalancer.sim.kinds import NODE

        await asyncio.sleep(3.0)
        names = sorted(name for _, name in self.cluster.store.keys("nodes"))
        if len(names) > 2:
            self.cluster.lose_node(names[-1])
            delete(self.cluster.registry, NODE, "", names[-1], DeleteOptions())
        await asyncio.sleep(6.0)


@asynccontextmanager
async def a_field(folder: Path) -> AsyncIterator[Field]:
    """Give a cluster of two nodes with room for a third's worth, and three replicas on it."""
    times = KubeletTimes(start=(0.2, 0.5), ready=(0.2, 0.4), stop=(0.3, 0.8))
    async with EmbeddedCluster(nodes=2, shape=NodeShape(cpu="8", memory="32Gi"), seed=11, times=times) as cluster:
        await placed(cluster, 10, 3, cpu="400m")
        async with AsyncExitStack() as stack:
            field_ = Field(cluster, folder, stack)
            for _ in range(REPLICAS):
                await field_.add_replica()
            yield field_


async def failovers(rounds: int, folder: Path, kinds: tuple[str, ...] = ("killed", "frozen", "cut off")) -> Figures:
    """Go through so many rounds of each fault, and return what came of it."""
    figures = Figures()
    async with a_field(folder) as field_:
        requests = EvictionLog(field_.cluster)
        for number in range(rounds):
            for kind in kinds:
                taken = await field_.fault(kind)
                figures.takeover.setdefault(kind, []).append(taken)
                print(f"round {number + 1}: leader {kind}, another led after {taken:.2f} s", flush=True)
        figures.evictions = len(requests.accepted)
        figures.double = sum(count > 1 for count in requests.accepted.values())
    return figures


class EvictionLog:
    """Counts the evictions that the API server accepted, by pod uid."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        """Listen at the front."""
        self.accepted: dict[str, int] = {}
        answer = cluster.front.answer

        def noted(request: object) -> object:
            given = answer(request)  # type: ignore[arg-type]
            path, method = request.path, request.method  # type: ignore[attr-defined]
            if method == "POST" and path.endswith("/eviction") and getattr(given, "status", 0) == 201:
                import json

                uid = json.loads(request.body)["deleteOptions"]["preconditions"]["uid"]  # type: ignore[attr-defined]
                self.accepted[uid] = self.accepted.get(uid, 0) + 1
            return given

        cluster.front.answer = noted  # type: ignore[method-assign, assignment]


def main() -> int:
    """Print the figures; return 1 where a promise was broken."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    with tempfile.TemporaryDirectory(prefix="failover-") as folder:
        figures = asyncio.run(failovers(rounds, Path(folder)))
    for kind, taken in figures.takeover.items():
        print(f"{kind:8} {len(taken)} times: takeover {min(taken):.2f} to {max(taken):.2f} s (lease {LEASE_SECONDS:g} s)")
    print(f"{figures.evictions} evictions accepted, {figures.double} pods evicted twice")
    late = any(seconds > LEASE_SECONDS + 5 for taken in figures.takeover.values() for seconds in taken)
    return int(late or figures.double > 0)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
