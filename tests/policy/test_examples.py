"""Policies that users bring along are accepted and mean what they say."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from rebalancer.eligibility.arguments import Protection
from rebalancer.policy import describe
from rebalancer.strategies.arguments import CATALOGUE
from tests.policy.documents import DATA, REQUIRED, a_policy, a_profile, loaded

RECORDED = json.loads((DATA / "recorded_policies.json").read_text())

EXAMPLES: dict[str, dict[str, Any]] = {
    "RemoveDuplicates": {"excludeOwnerKinds": ["ReplicaSet"], "namespaces": {"include": ["shop"]}},
    "LowNodeUtilization": {
        "thresholds": {"cpu": 20, "memory": 20.5, "pods": 20, "nvidia.com/gpu": 10},
        "targetThresholds": {"cpu": 50, "memory": 50, "pods": 50, "nvidia.com/gpu": 80},
        "numberOfNodes": 2,
        "evictableNamespaces": {"exclude": ["kube-system"]},
        "evictionLimits": {"node": 4},
    },
    "HighNodeUtilization": {
        "thresholds": {"cpu": 20, "memory": 20},
        "evictableNamespaces": {"exclude": ["kube-system"]},
        "evictionModes": ["OnlyThresholdingResources"],
        "drainLeastUsed": True,
    },
    "RemovePodsViolatingInterPodAntiAffinity": {
        "labelSelector": {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["api", "web"]}]}
    },
    "RemovePodsViolatingNodeAffinity": {
        "nodeAffinityType": [
            "requiredDuringSchedulingIgnoredDuringExecution",
            "preferredDuringSchedulingIgnoredDuringExecution",
        ]
    },
    "RemovePodsViolatingNodeTaints": {
        "includePreferNoSchedule": True,
        "excludedTaints": ["dedicated=special", "reserved"],
        "namespaces": {"exclude": ["a", "b"]},
    },
    "RemovePodsViolatingTopologySpreadConstraint": {
        "constraints": ["DoNotSchedule", "ScheduleAnyway"],
        "topologyBalanceNodeFit": False,
    },
    "RemovePodsHavingTooManyRestarts": {
        "podRestartThreshold": 100,
        "includingInitContainers": True,
        "states": ["Running", "CrashLoopBackOff"],
    },
    "PodLifeTime": {
        "maxPodLifeTimeSeconds": 86400,
        "states": ["Pending", "PodInitializing", "Completed"],
        "conditions": [{"type": "Ready", "status": "False", "minTimeSinceLastTransitionSeconds": 300}],
        "exitCodes": [1, 137],
        "ownerKinds": {"exclude": ["Job"]},
        "includingEphemeralContainers": True,
    },
    "RemoveFailedPods": {
        "minPodLifetimeSeconds": 0,
        "reasons": ["NodeAffinity"],
        "exitCodes": [1],
        "excludeOwnerKinds": ["Job"],
    },
}
FULL_EVICTOR = {
    "nodeSelector": "pool in (a,b),!gpu",
    "labelSelector": {"matchLabels": {"tier": "web"}},
    "namespaceLabelSelector": {"matchExpressions": [{"key": "quiet", "operator": "DoesNotExist"}]},
    "priorityThreshold": {"value": 1000},
    "nodeFit": False,
    "minReplicas": 2,
    "minPodAge": "1h30m",
    "noEvictionPolicy": "Mandatory",
    "podProtections": {
        "defaultDisabled": ["PodsWithLocalStorage", "PodsWithSafeToEvictFalse"],
        "extraEnabled": ["PodsWithPVC", "PodsWithoutPDB", "PodsWithResourceClaims"],
        "config": {"PodsWithPVC": {"protectedStorageClasses": [{"name": "fast"}]}},
    },
}


def test_every_strategy_has_an_example() -> None:
    """No strategy of the catalogue is left out here."""
    assert EXAMPLES.keys() == CATALOGUE.keys()


@pytest.mark.parametrize("strategy", EXAMPLES)
def test_the_example_of_a_strategy_survives_being_written_and_read_again(strategy: str) -> None:
    """A policy with every argument of a strategy loads without a warning, and its own text gives an equal policy."""
    read = loaded(a_policy(a_profile(strategy, evictor=FULL_EVICTOR, **{strategy: EXAMPLES[strategy]}), gracePeriodSeconds=30))
    assert read.warnings == ()
    (_, use), *_ = read.policy.uses()
    assert use.name == strategy
    assert use.args.to_dict() == EXAMPLES[strategy]
    assert loaded(read.policy.to_yaml()).policy == read.policy


@pytest.mark.parametrize("strategy", EXAMPLES)
def test_every_strategy_is_described(strategy: str) -> None:
    """The summary names each strategy, and says more of it than its name."""
    lines = describe(loaded(a_policy(a_profile(strategy, **{strategy: EXAMPLES[strategy]}))).policy)
    (line,) = [line for line in lines if line.startswith(f"  {strategy}: ")]
    assert line.endswith(".")


@pytest.mark.parametrize("strategy", [name for name in CATALOGUE if name not in REQUIRED])
def test_a_strategy_without_required_arguments_needs_no_args(strategy: str) -> None:
    """G7: an entry without args stands for the defaults."""
    document = a_policy(a_profile(strategy))
    document["profiles"][0]["pluginConfig"] = [{"name": strategy}]
    (_, use), *_ = loaded(document).policy.uses()
    assert use.args == CATALOGUE[strategy].args()


def test_h3_the_default_policy_of_upstreams_chart_loads() -> None:
    """The chart's default policy is accepted without a warning; its order and its protections are as written."""
    read = loaded((DATA / "chart-default.yaml").read_bytes())
    assert read.warnings == ()
    assert [use.name for _, use in read.policy.uses()] == [
        "RemovePodsHavingTooManyRestarts",
        "RemovePodsViolatingNodeTaints",
        "RemovePodsViolatingNodeAffinity",
        "RemovePodsViolatingInterPodAntiAffinity",
        "RemoveDuplicates",
        "RemovePodsViolatingTopologySpreadConstraint",
        "LowNodeUtilization",
    ]
    holding = read.policy.profiles[0].evictor.protections
    assert Protection.PVC in holding
    assert Protection.LOCAL_STORAGE not in holding


