"""How long it takes to say where a pod would go, against the number of nodes.

    python benchmarks/placement.py [--nodes 100 1000 5000] [--pods-per-node 30] [--shapes 50]

Printed for each size: reading the snapshot for the first time and again after a handful of nodes changed, then per shape: cold
(nothing known of the shape), warm (five nodes changed since), replacing an existing pod, and again with nothing changed; each
with its growth over the size before. "plain loop" is the arithmetic for cpu and memory alone, without any other filter or score,
node by node in Python: what dense arrays save. Medians in milliseconds.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import time
from dataclasses import replace

from rebalancer.model.node import Node, Taint, TaintEffect
from rebalancer.model.pod import (
    NO_STATES,
    AffinityTerm,
    Owner,
    Phase,
    Pod,
    PodShape,
    PreferredAffinityTerm,
    QosClass,
    SpreadConstraint,
)
from rebalancer.model.resources import Resources
from rebalancer.model.selector import LabelSelector, NodeSelectorTerm, Operator, PreferredNodeTerm, Requirement
from rebalancer.model.snapshot import Snapshot, snapshot_of
from rebalancer.model.workload import Service, Workload
from rebalancer.placement.occupancy import BucketCache
from rebalancer.placement.view import PlacementView

GIBI = 1024**3
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def a_node(position: int) -> Node:
    """Return one of three zones' nodes; every fiftieth is tainted."""
    name = f"node-{position:05d}"
    room = Resources(32_000, 128 * GIBI, 200 * GIBI, 110)
    taints = (Taint("dedicated", "batch", TaintEffect.NO_SCHEDULE),) if position % 50 == 0 else ()
    labels = {HOSTNAME: name, ZONE: f"z{position % 3}", "disk": "ssd" if position % 2 else "hdd"}
    return Node(name, name, labels, taints, False, True, 0.0, room, room, frozenset({"cpu", "memory", "pods"}), {}, 0.0, {})


def a_shape(number: int) -> PodShape:
    """Return the shape of one ReplicaSet; some have anti-affinity, spread constraints or preferences."""
    app = f"app-{number}"
    mine = LabelSelector((Requirement("app", Operator.IN, (app,)),))
    namespace = f"ns-{number % 100}"
    cpu, memory = 100 * (1 + number % 9), GIBI // 4 * (1 + number % 7)
    apart = AffinityTerm(mine, HOSTNAME, frozenset({namespace}), None)
    return PodShape(
        namespace=namespace,
        labels={"app": app, "tier": f"t{number % 5}"},
        owners=(Owner("ReplicaSet", app, f"uid-{app}", "apps/v1", True),),
        annotations={},
        priority=0,
        preempts=True,
        scheduler_name="default-scheduler",
        qos=QosClass.BURSTABLE,
        grace_seconds=30,
        requests=Resources(cpu, memory, 0, 1),
        nonzero_cpu_millicores=cpu,
        nonzero_memory_bytes=memory,
        tolerations=(),
        node_selector={"disk": "ssd"} if number % 11 == 0 else {},
        required_node=None,
        preferred_node=(PreferredNodeTerm(10, NodeSelectorTerm((Requirement("disk", Operator.IN, ("ssd",)),))),)
        * (number % 7 == 0),
        affinity=(),
        anti_affinity=(apart,) * (number % 9 == 0),
        preferred_affinity=(),
        preferred_anti_affinity=(PreferredAffinityTerm(100, apart),) * (number % 4 == 0),
        spread=(SpreadConstraint(1, ZONE, True, mine, None, True, False),) * (number % 6 == 0),
        host_ports=(),
        volumes=(),
        resource_claims=False,
        images=(f"registry.example/{app}:1",),
        init_images=(),
        static=False,
    )


def a_pod(number: int, shape: PodShape, node: str) -> Pod:
    """Return a running pod."""
    name = f"pod-{number}"
    return Pod(name, name, shape, node, None, Phase.RUNNING, True, "", None, 0.0, 0.0, NO_STATES, NO_STATES, NO_STATES, False)


