"""Every rule of every argument: below, at and above each limit, missing, absurd, and each exclusive pair."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.eligibility.arguments import DefaultEvictorArgs, Protection
from rebalancer.strategies.arguments import CATALOGUE
from tests.policy.documents import REQUIRED, a_policy, a_profile, loaded, mistakes_in_args

LNU = "LowNodeUtilization"
HNU = "HighNodeUtilization"
LIFETIME = "PodLifeTime"
RESTARTS = "RemovePodsHavingTooManyRestarts"
TAINTS = "RemovePodsViolatingNodeTaints"
EVICTOR = "DefaultEvictor"


def low(thresholds: Any, target: Any, **more: Any) -> dict[str, Any]:
    """Return the arguments of LowNodeUtilization."""
    return {"thresholds": thresholds, "targetThresholds": target, **more}


ACCEPTED = [
    pytest.param(LNU, low({"cpu": 0}, {"cpu": 0}), id="percentage at its lower limit"),
    pytest.param(LNU, low({"cpu": 100}, {"cpu": 100}), id="percentage at its upper limit"),
    pytest.param(LNU, low({"cpu": 50}, {"cpu": 50}), id="low threshold at the target"),
    pytest.param(LNU, low({"cpu": 60}, {"cpu": 50}, useDeviationThresholds=True), id="deviations may cross"),
    pytest.param(LNU, low({"cpu": 20}, {"cpu": 50}, numberOfNodes=0), id="numberOfNodes at its limit"),
    pytest.param(LNU, low({"cpu": 20}, {"cpu": 50}, evictionLimits={"node": 0}), id="node limit at its limit"),
    pytest.param(LNU, low({"hugepages-2Mi": 1}, {"hugepages-2Mi": 2}), id="huge pages"),
    pytest.param(LNU, low({"example.com/gpu": 1}, {"example.com/gpu": 2}), id="extended resource"),
    pytest.param(LNU, low({"ephemeral-storage": 1}, {"ephemeral-storage": 2}), id="ephemeral storage"),
    pytest.param(RESTARTS, {"podRestartThreshold": 1}, id="restart threshold at its limit"),
    pytest.param(LIFETIME, {"maxPodLifeTimeSeconds": 0}, id="age at its limit"),
    pytest.param(LIFETIME, {"exitCodes": [0]}, id="exit codes alone"),
    pytest.param(LIFETIME, {"conditions": [{"status": "False"}]}, id="a condition alone"),
    pytest.param("RemoveFailedPods", {"minPodLifetimeSeconds": 0}, id="failed age at its limit"),
    pytest.param("RemoveDuplicates", {"namespaces": {"include": [], "exclude": ["a"]}}, id="an empty list beside the other"),
    pytest.param(TAINTS, {"excludedTaints": [], "includedTaints": ["a"]}, id="empty taints beside the other"),
    pytest.param("RemovePodsViolatingTopologySpreadConstraint", {"constraints": []}, id="no constraints: the default"),
    pytest.param(EVICTOR, {"priorityThreshold": {"value": 2_000_000_000}}, id="priority at its limit"),
    pytest.param(EVICTOR, {"priorityThreshold": {"value": -5}}, id="negative priority"),
    pytest.param(EVICTOR, {"priorityThreshold": {"name": "c1"}}, id="H1: a class alone"),
    pytest.param(EVICTOR, {"minReplicas": 0}, id="minReplicas at its limit"),
    pytest.param(EVICTOR, {"minPodAge": "0s"}, id="age at its limit for the evictor"),
    pytest.param(EVICTOR, {"noEvictionPolicy": ""}, id="no policy on the annotation"),
    pytest.param(EVICTOR, {"labelSelector": {}}, id="a selector of everything"),
    pytest.param(EVICTOR, {"labelSelector": None, "nodeFit": None}, id="null is not given"),
]


@pytest.mark.parametrize(("strategy", "args"), ACCEPTED)
def test_what_is_allowed_is_accepted(strategy: str, args: dict[str, Any]) -> None:
    """Values at their limits are fine."""
    assert mistakes_in_args(strategy, args) == {}


REFUSED = [
    pytest.param(LNU, low({"cpu": -0.1}, {"cpu": 50}), "thresholds.cpu", "at least 0", id="percentage below"),
    pytest.param(LNU, low({"cpu": 1}, {"cpu": 100.1}), "targetThresholds.cpu", "at most 100", id="percentage above"),
    pytest.param(LNU, low({"cpu": "20"}, {"cpu": 50}), "thresholds.cpu", "a number", id="percentage as text"),
    pytest.param(LNU, low({"cpu": True}, {"cpu": 50}), "thresholds.cpu", "a number", id="percentage as truth"),
    pytest.param(LNU, low({"cpu": float("nan")}, {"cpu": 50}), "thresholds.cpu", "finite", id="percentage absurd"),
    pytest.param(LNU, low({}, {"cpu": 50}), "thresholds", "not be empty", id="no thresholds"),
    pytest.param(LNU, {"targetThresholds": {"cpu": 50}}, "thresholds", "required", id="thresholds missing"),
    pytest.param(LNU, low([20], {"cpu": 50}), "thresholds", "a map", id="thresholds of the wrong type"),
    pytest.param(LNU, low({"cpu": 50.1}, {"cpu": 50}), "", "thresholds.cpu (50.1) must not be above", id="low above target"),
    pytest.param(LNU, low({"cpu": 5}, {"memory": 50}), "", "the same resources", id="other resources"),
    pytest.param(LNU, low({"cpu": 5}, {"cpu": 50}, numberOfNodes=-1), "numberOfNodes", "at least 0", id="numberOfNodes below"),
    pytest.param(
        LNU, low({"cpu": 5}, {"cpu": 50}, evictionLimits={"node": -1}), "evictionLimits.node", "at least 0", id="node limit below"
    ),
    pytest.param(LNU, low({"MetricResource": 5}, {"MetricResource": 50}), "", "source Prometheus only", id="load without source"),
    pytest.param(HNU, {"thresholds": {"cpu": 100.5}}, "thresholds.cpu", "at most 100", id="packing threshold above"),
    pytest.param(HNU, {}, "thresholds", "required", id="packing threshold missing"),
    pytest.param(HNU, {"thresholds": {"MetricResource": 1}}, "", "LowNodeUtilization only", id="packing by load"),
    pytest.param(RESTARTS, {"podRestartThreshold": 0}, "podRestartThreshold", "at least 1", id="restart threshold below"),
    pytest.param(RESTARTS, {}, "podRestartThreshold", "required", id="restart threshold missing"),
    pytest.param(RESTARTS, {"podRestartThreshold": 1.0}, "podRestartThreshold", "whole number", id="restart threshold broken"),
    pytest.param(LIFETIME, {}, "", "at least one of", id="lifetime without a criterion"),
    pytest.param(LIFETIME, {"maxPodLifeTimeSeconds": -1}, "maxPodLifeTimeSeconds", "at least 0", id="age below"),
    pytest.param(LIFETIME, {"conditions": [{}]}, "conditions[0]", "at least one of", id="condition without a field"),
    pytest.param(LIFETIME, {"exitCodes": ["1"]}, "exitCodes[0]", "whole number", id="exit code as text"),
    pytest.param(
        LIFETIME,
        {"exitCodes": [1], "ownerKinds": {"include": ["a"], "exclude": ["b"]}},
        "ownerKinds",
        "only one of include and exclude",
        id="owner kinds both ways",
    ),
    pytest.param("RemoveFailedPods", {"minPodLifetimeSeconds": -1}, "minPodLifetimeSeconds", "at least 0", id="failed age below"),
    pytest.param(
        "RemoveDuplicates",
        {"namespaces": {"include": ["a"], "exclude": ["b"]}},
        "namespaces",
        "only one of include and exclude",
        id="namespaces both ways",
    ),
    pytest.param(
        TAINTS, {"excludedTaints": ["a"], "includedTaints": ["b"]}, "", "only one of excludedTaints", id="taints both ways"
    ),
    pytest.param(
        "RemovePodsViolatingNodeAffinity", {"nodeAffinityType": []}, "nodeAffinityType", "not be empty", id="no affinity type"
    ),
    pytest.param("RemovePodsViolatingNodeAffinity", {}, "nodeAffinityType", "required", id="affinity type missing"),
    pytest.param(EVICTOR, {"priorityThreshold": {"value": 2_000_000_001}}, "priorityThreshold.value", "at most", id="above"),
    pytest.param(
        EVICTOR, {"priorityThreshold": {"value": 5, "name": "c1"}}, "priorityThreshold", "only one of", id="H1: both ways"
    ),
    pytest.param(EVICTOR, {"minReplicas": -1}, "minReplicas", "at least 0", id="minReplicas below"),
    pytest.param(EVICTOR, {"minPodAge": "-1s"}, "minPodAge", "at least 0", id="minPodAge below"),
    pytest.param(EVICTOR, {"minPodAge": "1 hour"}, "minPodAge", "not a duration", id="minPodAge absurd"),
    pytest.param(EVICTOR, {"nodeSelector": "a in b"}, "nodeSelector", "is not a requirement", id="nodeSelector absurd"),
    pytest.param(EVICTOR, {"labelSelector": []}, "labelSelector", "must be a map", id="selector of the wrong type"),
    pytest.param(
        EVICTOR,
        {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}},
        "labelSelector",
        "'Is' is not an operator",
        id="operator unknown",
    ),
    pytest.param(
        EVICTOR,
        {"podProtections": {"extraEnabled": ["PodsWithPVC", "PodsWithPVC"]}},
        "podProtections",
        "listed twice",
        id="protection twice",
    ),
    pytest.param(
        EVICTOR,
        {"podProtections": {"config": {"PodsWithPVC": {"protectedStorageClasses": [{"name": ""}]}}}},
        "podProtections.config.PodsWithPVC.protectedStorageClasses[0].name",
        "not be empty",
        id="storage class without a name",
    ),
    pytest.param(
        EVICTOR,
        {"evictDaemonSetPods": True, "podProtections": {"extraEnabled": ["PodsWithPVC"]}},
        "",
        "evictDaemonSetPods may not be set beside podProtections",
        id="old beside new",
    ),
]


@pytest.mark.parametrize(("strategy", "args", "path", "expected"), REFUSED)
def test_what_is_wrong_is_refused_with_its_path(strategy: str, args: Any, path: str, expected: str) -> None:
    """One mistake, at the right place, saying what would have been right."""
    found = mistakes_in_args(strategy, args)
    assert found.keys() == {path}
    assert expected in found[path].expected


@pytest.mark.parametrize(
    ("source", "broken"),
    [
        ({"source": "KubernetesMetrics", "metricsServer": True}, "metricsServer must not be set"),
        ({"source": "KubernetesMetrics", "prometheus": {"query": "q"}}, "prometheus must not be set"),
        ({"source": "Prometheus"}, "prometheus.query is required"),
        ({"source": "Prometheus", "prometheus": {"query": ""}}, "prometheus.query is required"),
    ],
)
def test_sources_of_load_that_contradict_themselves_are_refused(source: Any, broken: str) -> None:
    """The rules on metricsUtilization hold, although asking for load at all is refused besides."""
    args = low({"MetricResource": 20}, {"MetricResource": 50}, metricsUtilization=source)
    document = a_policy(a_profile(LNU, LowNodeUtilization=args))
    document["profiles"][0]["plugins"] = {}
    with pytest.raises(ValueError, match=broken):
        CATALOGUE[LNU].args.model_validate(args)


def test_prometheus_needs_its_own_resource() -> None:
    """With Prometheus both thresholds name MetricResource and nothing else."""
    source = {"source": "Prometheus", "prometheus": {"query": "q"}}
    fine = low({"MetricResource": 20}, {"MetricResource": 50}, metricsUtilization=source)
    assert CATALOGUE[LNU].args.model_validate(fine)
    with pytest.raises(ValueError, match="must name MetricResource alone"):
        CATALOGUE[LNU].args.model_validate(low({"cpu": 20}, {"cpu": 50}, metricsUtilization=source))


@pytest.mark.parametrize(
    ("strategy", "args", "path", "nearest"),
    [
        (LNU, low({"cpu": 1, "Pods": 1}, {"cpu": 2, "Pods": 2}), "thresholds.Pods", "pods"),
        (LNU, low({"CPU": 1}, {"CPU": 2}), "targetThresholds.CPU", "cpu"),
        (LNU, low({"gpu": 1}, {"gpu": 2}), "thresholds.gpu", None),
        (LNU, low({"nvidia.com/": 1}, {"nvidia.com/": 2}), 'thresholds["nvidia.com/"]', None),
        (LNU, low({"cpu": 1}, {"cpu": 2}, useDeviationThresolds=True), "useDeviationThresolds", "useDeviationThresholds"),
        (LNU, low({"cpu": 1}, {"cpu": 2}, exclude=["a"]), "exclude", None),
        (LNU, low({"cpu": 1}, {"cpu": 2}, namespaces={"exclude": ["a"]}), "namespaces", "evictableNamespaces"),
        (LNU, low({"cpu": 1}, {"cpu": 2}, evictableNamespaces={"include": ["a"]}), "evictableNamespaces.include", None),
        (
            HNU,
            {"thresholds": {"cpu": 1}, "evictionModes": ["OnlyThresholdingResource"]},
            "evictionModes[0]",
            "OnlyThresholdingResources",
        ),
        (RESTARTS, {"podRestartThreshold": 1, "podRestartThresholds": 1}, "podRestartThresholds", "podRestartThreshold"),
        (RESTARTS, {"podRestartThreshold": 1, "states": ["running"]}, "states[0]", "Running"),
        (LIFETIME, {"states": ["Complete"]}, "states[0]", "Completed"),
        (
            "RemovePodsViolatingNodeAffinity",
            {"nodeAffinityType": ["requiredDuringScheduling"]},
            "nodeAffinityType[0]",
            "requiredDuringSchedulingIgnoredDuringExecution",
        ),
        ("RemovePodsViolatingTopologySpreadConstraint", {"constraints": ["DoNotschedule"]}, "constraints[0]", "DoNotSchedule"),
        (EVICTOR, {"noEvictionPolicy": "mandatory"}, "noEvictionPolicy", "Mandatory"),
        (
            EVICTOR,
            {"podProtections": {"defaultDisabled": ["DaemonsetPods"]}},
            "podProtections.defaultDisabled[0]",
            "DaemonSetPods",
        ),
        (EVICTOR, {"podProtections": {"extraEnabled": ["DaemonSetPods"]}}, "podProtections.extraEnabled[0]", None),
        (EVICTOR, {"ignorePodsWithoutPdb": True}, "ignorePodsWithoutPdb", "ignorePodsWithoutPDB"),
        (EVICTOR, {"node_fits": True}, "node_fits", "nodeFit"),
        (EVICTOR, {"labelSelector": {"matchLables": {}}}, "labelSelector", "matchLabels"),
    ],
)
def test_d12_misspelt_names_are_refused_with_the_nearest(strategy: str, args: Any, path: str, nearest: str | None) -> None:
    """Unknown arguments, resources, states and protections are never passed over (K20), nor taken for "
    "something else."""
    found = mistakes_in_args(strategy, args)
    assert path in found
    assert found[path].nearest == nearest


