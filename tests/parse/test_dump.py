"""Dumps: every form kubectl and friends write is read, and what is no dump is refused with what was found."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from rebalancer.errors import DumpError
from rebalancer.parse.dump import missing_notes, read_dump

NODE: dict[str, Any] = {"kind": "Node", "metadata": {"name": "n", "creationTimestamp": "2026-01-01T00:00:00Z"}}
POD: dict[str, Any] = {"kind": "Pod", "metadata": {"name": "p"}}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(json.dumps({"kind": "List", "items": [NODE, POD]}), id="a List"),
        pytest.param(json.dumps([NODE, POD]), id="an array"),
        pytest.param(
            json.dumps([{"kind": "List", "items": [NODE]}, {"kind": "PodList", "items": [POD]}]), id="an array of lists"
        ),
        pytest.param(json.dumps(NODE) + "\n" + json.dumps(POD), id="an object on each line"),
        pytest.param(yaml.safe_dump_all([NODE, POD]), id="several YAML documents"),
        pytest.param("---\n---\n" + yaml.safe_dump({"kind": "List", "items": [NODE, POD]}), id="YAML with empty documents"),
        pytest.param("\ufeff" + json.dumps([NODE, POD]), id="with a byte order mark"),
    ],
)
def test_every_usual_form_gives_the_same_objects(text: str) -> None:
    """The form of a dump does not matter."""
    assert read_dump(text.encode(), "dump") == [NODE, POD]


def test_a_typed_list_implies_the_kind_of_its_items() -> None:
    """The API server leaves the kind out of a list's items."""
    assert read_dump(b'{"kind": "NodeList", "items": [{"metadata": {"name": "n"}}]}', "dump")[0]["kind"] == "Node"


def test_unquoted_times_stay_texts() -> None:
    """YAML would make dates of them."""
    objects = read_dump(b"kind: Node\nmetadata: {name: n, creationTimestamp: 2026-01-01T00:00:00Z}", "dump")
    assert objects[0]["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("   \n", "is empty"),
        ("{", "neither JSON nor YAML"),
        ("just words", "is a text"),
        ("[1]", "is a number"),
        ('{"kind": "ConfigMap"}', "expected Node and Pod"),
        ('{"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy"}', "this is a policy"),
        ("a: b: c", "neither JSON nor YAML"),
    ],
)
def test_what_is_no_dump_is_refused_in_words(text: str, said: str) -> None:
    """The error names the source, what was found and what was expected."""
    with pytest.raises(DumpError, match=said) as caught:
        read_dump(text.encode(), "dump.json")
    assert "dump.json" in str(caught.value)


def test_a_missing_kind_is_named_with_what_is_assumed() -> None:
    """One warning for each kind that a rule may need."""
    notes = missing_notes(["PodDisruptionBudget", "CSINode"])
    assert notes == ["the dump has no PodDisruptionBudget: assumed that no disruption budget exists"]
