"""How few evictions even out a cluster after nodes joined, with kube-scheduler's rules in place of a cluster.

    python -m benchmarks.efficacy [--nodes 20] [--joining 4] [--seeds 5] [--placement required]

Each step evaluates the policy, carries out one approved move at a time under the budgets, and lets a scheduler that samples nodes
and breaks ties at random place the replacement while the old pod is still there. Printed: evictions, spread of requested cpu
(standard deviation in percentage points over all nodes) before, after 25 evictions and at the end, pods that came back, and the
fewest moves that a greedy with known landings needs to reach 4.5 points. The embedded cluster runs the same in ``efficacy_live``.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from dataclasses import dataclass, replace

import orjson

from benchmarks.workload import NAMESPACE, NODE_CPU, POLICY, Application, applications, nodes
from rebalancer.decide.evaluate import Memory, evaluate
from rebalancer.model.plan import PlacementMode
from rebalancer.model.pod import Phase, Pod
from rebalancer.model.snapshot import Snapshot, snapshot_of
from rebalancer.parse.interning import Interner
from rebalancer.parse.objects import parse_objects
from rebalancer.parse.pod import parse_pod
from rebalancer.placement.view import PlacementView
from rebalancer.policy import load

GOAL = 4.5
FILL = 0.72
EARLY = 25


@dataclass
class Outcome:
    """What one seed gave. Spreads are in percentage points of requested cpu."""

    evictions: int
    before: float
    early: float
    after: float
    to_goal: int | None
    came_back: int
    minimum: int | None
    seconds: float


class Cluster:
    """Pods on nodes, and a scheduler that picks among its landings at random."""

    def __init__(self, node_count: int, seed: int) -> None:
        self.rng = random.Random(seed)
        self.interner = Interner()
        self.objects = nodes(node_count)
        self.applications = list(applications(self.rng, int(node_count * NODE_CPU * FILL)))
        self.pods: dict[str, Pod] = {}
        self.serial = 0
        parsed = parse_objects(
            [*self.objects, *(each for app in self.applications for each in (*app.objects(), app.replica_set()))], self.interner
        )
        self.nodes = {each.name: each for each in parsed.of("Node")}
        self.budgets = {each.name: each for each in parsed.of("PodDisruptionBudget")}
        self.workloads = parsed.of("ReplicaSet")
        view = PlacementView(self.snapshot(), reserve=False)
        order = [app for app in self.applications for _ in range(app.replicas)]
        self.rng.shuffle(order)
        for app in order:
            pod = self.new_pod(app)
            landing = self.pick(view.place(pod).landings)
            if landing is None:
                continue
            placed = replace(pod, node=landing, phase=Phase.RUNNING, ready=True)
            view.add(pod, landing)
            self.pods[placed.uid] = placed

    def new_pod(self, app: Application) -> Pod:
        """Return the next replica of an application, waiting."""
        self.serial += 1
        document = {
            "kind": "Pod",
            "metadata": {
                "name": f"{app.name}-{self.serial}",
                "namespace": NAMESPACE,
                "uid": f"u{self.serial:07d}",
                "labels": app.labels,
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "ownerReferences": [
                    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app.name, "uid": f"rs-{app.name}", "controller": True}
                ],
            },
            "spec": {**app.spec, "priority": 0},
        }
        return parse_pod(orjson.dumps(document), self.interner)

    def pick(self, landings: dict[str, float]) -> str | None:
        """Return one of the landings, by their weights."""
        if not landings:
            return None
        names = sorted(landings)
        return self.rng.choices(names, [landings[name] for name in names])[0]

    def snapshot(self) -> Snapshot:
        """Return the picture, every budget allowing one disruption."""
        budgets = [
            replace(
                budget,
                disruptions_allowed=1,
                current_healthy=2,
                desired_healthy=1,
                expected_pods=2,
                observed_generation=0,
                generation=0,
            )
            for budget in self.budgets.values()
        ]
        return snapshot_of(1.8e9, nodes=self.nodes.values(), pods=self.pods.values(), budgets=budgets, workloads=self.workloads)

    def join(self, count: int) -> None:
        """Let empty nodes join."""
        for each in parse_objects(nodes(count, first=len(self.nodes)), self.interner).of("Node"):
            self.nodes[each.name] = each

    def spread(self) -> float:
        """Return the standard deviation of requested cpu over nodes, in percentage points."""
        requested = dict.fromkeys(self.nodes, 0)
        for pod in self.pods.values():
            requested[pod.node or ""] += pod.shape.requests.cpu_millicores
        return statistics.pstdev(amount / NODE_CPU * 100 for amount in requested.values())

    def move(self, uid: str) -> bool:
        """Evict a pod and place its replacement while the old one is still there. Returns whether it came back."""
        old = self.pods[uid]
        landing = self.pick(dict(PlacementView(self.snapshot()).replace(old).landings))
        del self.pods[uid]
        self.serial += 1
        if landing is None:
            raise RuntimeError(f"the replacement of {old.key} found no node")
        new = replace(old, uid=f"u{self.serial:07d}", name=f"{old.name}x", node=landing)
        self.pods[new.uid] = new
        return landing == old.node


def minimum_moves(cluster: Cluster) -> int | None:
    """Return the fewest moves that a greedy over all pods needs to reach the goal, were landings free to choose."""
    load_of = dict.fromkeys(cluster.nodes, 0)
    sizes: dict[str, list[int]] = {name: [] for name in cluster.nodes}
    for pod in cluster.pods.values():
        load_of[pod.node or ""] += pod.shape.requests.cpu_millicores
        sizes[pod.node or ""].append(pod.shape.requests.cpu_millicores)
    for moves in range(10 * len(cluster.nodes)):
        if statistics.pstdev(amount / NODE_CPU * 100 for amount in load_of.values()) <= GOAL:
            return moves
        target = min(load_of, key=lambda name: (load_of[name], name))
        best = max(
            ((size * (load_of[name] - load_of[target] - size), name, size) for name in sizes for size in set(sizes[name])),
            key=lambda item: (item[0], item[1], item[2]),
        )
        gain, source, size = best
        if gain <= 0:
            return None
        sizes[source].remove(size)
        sizes[target].append(size)
        load_of[source] -= size
        load_of[target] += size
    return None


def run(node_count: int, joining: int, seed: int, placement: PlacementMode) -> Outcome:
    """Run one seed to the end."""
    cluster = Cluster(node_count, seed)
    cluster.join(joining)
    minimum = minimum_moves(cluster)
    policy = load(POLICY, source="benchmark").policy
    before = early = cluster.spread()
    evictions = came_back = 0
    to_goal = None
    memory = Memory()
    started = time.perf_counter()
    for _ in range(50):
        plan = evaluate(cluster.snapshot(), policy, placement=placement, memory=memory)
        if not plan.approved:
            break
        for approval in plan.approved:
            came_back += cluster.move(approval.uid)
            evictions += 1
            spread = cluster.spread()
            if evictions <= EARLY:
                early = spread
            if to_goal is None and spread <= GOAL:
                to_goal = evictions
    return Outcome(evictions, before, early, cluster.spread(), to_goal, came_back, minimum, time.perf_counter() - started)


def main() -> None:
    """Print a line for each seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--joining", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--placement", choices=[mode.value for mode in PlacementMode], default="required")
    arguments = parser.parse_args()
    print("seed evictions  before  at 25   after  to 4.5  minimum  came back  seconds")
    for seed in range(arguments.seeds):
        each = run(arguments.nodes, arguments.joining, seed, PlacementMode(arguments.placement))
        print(
            f"{seed:4} {each.evictions:9} {each.before:7.2f} {each.early:6.2f} {each.after:7.2f} {each.to_goal or '-':>7}"
            f" {each.minimum or '-':>8} {each.came_back:10} {each.seconds:8.1f}"
        )


if __name__ == "__main__":
    main()
