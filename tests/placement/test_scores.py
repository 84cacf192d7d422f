"""How nodes that fit are ranked. The bulk of the evidence is in tests/conformance/scheduler; here is one example per rule."""

from __future__ import annotations

import pytest

from rebalancer.model.selector import NodeSelector, NodeSelectorTerm, Operator, Requirement
from rebalancer.placement.profile import SchedulerConfig, SchedulerProfile, ScoringKind, ScoringStrategy
from rebalancer.placement.scoring import full_name
from tests.placement.builders import Document, a_node, a_pod, a_taint, a_term, on_nodes, placed

MEBI = 1024 * 1024


def of_plugin(
    plugin: str, objects: list[Document], pod: Document, strategy: ScoringStrategy | None = None
) -> dict[str, int | None]:
    """Return each node's score by one plugin."""
    config = SchedulerConfig((SchedulerProfile(fit=strategy or ScoringStrategy()),))
    return {node: plugins.get(plugin) for node, plugins in placed(objects, pod, config).plugin_scores.items()}


def test_soft_taints_are_counted() -> None:
    """The node with the most untolerated soft taints gets 0, one without 300, in proportion between."""
    soft = [a_taint(key, "PreferNoSchedule") for key in "ab"]
    objects = [a_node("n0"), a_node("n1", taints=soft[:1]), a_node("n2", taints=soft)]
    assert of_plugin("TaintToleration", objects, a_pod("p")) == {"n0": 300, "n1": 150, "n2": 0}


def test_toleration_of_hard_taints_does_not_excuse_soft_ones() -> None:
    """Only tolerations without an effect, or with PreferNoSchedule, count in the score."""
    objects = [a_node("n0"), a_node("n1", taints=[a_taint("a", "PreferNoSchedule")])]
    hard = {"key": "a", "operator": "Exists", "effect": "NoSchedule"}
    assert of_plugin("TaintToleration", objects, a_pod("p", tolerations=[hard]))["n1"] == 0
    assert of_plugin("TaintToleration", objects, a_pod("p", tolerations=[{"key": "a", "operator": "Exists"}]))["n1"] == 300


def test_preferred_node_affinity() -> None:
    """Met weights are summed and scaled by the highest; without preferences the plugin is absent."""
    objects = [a_node("n0"), a_node("n1", labels={"disk": "ssd"})]
    affinity = on_nodes({"key": "disk", "operator": "Exists"}, preferred=7)
    assert of_plugin("NodeAffinity", objects, a_pod("p", affinity=affinity)) == {"n0": 0, "n1": 200}
    assert of_plugin("NodeAffinity", objects, a_pod("p")) == {"n0": None, "n1": None}


def test_least_allocated_counts_defaults_for_pods_without_requests() -> None:
    """A container without requests counts with 100m and 200Mi, its own and those already there."""
    objects = [a_node("n0", "1", "2000Mi"), a_node("n1", "1", "2000Mi"), a_pod("x", on="n1")]
    assert of_plugin("NodeResourcesFit", objects, a_pod("p")) == {"n0": 90, "n1": 80}


@pytest.mark.parametrize(
    ("strategy", "scores"),
    [
        pytest.param(ScoringStrategy(), {"n0": 75, "n1": 25}, id="least allocated"),
        pytest.param(ScoringStrategy(ScoringKind.MOST_ALLOCATED), {"n0": 25, "n1": 75}, id="most allocated"),
        pytest.param(ScoringStrategy(resources=(("cpu", 3), ("memory", 1))), {"n0": 75, "n1": 12}, id="weighted resources"),
        pytest.param(
            ScoringStrategy(ScoringKind.REQUESTED_TO_CAPACITY_RATIO, points=((0, 0), (50, 10), (100, 0))),
            {"n0": 50, "n1": 100},
            id="a broken line; resources at 0 do not count",
        ),
        pytest.param(ScoringStrategy(resources=(("example.com/gpu", 1),)), {"n0": 0, "n1": 0}, id="resource not asked for"),
    ],
)
def test_scoring_strategies(strategy: ScoringStrategy, scores: dict[str, int]) -> None:
    """NodeResourcesFit ranks by the configured strategy; nodes end at 25 and at 100 (cpu), 50 (memory) percent."""
    objects = [a_node("n0", "4", "4Gi"), a_node("n1", "4", "4Gi"), a_pod("x", "3", "1Gi", on="n1")]
    assert of_plugin("NodeResourcesFit", objects, a_pod("p", "1", "1Gi"), strategy) == scores


