"""The efficacy benchmark on the embedded cluster, with the whole controller: watches, evictions, budgets, settling.

    python -m benchmarks.efficacy_live [--nodes 20] [--joining 4] [--seeds 5] [--processes 2]

The cluster's scheduler is not the one that predicts: it samples nodes, works on a cache 50 to 500 ms old, takes other pending
pods first, and evicted pods take their time to go. Besides what ``efficacy`` prints: how many replacements landed as expected.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

from benchmarks.efficacy import EARLY, FILL, GOAL
from benchmarks.workload import NAMESPACE, NODE_CPU, POLICY, applications
from rebalancer.control.happenings import Asked, RunEnded, Settled
from rebalancer.kube.config import from_kubeconfig
from rebalancer.kube.transport import Transport
from rebalancer.model.answer import Accepted
from rebalancer.model.quantity import millis
from rebalancer.placement.profile import DEFAULT
from rebalancer.policy import load
from rebalancer.service.life import Stop, serve
from rebalancer.service.parts import build
from rebalancer.settings import load_settings
from rebalancer.sim.cluster import EmbeddedCluster
from rebalancer.sim.kinds import BUDGET, DEPLOYMENT
from rebalancer.sim.nodes import NodeShape

SETTINGS = {
    "REBALANCER_DEBOUNCE_QUIET_SECONDS": "1",
    "REBALANCER_DEBOUNCE_MAXIMUM_SECONDS": "5",
    "REBALANCER_NODE_SETTLE_SECONDS": "1",
    "REBALANCER_CAP_NODE": "none",
    "REBALANCER_CAP_TOTAL": "none",
    "REBALANCER_EVICTIONS_PER_MINUTE": "6000",
    "REBALANCER_MAX_IN_FLIGHT": "5",
    "REBALANCER_LEADER_ELECTION": "false",
    "REBALANCER_TICK_SECONDS": "20",
    "REBALANCER_EVENTS": "false",
}
QUIET_RUNS = 2


@dataclass
class Watcher:
    """Listens to the controller and counts. spread: measured after each replacement is Ready."""

    spread: Callable[[], float]
    accepted: int = 0
    settled: list[Settled] = field(default_factory=list)
    spreads: list[float] = field(default_factory=list)
    quiet_runs: int = 0

    def __call__(self, happening: object) -> None:
        """Take in what happened."""
        if isinstance(happening, Asked) and isinstance(happening.answer, Accepted):
            self.accepted += 1
        elif isinstance(happening, Settled):
            self.settled.append(happening)
            self.spreads.append(self.spread())
        elif isinstance(happening, RunEnded):
            self.quiet_runs = 0 if happening.accepted else self.quiet_runs + 1


def requested(cluster: EmbeddedCluster) -> dict[str, int]:
    """Return requested millicores by node; terminating pods are leaving and do not count."""
    used = {node["metadata"]["name"]: 0 for node in cluster.store.objects("nodes")}
    for pod in cluster.store.objects("pods"):
        node = pod["spec"].get("nodeName", "")
        if node in used and "deletionTimestamp" not in pod["metadata"]:
            used[node] += sum(millis(each["resources"]["requests"]["cpu"]) for each in pod["spec"]["containers"])
    return used


def spread(cluster: EmbeddedCluster) -> float:
    """Return the standard deviation of requested cpu over nodes, in percentage points."""
    return statistics.pstdev(amount / NODE_CPU * 100 for amount in requested(cluster).values())


def is_settled(cluster: EmbeddedCluster, wanted: int) -> bool:
    """Say whether as many pods are Ready as the Deployments want."""
    ready = 0
    for pod in cluster.store.objects("pods"):
        ready += any(each["type"] == "Ready" and each["status"] == "True" for each in pod.get("status", {}).get("conditions", ()))
    return ready >= wanted


async def measure(node_count: int, joining: int, seed: int) -> str:
    """Run one seed and return its line."""
    rng = random.Random(seed)
    async with EmbeddedCluster(nodes=node_count, shape=NodeShape(cpu="8", memory="32Gi"), zones=3, seed=seed) as cluster:
        cluster.add_namespace(NAMESPACE)
        wanted = 0
        for app in applications(rng, int(node_count * NODE_CPU * FILL)):
            deployment, budget = app.objects()
            cluster.registry.create(DEPLOYMENT, NAMESPACE, deployment)
            cluster.registry.create(BUDGET, NAMESPACE, budget)
            wanted += app.replicas
        deadline = time.monotonic() + 60 + node_count
        while not is_settled(cluster, wanted):
            if time.monotonic() > deadline:
                raise TimeoutError("the cluster did not start")
            await asyncio.sleep(0.2)
        await asyncio.sleep(1.0)
        for _ in range(joining):
            cluster.add_node(ready=True)
        before = spread(cluster)
        watcher = Watcher(lambda: spread(cluster))
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            access = from_kubeconfig(str(cluster.kubeconfig(Path(folder) / "kubeconfig")))
            policy = load(POLICY, source="benchmark").policy
            parts = build(load_settings(SETTINGS), policy, DEFAULT, Transport(access), [watcher], random=rng)
            stop = Stop()
            task = asyncio.create_task(serve(parts, stop, policy_file=None, listen=False))
            while watcher.quiet_runs < QUIET_RUNS and not task.done() and time.monotonic() < started + 300 + 2 * node_count:
                await asyncio.sleep(0.2)
            seconds = time.monotonic() - started
            stop.event.set()
            await task
        after = spread(cluster)
    early = watcher.spreads[min(EARLY, len(watcher.spreads)) - 1] if watcher.spreads else before
    to_goal = next((number for number, value in enumerate(watcher.spreads, start=1) if value <= GOAL), None)
    known = [each for each in watcher.settled if each.expected is not None]
    expected = sum(bool(each.expected) for each in known)
    came_back = sum(each.came_back for each in watcher.settled)
    return (
        f"{seed:4} {watcher.accepted:9} {before:7.2f} {early:6.2f} {after:7.2f} {to_goal or '-':>7}"
        f" {came_back:10} {expected:4} of {len(known):3} {seconds:8.1f}"
    )


def run(arguments: tuple[int, int, int]) -> str:
    """Run one seed in a process of its own."""
    return asyncio.run(measure(*arguments))


def main() -> None:
    """Print a line for each seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--joining", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    print("seed evictions  before  at 25   after  to 4.5  came back  as expected  seconds", flush=True)
    jobs = [(arguments.nodes, arguments.joining, seed) for seed in range(arguments.seeds)]
    with ProcessPoolExecutor(arguments.processes, mp_context=get_context("spawn")) as pool:
        for line in pool.map(run, jobs):
            print(line, flush=True)


if __name__ == "__main__":
    main()
