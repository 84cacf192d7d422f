"""How it holds up: probes while events pour in (real time), and memory over an hour (virtual time). Prints figures.

python -m tests.service.endurance probes [SECONDS] [EVENTS_PER_SECOND]
python -m tests.service.endurance memory [HOURS]
"""

from __future__ import annotations

import asyncio
import gc
import resource
import statistics
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

from rebalancer.sim.cluster import EmbeddedCluster
from rebalancer.sim.kinds import POD
from rebalancer.sim.nodes import NodeShape
from tests.control.virtual import VirtualLoop
from tests.service.histories import History
from tests.service.process import controller, placed

# Asks the probes from a process of its own, so that neither the cluster's work nor its own asking is measured along.
PROBER = """
import sys, time, urllib.request
end, base, worst, count = time.monotonic() + float(sys.argv[2]), sys.argv[1], 0.0, 0
every = []
while time.monotonic() < end:
    for path in ("/healthz", "/readyz"):
        began = time.perf_counter()
        with urllib.request.urlopen(base + path, timeout=5) as reply:
            assert reply.status == 200
        every.append(time.perf_counter() - began)
    time.sleep(0.05)
every.sort()
print(f"{len(every)} probes: median {1000 * every[len(every) // 2]:.1f} ms, "
      f"99 % {1000 * every[int(len(every) * 0.99)]:.1f} ms, worst {1000 * every[-1]:.1f} ms")
"""


async def probes(seconds: float, per_second: int) -> None:
    """Pour so many events per second into a controller, and ask its probes meanwhile."""
    shape = NodeShape(cpu="16", memory="64Gi")
    async with EmbeddedCluster(nodes=20, shape=shape, seed=5, write_events=False) as cluster:
        await placed(cluster, 60, 20, cpu="100m")
        with tempfile.TemporaryDirectory() as folder:
            kubeconfig = cluster.kubeconfig(Path(folder) / "kubeconfig")
            async with controller(kubeconfig, Path(folder), more={"REBALANCER_TICK_SECONDS": "10"}) as running:
                (listening,) = await running.logs("listening")
                await running.logs("run ended")
                base = f"http://127.0.0.1:{listening['port']}"
                asking = await asyncio.create_subprocess_exec(
                    sys.executable, "-c", PROBER, base, str(seconds), stdout=asyncio.subprocess.PIPE
                )
                sent = await _pour(cluster, seconds, per_second)
                output, _ = await asking.communicate()
                print(f"{sent} events in {seconds:g} s, {len(running.events('run ended'))} runs")
                print(output.decode().strip())
                pid = running.process.pid
                print(f"controller: {_cpu_seconds(pid):.1f} s of processor time, {_rss_mib(pid):.0f} MiB")


async def _pour(cluster: EmbeddedCluster, seconds: float, per_second: int) -> int:
    keys = cluster.store.keys("pods")
    loop, sent = asyncio.get_running_loop(), 0
    began = loop.time()
    while loop.time() < began + seconds:
        due = int((loop.time() - began) * per_second)
        while sent < due:
            namespace, name = keys[sent % len(keys)]
            pod = cluster.store.get("pods", namespace, name)
            sent += 1
            if pod is not None:
                status = {**pod["status"], "message": f"touched {sent}"}
                cluster.registry.update(POD, pod, {**pod, "status": status}, subresource="status")
        await asyncio.sleep(0.01)
    return sent


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100.0


def _rss_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def _held_kib() -> float:
    """Return what the service holds; the embedded cluster in the same process keeps a history and is left out."""
    ours = (tracemalloc.Filter(True, "*/rebalancer/*"), tracemalloc.Filter(False, "*/rebalancer/sim/*"))
    held = tracemalloc.take_snapshot().filter_traces(ours)
    return sum(trace.size for trace in held.traces) / 1024


async def memory(hours: float) -> None:
    """Let nodes come and go for so long in virtual time, and follow what the process holds."""
    history = History(8, windows=False)
    await history.start(1)
    tracemalloc.start()
    samples: list[tuple[float, float]] = []
    began = time.monotonic()
    for step in range(round(hours * 60)):
        await history.act("a node joins" if step % 2 == 0 else "a node leaves")
        await asyncio.sleep(60)
        history.heard.clear()
        history.requests.clear()
        if step >= 10 and step % 5 == 0:
            gc.collect()
            samples.append((history.clock.monotonic() / 3600, _held_kib()))
    accepted = len(history.accepted)
    await history.close()
    slope = statistics.linear_regression([at for at, _ in samples], [kib for _, kib in samples]).slope
    first, last = samples[0][1], samples[-1][1]
    print(f"{hours:g} h of virtual time in {time.monotonic() - began:.0f} s, {accepted} evictions")
    print(f"held: {first:.0f} KiB after the first ten minutes, {last:.0f} KiB at the end; slope {slope:+.0f} KiB per hour")


def main() -> int:
    """Run what the arguments name."""
    what, *numbers = sys.argv[1:] or ["probes"]
    if what == "probes":
        seconds, per_second = float(numbers[0]) if numbers else 600.0, int(numbers[1]) if len(numbers) > 1 else 500
        asyncio.run(probes(seconds, per_second))
    else:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(memory(float(numbers[0]) if numbers else 1.0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