def test_names_in_snake_case_are_no_argument_names_of_a_document() -> None:
    """A document has one spelling for each argument."""
    assert mistakes_in_args("RemoveFailedPods", {"exit_codes": [1]}).keys() == {"exit_codes"}


def test_rules_are_checked_beside_mistakes_in_other_arguments() -> None:
    """A wrong argument does not hide a rule over others that is broken, too."""
    args = low({"cpu": 60}, {"cpu": 50}, numberOfNodes=-1, x=1)
    assert set(mistakes_in_args(LNU, args)) == {"numberOfNodes", "x", ""}


def test_f19_empty_included_taints_count_as_not_given() -> None:
    """An explicit empty list does not switch the strategy off; the user is told."""
    read = loaded(a_policy(a_profile(TAINTS, **{TAINTS: {"includedTaints": []}})))
    plain = loaded(a_policy(a_profile(TAINTS)))
    assert read.policy == plain.policy
    (warning,) = read.warnings
    assert "includedTaints is empty" in warning


@pytest.mark.parametrize("strategy", [name for name in CATALOGUE if name not in REQUIRED])
def test_defaults_are_valid(strategy: str) -> None:
    """Arguments that nobody wrote are right by themselves."""
    assert CATALOGUE[strategy].args().to_dict() == {}


