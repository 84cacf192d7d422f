"""How it holds up: probes while events pour in for minutes of real time, and memory over an hour of virtual time.

Run: ``python -m benchmarks.endurance probes [--minutes 10] [--events 500]`` and
``python -m benchmarks.endurance memory [--hours 1] [--events 20]``.

Probes: the controller is ``rebalancer run``, the cluster a second process, who asks the probes a third; runs go on meanwhile.
Exit code 1 where a probe took 100 ms or more, or was not answered with 200. Memory: the whole service without HTTP, with
events, evictions and runs all the time, on an embedded cluster whose history is short; what the service holds is taken from
tracemalloc (beside it, all that the process holds), after an hour in which what is remembered for an hour has filled up. Exit
code 1 where the service's part grows by more than 2 % an hour.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import http.client
import json
import os
import statistics
import sys
import tempfile
import time
import tracemalloc
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

import rebalancer
from benchmarks.measuring import machine
from rebalancer.sim.kubeconfig import kubeconfig
from tests.e2e.cluster_process import ClusterProcess, Workload
from tests.histories.processes import VirtualLoop
from tests.histories.world import World

MOST_PROBE_MS = 100.0
MOST_GROWTH = 0.02
"""Of what it holds, per hour."""

PROBES = ("/healthz", "/readyz")
_BETWEEN_PROBES_SECONDS = 0.05
_SLOT_SECONDS = 0.05
_WARM_HOURS = 1.0
_SHORT_HISTORY = 200
_PRODUCT = Path(rebalancer.__file__).parent

POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: default
  pluginConfig:
  - name: RemoveDuplicates
  - name: LowNodeUtilization
    args: {thresholds: {cpu: 20, memory: 20}, targetThresholds: {cpu: 50, memory: 50}}
  - name: PodLifeTime
    args: {maxPodLifeTimeSeconds: 60}
  plugins:
    balance: {enabled: [RemoveDuplicates, LowNodeUtilization]}
    deschedule: {enabled: [PodLifeTime]}
"""
SETTINGS = {
    "REBALANCER_TICK_SECONDS": "10",
    "REBALANCER_DEBOUNCE_QUIET_SECONDS": "1",
    "REBALANCER_LISTEN_ADDRESS": "127.0.0.1",
    "REBALANCER_LISTEN_PORT": "0",
    "REBALANCER_LOG_FORMAT": "json",
}


@dataclass(slots=True)
class Probed:
    """What probes took, in milliseconds, and how many were not answered with 200. own: the longest the asker was kept waiting."""

    took_ms: list[float]
    bad: int
    own_ms: float


def _ask(port: int, seconds: float, to: Connection) -> None:
    """Ask the probes from a process of its own, each on a new connection as a kubelet does."""
    took: list[float] = []
    bad, own = 0, 0.0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for path in PROBES:
            began_at = time.perf_counter()
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            try:
                connection.request("GET", path)
                bad += connection.getresponse().status != 200
            except OSError:
                bad += 1
            finally:
                connection.close()
            took.append((time.perf_counter() - began_at) * 1000)
        before = time.perf_counter()
        time.sleep(_BETWEEN_PROBES_SECONDS)
        own = max(own, (time.perf_counter() - before - _BETWEEN_PROBES_SECONDS) * 1000)
    to.send(Probed(took, bad, own))


async def probes(minutes: float, per_second: int) -> int:
    """Pour events into a controller, and ask its probes meanwhile."""
    workload = Workload(nodes=20, deployments=200, replicas=5, cpu="200m")
    print("filling the cluster", flush=True)
    cluster = await asyncio.to_thread(ClusterProcess, workload, ("controller",))
    with tempfile.TemporaryDirectory(prefix="endurance-") as name:
        try:
            return await _probes(cluster, Path(name), minutes * 60, per_second)
        finally:
            await asyncio.to_thread(cluster.close)


async def _probes(cluster: ClusterProcess, folder: Path, seconds: float, per_second: int) -> int:
    process, port, log = await _controller(cluster, folder)
    try:
        here, there = Pipe(duplex=False)
        asker = get_context("spawn").Process(target=_ask, args=(port, seconds, there), daemon=True)
        asker.start()
        sent = await _pour(cluster, seconds, per_second)
        probed: Probed = await asyncio.to_thread(here.recv)
        records = await cluster.look()
        resident = _resident_mib(process.pid)
    finally:
        process.terminate()
        await process.wait()
        log.cancel()
        await asyncio.gather(log, return_exceptions=True)
    took = sorted(probed.took_ms)
    print("; ".join(f"{key}: {value}" for key, value in machine().items()))
    print(f"{seconds / 60:g} min, {sent} events ({sent / seconds:.0f} per second), {len(records)} evictions and lease writes")
    print(f"{len(took)} probes, {probed.bad} not answered with 200; controller at the end {resident:.0f} MiB")
    for share in (0.5, 0.9, 0.99, 0.999):
        print(f"{share:>8.1%}  {took[min(int(len(took) * share), len(took) - 1)]:8.2f} ms")
    slow = sum(each >= MOST_PROBE_MS for each in took)
    print(f"   worst  {took[-1]:8.2f} ms; {slow} took {MOST_PROBE_MS:g} ms or more")
    print(f"the asker itself was kept waiting for {probed.own_ms:.0f} ms at most")
    return 1 if slow or probed.bad else 0