def a_cluster(nodes: int, pods_per_node: int) -> tuple[Snapshot, list[PodShape]]:
    """Return a cluster whose workloads have fifteen replicas each."""
    chance = random.Random(nodes)
    machines = [a_node(position) for position in range(nodes)]
    shapes = [a_shape(number) for number in range(max(1, nodes * pods_per_node // 15))]
    pods = [
        a_pod(number, shapes[number // 15 % len(shapes)], chance.choice(machines).name) for number in range(nodes * pods_per_node)
    ]
    services = [Service(shape.namespace, shape.labels["app"], {"app": shape.labels["app"]}) for shape in shapes[::2]]
    workloads = [
        Workload(
            "ReplicaSet", shape.namespace, shape.labels["app"], f"uid-{shape.labels['app']}",
            LabelSelector((Requirement("app", Operator.IN, (shape.labels["app"],)),)),
            15, 15, 15, 15, 15, 1, 1, None, "", "", "", None,
        )
        for shape in shapes
    ]  # fmt: skip
    return snapshot_of(0.0, nodes=machines, pods=pods, services=services, workloads=workloads), shapes


def touched(snapshot: Snapshot, nodes: list[str]) -> Snapshot:
    """Return the snapshot after these nodes' pods changed."""
    pods = dict(snapshot.pods)
    for node in nodes:
        pods[node] = tuple(pods[node][:-1])
    return replace(snapshot, pods=pods)


def plain_loop(view: PlacementView, shape: PodShape) -> float:
    """Filter and score by cpu and memory only, without arrays; return how long it took."""
    snapshot = view.snapshot
    used = {name: (len(pods), sum(pod.shape.requests.cpu_millicores for pod in pods)) for name, pods in snapshot.pods.items()}
    rows = [
        (node.allocatable.cpu_millicores, node.allocatable.memory_bytes, *used[name]) for name, node in snapshot.nodes.items()
    ]
    more_cpu, more_memory = shape.requests.cpu_millicores, shape.requests.memory_bytes
    totals = []
    started = time.perf_counter()
    for cpu, memory, pods, cpu_used in rows:
        memory_used = cpu_used * 2**20
        if pods + 1 > 110 or cpu_used + more_cpu > cpu or memory_used + more_memory > memory:
            continue
        cpu_after, memory_after = cpu_used + more_cpu, memory_used + more_memory
        least = ((cpu - cpu_after) * 100 // cpu + (memory - memory_after) * 100 // memory) // 2
        after = int((1 - abs((cpu_after / cpu - memory_after / memory) / 2)) * 100)
        before = int((1 - abs((cpu_used / cpu - memory_used / memory) / 2)) * 100)
        totals.append(least + 50 + (50 + after - before) // 2)
    return milliseconds(started)


def milliseconds(started: float) -> float:
    """Return the time since then."""
    return (time.perf_counter() - started) * 1000


def measure(nodes: int, pods_per_node: int, shapes: int) -> dict[str, float]:
    """Return the medians for one size."""
    snapshot, known = a_cluster(nodes, pods_per_node)
    chance = random.Random(1)
    asked = chance.sample(known, min(shapes, len(known)))
    gc.freeze()
    cache = BucketCache()
    started = time.perf_counter()
    PlacementView(snapshot, cache=cache)
    first = milliseconds(started)
    snapshot = touched(snapshot, chance.sample(list(snapshot.nodes), 5))
    started = time.perf_counter()
    view = PlacementView(snapshot, cache=cache)
    again = milliseconds(started)
    times: dict[str, list[float]] = {"cold": [], "warm": [], "replace": [], "unchanged": []}
    movers = [pod for bucket in snapshot.pods.values() for pod in bucket if pod.shape in set(asked)]
    for shape in asked:
        started = time.perf_counter()
        view.predict(shape).landings  # noqa: B018
        times["cold"].append(milliseconds(started))
    for shape in asked:
        for mover in chance.sample(movers, 5):
            view.commit(mover, chance.choice(view.nodes))
        started = time.perf_counter()
        view.predict(shape).landings  # noqa: B018
        times["warm"].append(milliseconds(started))
        started = time.perf_counter()
        view.predict(shape).landings  # noqa: B018
        times["unchanged"].append(milliseconds(started))
        started = time.perf_counter()
        view.replace(next(pod for pod in movers if pod.shape is shape)).landings  # noqa: B018
        times["replace"].append(milliseconds(started))
    plain = [plain_loop(view, shape) for shape in asked[:10]]
    result = {"read": first, "read again": again}
    result |= {name: statistics.median(values) for name, values in times.items()}
    result["plain loop"] = statistics.median(plain)
    return result | {"cold, worst": max(times["cold"]), "warm, worst": max(times["warm"])}


def main() -> None:
    """Print one line per measure, one column per size."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--nodes", type=int, nargs="+", default=[100, 1_000, 5_000])
    arguments.add_argument("--pods-per-node", type=int, default=30)
    arguments.add_argument("--shapes", type=int, default=50)
    chosen = arguments.parse_args()
    results = [measure(nodes, chosen.pods_per_node, chosen.shapes) for nodes in chosen.nodes]
    print(f"{'ms':14}" + "".join(f"{nodes:>18,} nodes" for nodes in chosen.nodes))
    for name in results[0]:
        line = f"{name:14}"
        for position, result in enumerate(results):
            growth = f"(x{result[name] / results[position - 1][name]:.1f})" if position else ""
            line += f"{result[name]:>15.3f} {growth:>8}"
        print(line)


if __name__ == "__main__":
    main()