@pytest.mark.parametrize(
    "model", [DefaultEvictorArgs, *(entry.args for entry in CATALOGUE.values())], ids=lambda model: model.__name__
)
def test_every_argument_is_described(model: Any) -> None:
    """The documentation is made from the models, so no field is without words."""
    assert all(field.description and field.description.endswith(".") for field in model.model_fields.values())


def test_k8_protections_that_hold_by_default() -> None:
    """Upstream's four and our two annotations hold, the extra three do not."""
    assert DefaultEvictorArgs().protections == {
        Protection.LOCAL_STORAGE,
        Protection.DAEMON_SET,
        Protection.SYSTEM_CRITICAL,
        Protection.FAILED_BARE,
        Protection.SAFE_TO_EVICT_FALSE,
        Protection.DO_NOT_DISRUPT,
    }


@pytest.mark.parametrize(
    ("boolean", "lists"),
    [
        ("evictLocalStoragePods", {"defaultDisabled": ["PodsWithLocalStorage"]}),
        ("evictDaemonSetPods", {"defaultDisabled": ["DaemonSetPods"]}),
        ("evictSystemCriticalPods", {"defaultDisabled": ["SystemCriticalPods"]}),
        ("evictFailedBarePods", {"defaultDisabled": ["FailedBarePods"]}),
        ("ignorePvcPods", {"extraEnabled": ["PodsWithPVC"]}),
        ("ignorePodsWithoutPDB", {"extraEnabled": ["PodsWithoutPDB"]}),
    ],
)
def test_k8_each_deprecated_boolean_stands_for_a_protection(boolean: str, lists: Any) -> None:
    """Old and new spelling give the same protections; false is as good as absent; the old one is warned of."""
    old = DefaultEvictorArgs.model_validate({boolean: True})
    new = DefaultEvictorArgs.model_validate({"podProtections": lists})
    assert old.protections == new.protections
    assert old.canonical() == new.to_dict()
    assert any(boolean in caution for caution in old.cautions())
    assert DefaultEvictorArgs.model_validate({boolean: False, "podProtections": lists}).protections == new.protections


