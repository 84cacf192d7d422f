"""The three patch types, and the leaves that server-side apply speaks of."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.sim.merging import json_patch, merge_patch, strategic_merge
from rebalancer.sim.ownership import ITEM, Managers, fields_v1, leaves, paths_of, shown
from rebalancer.sim.problems import ApiProblem

POD = "core.v1.Pod"


@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [
        ({"a": 1, "b": 2}, {"b": None}, {"a": 1}),
        ({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": "x"}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
    ],
    ids=["null removes", "objects merge", "lists are replaced", "a text gives way to an object"],
)
def test_a_merge_patch(document: Any, patch: Any, result: Any) -> None:
    """RFC 7386."""
    assert merge_patch(document, patch) == result


@pytest.mark.parametrize(
    ("operations", "result"),
    [
        ([{"op": "add", "path": "/a/1", "value": "x"}], {"a": ["p", "x", "q"]}),
        ([{"op": "add", "path": "/a/-", "value": "x"}], {"a": ["p", "q", "x"]}),
        ([{"op": "remove", "path": "/a/0"}], {"a": ["q"]}),
        ([{"op": "replace", "path": "/a/1", "value": "x"}], {"a": ["p", "x"]}),
        ([{"op": "copy", "from": "/a/0", "path": "/b"}], {"a": ["p", "q"], "b": "p"}),
        ([{"op": "move", "from": "/a", "path": "/c~1d"}], {"c/d": ["p", "q"]}),
        ([{"op": "test", "path": "/a/0", "value": "p"}], {"a": ["p", "q"]}),
    ],
    ids=["insert", "append", "remove", "replace", "copy", "move to a name with a slash", "test"],
)
def test_a_json_patch(operations: Any, result: Any) -> None:
    """RFC 6902, and the document is not changed in place."""
    document = {"a": ["p", "q"]}
    assert json_patch(document, operations) == result
    assert document == {"a": ["p", "q"]}


@pytest.mark.parametrize(
    "operation",
    [{"op": "remove", "path": "/x"}, {"op": "test", "path": "/a", "value": 2}, {"op": "replace", "path": "/b/c", "value": 1}],
    ids=["nothing to remove", "a test that fails", "no such path"],
)
def test_a_json_patch_that_does_not_apply_is_unprocessable(operation: Any) -> None:
    """422, and nothing else is tried."""
    with pytest.raises(ApiProblem) as caught:
        json_patch({"a": 1}, [operation])
    assert caught.value.code == 422


def a_spec(**parts: Any) -> dict[str, Any]:
    """A pod with a spec."""
    return {"spec": parts}


@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [
        (
            a_spec(containers=[{"name": "a", "image": "1"}, {"name": "b"}]),
            a_spec(containers=[{"name": "a", "image": "2"}]),
            a_spec(containers=[{"name": "a", "image": "2"}, {"name": "b"}]),
        ),
        (
            a_spec(containers=[{"name": "a"}, {"name": "b"}]),
            a_spec(containers=[{"name": "a", "$patch": "delete"}]),
            a_spec(containers=[{"name": "b"}]),
        ),
        (
            a_spec(containers=[{"name": "a"}, {"name": "b"}]),
            a_spec(
                **{"containers": [{"name": "c"}], "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}, {"name": "b"}]}
            ),
            a_spec(containers=[{"name": "c"}, {"name": "a"}, {"name": "b"}]),
        ),
        (
            a_spec(tolerations=[{"key": "a"}]),
            a_spec(tolerations=[{"key": "b"}]),
            a_spec(tolerations=[{"key": "b"}]),
        ),
        (
            {"metadata": {"finalizers": ["a", "b"]}},
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}},
            {"metadata": {"finalizers": ["b"]}},
        ),
        (
            {"metadata": {"labels": {"a": "b"}}},
            {"metadata": {"labels": {"$patch": "replace", "c": "d"}}},
            {"metadata": {"labels": {"c": "d"}}},
        ),
    ],
    ids=["merged by key", "deleted by key", "put in order", "an atomic list", "taken out of a set", "a map replaced"],
)
def test_a_strategic_merge_patch(document: Any, patch: Any, result: Any) -> None:
    """Lists merge as the schema says."""
    assert strategic_merge(document, patch, POD) == result


def test_leaves_are_named_as_fields_v1_does() -> None:
    """Elements of keyed lists by their keys, map entries one by one, atomic parts as a whole."""
    pod = {
        "metadata": {"name": "p", "labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "tolerations": [{"key": "k"}]},
    }
    found = leaves(POD, pod)
    assert found == {
        ("f:metadata", "f:labels", "f:a"): "b",
        ("f:spec", "f:containers", 'k:{"name":"c"}'): ITEM,
        ("f:spec", "f:containers", 'k:{"name":"c"}', "f:name"): "c",
        ("f:spec", "f:containers", 'k:{"name":"c"}', "f:image"): "i",
        ("f:spec", "f:tolerations"): [{"key": "k"}],
    }
    assert paths_of(fields_v1(found)) == set(found)
    assert shown(("f:spec", "f:containers", 'k:{"name":"c"}', "f:image")) == '.spec.containers[name="c"].image'


def test_a_field_has_one_updater() -> None:
    """Who changes a field takes it from whoever had it."""
    managers = Managers()
    first, second = ("a", "Update", ""), ("b", "Update", "")
    path = ("f:spec", "f:replicas")
    managers.set(first, {path}, "apps/v1", "2026-01-01T00:00:00Z")
    managers.take_from_others(second, {path})
    managers.set(second, {path}, "apps/v1", "2026-01-01T00:00:01Z")
    assert [entry["manager"] for entry in managers.written()] == ["b"]
