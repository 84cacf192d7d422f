"""The library's two functions under unusual and malformed objects: sentences instead of crashes, the rest goes on."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import pytest
import yaml

import rebalancer
from rebalancer.errors import InputError, ParseError, PolicyError
from rebalancer.model.plan import PlacementMode
from rebalancer.policy import load
from tests.builders import NOW, Object, a_document, a_node, a_pod, pods

DUPLICATES = a_document({"RemoveDuplicates": {}})
UTILISATION = a_document(
    {
        "LowNodeUtilization": {
            "thresholds": {"cpu": 20, "memory": 20, "pods": 20},
            "targetThresholds": {"cpu": 50, "memory": 50, "pods": 50},
        },
        "HighNodeUtilization": {"thresholds": {"cpu": 20}},
    }
)
NODES = [a_node("n1"), a_node("n2")]


def plan(objects: Any, policy: Any = DUPLICATES, **more: Any) -> dict[str, Any]:
    """Return the JSON form of the plan, as JSON gives it back."""
    document: dict[str, Any] = json.loads(
        json.dumps(rebalancer.evaluate(objects, policy, now=NOW, **more).to_dict(), allow_nan=False)
    )
    return document


def going(objects: Any, policy: Any = DUPLICATES, **more: Any) -> list[str]:
    """Return the pods that would go."""
    return [each["pod"] for each in plan(objects, policy, **more)["approved"]]


def notes(objects: Any, policy: Any = DUPLICATES) -> str:
    """Return the plan's remarks as one text."""
    return "\n".join(plan(objects, policy)["notes"])


def test_the_signatures_are_as_documented() -> None:
    """Two positional arguments, the rest by name, with the documented defaults."""
    evaluate, place = inspect.signature(rebalancer.evaluate), inspect.signature(rebalancer.place)
    assert list(evaluate.parameters) == ["objects", "policy", "now", "placement", "guards", "scheduler"]
    assert [p.default for p in list(evaluate.parameters.values())[3:]] == ["required", None, None]
    assert all(p.kind is p.KEYWORD_ONLY for p in list(evaluate.parameters.values())[2:])
    assert list(place.parameters) == ["objects", "pod", "scheduler"]
    assert place.parameters["scheduler"].default is None


def test_the_json_form_has_the_documented_keys() -> None:
    """Approvals and refusals carry what is promised, and the moment is written as the API writes it."""
    document = plan([*NODES, *pods(4, "n1")], a_document({"RemoveDuplicates": {}}, maxNoOfPodsToEvictTotal=1))
    assert document["evaluatedAt"] == "2026-01-15T12:00:00Z"
    assert set(document["approved"][0]) == {"pod", "uid", "node", "profile", "strategy", "reason", "landings"}
    assert set(document["refused"][0]) == {"pod", "node", "profile", "strategy", "code", "reason"}
    assert document["approved"][0]["landings"] == {"n2": 1.0}
    placed = rebalancer.place(NODES, a_pod("p", None)).to_dict()
    assert {"node", "tied", "landings", "scores", "pluginScores", "filtered"} <= set(placed)


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([], 0, id="nothing"),
        pytest.param({}, 0, id="an empty dict"),
        pytest.param(NODES, 0, id="only nodes"),
        pytest.param(pods(4, "n1"), 0, id="only pods"),
        pytest.param([*NODES, *pods(4, "elsewhere")], 0, id="pods on nodes that are not there"),
        pytest.param([a_node("n1"), *pods(4, "n1")], 0, id="one node"),
        pytest.param([*NODES, *pods(4, "n1"), *pods(4, "n1")], 2, id="every pod twice"),
        pytest.param((each for each in [*NODES, *pods(4, "n1")]), 2, id="a generator"),
        pytest.param({"kind": "List", "items": [*NODES, *pods(4, "n1")]}, 2, id="a List, not in a list"),
        pytest.param(
            [{"kind": "List", "items": [{"kind": "NodeList", "items": NODES}, {"kind": "PodList", "items": pods(4, "n1")}]}],
            2,
            id="Lists in a List",
        ),
        pytest.param([{"kind": "List", "items": None}], 0, id="a List of null"),
    ],
)
def test_unusual_sets_of_objects_give_a_plan(objects: Any, expected: int) -> None:
    """No node, no pod, one node, duplicates, generators, nested Lists: a plan, and the right one."""
    assert len(going(objects)) == expected


