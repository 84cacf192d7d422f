"""What no input may break: protections, limits, repeatability, and that a policy comes to rest."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalancer.model.plan import PlacementMode, Plan
from rebalancer.model.pod import Phase
from rebalancer.model.snapshot import Snapshot, snapshot_of
from tests.builders import (
    HOSTNAME,
    PREFERRED_AFFINITY,
    REQUIRED_AFFINITY,
    ZONE,
    Object,
    a_budget,
    a_cluster,
    a_node,
    a_pod,
    a_policy,
    a_spread,
    decided,
    keeps_away,
    would_like_node,
)

STRATEGIES: dict[str, dict[str, Any]] = {
    "RemoveDuplicates": {},
    "LowNodeUtilization": {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}},
    "RemovePodsViolatingTopologySpreadConstraint": {"constraints": ["DoNotSchedule", "ScheduleAnyway"]},
    "RemovePodsViolatingInterPodAntiAffinity": {},
    "RemovePodsViolatingNodeAffinity": {"nodeAffinityType": [REQUIRED_AFFINITY, PREFERRED_AFFINITY]},
    "RemovePodsViolatingNodeTaints": {},
}


@st.composite
def clusters(draw: st.DrawFn) -> list[Object]:
    """Draw a handful of nodes in two zones with pods of several kinds."""
    objects: list[Object] = []
    names = [f"n{index}" for index in range(draw(st.integers(2, 5)))]
    for index, name in enumerate(names):
        taints = ["dedicated=x:NoSchedule"] if draw(st.booleans()) and index else []
        labels = {"tier": draw(st.sampled_from(["spot", "od"]))}
        objects.append(
            a_node(name, zone=f"z{index % 2}", taints=taints, labels=labels, cordoned=index > 1 and draw(st.booleans()))
        )
    kinds: list[dict[str, Any]] = [
        {},
        {"owner": "StatefulSet"},
        {"owner": "DaemonSet"},
        {"owner": None},
        {"priority": 2_000_000_000},
        {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
        {"spec": {"topologySpreadConstraints": [a_spread(ZONE, app="APP"), a_spread(HOSTNAME, hard=False, app="APP")]}},
        {"spec": keeps_away("APP")},
        {"spec": would_like_node(tier="spot")},
        {"terminating": True},
    ]
    for app in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(kinds))
        cpu = draw(st.sampled_from([None, "100m", "500m", "1000m"]))
        document = _named(kind, f"app{app}")
        for index in range(draw(st.integers(1, 5))):
            node = draw(st.sampled_from(names))
            objects.append(a_pod(f"p{app}-{index}", node, app=f"app{app}", cpu=cpu, **document))
        if draw(st.booleans()):
            objects.append(a_budget(f"b{app}", app=f"app{app}", allowed=draw(st.integers(0, 2))))
    return objects


def _named(value: Any, app: str) -> Any:
    if isinstance(value, dict):
        return {key: _named(each, app) for key, each in value.items()}
    if isinstance(value, list):
        return [_named(each, app) for each in value]
    return app if value == "APP" else value


MODES = st.sampled_from(list(PlacementMode))
CHOSEN = st.lists(st.sampled_from(sorted(STRATEGIES)), min_size=1, max_size=3, unique=True)


@given(clusters(), CHOSEN, MODES)
@settings(max_examples=60)
def test_no_plan_contains_a_protected_pod_or_exceeds_a_limit(
    objects: list[Object], chosen: list[str], mode: PlacementMode
) -> None:
    """DaemonSet, bare, critical, local-storage and terminating pods stay, each pod goes once, limits and budgets hold."""
    snapshot = a_cluster(*objects)
    policy = a_policy(
        {name: STRATEGIES[name] for name in chosen},
        evictor={"nodeFit": None},
        maxNoOfPodsToEvictPerNode=2,
        maxNoOfPodsToEvictPerNamespace=4,
        maxNoOfPodsToEvictTotal=3,
    )
    plan = decided(snapshot, policy, mode)
    by_uid = {pod.uid: pod for pod in snapshot.all_pods()}
    assert len({approval.uid for approval in plan.approved}) == len(plan.approved) <= 3
    assert max(Counter(approval.node for approval in plan.approved).values(), default=0) <= 2
    for approval in plan.approved:
        pod = by_uid[approval.uid]
        assert pod.shape.owner is not None
        assert pod.shape.owner.kind != "DaemonSet"
        assert (pod.shape.priority or 0) < 2_000_000_000
        assert not pod.terminating
        assert not pod.shape.has_local_storage
        assert not approval.landings or sum(approval.landings.values()) == pytest.approx(1)
    if mode is not PlacementMode.OFF:
        for budget in snapshot.budgets.get("ns1", ()):
            taken = [approval for approval in plan.approved if budget.selector.matches(by_uid[approval.uid].shape.labels)]
            assert sum(by_uid[approval.uid].ready for approval in taken) <= budget.disruptions_allowed


@given(clusters(), CHOSEN, MODES, st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_equal_input_in_any_order_gives_an_equal_plan(
    objects: list[Object], chosen: list[str], mode: PlacementMode, rng: random.Random
) -> None:
    """The plan is the same byte for byte, whatever the order of the objects."""
    policy = a_policy({name: STRATEGIES[name] for name in chosen}, evictor={"nodeFit": None})
    shuffled = list(objects)
    rng.shuffle(shuffled)
    assert decided(a_cluster(*objects), policy, mode).to_dict() == decided(a_cluster(*shuffled), policy, mode).to_dict()


def carried_out(snapshot: Snapshot, plan: Plan, turn: int) -> Snapshot:
    """Return the snapshot with each approved pod on its most likely landing, Running again."""
    landing_of = {each.uid: max(sorted(each.landings), key=each.landings.__getitem__) for each in plan.approved if each.landings}
    pods = [
        replace(pod, uid=f"{pod.uid}.{turn}", node=landing_of[pod.uid], phase=Phase.RUNNING, ready=True)
        if pod.uid in landing_of
        else pod
        for pod in snapshot.all_pods()
    ]
    return snapshot_of(
        snapshot.now,
        nodes=snapshot.nodes.values(),
        pods=pods,
        budgets=[each for group in snapshot.budgets.values() for each in group],
    )


@given(clusters(), CHOSEN)
@settings(max_examples=40)
def test_a_plan_applied_and_evaluated_again_comes_to_rest(objects: list[Object], chosen: list[str]) -> None:
    """Within ten runs nothing is left to gain: no strategy undoes its own work or another's."""
    policy = a_policy({name: STRATEGIES[name] for name in chosen}, evictor={"nodeFit": None})
    snapshot = a_cluster(*objects)
    for turn in range(10):
        plan = decided(snapshot, policy, PlacementMode.REQUIRED)
        if not plan.approved:
            return
        snapshot = carried_out(snapshot, plan, turn)
    pytest.fail(f"still moving after ten runs: {[(each.pod, each.strategy, each.node) for each in plan.approved]}")
