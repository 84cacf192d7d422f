"""v1alpha1 documents from the first form to the last: what they become, what is warned of, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.eligibility.arguments import Protection
from rebalancer.policy import Profile
from tests.policy.documents import DATA, an_old_policy, loaded, mistakes_in

LNU_PARAMS = {"thresholds": {"cpu": 20, "pods": 20}, "targetThresholds": {"cpu": 50, "pods": 50}}


def on(**params: Any) -> dict[str, Any]:
    """Return an enabled strategy with these params."""
    return {"enabled": True, "params": params}


def args_of(document: Any) -> dict[str, dict[str, Any]]:
    """Return the arguments of each enabled strategy as a v1alpha2 document writes them."""
    return {use.name: use.args.to_dict() for _, use in loaded(document).policy.uses()}


def profiles_of(document: Any) -> dict[str, Profile]:
    """Return the profiles by the names of their strategies."""
    policy = loaded(document).policy
    return {use.name: profile for profile, use in policy.uses()}


def warnings_at(document: Any, path: str) -> list[str]:
    """Return the warnings about one place of a document."""
    return [warning for warning in loaded(document).warnings if warning.startswith(f"{path}: ")]


def test_the_first_form_in_its_configmap_loads_and_means_what_it_says() -> None:
    """Every strategy of 0.18 that is enabled arrives, with its arguments, in a profile of its own."""
    text = (DATA / "first-form-configmap.yaml").read_bytes()
    assert args_of(text) == {
        "RemoveDuplicates": {"excludeOwnerKinds": ["Job"]},
        "LowNodeUtilization": {
            "thresholds": {"cpu": 20, "memory": 20, "pods": 20},
            "targetThresholds": {"cpu": 50, "memory": 50, "pods": 50},
            "numberOfNodes": 3,
        },
        "RemovePodsViolatingInterPodAntiAffinity": {},
        "RemovePodsViolatingNodeAffinity": {"nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]},
        "RemovePodsViolatingNodeTaints": {},
        "RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 100, "includingInitContainers": True},
    }
    assert profiles_of(text)["RemoveDuplicates"].name == "strategy-RemoveDuplicates-profile"
    assert loaded(text).converted


def test_the_last_form_loads_and_means_what_it_says() -> None:
    """Every field that v1alpha1 ever had finds its place in v1alpha2."""
    text = (DATA / "last-form.yaml").read_bytes()
    assert args_of(text) == {
        "RemoveDuplicates": {"namespaces": {"exclude": ["kube-system"]}, "excludeOwnerKinds": ["Job"]},
        "LowNodeUtilization": {
            "thresholds": {"cpu": 10, "memory": 10},
            "targetThresholds": {"cpu": 5, "memory": 5},
            "useDeviationThresholds": True,
            "evictableNamespaces": {"exclude": ["quiet"]},
        },
        "HighNodeUtilization": {"thresholds": {"cpu": 40}, "numberOfNodes": 1},
        "RemovePodsViolatingInterPodAntiAffinity": {"labelSelector": {"matchLabels": {"tier": "web"}}},
        "RemovePodsViolatingNodeAffinity": {
            "nodeAffinityType": [
                "requiredDuringSchedulingIgnoredDuringExecution",
                "preferredDuringSchedulingIgnoredDuringExecution",
            ]
        },
        "RemovePodsViolatingNodeTaints": {
            "includePreferNoSchedule": True,
            "excludedTaints": ["dedicated=special", "reserved"],
        },
        "RemovePodsViolatingTopologySpreadConstraint": {
            "constraints": ["DoNotSchedule", "ScheduleAnyway"],
            "namespaces": {"include": ["a", "b"]},
        },
        "RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 50, "includingInitContainers": True},
        "PodLifeTime": {"maxPodLifeTimeSeconds": 3600, "states": ["Pending", "PodInitializing"]},
        "RemoveFailedPods": {
            "minPodLifetimeSeconds": 60,
            "reasons": ["OutOfcpu"],
            "includingInitContainers": True,
            "excludeOwnerKinds": ["Job"],
        },
    }
    policy = loaded(text).policy
    assert (policy.max_per_node, policy.max_per_namespace, policy.max_total) == (5, 7, None)
    assert str(policy.node_selector) == "pool=workers"
    profiles = profiles_of(text)
    assert profiles["RemoveDuplicates"].evictor.node_fit is True
    assert profiles["PodLifeTime"].evictor.node_fit is None
    assert profiles["LowNodeUtilization"].evictor.priority_below == 1000
    assert profiles["RemovePodsHavingTooManyRestarts"].evictor.priority_threshold.name == "batch"
    for profile in profiles.values():
        holding = profile.evictor.protections
        assert not {Protection.LOCAL_STORAGE, Protection.FAILED_BARE} & holding
        assert {Protection.PVC, Protection.SYSTEM_CRITICAL} <= holding


@pytest.mark.parametrize("name", ["first-form-configmap.yaml", "last-form.yaml"])
def test_what_an_old_document_becomes_is_a_document_of_today(name: str) -> None:
    """The converted text is v1alpha2, loads without a word about versions, and gives the same policy."""
    old = loaded((DATA / name).read_bytes())
    new = loaded(old.policy.to_yaml())
    assert new.policy == old.policy
    assert new.warnings == ()
    assert not new.converted


def test_a_strategy_that_is_off_or_absent_is_not_there() -> None:
    """Only enabled: true enables; a policy that enables nothing is warned of."""
    document = an_old_policy({"RemoveDuplicates": {"enabled": False}, "PodLifeTime": None, "RemoveFailedPods": {"params": None}})
    assert args_of(document) == {}
    assert any("does nothing" in warning for warning in loaded(document).warnings)


@pytest.mark.parametrize("strategies", [{}, None])
def test_f28_an_old_document_without_any_strategy_is_a_mistake(strategies: Any) -> None:
    """It would do nothing for ever, and nobody would notice."""
    assert mistakes_in(an_old_policy(strategies)).keys() == {"strategies"}


def test_enabled_alone_is_enough_where_nothing_is_required() -> None:
    """G7: `enabled: true` without params stands for the defaults."""
    document = an_old_policy({"RemoveFailedPods": {"enabled": True}, "RemoveDuplicates": {"enabled": True, "params": None}})
    assert args_of(document) == {"RemoveFailedPods": {}, "RemoveDuplicates": {}}


@pytest.mark.parametrize(
    ("params", "states"),
    [
        ({"podStatusPhases": ["Pending"]}, ["Pending"]),
        ({"states": ["Running"]}, ["Running"]),
        ({"podStatusPhases": ["Pending", "Running"], "states": ["Running", "Completed"]}, ["Pending", "Running", "Completed"]),
    ],
)
def test_phases_and_states_become_one_list(params: Any, states: list[str]) -> None:
    """What was two lists is one, each state once."""
    assert args_of(an_old_policy({"PodLifeTime": on(podLifeTime=params)}))["PodLifeTime"] == {"states": states}


def test_the_bare_lifetime_of_the_first_form_is_understood() -> None:
    """maxPodLifeTimeSeconds directly under params is the same; given twice with different values it is a mistake."""
    bare = an_old_policy({"PodLifeTime": on(maxPodLifeTimeSeconds=60)})
    assert args_of(bare)["PodLifeTime"] == {"maxPodLifeTimeSeconds": 60}
    same = an_old_policy({"PodLifeTime": on(maxPodLifeTimeSeconds=60, podLifeTime={"maxPodLifeTimeSeconds": 60})})
    assert args_of(same) == args_of(bare)
    other = an_old_policy({"PodLifeTime": on(maxPodLifeTimeSeconds=60, podLifeTime={"maxPodLifeTimeSeconds": 61})})
    assert mistakes_in(other).keys() == {"strategies.PodLifeTime.params.podLifeTime.maxPodLifeTimeSeconds"}


def test_the_documented_misspelling_of_the_restart_threshold_is_understood() -> None:
    """podRestartThresholds, which upstream's own example had and its code ignored, is taken for what it meant."""
    group = {"podRestartThresholds": 7}
    document = an_old_policy({"RemovePodsHavingTooManyRestarts": on(podsHavingTooManyRestarts=group)})
    assert args_of(document)["RemovePodsHavingTooManyRestarts"] == {"podRestartThreshold": 7}
    path = "strategies.RemovePodsHavingTooManyRestarts.params.podsHavingTooManyRestarts.podRestartThresholds"
    assert len(warnings_at(document, path)) == 1