def without(path: str, object_: Object) -> Object:
    """Return an object without the field at a dotted path."""
    head, _, rest = path.partition(".")
    if not rest:
        return {key: value for key, value in object_.items() if key != head}
    return {**object_, head: without(rest, object_[head])}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("metadata.uid", ["ns1/app-n1-3", "ns1/app-n1-2"]),
        ("metadata.namespace", ["default/app-n1-3", "default/app-n1-2"]),
        ("metadata.creationTimestamp", ["ns1/app-n1-3", "ns1/app-n1-2"]),
        ("metadata.labels", ["ns1/app-n1-3", "ns1/app-n1-2"]),
        ("metadata.ownerReferences", []),
        ("metadata", []),
        ("status.qosClass", ["ns1/app-n1-3", "ns1/app-n1-2"]),
        ("status.conditions", ["ns1/app-n1-3", "ns1/app-n1-2"]),
        ("spec.containers", []),
        ("spec", []),
    ],
)
def test_a_pod_without_a_field_is_judged_by_the_rest(path: str, expected: list[str]) -> None:
    """Missing fields have the meaning that the API gives them; a manifest without a namespace means ``default``."""
    assert going([*NODES, *(without(path, pod) for pod in pods(4, "n1"))]) == expected


@pytest.mark.parametrize("policy", [DUPLICATES, UTILISATION], ids=["RemoveDuplicates", "utilisation"])
@pytest.mark.parametrize("mode", ["required", "fit", "off"])
@pytest.mark.parametrize(
    "amounts",
    [
        {},
        {"cpu": "0", "memory": "0", "pods": "0"},
        {"cpu": "9E", "memory": "9E", "pods": "9223372036854775807"},
        {"cpu": 0.5, "pods": 3},
    ],
    ids=["none", "zero", "largest", "numbers"],
)
def test_nodes_with_odd_allocatable_divide_by_nothing(amounts: Object, mode: str, policy: Object) -> None:
    """No allocatable, zero, and the largest that a quantity can hold: a plan without NaN or infinity."""
    odd = [{**a_node(name), "status": {"allocatable": amounts, "capacity": amounts}} for name in ("n1", "n2", "n3")]
    plan([*odd, a_node("n4"), *pods(4, "n1"), *pods(2, "n2", app="b"), *pods(9, "n4", app="c")], policy, placement=mode)


@pytest.mark.parametrize("mode", ["required", "fit", "off"])
def test_a_pod_that_asks_for_the_moon_breaks_nothing(mode: str) -> None:
    """Anybody may create a pending pod with absurd requests; everybody else's moves are decided as before."""
    hungry = [a_pod(f"moon{index}", None, app="moon", cpu="9E", memory="9E", more={"example.com/x": "9E"}) for index in range(50)]
    objects = [*NODES, *pods(4, "n1")]
    assert going([*objects, *hungry], placement=mode) == going(objects, placement=mode)


@pytest.mark.parametrize("quantity", ["NaN", "-100m", "1e9999", "Infinity", "1 Gi", "0x10", "", "1Gi1", "--1", "1ki"])
def test_a_quantity_that_the_server_would_refuse_takes_out_one_pod_only(quantity: str) -> None:
    """NaN-like, negative and misspelt quantities are named with their pod, and the others are decided on."""
    bad = a_pod("bad", "n1", cpu=None, app="bad", more={"memory": quantity or " "})
    assert going([*NODES, *pods(4, "n1"), bad]) == ["ns1/app-n1-3", "ns1/app-n1-2"]
    assert "skipped: Pod ns1/bad: memory:" in notes([*NODES, bad])


def test_an_absurd_resource_of_a_device_plugin_that_went_away_counts_as_none() -> None:
    """F13, F31: a node that offers 0 of a device is as one that does not name it: it is neither emptied nor blocks the others."""
    gone = a_node("n1", more={"example.com/gpu": "0"})
    full = a_node("n2", more={"example.com/gpu": "4"})
    user = [a_pod(f"u{index}", "n2", app="u", more={"example.com/gpu": "1"}) for index in range(3)]
    packing = a_document({"HighNodeUtilization": {"thresholds": {"example.com/gpu": 20}}}, evictor={"nodeFit": False})
    assert going([gone, full, *pods(3, "n1"), *user], packing, placement="off") == []
    spreading = {"thresholds": {"cpu": 20, "example.com/gpu": 20}, "targetThresholds": {"cpu": 50, "example.com/gpu": 50}}
    policy = a_document({"LowNodeUtilization": spreading}, evictor={"nodeFit": False})
    assert going([gone, full, *pods(6, "n2", cpu="500m", app="v")], policy, placement="off")


