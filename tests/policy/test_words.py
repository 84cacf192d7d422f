"""What a policy will do, in words, and which combinations are warned of."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.policy import conflicts, describe
from tests.policy.documents import REQUIRED, a_policy, a_profile, loaded


def words(strategy: str, args: dict[str, Any]) -> str:
    """Return what is said of one strategy."""
    lines = describe(loaded(a_policy(a_profile(strategy, **{strategy: args}))).policy)
    (line,) = [line for line in lines if line.startswith(f"  {strategy}: ")]
    return line.removeprefix(f"  {strategy}: ")


@pytest.mark.parametrize(
    ("strategy", "args", "said"),
    [
        (
            "LowNodeUtilization",
            {"thresholds": {"cpu": 20, "memory": 20, "pods": 30}, "targetThresholds": {"cpu": 50, "memory": 50, "pods": 50}},
            "nodes at or below 20 % requested cpu and memory and at or below 30 % requested pods are under-used, "
            "nodes above 50 % "
            "requested cpu, memory or pods are over-used; moves pods from over-used towards under-used nodes.",
        ),
        (
            "LowNodeUtilization",
            {
                "thresholds": {"cpu": 5},
                "targetThresholds": {"cpu": 10},
                "useDeviationThresholds": True,
                "numberOfNodes": 2,
                "evictionLimits": {"node": 0},
                "evictableNamespaces": {"exclude": ["a", "b"]},
            },
            "nodes at least 5 points of cpu below the mean are under-used, nodes more than 10 points of cpu above it "
            "are over-used; "
            "moves pods from over-used towards under-used nodes, once more than 2 nodes are under-used, at most 0 per "
            "node. "
            "Scope: pods of a or b stay, though they count as usage.",
        ),
        (
            "HighNodeUtilization",
            {"thresholds": {"cpu": 20}, "drainLeastUsed": True, "evictionModes": ["OnlyThresholdingResources"]},
            "nodes at or below 20 % requested cpu are under-used; moves their pods onto fuller nodes, only pods that "
            "request one of "
            "these resources. Where all nodes are under-used, empties the least used one.",
        ),
        (
            "PodLifeTime",
            {"maxPodLifeTimeSeconds": 5400, "states": ["Pending"], "namespaces": {"include": ["shop"]}},
            "removes pods older than 1h30m and in state Pending, the oldest first. Scope: only in shop.",
        ),
        (
            "RemovePodsHavingTooManyRestarts",
            {"podRestartThreshold": 7, "includingInitContainers": True, "labelSelector": {"matchLabels": {"a": "b"}}},
            "moves pods with 7 or more restarts, init containers included, the most restarted first. Scope: only pods "
            "that match a=b.",
        ),
        (
            "RemovePodsViolatingNodeTaints",
            {"includedTaints": ["a", "b=c"]},
            "moves pods that do not tolerate a NoSchedule taint of their node, among a or b=c.",
        ),
        (
            "RemovePodsViolatingTopologySpreadConstraint",
            {},
            "moves pods that violate their topology spread constraints (DoNotSchedule), only where they fit a node of "
            "a domain below "
            "average.",
        ),
        (
            "RemoveFailedPods",
            {"reasons": ["Error"], "excludeOwnerKinds": ["Job"], "namespaces": {"exclude": ["x"]}},
            "removes failed pods at least 1h old and with reason Error. Scope: not in x; not pods of a Job.",
        ),
    ],
)
def test_a_strategy_is_said_with_its_numbers(strategy: str, args: dict[str, Any], said: str) -> None:
    """Percentages are called requested, limits and scopes stand in the sentence."""
    assert words(strategy, args) == said


def test_limits_and_nodes_are_said() -> None:
    """The first lines tell what bounds the whole policy."""
    top = {"maxNoOfPodsToEvictTotal": 5, "maxNoOfPodsToEvictPerNode": 1, "nodeSelector": "pool=a", "gracePeriodSeconds": 30}
    lines = describe(loaded(a_policy(**top)).policy)
    assert lines[:3] == [
        "Looks at Ready nodes that match pool=a; at least two are needed.",
        "Evicts per run at most 5 pods in all, 1 pod per node.",
        "Each evicted pod gets 30 s to stop.",
    ]


def test_the_evictor_is_said() -> None:
    """Protections that hold, those that were switched off, and every narrowing."""
    evictor = {
        "podProtections": {"defaultDisabled": ["PodsWithLocalStorage"], "extraEnabled": ["PodsWithoutPDB"]},
        "priorityThreshold": {"name": "high"},
        "minReplicas": 2,
        "minPodAge": "5m",
        "nodeFit": False,
    }
    text = "\n".join(describe(loaded(a_policy(a_profile("RemoveDuplicates", evictor=evictor))).policy))
    assert "pods that no PodDisruptionBudget selects" in text
    assert "Protection switched off for: pods with local storage (emptyDir or hostPath)." in text
    assert "below the priority of class high" in text
    assert "at least 2 live, ready pods" in text
    assert "started at least 5m ago" in text
    assert "nodeFit: false" in text


def test_profiles_that_may_move_the_same_pods_say_so_once() -> None:
    """Many profiles of a converted policy do not repeat the same rules."""
    lines = describe(loaded(a_policy(a_profile("RemoveDuplicates", name="a"), a_profile("PodLifeTime", name="b"))).policy)
    assert sum("Leaves alone" in line for line in lines) == 1
    assert "  May move the same pods as a." in lines


@pytest.mark.parametrize(
    ("strategies", "packs", "words"),
    [
        (("LowNodeUtilization", "RemoveDuplicates"), False, []),
        (("LowNodeUtilization", "HighNodeUtilization"), True, ["each undoes the work of the other"]),
        (("HighNodeUtilization",), False, ["MostAllocated"]),
        (("HighNodeUtilization",), True, []),
        (("HighNodeUtilization", "RemoveDuplicates"), True, ["RemoveDuplicates spreads pods"]),
    ],
)
def test_combinations_that_fight_are_warned_of(strategies: tuple[str, ...], packs: bool, words: list[str]) -> None:
    """Spreading beside packing, and packing with a scheduler that spreads, in one profile or in two."""
    args = {name: REQUIRED.get(name, {}) for name in strategies}
    together = loaded(a_policy(a_profile(*strategies, **args))).policy
    apart = loaded(a_policy(*(a_profile(name, name=name, **args) for name in strategies))).policy
    for policy in (together, apart):
        found = conflicts(policy, scheduler_packs=packs)
        assert len(found) == len(words)
        assert all(word in sentence for word, sentence in zip(words, found, strict=True))
        assert [f"Warning: {sentence}" for sentence in found] == describe(policy, scheduler_packs=packs)[-len(found) or None :][
            : len(found)
        ]


@pytest.mark.parametrize("key", ["maxNoOfPodsToEvictTotal", "maxNoOfPodsToEvictPerNode", "maxNoOfPodsToEvictPerNamespace"])
def test_a_limit_of_zero_is_warned_of(key: str) -> None:
    """A policy that can never evict is allowed and hardly meant; a limit of one is fine."""
    assert len(conflicts(loaded(a_policy(**{key: 0})).policy)) == 1
    assert conflicts(loaded(a_policy(**{key: 1})).policy) == ()
