"""CPU and memory per pod from bytes to indexes, CPU per watch event, and the longest stretch that blocks the event loop.

Run: ``python -m benchmarks.cache [--pods 20000] [--owners 900] [--nodes 700]``. The bytes come from a process of their own, so
that only parsing and caching are measured.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import multiprocessing
import statistics
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection
from random import Random
from typing import Any

import msgspec

from benchmarks.generate import Cluster, Size, as_bytes, pages
from rebalancer.cache.collector import freeze
from rebalancer.cache.store import Cache
from rebalancer.kube.reflector import Reflector
from rebalancer.kube.reply import Reply
from rebalancer.kube.resources import RESOURCES
from rebalancer.model.change import Report


def resident_mib() -> float:
    """Return the resident memory of this process, in MiB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 2**20


class Feed:
    """Stands for the transport: gives out pages and lines made in another process, and counts the time spent waiting for them."""

    def __init__(self, size: Size, events: int) -> None:
        """Start the process that makes the bytes."""
        self.waited_cpu = 0.0
        self.listed = asyncio.Event()
        self.done = asyncio.Event()
        self._here, there = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("fork").Process(target=_produce, args=(there, size, events), daemon=True)
        self._process.start()
        self._events = events

    async def request(self, method: str, path: str, **_: Any) -> Reply:
        """Return the next page."""
        return Reply(200, {}, await self._receive())

    @asynccontextmanager
    async def stream(self, path: str, query: Any, **_: Any) -> AsyncIterator[AsyncIterator[bytes]]:
        """Give out the events once the list is taken over."""
        self.listed.set()

        async def events() -> AsyncIterator[bytes]:
            self.go = asyncio.Event()
            await self.go.wait()
            while lines := await self._receive():
                for line in filter(None, lines.split(b"\n")):
                    yield line
            self.done.set()
            await asyncio.Event().wait()

        yield events()

    async def _receive(self) -> bytes:
        data, cpu = await asyncio.to_thread(self._receive_now)
        self.waited_cpu += cpu
        return data

    def _receive_now(self) -> tuple[bytes, float]:
        before = time.thread_time()
        return self._here.recv_bytes(), time.thread_time() - before

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.join()


def _produce(to: Connection, size: Size, events: int) -> None:
    cluster = Cluster(size)
    for page in pages(cluster.pods(), "Pod"):
        to.send_bytes(page)
    random = Random(size.seed)
    lines = []
    for number in range(events):
        pod = cluster.pod(random.randrange(size.pods), version=3_000_000 + number)
        pod["status"]["containerStatuses"][0]["restartCount"] = number + 1
        pod["status"]["conditions"][2]["status"] = random.choice(("True", "False"))
        lines.append(b'{"type":"MODIFIED","object":' + as_bytes(pod) + b"}")
        if len(lines) == 40:
            to.send_bytes(b"\n".join(lines))
            lines.clear()
    to.send_bytes(b"\n".join(lines) or b"\n")
    to.send_bytes(b"")