def test_one_malformed_object_among_many_is_named_and_skipped() -> None:
    """Objects of every kind with a wrong type in them: one sentence for each, with field, and the plan is that of the rest."""
    broken: list[Any] = [
        None,
        5,
        "x",
        [],
        {},
        {"kind": 5},
        {"kind": "Pod"},
        {"kind": "Pod", "metadata": []},
        {**a_pod("b1", "n1"), "spec": {"tolerations": ["x"]}},
        {**a_pod("b2", "n1"), "status": {"phase": "Dancing"}},
        {**a_pod("b3", "n1"), "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": []}}}]}},
        {"kind": "Node", "metadata": {"name": "b4"}, "spec": {"taints": [{"key": "k", "effect": "Maybe"}]}},
        {"kind": "PodDisruptionBudget", "metadata": {"name": "b5", "namespace": "ns1"}, "spec": {"selector": 5}},
        {"kind": "Namespace", "metadata": {"name": 5}},
        {"kind": "PriorityClass", "metadata": {"name": "b7"}, "value": "high"},
        {"kind": "Service", "metadata": {"name": "b8"}, "spec": {"selector": [1]}},
    ]
    objects = [*NODES, *pods(4, "n1")]
    assert going([*broken, *objects]) == going(objects)
    said = [note for note in plan([*broken, *objects])["notes"] if note.startswith("skipped: ")]
    assert len(said) == len(broken)
    assert said == sorted(said)
    text = "\n".join(said)
    for words in ("Pod ns1/b1: spec.tolerations", "Pod ns1/b2: status.phase", "Node b4: taint k", "ns1/b5", "b7", "b8"):
        assert words in text


def test_of_two_versions_of_a_pod_the_later_counts() -> None:
    """Two dumps in a row: an object counts once, with its highest resource version, whatever the order."""
    earlier = [{**pod, "metadata": {**pod["metadata"], "resourceVersion": "9"}} for pod in pods(4, "n1")]
    later = [{**each, "metadata": {**each["metadata"], "resourceVersion": "10"}} for each in earlier]
    for pod in later[2:]:
        pod["spec"] = {**pod["spec"], "nodeName": "n2"}
    for objects in ([*earlier, *later], [*later, *earlier]):
        assert going([*NODES, *objects]) == []
        assert "Pod ns1/app-n1-0: is given more than once" in notes([*NODES, *objects])


def test_managed_fields_and_yaml_dates_make_no_difference() -> None:
    """What kubectl adds or a YAML reader turns into dates changes nothing."""
    objects = [*NODES, *pods(4, "n1")]
    dressed = [
        {**each, "metadata": {**each["metadata"], "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:x": {}}}]}}
        for each in objects
    ]
    assert plan(dressed) == plan(objects)
    text = yaml.safe_dump(objects).replace("'2026-01-14T12:00:00Z'", "2026-01-14T12:00:00Z")
    read = yaml.safe_load(text)
    assert isinstance(read[0]["metadata"]["creationTimestamp"], datetime)
    assert plan(read) == plan(objects)