@pytest.mark.parametrize("name", RECORDED)
def test_policies_that_the_descheduler_ran_with_load(name: str) -> None:
    """Policies of recorded runs load, and their own text gives an equal policy."""
    read = loaded(RECORDED[name])
    assert loaded(yaml.safe_load(read.policy.to_yaml())).policy == read.policy


def test_nodefit_unset_false_and_true_are_three_things() -> None:
    """What a user did not write is told from what they switched off."""
    fits = [
        loaded(a_policy(a_profile("RemoveDuplicates", evictor=evictor))).policy.profiles[0].evictor.node_fit
        for evictor in ({}, {"nodeFit": None}, {"nodeFit": False}, {"nodeFit": True})
    ]
    assert fits == [None, None, False, True]


def test_limits_unset_and_zero_are_two_things() -> None:
    """No limit and none allowed are told apart, also after the policy was written and read again."""
    none = loaded(a_policy()).policy
    zero = loaded(a_policy(maxNoOfPodsToEvictTotal=0, maxNoOfPodsToEvictPerNode=0, maxNoOfPodsToEvictPerNamespace=0)).policy
    assert (none.max_total, none.max_per_node, none.max_per_namespace) == (None, None, None)
    again = loaded(zero.to_dict()).policy
    assert (again.max_total, again.max_per_node, again.max_per_namespace) == (0, 0, 0)


def test_strategies_run_deschedule_first_over_all_profiles() -> None:
    """K3: all Deschedule strategies of all profiles come before any Balance strategy; profiles keep their order."""
    read = loaded(a_policy(a_profile("RemoveDuplicates", name="one"), a_profile("PodLifeTime", "LowNodeUtilization", name="two")))
    order = [(profile.name, use.name) for profile, use in read.policy.uses()]
    assert order == [("two", "PodLifeTime"), ("one", "RemoveDuplicates"), ("two", "LowNodeUtilization")]