@pytest.mark.parametrize(("given", "warned"), [(0, 0), (1, 1), (3, 1)])
def test_k18_the_number_of_nodes_is_kept_and_its_new_meaning_told(given: int, warned: int) -> None:
    """It was skipped below the number and is now skipped at it, too: today's rule, and a warning that says so."""
    document = an_old_policy({"LowNodeUtilization": on(nodeResourceUtilizationThresholds=LNU_PARAMS | {"numberOfNodes": given})})
    assert args_of(document)["LowNodeUtilization"].get("numberOfNodes", 0) == given
    path = "strategies.LowNodeUtilization.params.nodeResourceUtilizationThresholds.numberOfNodes"
    found = warnings_at(document, path)
    assert len(found) == warned
    assert all(f"from {given} under-used nodes on; now acts from {given + 1} on" in warning for warning in found)


@pytest.mark.parametrize(
    ("strategy", "params", "word"),
    [
        ("LowNodeUtilization", {"nodeResourceUtilizationThresholds": LNU_PARAMS}, "every resource needs room"),
        ("RemoveDuplicates", {}, "average"),
        ("RemovePodsViolatingInterPodAntiAffinity", {}, "topology value"),
        (
            "RemovePodsViolatingNodeAffinity",
            {"nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]},
            "nodeSelector",
        ),
        ("RemovePodsViolatingNodeTaints", {}, "node controller"),
        ("RemovePodsViolatingTopologySpreadConstraint", {}, "all constraints of a pod"),
    ],
)
def test_each_meaning_that_changed_is_told_once(strategy: str, params: Any, word: str) -> None:
    """One warning per changed meaning, at the strategy."""
    (warning,) = warnings_at(an_old_policy({strategy: on(**params)}), f"strategies.{strategy}")
    assert word in warning


def test_a_resource_named_on_one_side_only_gets_its_old_meaning_and_a_warning() -> None:
    """A missing resource was not looked at: 100 percent as a target, the target itself as a low threshold."""
    group = {"thresholds": {"cpu": 20, "memory": 30}, "targetThresholds": {"cpu": 50, "pods": 60}}
    document = an_old_policy({"LowNodeUtilization": on(nodeResourceUtilizationThresholds=group)})
    assert args_of(document)["LowNodeUtilization"] == {
        "thresholds": {"cpu": 20, "memory": 30, "pods": 60},
        "targetThresholds": {"cpu": 50, "memory": 100, "pods": 60},
    }
    path = "strategies.LowNodeUtilization.params.nodeResourceUtilizationThresholds"
    assert len(warnings_at(document, f"{path}.thresholds")) == 1
    assert len(warnings_at(document, f"{path}.targetThresholds")) == 1


def test_a_limit_of_zero_is_none_at_all_and_is_warned_of() -> None:
    """The safe reading is kept, and the user told that early versions read it the other way."""
    document = an_old_policy({"RemoveDuplicates": on()}, maxNoOfPodsToEvictPerNode=0)
    assert loaded(document).policy.max_per_node == 0
    assert len(warnings_at(document, "maxNoOfPodsToEvictPerNode")) == 1


@pytest.mark.parametrize(
    ("document", "path", "hint"),
    [
        (
            an_old_policy({"RemoveDuplicates": {"enabled": False}}, maxNoOfPodsToEvictPerNod=3),
            "maxNoOfPodsToEvictPerNod",
            "maxNoOfPodsToEvictPerNode",
        ),
        (an_old_policy({"RemoveDuplicates": {"enabled": False}}, interval="5m"), "interval", None),
        (an_old_policy({"RemoveDuplicates": {"enabled": True, "parms": {}}}), "strategies.RemoveDuplicates.parms", "params"),
        (
            an_old_policy({"RemoveFailedPods": on(failedPods={"reason": ["a"]})}),
            "strategies.RemoveFailedPods.params.failedPods.reason",
            "reasons",
        ),
        (an_old_policy({"RemoveDuplicate": {"enabled": False}}), "strategies.RemoveDuplicate", "RemoveDuplicates"),
    ],
)
def test_unknown_keys_are_warnings_with_the_nearest_name(document: Any, path: str, hint: str | None) -> None:
    """That version was lenient, and so documents of it still load."""
    (warning,) = warnings_at(document, path)
    assert (f"(did you mean {hint}?)" in warning) if hint else ("did you mean" not in warning)


@pytest.mark.parametrize(
    ("strategies", "path"),
    [
        (
            {"PodLifeTime": on(podLifeTime={"maxPodLifeTimeSeconds": 1, "labelSelector": {}})},
            "PodLifeTime.params.podLifeTime.labelSelector",
        ),
        ({"PodLifeTime": on(podLifeTime={"maxPodLifeTimeSeconds": 1}) | {"labelSelector": {}}}, "PodLifeTime.labelSelector"),
        ({"PodLifeTime": on(podLifeTime={"maxPodLifeTimeSeconds": 1}) | {"namespaces": {}}}, "PodLifeTime.namespaces"),
        ({"PodLifeTime": on(podLifeTime={"maxPodLifeTimeSeconds": 1}, labelselector={})}, "PodLifeTime.params.labelselector"),
        ({"RemoveDuplicates": on(labelSelector={})}, "RemoveDuplicates.params.labelSelector"),
        ({"RemoveDuplicates": on(excludeOwnerKinds=["Job"])}, "RemoveDuplicates.params.excludeOwnerKinds"),
        ({"RemoveDuplicates": on(namespaces={"excludes": ["a"]})}, "RemoveDuplicates.params.namespaces.excludes"),
        (
            {"LowNodeUtilization": on(nodeResourceUtilizationThresholds=LNU_PARAMS, namespaces={"include": ["a"]})},
            "LowNodeUtilization.params.namespaces.include",
        ),
    ],
)
def test_a_selector_in_the_wrong_place_is_a_mistake(strategies: Any, path: str) -> None:
    """Ignoring it would widen what is moved, so here leniency ends."""
    assert mistakes_in(an_old_policy(strategies)).keys() == {f"strategies.{path}"}


def test_a_top_level_selector_in_the_wrong_place_is_a_mistake() -> None:
    """A label selector for the whole policy never existed."""
    assert mistakes_in(an_old_policy({"RemoveDuplicates": {"enabled": False}}, labelSelector={})).keys() == {"labelSelector"}


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (an_old_policy({"LowNodeUtilisation": {"enabled": True}}), "strategies.LowNodeUtilisation"),
        (an_old_policy({"RemoveDuplicates": {"enabled": "yes"}}), "strategies.RemoveDuplicates.enabled"),
        (an_old_policy({"RemoveDuplicates": []}), "strategies.RemoveDuplicates"),
        (an_old_policy([]), "strategies"),  # type: ignore[arg-type]
        (an_old_policy({"RemoveDuplicates": on()}, evictLocalStoragePods="yes"), "evictLocalStoragePods"),
        (an_old_policy({"RemoveDuplicates": on(nodeFit="yes")}), "strategies.RemoveDuplicates.params.nodeFit"),
        (
            an_old_policy({"RemovePodsViolatingTopologySpreadConstraint": on(includeSoftConstraints="yes")}),
            "strategies.RemovePodsViolatingTopologySpreadConstraint.params.includeSoftConstraints",
        ),
        (
            an_old_policy({"RemoveDuplicates": on(thresholdPriority=5, thresholdPriorityClassName="c1")}),
            "strategies.RemoveDuplicates.params.thresholdPriority",
        ),
        (
            an_old_policy({"PodLifeTime": on(podLifeTime={"podStatusPhases": "Pending", "maxPodLifeTimeSeconds": 1})}),
            "strategies.PodLifeTime.params.podLifeTime.podStatusPhases",
        ),
        (
            an_old_policy(
                {
                    "LowNodeUtilization": on(
                        nodeResourceUtilizationThresholds={"thresholds": {"cpu": 101}, "targetThresholds": {"cpu": 50}}
                    )
                }
            ),
            "strategies.LowNodeUtilization.params.nodeResourceUtilizationThresholds.thresholds.cpu",
        ),
        (
            an_old_policy({"RemovePodsHavingTooManyRestarts": on()}),
            "strategies.RemovePodsHavingTooManyRestarts.params.podRestartThreshold",
        ),
    ],
)
def test_wrong_values_are_mistakes_at_the_place_where_they_stand(document: Any, path: str) -> None:
    """Types and limits were checked then and are checked now; paths are those of the old document."""
    assert mistakes_in(document).keys() == {path}


def test_parameters_of_other_strategies_are_warned_of() -> None:
    """They never had an effect."""
    document = an_old_policy({"RemoveDuplicates": on(maxPodLifeTimeSeconds=5)})
    (warning,) = warnings_at(document, "strategies.RemoveDuplicates.params.maxPodLifeTimeSeconds")
    assert "has no effect on RemoveDuplicates" in warning


@pytest.mark.parametrize(("fit", "warned"), [(True, 1), (False, 0)])
def test_a_fit_that_pod_life_time_once_ignored_holds_now_and_is_told(fit: bool, warned: int) -> None:
    """The evictor of its profile gets what the user wrote."""
    document = an_old_policy({"PodLifeTime": on(maxPodLifeTimeSeconds=60, nodeFit=fit)})
    assert profiles_of(document)["PodLifeTime"].evictor.node_fit is fit
    assert len(warnings_at(document, "strategies.PodLifeTime.params.nodeFit")) == warned