@pytest.mark.parametrize("mode", [False, "false", "False", "off", "OFF", PlacementMode.OFF])
def test_placement_may_be_switched_off_in_any_spelling(mode: Any) -> None:
    """YAML's false and the word mean the same."""
    assert plan([*NODES, *pods(4, "n1")], placement=mode) == plan([*NODES, *pods(4, "n1")], placement="off")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        pytest.param(lambda: plan(NODES, placement="fitt"), "'fit'", id="placement"),
        pytest.param(lambda: plan(NODES, placement=None), "placement", id="no placement"),
        pytest.param(lambda: plan("nodes"), "objects", id="objects as text"),
        pytest.param(lambda: plan(None), "objects", id="no objects"),
        pytest.param(lambda: plan(NODES, scheduler=5), "KubeSchedulerConfiguration", id="scheduler"),
        pytest.param(lambda: plan(NODES, scheduler={"kind": "x"}), "kind", id="scheduler of another kind"),
        pytest.param(lambda: plan(NODES, guards={"x": 1}), "guards", id="guards"),
        pytest.param(lambda: rebalancer.place(None, {}), "objects", id="place without objects"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_argument_is_an_input_error(call: Callable[[], object], words: str) -> None:
    """Arguments of the wrong kind are named, with what was expected."""
    with pytest.raises(InputError, match=words):
        call()


@pytest.mark.parametrize("moment", [datetime(2026, 1, 1), date(2026, 1, 1), "2026-01-01T00:00:00Z", None, 0], ids=repr)
def test_now_must_be_a_moment_with_a_zone(moment: Any) -> None:
    """A naive time is an error, and so is anything that is none."""
    with pytest.raises(ValueError, match="time zone"):
        rebalancer.evaluate(NODES, DUPLICATES, now=moment)


@pytest.mark.parametrize("policy", [None, {}, [], 5, "x", {"kind": "DeschedulerPolicy"}], ids=repr)
def test_what_is_no_policy_is_a_policy_error(policy: Any) -> None:
    """Empty and wrong policies are refused; nothing is decided by default."""
    with pytest.raises(PolicyError):
        rebalancer.evaluate(NODES, policy, now=NOW)


def test_a_policy_may_be_given_as_a_value() -> None:
    """A dict and the Policy that was read from it decide the same."""
    objects = [*NODES, *pods(4, "n1")]
    assert plan(objects, load(DUPLICATES, source="x").policy) == plan(objects)


@pytest.mark.parametrize(
    "pod",
    [None, 5, "x", [], {"spec": []}, {"metadata": "x"}, {"spec": {"containers": 5}}, {"spec": {"x": {1, 2}, "y": ...}}],
    ids=repr,
)
def test_a_pod_that_cannot_be_placed_is_a_parse_error(pod: Any) -> None:
    """A malformed pod is an error in words, not a crash."""
    with pytest.raises(ParseError):
        rebalancer.place(NODES, pod)


@pytest.mark.parametrize("pod", [{}, {"spec": None}, {"metadata": {"generateName": "a-"}, "spec": {"containers": []}}], ids=repr)
def test_a_pod_needs_no_name_to_be_placed(pod: Any) -> None:
    """A template is enough."""
    assert rebalancer.place(NODES, pod).to_dict()["tied"] == ["n1", "n2"]


@pytest.mark.parametrize("number", [2**31, 2**62, 2**63, 2**64, -1, 0, 10**40], ids=str)
def test_a_number_out_of_the_apis_range_takes_out_one_pod_only(number: int) -> None:
    """Weights, skews and ports that the server would refuse are named with their pod; arithmetic never overflows."""
    spread = {"maxSkew": number, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    liking = {"weight": number, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [liking]}}
    bad = [
        a_pod("b1", None, app="b", spec={"topologySpreadConstraints": [spread]}),
        a_pod("b2", None, app="b", spec={"affinity": affinity}),
        a_pod("b3", None, app="b", spec={"topologySpreadConstraints": [{**spread, "maxSkew": 1, "minDomains": number}]}),
    ]
    objects = [*NODES, *pods(4, "n1")]
    document = plan([*objects, *bad])
    assert [each["pod"] for each in document["approved"]] == going(objects)
    assert sum(note.startswith("skipped: Pod ns1/b") for note in document["notes"]) == 3
    for pod in bad:
        with pytest.raises(ParseError):
            rebalancer.place(NODES, pod)


def test_an_image_of_absurd_size_scores_as_a_large_one() -> None:
    """Sizes that a node reports wrongly do not overflow."""
    image = {"names": ["registry.example/app:1"], "sizeBytes": 2**63 - 1}
    node = {**a_node("n1"), "status": {**a_node("n1")["status"], "images": [image] * 3}}
    assert rebalancer.place([node, a_node("n2")], a_pod("p", None)).node == "n1"


def test_owners_without_uid_are_told_apart_by_kind_and_name() -> None:
    """A manifest written by hand: minReplicas counts each owner's own pods, and so do caps per workload."""

    def anonymous(pod: Object) -> Object:
        for reference in pod["metadata"]["ownerReferences"]:
            del reference["uid"]
        return pod

    policy = a_document({"PodLifeTime": {"maxPodLifeTimeSeconds": 60}}, evictor={"nodeFit": False, "minReplicas": 3})
    objects = [*NODES, *(anonymous(pod) for pod in [*pods(2, "n1"), *pods(3, "n1", app="b")])]
    assert going(objects, policy) == ["ns1/b-n1-0", "ns1/b-n1-1", "ns1/b-n1-2"]
