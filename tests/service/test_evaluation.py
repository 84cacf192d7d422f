"""Evaluations with the policy in force: what they are told, what happens when a strategy fails, what differs between policies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rebalancer.control.happenings import StrategyFailed
from rebalancer.control.ports import Circumstances
from rebalancer.errors import PolicyError
from rebalancer.model.plan import Plan
from rebalancer.model.trigger import TriggerKind
from rebalancer.placement.profile import DEFAULT
from rebalancer.policy import Policy, load
from rebalancer.service.evaluation import Evaluation, InForce, caps_of, difference, wanted_triggers
from rebalancer.settings import load_settings
from tests.control.cluster import World, a_node, a_pod, a_replica_set
from tests.control.virtual import Heard
from tests.service.process import POLICY

OBJECTS = [a_pod("a1", app="a"), a_pod("a2", app="a"), a_pod("b1", app="b"), a_replica_set("a", 2), a_replica_set("b", 1)]


async def at_once(compute: Callable[[], Plan]) -> Plan:
    """Compute in the loop itself."""
    return compute()


def a_policy(text: str = POLICY) -> Policy:
    """Return a policy."""
    return load(text, source="test").policy


async def evaluated(policy: Policy, circumstances: Circumstances | None = None, **settings: str) -> tuple[Plan, Heard]:
    """Return the plan for two replicas on one of two nodes, and what was told."""
    world = await World(a_node("n1"), a_node("n2"), *OBJECTS).sync()
    heard = Heard()
    given = load_settings({f"REBALANCER_{name.upper()}": value for name, value in settings.items()})
    evaluation = Evaluation(InForce(policy), given, DEFAULT, heard, at_once)
    return await evaluation(world.cache.snapshot(), circumstances or Circumstances()), heard


async def test_a_strategy_that_fails_is_named_and_the_others_go_on() -> None:
    """One broken strategy takes neither the run nor the others down."""
    policy = a_policy()
    (profile,) = policy.profiles
    duplicates, utilization = profile.balance
    broken = replace(profile, balance=(replace(utilization, args=None), duplicates))
    plan, heard = await evaluated(replace(policy, profiles=(broken,)))
    assert [(each.profile, each.strategy) for each in heard.of(StrategyFailed)] == [("default", "LowNodeUtilization")]
    assert len(plan.approved) == 1
    assert plan.approved[0].strategy == "RemoveDuplicates"


async def test_profiles_whose_windows_are_closed_are_left_out() -> None:
    """A closed profile asks for nothing."""
    open_plan, _ = await evaluated(a_policy())
    closed_plan, _ = await evaluated(a_policy(), Circumstances(closed_profiles=frozenset({"default"})))
    assert len(open_plan.approved) == 1
    assert closed_plan.approved == ()


@pytest.mark.parametrize(
    ("circumstances", "code"),
    [
        (Circumstances(cooling={("uid-a", "n1"): 4e9}), "cooldown"),
        (Circumstances(evicted_total=20), "cap-total"),
        (Circumstances(evicted_by_node={"n1": 3}), "cap-node"),
        (Circumstances(stopped={"uid-a": ("X", "Y")}), "owner-stopped"),
    ],
    ids=["rests", "total used up", "node used up", "strategies at odds"],
)
async def test_what_the_run_has_learnt_and_used_counts(circumstances: Circumstances, code: str) -> None:
    """Rests, caps that are used up and stopped workloads are refusals with their own codes."""
    plan, _ = await evaluated(a_policy(), circumstances)
    assert plan.approved == ()
    assert code in plan.refused_counts


async def test_a_priority_class_that_does_not_exist_is_a_policy_error() -> None:
    """What a policy names has to be there; the run fails in words, the process goes on."""
    text = POLICY.replace(
        "  - name: RemoveDuplicates\n  - name: Low",
        "  - name: DefaultEvictor\n    args: {priorityThreshold: {name: nope}}\n  - name: RemoveDuplicates\n  - name: Low",
    )
    with pytest.raises(PolicyError, match="nope"):
        await evaluated(a_policy(text))


def test_the_triggers_of_a_policy_are_those_of_its_strategies() -> None:
    """A tick and a person always count; a failed pod only where a strategy looks at pods."""
    wanted = wanted_triggers(a_policy())
    assert {TriggerKind.TICK, TriggerKind.MANUAL, TriggerKind.NODE_JOINED} <= wanted
    assert TriggerKind.POD_CHANGED not in wanted_triggers(replace(a_policy(), profiles=()))


def test_caps_are_told_in_words() -> None:
    """At start an operator reads what holds, from settings and policy."""
    words = caps_of(load_settings({"REBALANCER_CAP_NODE": "10%"}), replace(a_policy(), max_total=7)).describe()
    assert "at most 10% per node and run (settings)" in words
    assert "at most 7 per run (policy)" in words


def test_the_difference_between_two_policies_is_told_by_path() -> None:
    """A reload says what changed, not that something did."""
    old = a_policy()
    new = a_policy(POLICY.replace("cpu: 20", "cpu: 30"))
    assert difference(old, old) == {}
    ((path, (before, after)),) = difference(old, new).items()
    assert path.endswith("args.thresholds.cpu")
    assert (before, after) == (20, 30)
