"""CPU per watch event from bytes to indexes: a line is decoded, its pod parsed and taken into the cache, its meaning worked out.

Run: ``python -m benchmarks.events [--nodes 5000] [--events 20000]``. Nothing is sent over a network; see ``benchmarks.process``
for the whole way over HTTP. Half of the events change the readiness of a pod, the others tell nothing new.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import time
from random import Random
from typing import cast

from benchmarks.measuring import isolated
from benchmarks.scenario import CALM, Kind, Scenario, as_bytes, scaled
from rebalancer.cache.store import Cache
from rebalancer.kube.reflector import Reflector
from rebalancer.kube.resources import RESOURCES
from rebalancer.kube.transport import Transport
from rebalancer.model.change import Listed, Report

_VERSION = 2_000_000
_KEPT = 20_000


def lines_of(scenario: Scenario, count: int) -> list[bytes]:
    """Return watch lines about pods drawn at random."""
    random = Random(7)
    lines = []
    for number in range(count):
        pod = scenario.pod(random.choice(scenario.placed), version=_VERSION + number)
        pod["status"]["conditions"][2]["status"] = random.choice(("True", "False"))
        lines.append(b'{"type":"MODIFIED","object":' + as_bytes(pod) + b"}")
    return lines


def measure(kind: Kind, events: int) -> dict[str, float]:
    """Return CPU per event in microseconds, and how many facts the events were."""
    return asyncio.run(_measure(kind, events))


async def _measure(kind: Kind, events: int) -> dict[str, float]:
    scenario, cache = Scenario(kind), Cache()
    parse = cache.parser("Pod")
    await cache.receive(Listed("Pod", [parse(as_bytes(pod)) for pod in scenario.pods()], str(_VERSION)))
    facts = 0

    async def sink(report: Report) -> None:
        nonlocal facts
        facts += len(await cache.receive(report))

    (pods,) = (each for each in RESOURCES if each.kind == "Pod")
    reflector = Reflector(cast(Transport, None), pods, parse, sink, random=Random(1))
    lines = lines_of(scenario, min(events, _KEPT))
    gc.collect()
    gc.freeze()
    cpu = time.process_time()
    for number in range(events):
        await reflector._take(reflector._event(lines[number % len(lines)]))
        await reflector._give_way()
    return {"CPU per event (us)": (time.process_time() - cpu) / events * 1e6, "facts": facts, "pods": cache.count("Pod")}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=CALM.size.nodes)
    parser.add_argument("--events", type=int, default=20_000)
    options = parser.parse_args()
    for label, value in isolated(measure, scaled(CALM, options.nodes), options.events).items():
        print(f"{label:<24}{value:>12,.1f}")


if __name__ == "__main__":
    main()