@pytest.mark.parametrize("name", ["PodsWithSafeToEvictFalse", "PodsWithDoNotDisrupt"])
def test_the_annotations_of_other_tools_can_be_switched_off_beside_old_booleans(name: str) -> None:
    """Our own protections were in no boolean, so listing them contradicts none."""
    args = DefaultEvictorArgs.model_validate({"evictDaemonSetPods": True, "podProtections": {"defaultDisabled": [name]}})
    assert not args.protects(Protection(name))
    assert not args.protects(Protection.DAEMON_SET)


def test_k7_the_priority_threshold_is_two_billion_unless_given() -> None:
    """A threshold of 0 is one, and a class that was not looked up is no number."""
    assert DefaultEvictorArgs().priority_below == 2_000_000_000
    assert DefaultEvictorArgs.model_validate({"priorityThreshold": {"value": 0}}).priority_below == 0
    with pytest.raises(LookupError, match="c1"):
        _ = DefaultEvictorArgs.model_validate({"priorityThreshold": {"name": "c1"}}).priority_below


def test_settings_without_effect_are_cautioned() -> None:
    """Storage classes without the protection, and a minimum of one replica, are told to do nothing."""
    config = {"PodsWithPVC": {"protectedStorageClasses": [{"name": "fast"}]}}
    args = DefaultEvictorArgs.model_validate({"minReplicas": 1, "podProtections": {"config": config}})
    assert len(list(args.cautions())) == 2
    useful = {"minReplicas": 2, "podProtections": {"config": config, "extraEnabled": ["PodsWithPVC"]}}
    assert list(DefaultEvictorArgs.model_validate(useful).cautions()) == []


