"""The Deschedule strategies and the evictor against a second implementation, on recorded clusters with policies swapped.

Each round takes the cluster of one scenario, the strategies of another (sometimes of two) and the evictor of a third, takes
limits and nodeFit away, so that the answer does not depend on an order, and compares which pods go.
"""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from datetime import datetime
from typing import Any

import pytest

import rebalancer
from tests.attack.reference import Reference
from tests.attack.reference_strategies import STRATEGIES, decided
from tests.attack.twists import twisted
from tests.conformance.recorded import names, scenario

ROUNDS = 25


def profile_of(name: str) -> dict[str, Any]:
    """Return the profile of a scenario's policy, a copy."""
    found: dict[str, Any] = copy.deepcopy(scenario(name).document["policy"]["profiles"][0])
    return found


def a_mixture(rng: random.Random) -> dict[str, Any]:
    """Return a policy of Deschedule strategies and an evictor from several scenarios."""
    config: dict[str, Any] = {}
    wanted = rng.randint(1, 4)
    while len(config) < wanted:
        for each in profile_of(rng.choice(names()))["pluginConfig"]:
            if each["name"] in STRATEGIES:
                config[each["name"]] = each
    evictor = [each for each in profile_of(rng.choice(names()))["pluginConfig"] if each["name"] == "DefaultEvictor"]
    for each in evictor:
        each.get("args", {}).pop("nodeFit", None)
        if rng.random() < 0.1:
            each.setdefault("args", {})["nodeFit"] = False
    enabled = list(config)
    rng.shuffle(enabled)
    return {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        **({"nodeSelector": "pool=a"} if rng.random() < 0.1 else {}),
        "profiles": [
            {"name": "p", "pluginConfig": [*config.values(), *evictor], "plugins": {"deschedule": {"enabled": enabled}}}
        ],
    }


@pytest.mark.parametrize("odd", [False, True], ids=["as recorded", "twisted"])
@pytest.mark.parametrize("seed", range(6))
def test_the_same_pods_go_as_a_second_implementation_says(seed: int, odd: bool) -> None:
    """Sets of pod and strategy are equal in every round; where they are not, cluster, policy and difference are shown."""
    rng = random.Random(f"{seed} {odd}")
    going: Counter[str] = Counter()
    for _ in range(ROUNDS):
        name = rng.choice(names())
        document = scenario(name).document
        objects = twisted(document["objects"], rng) if odd else document["objects"]
        policy = a_mixture(rng)
        now = datetime.fromisoformat(document["evaluatedAt"])
        plan = rebalancer.evaluate(objects, policy, now=now, placement="off")
        assert not [each for each in plan.notes if each.startswith("skipped: ")]
        ours = {(each.pod, each.strategy) for each in plan.approved}
        theirs = decided(Reference(objects, policy, now.timestamp()))
        assert ours == theirs, f"{name}: {json.dumps(policy)}"
        going.update(strategy for _, strategy in ours)
    assert sum(going.values()) > 10
