"""What guards, limits, modes and explanations add to a decision."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.decide.explain import NOT_ASKED, explain
from rebalancer.decide.guards import Guards, SingleReplicas, Spent
from rebalancer.model.cap import Cap
from rebalancer.model.plan import PlacementMode
from tests.builders import (
    DAY,
    NOW,
    Object,
    a_budget,
    a_cluster,
    a_node,
    a_pod,
    a_policy,
    decided,
    moved,
    moved_from,
    pinned,
    pods,
    refusals,
)

OLD: dict[str, Any] = {"PodLifeTime": {"maxPodLifeTimeSeconds": 60}}


def two_nodes(*objects: Any) -> Any:
    """Return a cluster of n1, n2 and these objects."""
    return a_cluster(a_node("n1"), a_node("n2"), *objects)


@pytest.mark.parametrize(
    ("guards", "expected", "code"),
    [
        (Guards(total=Cap(number=2)), 2, "cap-total"),
        (Guards(node=Cap(number=3)), 3, "cap-node"),
        (Guards(namespace=Cap(percent=25)), 1, "cap-namespace"),
        (Guards(workload=Cap(percent=50)), 2, "cap-workload"),
        (Guards(total=Cap(number=3), spent=Spent(total=2)), 1, "cap-total"),
        (Guards(node=Cap(number=2), spent=Spent(by_node={"n1": 2})), 0, "cap-node"),
        (Guards(protected_namespaces=frozenset({"ns1"})), 0, "protected-namespace"),
        (Guards(stopped={"owner-ns1-app": ("A", "B")}), 0, "owner-stopped"),
    ],
)
def test_caps_and_protections_of_the_settings_hold(guards: Guards, expected: int, code: str) -> None:
    """Numbers and percentages, what the run has spent already, and what is protected altogether."""
    plan = decided(two_nodes(pods(4, "n1")), a_policy(OLD), guards=guards)
    assert len(plan.approved) == expected
    assert code in plan.refused_counts


@pytest.mark.parametrize(("until", "expected"), [(NOW.timestamp() + 60, []), (NOW.timestamp() - 1, ["app-n1-0"])])
def test_an_owner_rests_on_the_node_it_could_not_be_moved_from(until: float, expected: list[str]) -> None:
    """A cooldown holds until its end, for that owner on that node."""
    guards = Guards(cooldowns={("owner-ns1-app", "n1"): until, ("owner-ns1-app", "n2"): NOW.timestamp() + 60})
    assert moved(decided(two_nodes(pods(1, "n1")), a_policy(OLD), guards=guards)) == expected


def test_single_replicas_can_be_protected() -> None:
    """The only live pod of an owner stays where the settings say so; of two, one goes."""
    guards = Guards(single_replicas=SingleReplicas.SKIP)
    assert refusals(decided(two_nodes(pods(1, "n1")), a_policy(OLD), guards=guards)) == {"app-n1-0": "single-replica"}


def replica_set(**more: Any) -> Object:
    """Return the ReplicaSet behind ``app``."""
    status = {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "observedGeneration": 1, **more.pop("status", {})}
    return {
        "kind": "ReplicaSet",
        "metadata": {"name": "app", "namespace": "ns1", "uid": more.pop("uid", "owner-ns1-app"), "generation": 1},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "app"}}, **more},
        "status": status,
    }


@pytest.mark.parametrize(
    ("workload", "code"),
    [
        (replica_set(), None),
        (replica_set(uid="another"), "workload-gone"),
        (replica_set(replicas=0), "workload-scaled-to-zero"),
        (replica_set(status={"observedGeneration": 0}), "workload-in-rollout"),
        (replica_set(status={"readyReplicas": 1}), "workload-unready"),
    ],
)
def test_a_workload_that_cannot_afford_it_is_left_alone(workload: Object, code: str | None) -> None:
    """With guards given and workloads known: gone, scaled to zero, in a rollout, or short of ready replicas."""
    snapshot = two_nodes(pods(2, "n1"), workload)
    plan = decided(snapshot, a_policy(OLD), guards=Guards())
    assert set(plan.refused_counts) == ({code} if code else set())
    assert len(decided(snapshot, a_policy(OLD)).approved) == 2


def test_without_placement_budgets_are_not_looked_at() -> None:
    """In ``off`` the policy alone decides."""
    snapshot = two_nodes(pods(1, "n1"), a_budget("b", app="app", allowed=0))
    assert moved(decided(snapshot, a_policy(OLD), PlacementMode.OFF)) == ["app-n1-0"]
    assert refusals(decided(snapshot, a_policy(OLD), PlacementMode.FIT)) == {"app-n1-0": "budget"}


@pytest.mark.parametrize(
    ("mode", "node_fit", "goes"),
    [
        (PlacementMode.OFF, None, True),
        (PlacementMode.OFF, False, True),
        (PlacementMode.OFF, True, False),
        (PlacementMode.FIT, None, False),
        (PlacementMode.FIT, False, True),
        (PlacementMode.FIT, True, False),
        (PlacementMode.REQUIRED, None, False),
        (PlacementMode.REQUIRED, False, True),
        (PlacementMode.REQUIRED, True, False),
    ],
)
def test_node_fit_false_asks_for_nothing_in_any_mode(mode: PlacementMode, node_fit: bool | None, goes: bool) -> None:
    """A pod that fits no node at all: each mode with each value of nodeFit."""
    snapshot = two_nodes(a_pod("p", "n1", cpu="5"))
    evictor = {"nodeFit": node_fit}
    assert moved(decided(snapshot, a_policy(OLD, evictor=evictor), mode)) == (["p"] if goes else [])


def test_room_is_reserved_within_a_run() -> None:
    """Two pods of 3 cpu and one free node: one of them goes (F9)."""
    snapshot = a_cluster(a_node("n1", cpu="6"), a_node("n2"), pods(2, "n1", cpu="3"))
    assert len(decided(snapshot, a_policy(OLD)).approved) == 1


def test_two_strategies_never_ask_for_one_pod_twice() -> None:
    """What one strategy has approved is gone for the next (F29)."""
    policy = a_policy({**OLD, "RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 1}})
    plan = decided(two_nodes(a_pod("p", "n1", restarts=[5])), policy)
    assert [approval.strategy for approval in plan.approved] == ["PodLifeTime"]


def test_deschedule_strategies_run_before_balance_ones() -> None:
    """Whatever their order in the policy (K3)."""
    snapshot = two_nodes(pods(3, "n1", age=DAY))
    plan = decided(
        snapshot, a_policy({"RemoveDuplicates": {}, "PodLifeTime": {"maxPodLifeTimeSeconds": 60}}, maxNoOfPodsToEvictTotal=1)
    )
    assert [approval.strategy for approval in plan.approved] == ["PodLifeTime"]


def test_refusals_of_one_code_are_only_counted_beyond_a_thousand() -> None:
    """A plan lists a thousand and counts all."""
    snapshot = a_cluster(a_node("n1", pods=2000), a_node("n2"), pods(1003, "n1", owner=None, cpu=None))
    plan = decided(snapshot, a_policy(OLD))
    assert len(plan.refused) == 1000
    assert plan.refused_counts == {"no-owner": 1003}


def test_a_pod_is_explained_by_every_strategy_and_rule() -> None:
    """Approved, refused or not asked; each rule with its code; the node as classified; where the pod would go."""
    snapshot = two_nodes(
        a_pod("hot", "n1", cpu="1000m"),
        pinned("load", "n1", "2000m"),
        a_pod("local", "n1", spec={"volumes": [{"name": "v", "emptyDir": {}}]}),
    )
    policy = a_policy(
        {
            "LowNodeUtilization": {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 60}},
            "RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 1},
        }
    )
    hot = explain(snapshot, policy, "ns1/hot")
    assert [(each.strategy, each.verdict) for each in hot.strategies] == [
        ("RemovePodsHavingTooManyRestarts", "not asked"),
        ("LowNodeUtilization", "approved"),
    ]
    assert hot.strategies[0].reason == NOT_ASKED
    assert hot.landings == {"n2": 1.0}
    assert {each.code for each in hot.rules} == {""}
    local = explain(snapshot, policy, "ns1/local")
    assert "local-storage" in {each.code for each in local.rules}
    assert local.nodes[0]["verdict"] == "over"
    document = local.to_dict()
    assert document["pod"] == "ns1/local"
    assert any("n1" in line for line in local.lines())
    with pytest.raises(LookupError):
        explain(snapshot, policy, "ns1/none")


def test_a_node_that_stays_over_used_says_which_pods_were_kept() -> None:
    """Where nobody more can go, the evictor's reasons are on record."""
    snapshot = two_nodes(pinned("load", "n1", "3000m"), a_pod("p", "n1", cpu="100m"))
    plan = decided(snapshot, a_policy({"LowNodeUtilization": {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 60}}}))
    assert moved_from(plan) == {"n1": 1}
    assert refusals(plan) == {"load": "daemon-set"}