def test_balanced_allocation_scores_the_difference_that_the_pod_makes() -> None:
    """A pod that evens out cpu and memory gets more than 75, one that adds to the imbalance less."""
    objects = [a_node("n0", "4", "4Gi"), a_node("n1", "4", "4Gi"), a_pod("x", "2", on="n1")]
    assert of_plugin("NodeResourcesBalancedAllocation", objects, a_pod("p", memory="2Gi")) == {"n0": 62, "n1": 87}


def test_balanced_allocation_passes_over_pods_without_requests() -> None:
    """A pod that requests nothing is not scored by it."""
    assert of_plugin("NodeResourcesBalancedAllocation", [a_node("n0"), a_node("n1")], a_pod("p")) == {"n0": None, "n1": None}


def test_images_that_few_nodes_have_count_less() -> None:
    """An image's size counts by the share of nodes that have it, between 23 and 1000 MiB per image."""
    images = [{"names": ["img:latest"], "sizeBytes": 800 * MEBI}]
    objects = [a_node("n0"), a_node("n1", images=images)]
    assert of_plugin("ImageLocality", objects, a_pod("p")) == {"n0": 0, "n1": 100 * (400 - 23) // (1000 - 23)}


@pytest.mark.parametrize(
    ("image", "full"),
    [
        ("a", "a:latest"),
        ("a:1", "a:1"),
        ("r:5000/a", "r:5000/a:latest"),
        ("r:5000/a:1", "r:5000/a:1"),
        ("a@sha256:1", "a@sha256:1"),
    ],
)
def test_image_without_tag_is_latest(image: str, full: str) -> None:
    """A colon after the last slash is a tag or digest; a port is neither."""
    assert full_name(image) == full


def weighted(kind: str, *terms: tuple[int, Document]) -> Document:
    """Return an affinity with preferred terms."""
    return {
        kind: {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": weight, "podAffinityTerm": term} for weight, term in terms
            ]
        }
    }


def test_preferred_pod_affinity_pulls_and_anti_affinity_pushes() -> None:
    """Own preferences are scaled from the least to the most liked node."""
    objects = [a_node("n0"), a_node("n1"), a_pod("x", on="n1", labels={"app": "y"})]
    pull = a_pod("p", affinity=weighted("podAffinity", (5, a_term("y"))))
    push = a_pod("p", affinity=weighted("podAntiAffinity", (5, a_term("y"))))
    assert of_plugin("InterPodAffinity", objects, pull) == {"n0": 0, "n1": 200}
    assert of_plugin("InterPodAffinity", objects, push) == {"n0": 200, "n1": 0}


@pytest.mark.parametrize(
    ("affinity", "scores"),
    [
        pytest.param(weighted("podAffinity", (5, a_term("y"))), {"n0": 0, "n1": 200}, id="they like ours"),
        pytest.param(weighted("podAntiAffinity", (5, a_term("y"))), {"n0": 200, "n1": 0}, id="they dislike ours"),
        pytest.param(
            {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [a_term("y")]}},
            {"n0": 0, "n1": 200},
            id="they require ours",
        ),
        pytest.param(weighted("podAffinity", (5, a_term("z"))), {"n0": None, "n1": None}, id="they mean somebody else"),
    ],
)
def test_preferences_of_existing_pods_count(affinity: Document, scores: dict[str, int | None]) -> None:
    """What pods that are there wish for counts for a new pod that wishes for nothing."""
    objects = [a_node("n0"), a_node("n1"), a_pod("x", on="n1", affinity=affinity)]
    assert of_plugin("InterPodAffinity", objects, a_pod("p", labels={"app": "y"})) == scores


def test_wishes_that_cancel_out_still_count_as_scored() -> None:
    """The plugin is present as soon as anybody has a wish, even if all nodes come out alike."""
    both = weighted("podAffinity", (5, a_term("y"))) | weighted("podAntiAffinity", (5, a_term("y")))
    objects = [a_node("n0"), a_node("n1"), a_pod("x", on="n1", affinity=both)]
    assert of_plugin("InterPodAffinity", objects, a_pod("p", labels={"app": "y"})) == {"n0": 0, "n1": 0}


def test_plugin_scores_add_up() -> None:
    """The final score is the sum of the weighted scores."""
    placement = placed([a_node("n0"), a_node("n1", "8")], a_pod("p", "1"))
    assert {node: sum(plugins.values()) for node, plugins in placement.plugin_scores.items()} == placement.scores


