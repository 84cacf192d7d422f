"""How long one evaluation of the descheduler's default policy takes: afresh, after one node joined, on hard clusters.

Run: ``python -m benchmarks.evaluation [few] [many] [joined] [small] [unshared] [hostile] [--times 5] [--nodes 5000]``

The policy is what the descheduler's chart renders by default (seven strategies) with nodeFit; placement is required; no caps.
few and many: how many shapes have to be judged. small: a fifth of the nodes. joined: the evaluation that one node-joined event
causes, with what earlier evaluations left in memory. Beside the times stand the numbers of shapes, approvals and refusals, which
are the same on every machine.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import pstats
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.measuring import isolated, resident_mib, timed
from benchmarks.scenario import CALM, FEW, HOSTILE, MANY, UNSHARED, Kind, Scenario, as_bytes, scaled
from rebalancer.cache.collector import unseen
from rebalancer.decide.evaluate import Memory, evaluate
from rebalancer.model.plan import Plan
from rebalancer.model.snapshot import Snapshot
from rebalancer.parse.interning import Interner
from rebalancer.parse.objects import PARSERS
from rebalancer.placement.prediction import Prediction
from rebalancer.policy import Policy, load

NOW = 1_796_083_200.0

POLICY: dict[str, Any] = {
    "apiVersion": "descheduler/v1alpha2",
    "kind": "DeschedulerPolicy",
    "profiles": [
        {
            "name": "default",
            "pluginConfig": [
                {
                    "name": "DefaultEvictor",
                    "args": {
                        "nodeFit": True,
                        "podProtections": {"defaultDisabled": ["PodsWithLocalStorage"], "extraEnabled": ["PodsWithPVC"]},
                    },
                },
                {"name": "RemoveDuplicates"},
                {
                    "name": "RemovePodsHavingTooManyRestarts",
                    "args": {"podRestartThreshold": 100, "includingInitContainers": True},
                },
                {
                    "name": "RemovePodsViolatingNodeAffinity",
                    "args": {"nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]},
                },
                {"name": "RemovePodsViolatingNodeTaints"},
                {"name": "RemovePodsViolatingInterPodAntiAffinity"},
                {"name": "RemovePodsViolatingTopologySpreadConstraint"},
                {
                    "name": "LowNodeUtilization",
                    "args": {
                        "thresholds": {"cpu": 20, "memory": 20, "pods": 20},
                        "targetThresholds": {"cpu": 50, "memory": 50, "pods": 50},
                    },
                },
            ],
            "plugins": {
                "balance": {"enabled": ["RemoveDuplicates", "RemovePodsViolatingTopologySpreadConstraint", "LowNodeUtilization"]},
                "deschedule": {
                    "enabled": [
                        "RemovePodsHavingTooManyRestarts",
                        "RemovePodsViolatingNodeTaints",
                        "RemovePodsViolatingNodeAffinity",
                        "RemovePodsViolatingInterPodAntiAffinity",
                    ]
                },
            },
        }
    ],
}
"""The chart's default policy, with nodeFit."""


def policy() -> Policy:
    """Return the policy as it is evaluated."""
    return load(POLICY, source="benchmark").policy


def snapshot_of_kind(kind: Kind) -> Snapshot:
    """Return a snapshot of a cluster, every object read from its bytes."""
    from rebalancer.model.snapshot import snapshot_of

    scenario, interner = Scenario(kind), Interner()
    found: dict[str, list[Any]] = {}
    for objects in (scenario.nodes(), scenario.owners(), scenario.budgets(), scenario.others(), scenario.pods()):
        for each in objects:
            found.setdefault(each["kind"], []).append(PARSERS[each["kind"]](as_bytes(each), interner))
    workloads = [each for kind in ("ReplicaSet", "StatefulSet", "DaemonSet") for each in found.get(kind, ())]
    return snapshot_of(
        NOW,
        nodes=found["Node"],
        pods=found["Pod"],
        budgets=found["PodDisruptionBudget"],
        namespaces=found["Namespace"],
        priority_classes=found["PriorityClass"],
        workloads=workloads,
    )


class Judged:
    """Counts the shapes whose landings were looked at, by watching the placement view."""

    def __init__(self) -> None:
        """Start with none."""
        self.shapes: set[int] = set()
        self.predictions = 0

    def watch(self, work: Callable[[], Plan]) -> Plan:
        """Do some work and count."""
        from rebalancer.placement.view import PlacementView

        before = PlacementView._predict

        def predict(view: PlacementView, shape: Any, *rest: Any, **named: Any) -> Prediction:
            self.shapes.add(id(shape))
            self.predictions += 1
            return before(view, shape, *rest, **named)

        PlacementView._predict = predict  # type: ignore[method-assign]
        try:
            return work()
        finally:
            PlacementView._predict = before  # type: ignore[method-assign]