async def _controller(cluster: ClusterProcess, folder: Path) -> tuple[asyncio.subprocess.Process, int, asyncio.Task[None]]:
    """Start the controller; return it and its port once it has made a run."""
    policy, path = folder / "policy.yaml", folder / "kubeconfig"
    policy.write_text(POLICY)
    path.write_text(kubeconfig(f"http://127.0.0.1:{cluster.port}", "token-controller"))
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("REBALANCER_", "KUBE"))}
    ours = {"REBALANCER_KUBECONFIG": str(path), "REBALANCER_POLICY_FILE": str(policy)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "rebalancer", "run", env={**clean, **SETTINGS, **ours}, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    stream, port = process.stderr, 0
    async for line in stream:
        said: dict[str, Any] = json.loads(line) if line.startswith(b"{") else {}
        port = said.get("port", port)
        if said.get("event") == "run ended":
            break

    async def drain() -> None:
        async for _ in stream:
            pass

    return process, port, asyncio.create_task(drain())


async def _pour(cluster: ClusterProcess, seconds: float, per_second: int) -> int:
    loop, sent = asyncio.get_running_loop(), 0
    began_at = loop.time()
    while (passed := loop.time() - began_at) < seconds:
        due = int(passed * per_second) - sent
        if due > 0:
            await cluster.command("touch", due, sent)
            sent += due
        await asyncio.sleep(_SLOT_SECONDS)
    return sent


def _resident_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:")), 0.0)


def memory(hours: float, per_second: int) -> int:
    """Live for so long in virtual time, and follow what the service holds."""
    began_at = time.perf_counter()
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)
        samples, events, evictions = runner.run(_hours(loop, hours, per_second))
    hours_at = [at for at, _, _ in samples]
    slope, all_slope = (statistics.linear_regression(hours_at, [each[n] for each in samples]).slope for n in (1, 2))
    mean = statistics.mean(ours for _, ours, _ in samples)
    took = time.perf_counter() - began_at
    print(f"{hours:g} h of virtual time (after {_WARM_HOURS:g} h) in {took:.0f} s: {events} events, {evictions} evictions")
    print("           the service   with the embedded cluster and the witness")
    for at, ours, everything in samples:
        print(f"{at * 60:6.0f} min  {ours:7,.0f} KiB  {everything:10,.0f} KiB")
    print(f"slope {slope:+.1f} KiB per hour, {slope / mean:+.2%} of what the service holds; of everything {all_slope:+.1f}")
    return 1 if slope > MOST_GROWTH * mean else 0


async def _hours(loop: VirtualLoop, hours: float, per_second: int) -> tuple[list[tuple[float, float, float]], int, int]:
    samples: list[tuple[float, float, float]] = []
    events = 0
    tracemalloc.start()
    world = World(loop, seed=3, windows=False, evaluation_seconds=0.1, lag_seconds=0.01, history_limit=_SHORT_HISTORY)
    await world.begin(1)
    for second in range(int((_WARM_HOURS + hours) * 3600)):
        for number in range(per_second):
            keys = world.cluster.store.keys("pods")
            pod = world.cluster.store.get("pods", *keys[(events + number) % len(keys)]) if keys else None
            if pod is not None:
                annotations = {**(pod["metadata"].get("annotations") or {}), "touched": str(second)}
                world.cluster.store.put("pods", {**pod, "metadata": {**pod["metadata"], "annotations": annotations}})
        events += per_second
        await asyncio.sleep(1.0)
        if second % 300 == 299 and second >= _WARM_HOURS * 3600:
            samples.append((loop.time() / 3600, *_held_kib()))
    tracemalloc.stop()
    evictions = world.witness.accepted
    problems = [*world.witness.broken, *world.failures(), *await world.end()]
    if problems:
        raise SystemExit("\n".join(problems))
    return samples, events, evictions


def _held_kib() -> tuple[float, float]:
    """Return what is held of what was allocated since the start: by the service, and by everything in this process."""
    gc.collect()
    ours = (tracemalloc.Filter(True, f"{_PRODUCT}/*"), tracemalloc.Filter(False, f"{_PRODUCT}/sim/*"))
    held = tracemalloc.take_snapshot().filter_traces(ours)
    return sum(trace.size for trace in held.traces) / 1024, tracemalloc.get_traced_memory()[0] / 1024


def main() -> int:
    """Print the figures of what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    commands = parser.add_subparsers(dest="what", required=True)
    first = commands.add_parser("probes")
    first.add_argument("--minutes", type=float, default=10.0)
    first.add_argument("--events", type=int, default=500, help="per second")
    second = commands.add_parser("memory")
    second.add_argument("--hours", type=float, default=1.0)
    second.add_argument("--events", type=int, default=20, help="per second")
    options = parser.parse_args()
    if options.what == "probes":
        return asyncio.run(probes(options.minutes, options.events))
    return memory(options.hours, options.events)


if __name__ == "__main__":
    sys.exit(main())