def test_single_fitting_node_is_not_scored() -> None:
    """kube-scheduler takes the only node that fits without scoring it, and so the scores are empty."""
    placement = placed([a_node("n0"), a_node("n1", "1")], a_pod("p", "2"))
    assert (placement.node, placement.landings, placement.scores) == ("n0", {"n0": 1.0}, {})


def test_disabled_plugin_neither_scores_nor_filters() -> None:
    """A profile without a plugin goes without its opinion."""
    profile = SchedulerProfile(filters=frozenset(), weights={})
    placement = placed([a_node("n0", cordoned=True), a_node("n1", "1")], a_pod("p", "2"), SchedulerConfig((profile,)))
    assert placement.tied == ("n0", "n1")
    assert set(placement.scores.values()) == {0}


def test_balanced_allocation_over_other_resources() -> None:
    """With three resources the standard deviation is taken; a resource that a node lacks does not count there."""
    resources = (("cpu", 1), ("memory", 1), ("ephemeral-storage", 1), ("example.com/gpu", 1))
    config = SchedulerConfig((SchedulerProfile(balanced_resources=resources),))
    full = a_node("n0", "4", "4Gi", extra={"ephemeral-storage": "4Gi"})
    half = a_node("n1", "4", "4Gi", extra={"ephemeral-storage": "4Gi"})
    plugins = placed(
        [full, half, a_node("n2", "4", "4Gi"), a_pod("x", "2", on="n1")], a_pod("p", "2", "2Gi"), config
    ).plugin_scores
    scores = {node: each["NodeResourcesBalancedAllocation"] for node, each in plugins.items()}
    # n0: 50, 50, 0 against nothing. n1: 100, 50, 0 against 50, 0, 0. n2: 50, 50 against nothing.
    assert scores == {"n0": 50 + (50 + 76 - 100) // 2, "n1": 50 + (50 + 59 - 76) // 2, "n2": 50 + (50 + 100 - 100) // 2}


def test_preferences_of_existing_pods_may_be_ignored() -> None:
    """ignorePreferredTermsOfExistingPods leaves their wishes out, unless the pod has wishes of its own."""
    theirs = a_pod("x", on="n1", affinity=weighted("podAffinity", (5, a_term("y"))))
    objects = [a_node("n0"), a_node("n1"), theirs]
    config = SchedulerConfig((SchedulerProfile(ignore_preferred=True, hard_affinity_weight=0),))
    plain, wishful = (
        a_pod("p", labels={"app": "y"}),
        a_pod("p", labels={"app": "y"}, affinity=weighted("podAffinity", (1, a_term("z")))),
    )
    assert "InterPodAffinity" not in placed(objects, plain, config).plugin_scores["n1"]
    assert placed(objects, wishful, config).plugin_scores["n1"]["InterPodAffinity"] == 200


def test_added_affinity_of_a_profile() -> None:
    """addedAffinity is asked of every pod and has a reason of its own."""
    pool = NodeSelector((NodeSelectorTerm((Requirement("pool", Operator.IN, ("x",)),)),))
    config = SchedulerConfig((SchedulerProfile(added_affinity=pool),))
    placement = placed([a_node("n0", labels={"pool": "x"}), a_node("n1")], a_pod("p"), config)
    assert placement.filtered == {"n1": "node(s) didn't match scheduler-enforced node affinity"}


def test_nominated_pods_of_equal_or_higher_priority_have_their_room() -> None:
    """Room that preemption has made is denied to pods of no higher priority."""
    objects = [a_node("n1", "1"), a_pod("waiting", "900m", nominated="n1", priority=5)]
    assert placed(objects, a_pod("p", "500m", priority=5)).filtered == {"n1": "Insufficient cpu"}
    assert placed(objects, a_pod("p", "500m", priority=6)).node == "n1"


def test_answer_as_json() -> None:
    """The JSON form holds plain values, and says why scores cannot be relied upon where that is so."""
    assert placed([a_node("n1")], a_pod("p", schedulerName="mine")).to_dict() == {
        "node": "n1",
        "tied": ["n1"],
        "landings": {"n1": 1.0},
        "scores": {},
        "pluginScores": {},
        "filtered": {},
        "unpredictable": "scheduler 'mine' is not known here, so only filters are judged",
    }