def counts(kind: Kind) -> dict[str, int]:
    """Return what an evaluation looks at and decides; the same on every machine."""
    snapshot, typed = snapshot_of_kind(kind), policy()
    return _counts(snapshot, typed)


def _counts(snapshot: Snapshot, typed: Policy) -> dict[str, int]:
    judged = Judged()
    plan = judged.watch(lambda: evaluate(snapshot, typed))
    return {
        "pods": sum(len(bucket) for bucket in snapshot.pods.values()),
        "shapes": len({id(pod.shape) for bucket in snapshot.pods.values() for pod in bucket}),
        "shapes judged": len(judged.shapes),
        "predictions": judged.predictions,
        "approved": len(plan.approved),
        "refused": sum(plan.refused_counts.values()),
    }


def full(kind: Kind, times: int) -> dict[str, float]:
    """Measure evaluations that start with nothing remembered."""
    snapshot, typed = snapshot_of_kind(kind), policy()
    gc.freeze()  # As the controller does once the caches are synced.
    figures: dict[str, float] = dict(_counts(snapshot, typed))
    runs = [_evaluated(snapshot, typed, Memory())[:2] for _ in range(times)]
    figures["seconds"] = statistics.median(seconds for seconds, _ in runs)
    figures["CPU seconds"] = statistics.median(cpu for _, cpu in runs)
    figures["MiB"] = resident_mib()
    return figures


def _evaluated(snapshot: Snapshot, typed: Policy, memory: Memory) -> tuple[float, float, Plan]:
    """Evaluate as the controller does: without the garbage collector. Return time, CPU time and the plan."""
    with unseen():
        cpu = time.process_time()
        seconds, plan = timed(lambda: evaluate(snapshot, typed, memory=memory))
        return seconds, time.process_time() - cpu, plan


def without_node(snapshot: Snapshot, name: str) -> Snapshot:
    """Return the cluster as it was before an empty node joined."""
    nodes = {each: node for each, node in snapshot.nodes.items() if each != name}
    pods = {each: bucket for each, bucket in snapshot.pods.items() if each != name}
    return replace(snapshot, nodes=nodes, pods=pods)


def joined(kind: Kind, times: int) -> dict[str, float]:
    """Measure the evaluation that one node-joined event causes: everything else was evaluated before."""
    after, typed, memory = snapshot_of_kind(kind), policy(), Memory()
    name = next(reversed(after.nodes))
    before = without_node(after, name)
    gc.freeze()
    runs = []
    for _ in range(times + 1):
        _evaluated(before, typed, memory)
        runs.append(_evaluated(after, typed, memory))
    return {
        "seconds": statistics.median(seconds for seconds, _, _ in runs[1:]),
        "CPU seconds": statistics.median(cpu for _, cpu, _ in runs[1:]),
        "approved": len(runs[-1][2].approved),
        "MiB": resident_mib(),
    }


CASES: dict[str, tuple[Callable[[Kind, int], dict[str, float]], Kind]] = {
    "calm": (full, CALM),
    "few": (full, FEW),
    "many": (full, MANY),
    "joined": (joined, FEW),
    "small": (full, scaled(FEW, 1_000)),
    "unshared": (full, UNSHARED),
    "hostile": (full, HOSTILE),
}


def measure(name: str, times: int, nodes: int | None = None) -> dict[str, float]:
    """Return the figures of one case, measured in a process of its own. nodes: another size, everything in proportion."""
    work, kind = CASES[name]
    return isolated(work, scaled(kind, nodes) if nodes else kind, times)


def profile(name: str, lines: int, nodes: int | None) -> None:
    """Print what dominates one case."""
    work, kind = CASES[name]
    snapshot, typed, memory = snapshot_of_kind(scaled(kind, nodes) if nodes else kind), policy(), Memory()
    if work is joined:
        evaluate(without_node(snapshot, next(reversed(snapshot.nodes))), typed, memory=memory)
    profiler = cProfile.Profile(time.process_time)
    gc.freeze()
    with unseen():
        profiler.runcall(evaluate, snapshot, typed, memory=memory)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(lines)


def main() -> None:
    """Print the figures of the cases."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("cases", nargs="*", choices=[[], *CASES], help="all where none is named")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--nodes", type=int, help="another size, everything in proportion")
    parser.add_argument("--profile", type=int, metavar="LINES", help="print what dominates instead")
    options = parser.parse_args()
    for name in options.cases or CASES:
        if options.profile:
            profile(name, options.profile, options.nodes)
            continue
        figures = measure(name, options.times, options.nodes)
        print(f"{name}: " + ", ".join(f"{label} {value:,.3f}".rstrip("0").rstrip(".") for label, value in figures.items()))


if __name__ == "__main__":
    main()
