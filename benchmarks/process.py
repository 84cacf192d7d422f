"""The whole controller against an API server in another process: first sync, memory, events, relists, the event loop.

Run: ``python -m benchmarks.process [--nodes 5000] [--unshared] [--paged] [--times 1]``

The controller is built as ``rebalancer run --dry-run plan`` builds it and reads everything over HTTP on loopback. A probe inside
the event loop notes the longest time that a ready task had to wait. Memory is VmRSS of the process.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import time
from dataclasses import replace
from multiprocessing.connection import Connection

from benchmarks.evaluation import POLICY
from benchmarks.measuring import isolated, resident_mib
from benchmarks.scenario import FEW, UNSHARED, Kind, scaled
from benchmarks.server import ApiServer

EVENTS_PER_SECOND = 2_000


class LoopProbe:
    """Measures how long the event loop keeps a ready task waiting, in milliseconds.

    worst_ms: as a clock on the wall shows it, with what other processes took away. busy_ms: how much CPU this process used
    between two turns of the loop, in whatever thread: what the wait would have been on an idle machine.
    """

    PERIOD_SECONDS = 0.003

    def __init__(self) -> None:
        """Start with nothing seen."""
        self.worst_ms = self.busy_ms = self.collecting_ms = 0.0
        self._collecting_since = 0.0
        gc.callbacks.append(self._collector)

    def _collector(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._collecting_since = time.thread_time()
        else:
            self.collecting_ms = max(self.collecting_ms, (time.thread_time() - self._collecting_since) * 1000)

    async def run(self) -> None:
        """Turn with the loop until cancelled."""
        while True:
            before, cpu = time.perf_counter(), time.process_time()
            await asyncio.sleep(self.PERIOD_SECONDS)
            self.worst_ms = max(self.worst_ms, (time.perf_counter() - before - self.PERIOD_SECONDS) * 1000)
            self.busy_ms = max(self.busy_ms, (time.process_time() - cpu) * 1000)

    def take(self, figures: dict[str, float], label: str) -> None:
        """Write down the longest waits since the last call."""
        figures[f"{label}: longest wait of the loop (ms)"] = self.worst_ms
        figures[f"{label}: longest wait of the loop (ms of CPU)"] = self.busy_ms
        figures[f"{label}: longest garbage collection (ms of CPU)"] = self.collecting_ms
        self.worst_ms = self.busy_ms = self.collecting_ms = 0.0


class Commands:
    """Gives the server's commands from the measured process: what is left of the server's pipe there."""

    def __init__(self, pipe: Connection) -> None:
        """Use the pipe; nobody else does meanwhile."""
        self._pipe = pipe

    def command(self, name: str, *arguments: object) -> None:
        """Give a command and wait until it has been carried out."""
        self._pipe.send((name, *arguments))
        self._pipe.recv()


def measure(port: int, commands: Commands, streamed: bool, events: int) -> dict[str, float]:
    """Measure one controller from its start on."""
    return asyncio.run(_measure(port, commands, streamed, events))


async def _measure(port: int, commands: Commands, streamed: bool, events: int) -> dict[str, float]:
    from random import Random

    from rebalancer.control.happenings import Happening, Looked, RunEnded
    from rebalancer.kube.config import Access
    from rebalancer.kube.credentials import Fixed
    from rebalancer.kube.transport import Transport
    from rebalancer.model.trigger import Trigger, TriggerKind
    from rebalancer.placement.profile import DEFAULT
    from rebalancer.policy import load
    from rebalancer.service.life import Stop, serve
    from rebalancer.service.parts import build
    from rebalancer.settings import Settings

    settings = Settings()
    settings = replace(settings, mode=settings.mode.model_copy(update={"dry_run": "plan"}))
    access = Access(f"http://127.0.0.1:{port}", Fixed(None), "the benchmark")
    evaluations: list[Looked] = []
    ended: asyncio.Queue[RunEnded] = asyncio.Queue()

    def listen(happening: Happening) -> None:
        if isinstance(happening, Looked):
            evaluations.append(happening)
        if isinstance(happening, RunEnded):
            ended.put_nowait(happening)

    figures: dict[str, float] = {"memory before the sync (MiB)": resident_mib()}
    parts = build(settings, load(POLICY, source="benchmark").policy, DEFAULT, Transport(access), [listen], random=Random(1))
    for reflector in parts.reflectors:
        reflector._streamed = streamed
    probe, stop = LoopProbe(), Stop()
    probing = asyncio.create_task(probe.run())
    started, cpu = time.perf_counter(), time.process_time()
    serving = asyncio.create_task(serve(parts, stop, policy_file=None, listen=False))
    try:
        while not parts.cache.all_synced():
            await asyncio.sleep(0.01)
        figures["first sync: CPU (s)"] = time.process_time() - cpu
        figures["first sync: time (s)"] = time.perf_counter() - started
        await asyncio.sleep(1.0)
        probe.take(figures, "first sync")
        figures["memory synced (MiB)"] = resident_mib()
        for number in range(3):
            parts.trigger(Trigger(TriggerKind.MANUAL, "", f"benchmark {number}"), urgent=True)
            await asyncio.wait_for(ended.get(), 600)
            figures[f"run {number + 1}: evaluation (s)"] = evaluations[-1].seconds
        figures["memory after three runs (MiB)"] = resident_mib()
        probe.take(figures, "runs")
        pods = next(each for each in parts.reflectors if each.resource.kind == "Pod")
        taken = 0
        for label, rate in (("as fast as they come", 0), (f"at {EVENTS_PER_SECOND} per second", EVENTS_PER_SECOND)):
            before, cpu, started = pods.received, time.thread_time(), time.perf_counter()
            sending = asyncio.create_task(asyncio.to_thread(commands.command, "events", events, rate))
            while pods.received - before < events:
                await asyncio.sleep(0.005)
            taken += pods.received - before
            took, cpu = time.perf_counter() - started, time.thread_time() - cpu
            await sending
            figures[f"events {label}: CPU per event (us)"] = cpu / events * 1e6
            if rate:
                figures[f"events {label}: seconds behind at the end"] = max(0.0, took - events / rate)
            else:
                figures[f"events {label}: per second"] = events / took
            probe.take(figures, f"events {label}")
        await asyncio.sleep(1.0)
        while parts.controller.current is not None:  # What the events have caused.
            await asyncio.sleep(0.05)
        while not ended.empty():
            ended.get_nowait()
        parts.trigger(Trigger(TriggerKind.MANUAL, "", "after the events"), urgent=True)
        await asyncio.wait_for(ended.get(), 600)
        figures["evaluation after the events (s)"] = evaluations[-1].seconds
        probe.take(figures, "evaluation after the events")
        nodes = parts.cache.count("Node")
        await asyncio.to_thread(commands.command, "join")
        while parts.cache.count("Node") == nodes:
            await asyncio.sleep(0.005)
        parts.trigger(Trigger(TriggerKind.NODE_JOINED, "node-z0001.internal", "benchmark"), urgent=True)
        await asyncio.wait_for(ended.get(), 600)
        figures["node joined: evaluation (s)"] = evaluations[-1].seconds
        probe.take(figures, "node joined")
        cpu, started = time.process_time(), time.perf_counter()
        listed = asyncio.Event()
        replace_all = parts.cache.replace

        async def noticed(kind_name: str, *rest: object) -> object:
            result = await replace_all(kind_name, *rest)  # type: ignore[arg-type]
            if kind_name == "Pod":
                listed.set()
            return result

        parts.cache.replace = noticed  # type: ignore[method-assign, assignment]
        await asyncio.to_thread(commands.command, "expire")
        await asyncio.wait_for(listed.wait(), 600)
        figures["relist: time (s)"] = time.perf_counter() - started
        figures["relist: CPU (s)"] = time.process_time() - cpu
        probe.take(figures, "relist")
        figures["memory at the end (MiB)"] = resident_mib()
        figures["pods known"] = parts.cache.count("Pod")
        figures["nodes known"] = parts.cache.count("Node")
        figures["events taken"] = taken
        figures["approved"] = len(evaluations[0].plan.approved)
    finally:
        stop.event.set()
        await serving
        probing.cancel()
    return figures


def run(kind: Kind, *, streamed: bool = True, events: int = 20_000) -> dict[str, float]:
    """Start a server and measure a controller in a fresh process."""
    server = ApiServer(kind)
    try:
        return isolated(measure, server.port, Commands(server._pipe), streamed, events)
    finally:
        server.close()


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--nodes", type=int, help="another size, everything in proportion")
    parser.add_argument("--unshared", action="store_true", help="every pod its own owner")
    parser.add_argument("--paged", action="store_true", help="lists in pages instead of a stream")
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--times", type=int, default=1, help="medians of so many processes")
    options = parser.parse_args()
    kind = UNSHARED if options.unshared else FEW
    kind = scaled(kind, options.nodes) if options.nodes else kind
    results = [run(kind, streamed=not options.paged, events=options.events) for _ in range(options.times)]
    for label in results[0]:
        print(f"{label:<64}{statistics.median(result[label] for result in results):>14,.2f}")


if __name__ == "__main__":
    main()