class CollectorProbe:
    """Measures the longest garbage collection, in milliseconds of CPU."""

    def __init__(self) -> None:
        """Listen to the collector."""
        self.worst_ms = 0.0
        self._began = 0.0
        gc.callbacks.append(self._heard)

    def _heard(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._began = time.thread_time()
        else:
            self.worst_ms = max(self.worst_ms, (time.thread_time() - self._began) * 1000)


class LoopProbe:
    """Measures how long the event loop keeps a ready task waiting, in milliseconds."""

    def __init__(self) -> None:
        """Start with nothing seen."""
        self.worst_ms = 0.0

    async def run(self) -> None:
        """Turn with the loop until cancelled."""
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            self.worst_ms = max(self.worst_ms, (time.perf_counter() - before - 0.001) * 1000)


async def measure(size: Size, events: int) -> dict[str, float]:
    """Sync pods from bytes, then take over events; return the figures."""
    cache = Cache(kinds=("Node", "Pod"))
    for node in Cluster(size).nodes():
        await cache.replace("Node", [cache.parser("Node")(as_bytes(node))])
    nodes = [cache.parser("Node")(as_bytes(node)) for node in Cluster(size).nodes()]
    await cache.replace("Node", nodes)
    (resource,) = (each for each in RESOURCES if each.kind == "Pod")
    feed, probe, collector = Feed(size, events), LoopProbe(), CollectorProbe()

    async def sink(report: Report) -> None:
        await cache.receive(report)

    gc.collect()
    memory, collector.worst_ms = resident_mib(), 0.0
    reflector = Reflector(feed, resource, cache.parser("Pod"), sink, random=Random(1), streamed=False)  # type: ignore[arg-type]
    cpu = time.process_time()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(reflector.run()), group.create_task(probe.run())]
        await feed.listed.wait()
        figures = {
            "sync: CPU per pod (us)": (time.process_time() - cpu - feed.waited_cpu) / size.pods * 1e6,
            "sync: longest wait of the loop (ms)": probe.worst_ms,
            "sync: longest garbage collection (ms)": collector.worst_ms,
        }
        before = time.perf_counter()
        freeze()
        figures["freeze after the sync (ms)"] = (time.perf_counter() - before) * 1000
        figures["memory per pod (KiB)"] = (resident_mib() - memory) * 1024 / size.pods
        figures["memory of the process (MiB)"] = resident_mib()
        await asyncio.sleep(0.01)
        probe.worst_ms = collector.worst_ms = feed.waited_cpu = 0.0
        cpu = time.process_time()
        feed.go.set()
        await feed.done.wait()
        figures["events: CPU per event (us)"] = (time.process_time() - cpu - feed.waited_cpu) / events * 1e6
        figures["events: longest wait of the loop (ms)"] = probe.worst_ms
        figures["events: longest garbage collection (ms)"] = collector.worst_ms
        figures["snapshot after a change (ms)"] = statistics.median(timed(lambda: _changed_snapshot(cache)) for _ in range(20))
        figures["snapshot without a change (ms)"] = statistics.median(timed(cache.snapshot) for _ in range(20))
        probe.worst_ms = 0.0
        same = [pod for bucket in cache.snapshot().pods.values() for pod in bucket]
        await asyncio.sleep(0.01)
        probe.worst_ms = 0.0
        before = time.perf_counter()
        await cache.replace("Pod", same)
        figures["relist: taking it over (ms, sliced)"] = (time.perf_counter() - before) * 1000
        figures["relist: longest wait of the loop (ms)"] = probe.worst_ms
        figures["full garbage collection (ms)"] = timed(gc.collect)
        figures["pods known"] = cache.count("Pod")
        for task in tasks:
            task.cancel()
    feed.close()
    return figures


def _changed_snapshot(cache: Cache) -> None:
    pod = next(iter(cache.pods_in("team-000")))
    cache.assume_evicted(pod.key, pod.uid, 60)
    cache.withdraw_assumption(pod.uid)
    cache.snapshot()


def timed(work: Callable[[], object]) -> float:
    """Return how long some work takes, in milliseconds."""
    before = time.perf_counter()
    work()
    return (time.perf_counter() - before) * 1000


def parse_only(size: Size) -> float:
    """Return the CPU that parsing alone takes per pod, in microseconds."""
    cache = Cache(kinds=("Pod",))
    cluster, parse = Cluster(size), cache.parser("Pod")
    raws: list[bytes] = [as_bytes(cluster.pod(number)) for number in range(min(size.pods, 5000))]
    kept = [parse(raw) for raw in raws[:1000]]
    before = time.process_time()
    kept += [parse(raw) for raw in raws[1000:]]
    return (time.process_time() - before) / max(1, len(raws) - 1000) * 1e6


def mean_bytes(size: Size) -> float:
    """Return the mean size of a pod's JSON."""
    cluster = Cluster(size)
    return statistics.mean(len(as_bytes(cluster.pod(number))) for number in range(200))


def rows(size: Size, events: int) -> Iterator[tuple[str, float]]:
    """Yield name and value of every figure."""
    yield "JSON per pod (bytes)", mean_bytes(size)
    yield "parse alone: CPU per pod (us)", parse_only(size)
    yield from asyncio.run(measure(size, events)).items()


def _isolated(size: Size, events: int) -> list[tuple[str, float]]:
    """Measure in a fresh process, so that one measurement's memory is not the next one's."""
    here, there = multiprocessing.Pipe()

    def work() -> None:
        there.send(list(rows(size, events)))

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    result: list[tuple[str, float]] = here.recv()
    process.join()
    return result


def main() -> None:
    """Print the figures for pods that share owners, and for pods that share nothing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--owners", type=int, default=900)
    parser.add_argument("--nodes", type=int, default=700)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--shared-only", action="store_true", help="leave out the worst case")
    options = parser.parse_args()
    print(f"msgspec {msgspec.__version__}, {options.pods} pods on {options.nodes} nodes")
    sizes = [("shared", Size(options.nodes, options.pods, options.owners))]
    if not options.shared_only:
        sizes.append(("worst sharing", Size(options.nodes, options.pods, options.pods)))
    for name, size in sizes:
        print(f"\n{name}: {size.owners} owners")
        for label, value in _isolated(size, options.events):
            print(f"  {label:<44}{value:>12.2f}")


if __name__ == "__main__":
    main()