def test_arguments_do_not_change() -> None:
    """What was read stays as it is, its maps and lists too."""
    args: Any = CATALOGUE[LNU].args.model_validate(low({"cpu": 20}, {"cpu": 50}))
    with pytest.raises(ValueError, match="frozen"):
        args.number_of_nodes = 3
    with pytest.raises(TypeError):
        args.thresholds["cpu"] = 5


def test_namespaces_admit_what_is_included_or_not_excluded() -> None:
    """Without lists every namespace counts."""
    args: Any = CATALOGUE["RemoveDuplicates"].args
    chosen = [args.model_validate({"namespaces": given}).namespaces for given in ({}, {"include": ["a"]}, {"exclude": ["a"]})]
    assert [each.admits("a") for each in chosen] == [True, True, False]
    assert [each.admits("b") for each in chosen] == [True, False, True]


def test_owner_kinds_admit_by_any_owner() -> None:
    """One owner of an included kind is enough, and so is one of an excluded kind; a pod without owners is in no list."""
    args: Any = CATALOGUE[LIFETIME].args
    include, exclude, neither = (
        args.model_validate({"exitCodes": [1], "ownerKinds": given}).owner_kinds
        for given in ({"include": ["Job"]}, {"exclude": ["Job"]}, {})
    )
    pods = (("Job",), ("ReplicaSet",), ("Job", "ReplicaSet"), ())
    assert [include.admits(kinds) for kinds in pods] == [True, False, True, False]
    assert [exclude.admits(kinds) for kinds in pods] == [False, True, False, True]
    assert all(neither.admits(kinds) for kinds in pods)


def test_d10_excluded_namespaces_of_a_utilisation_strategy_are_not_evictable() -> None:
    """Only exclusion exists there (K10)."""
    args: Any = CATALOGUE[LNU].args.model_validate(low({"cpu": 20}, {"cpu": 50}, evictableNamespaces={"exclude": ["keep-ns"]}))
    assert not args.evictable_namespaces.admits("keep-ns")
    assert args.evictable_namespaces.admits("ns1")
