"""A KubeSchedulerConfiguration becomes profiles; every mistake is found at once."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.errors import InputError
from rebalancer.model.pod import SpreadConstraint
from rebalancer.model.selector import NOTHING, NodeSelectorTerm, Operator, Requirement
from rebalancer.placement.profile import DEFAULT, FILTERS, SYSTEM_SPREAD, WEIGHTS, Plugin, SchedulerProfile, ScoringKind
from rebalancer.placement.scheduler_config import scheduler_config


def config(*profiles: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a document."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": list(profiles),
        **more,
    }


def read(profile: dict[str, Any]) -> SchedulerProfile:
    """Read a document with one profile."""
    (found,) = scheduler_config(config(profile)).profiles
    return found


def with_args(plugin: str, **args: Any) -> SchedulerProfile:
    """Read a profile that configures one plugin."""
    return read({"pluginConfig": [{"name": plugin, "args": args}]})


def mistakes(document: dict[str, Any]) -> list[str]:
    """Return what is wrong with a document."""
    with pytest.raises(InputError) as caught:
        scheduler_config(document)
    return [str(mistake) for mistake in caught.value.mistakes]


def test_the_default_is_the_default_profile() -> None:
    """Without a configuration, and with an empty one, every default of kube-scheduler 1.36 holds."""
    assert scheduler_config(config()) == DEFAULT
    profile = DEFAULT.profile_for("default-scheduler")
    assert profile == read({})
    assert profile is not None
    assert (profile.filters, profile.default_spread, profile.percentage_to_score) == (FILTERS, SYSTEM_SPREAD, 0)
    assert {str(plugin): weight for plugin, weight in profile.weights.items()} == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }


def test_profiles_are_found_by_scheduler_name() -> None:
    """Each profile serves the pods that name it; nobody else is known."""
    found = scheduler_config(
        config({"schedulerName": "a"}, {"schedulerName": "b", "percentageOfNodesToScore": 50}, percentageOfNodesToScore=20)
    )
    assert [found.profile_for(name) and found.profile_for(name).percentage_to_score for name in ("a", "b", "c")] == [20, 50, None]  # type: ignore[union-attr]


def test_enabled_and_disabled_plugins() -> None:
    """A point's own list wins over multiPoint; ``*`` disables all; a missing weight is the default's, or 1 at the score point."""
    every = read({"plugins": {"multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": "TaintToleration"}]}}})
    assert every.filters == {Plugin.TAINT_TOLERATION}
    assert every.weights == {Plugin.TAINT_TOLERATION: 3}
    some = read(
        {
            "plugins": {
                "score": {
                    "disabled": [{"name": "ImageLocality"}, {"name": "NodeAffinity"}],
                    "enabled": [{"name": "NodeAffinity"}, {"name": "NodeResourcesFit", "weight": 9}],
                },
                "filter": {"disabled": [{"name": "NodePorts"}]},
            }
        }
    )
    assert some.weights == {
        **{k: v for k, v in WEIGHTS.items() if k is not Plugin.IMAGE_LOCALITY},
        Plugin.NODE_AFFINITY: 1,
        Plugin.RESOURCES_FIT: 9,
    }
    assert some.filters == FILTERS - {Plugin.NODE_PORTS}


def test_foreign_plugins_are_remembered() -> None:
    """Plugins that kube-scheduler does not bring along are no mistake, but known to have a say."""
    profile = read({"plugins": {"score": {"enabled": [{"name": "Trimaran", "weight": 5}, {"name": "DefaultPreemption"}]}}})
    assert profile.foreign == ("Trimaran",)


@pytest.mark.parametrize("kind", list(ScoringKind))
def test_scoring_strategy(kind: ScoringKind) -> None:
    """The strategy of NodeResourcesFit is read with its resources and points."""
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    strategy = {
        "type": str(kind),
        "resources": [{"name": "cpu", "weight": 3}, {"name": "example.com/gpu"}],
        "requestedToCapacityRatio": {"shape": shape},
    }
    fit = with_args("NodeResourcesFit", scoringStrategy=strategy).fit
    assert (fit.kind, fit.resources, fit.points) == (kind, (("cpu", 3), ("example.com/gpu", 1)), ((0, 0), (100, 10)))


def test_default_constraints() -> None:
    """defaultingType List replaces the built-in constraints, by none as well."""
    constraint = {"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}
    listed = with_args("PodTopologySpread", defaultingType="List", defaultConstraints=[constraint])
    assert listed.default_spread == (SpreadConstraint(2, "rack", True, NOTHING, None, True, False),)
    assert not listed.system_spread
    assert with_args("PodTopologySpread", defaultingType="List").default_spread == ()
    assert with_args("PodTopologySpread", defaultingType="System").default_spread == SYSTEM_SPREAD


def test_other_arguments() -> None:
    """Arguments of the remaining plugins are read."""
    assert (
        with_args("InterPodAffinity", hardPodAffinityWeight=0, ignorePreferredTermsOfExistingPods=True).hard_affinity_weight == 0
    )
    assert with_args("InterPodAffinity", ignorePreferredTermsOfExistingPods=True).ignore_preferred
    assert with_args("NodeResourcesBalancedAllocation", resources=[{"name": "cpu"}]).balanced_resources == (("cpu", 1),)
    assert with_args("NodeResourcesFit", ignoredResources=["a/b"], ignoredResourceGroups=["c"]).ignored_resources == {"a/b"}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["x"]}]}]}
    preferred = [{"weight": 4, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}]
    profile = with_args(
        "NodeAffinity",
        addedAffinity={
            "requiredDuringSchedulingIgnoredDuringExecution": terms,
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        },
    )
    assert profile.added_affinity is not None
    assert profile.added_affinity.terms == (NodeSelectorTerm((Requirement("pool", Operator.IN, ("x",)),)),)
    assert [each.weight for each in profile.added_preferred] == [4]


def test_parts_that_do_not_matter_here_are_passed_over() -> None:
    """Leader election, connections and the like are none of our business."""
    assert (
        scheduler_config(config(leaderElection={"leaderElect": True}, parallelism=16, extenders=[{"urlPrefix": "x"}])).extenders
        == 1
    )


@pytest.mark.parametrize(
    ("document", "found"),
    [
        ({}, ["kind: must be KubeSchedulerConfiguration", "apiVersion: must be kubescheduler.config.k8s.io/v1"]),
        (
            {**config(), "apiVersion": "kubescheduler.config.k8s.io/v1beta2"},
            ["apiVersion: kubescheduler.config.k8s.io/v1beta2 is no longer served: must be kubescheduler.config.k8s.io/v1"],
        ),
        (config(percentageOfNodesToScore=101), ["percentageOfNodesToScore: must be an integer from 0 to 100"]),
        (config({"schedulername": "a"}), ["profiles[0].schedulername: is not a known key (did you mean 'schedulerName'?)"]),
        (config({}, {}), ["profiles[1].schedulerName: 'default-scheduler' is taken by an earlier profile"]),
        (config(profiles={}), ["profiles: must be a list"]),
        (config([]), ["profiles[0]: must be a mapping"]),  # type: ignore[arg-type]
        (config({"schedulerName": 1}), ["profiles[0].schedulerName: must be a string"]),
        (
            config({"plugins": {"score": {"disabled": [{"name": "NodeResourceFit"}]}}}),
            ["profiles[0].plugins.score.disabled[0].name: 'NodeResourceFit' is not a plugin (did you mean 'NodeResourcesFit'?)"],
        ),
        (
            config({"plugins": {"scores": {}}}),
            ["profiles[0].plugins.scores: is not a known key (did you mean 'score'?)"],
        ),
        (
            config({"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAlocated"}}}]}),
            [
                "profiles[0].pluginConfig[0].args.scoringStrategy.type: must be one of LeastAllocated, MostAllocated, "
                "RequestedToCapacityRatio (did you mean 'MostAllocated'?)"
            ],
        ),
        (
            config(
                {
                    "pluginConfig": [
                        {
                            "name": "NodeResourcesFit",
                            "args": {
                                "scoringStrategy": {
                                    "type": "RequestedToCapacityRatio",
                                    "resources": [{"name": "", "weight": 0}],
                                }
                            },
                        },
                        {"name": "PodTopologySpread", "args": {"defaultConstraints": [{"maxSkew": 0}]}},
                        {
                            "name": "NodeAffinity",
                            "args": {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": 3}},
                        },
                    ]
                }
            ),
            [
                "profiles[0].pluginConfig[1].args.defaultConstraints: must be empty unless defaultingType is List",
                "profiles[0].pluginConfig[2].args.addedAffinity: must be a node affinity",
                "profiles[0].pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio.shape: must have at least one point",
                "profiles[0].pluginConfig[0].args.scoringStrategy.resources[0].name: must name a resource",
                "profiles[0].pluginConfig[0].args.scoringStrategy.resources[0].weight: must be an integer from 1 to 100",
            ],
        ),
    ],
)
def test_mistakes(document: dict[str, Any], found: list[str]) -> None:
    """Each mistake is named with its path and what would be right, all at once."""
    assert [mistake[: len(expected)] for mistake, expected in zip(mistakes(document), found, strict=True)] == found


def test_points_must_rise() -> None:
    """The points of RequestedToCapacityRatio are in rising order of utilisation."""
    shape = [{"utilization": 50, "score": 0}, {"utilization": 50, "score": 11}]
    strategy = {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}}
    document = config({"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}]})
    path = "profiles[0].pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio.shape[1]"
    assert mistakes(document) == [
        f"{path}.utilization: must be greater than 50, the one before",
        f"{path}.score: must be an integer from 0 to 10",
    ]
