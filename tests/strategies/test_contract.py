"""What holds for every strategy that the catalogue finds."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.decide.evaluate import evaluate
from rebalancer.model.plan import PlacementMode
from rebalancer.model.trigger import TriggerKind
from rebalancer.strategies.arguments import CATALOGUE
from rebalancer.strategies.catalogue import STRATEGIES
from tests.builders import NOW, REQUIRED_AFFINITY, a_cluster, a_node, a_policy

LEAST_ARGS: dict[str, dict[str, Any]] = {
    "LowNodeUtilization": {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}},
    "HighNodeUtilization": {"thresholds": {"cpu": 20}},
    "RemovePodsViolatingNodeAffinity": {"nodeAffinityType": [REQUIRED_AFFINITY]},
    "RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 1},
    "PodLifeTime": {"maxPodLifeTimeSeconds": 1},
}


def test_the_catalogue_holds_the_ten_strategies_of_upstream() -> None:
    """Every strategy that a policy may name is there, at its extension point and with its arguments."""
    assert set(STRATEGIES) == set(CATALOGUE)
    for name, strategy in STRATEGIES.items():
        assert CATALOGUE[name].args is strategy.args
        assert CATALOGUE[name].extension_points == {strategy.extension_point}


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_a_strategy_says_what_wakes_it(name: str) -> None:
    """Each strategy runs on the tick at least, and only on triggers that exist."""
    strategy = STRATEGIES[name]
    assert TriggerKind.TICK in strategy.runs_on
    assert strategy.runs_on <= set(TriggerKind)
    assert strategy.name == name


@pytest.mark.parametrize("mode", list(PlacementMode))
@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_a_strategy_asks_for_nothing_on_an_empty_cluster(name: str, mode: PlacementMode) -> None:
    """Neither without nodes nor on nodes without pods is anything approved or refused."""
    policy = a_policy({name: LEAST_ARGS.get(name, {})})
    for snapshot in (a_cluster(a_node("n1"), a_node("n2")), a_cluster()):
        plan = evaluate(snapshot, policy, placement=mode)
        assert (plan.approved, plan.refused) == ((), ())
        assert plan.evaluated_at == NOW.timestamp()
