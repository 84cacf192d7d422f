"""Selectors in a query: what they select, and how a wrong one is answered."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.sim.kinds import NODE, POD
from rebalancer.sim.problems import ApiProblem
from rebalancer.sim.selecting import selects


def an_object(labels: dict[str, str] | None = None, **parts: Any) -> dict[str, Any]:
    """An object with labels."""
    return {"metadata": {"name": "a", "namespace": "s", **({"labels": labels} if labels else {})}, "spec": {}, **parts}


@pytest.mark.parametrize(
    ("text", "labels", "selected"),
    [
        ("a=b", {"a": "b"}, True),
        ("a==b", {"a": "c"}, False),
        ("a!=b", {}, True),
        ("a in (b, c)", {"a": "c"}, True),
        ("a notin (b)", {"a": "b"}, False),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("a=", {"a": ""}, True),
        ("n>5", {"n": "6"}, True),
        ("n<5", {"n": "6"}, False),
        ("a=b,!c", {"a": "b"}, True),
    ],
)
def test_a_label_selector_selects(text: str, labels: dict[str, str], selected: bool) -> None:
    """Every operator of the text form."""
    assert selects(POD, text, "")(an_object(labels)) is selected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("=(", "found '=', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
    ],
)
def test_a_wrong_label_selector_is_answered_in_the_servers_words(text: str, words: str) -> None:
    """400, and what was expected where."""
    with pytest.raises(ApiProblem) as caught:
        selects(POD, text, "")
    assert (caught.value.code, str(caught.value)) == (400, words)


@pytest.mark.parametrize(
    ("fields", "obj", "selected"),
    [
        ("spec.unschedulable=false", an_object(), True),
        ("spec.unschedulable=true", an_object(spec={"unschedulable": True}), True),
        ("spec.unschedulable!=true", an_object(spec={"unschedulable": True}), False),
        ("metadata.name=a,metadata.name!=b", an_object(), True),
    ],
)
def test_a_field_selector_selects(fields: str, obj: dict[str, Any], selected: bool) -> None:
    """A field that is not there has its zero value."""
    assert selects(NODE, "", fields)(obj) is selected


def test_a_field_that_is_not_offered_is_refused() -> None:
    """Each kind offers its own few fields."""
    with pytest.raises(ApiProblem) as caught:
        selects(NODE, "", "spec.nodeName=x")
    assert str(caught.value) == "field label not supported: spec.nodeName"
