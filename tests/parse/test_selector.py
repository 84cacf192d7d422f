"""Selectors: from dicts and from the string form, with the server's rules on what is valid."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.errors import SelectorError
from rebalancer.model.selector import EVERYTHING
from rebalancer.parse.selector import label_selector, parse_selector

LABELS = {"app": "web", "tier": "front", "cores": "8"}


@pytest.mark.parametrize(
    ("document", "matches"),
    [
        pytest.param({}, True, id="empty matches everything"),
        pytest.param({"matchLabels": {"app": "web"}}, True, id="equal"),
        pytest.param({"matchLabels": {"app": "web", "tier": "back"}}, False, id="all must hold"),
        pytest.param({"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "web"]}]}, True, id="in"),
        pytest.param({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False, id="not in"),
        pytest.param(
            {"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["web"]}]}, True, id="a missing label is not in"
        ),
        pytest.param({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True, id="exists"),
        pytest.param({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False, id="does not exist"),
    ],
)
def test_dict_selectors_match_as_the_server_matches(document: dict[str, Any], matches: bool) -> None:
    """Every operator of a label selector, and the conjunction of all of them."""
    assert label_selector(document).matches(LABELS) is matches


@pytest.mark.parametrize(
    "document",
    [
        {"matchLabels": {"bad key": "v"}},
        {"matchLabels": {"a": "bad value"}},
        {"matchLabels": {"a" * 64: "v"}},
        {"matchLabels": {"a": "v" * 64}},
        {"matchExpressions": [{"key": "a", "operator": "In"}]},
        {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]},
        {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
        {"matchExpressions": [{"key": "a", "operator": "Near"}]},
        {"matchLabel": {"a": "v"}},
        {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x"], "value": "y"}]},
        {"matchLabels": {"a": 1}},
    ],
    ids=str,
)
def test_what_the_server_rejects_is_rejected(document: dict[str, Any]) -> None:
    """Invalid keys, values, operators and unknown fields raise an error; a misspelt key would widen what is selected."""
    with pytest.raises(SelectorError):
        label_selector(document)


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app=web", True),
        ("app==web,tier=front", True),
        ("app!=web", False),
        ("missing!=web", True),
        ("app in (web, db)", True),
        ("app notin (web,db),tier", False),
        ("!app", False),
        ("! missing", True),
        ("cores>4", True),
        ("cores<4", False),
        ("app=", False),
    ],
)
def test_the_string_form_is_that_of_kubectl(text: str, matches: bool) -> None:
    """Equality, sets, existence and comparison, joined by commas."""
    assert parse_selector(text).matches(LABELS) is matches


@pytest.mark.parametrize("text", ["=(", "a in ()x", "a b", "a=b=c", ",", "a=b,", "cores>many", "app in web"])
def test_a_broken_string_form_is_an_error(text: str) -> None:
    """A selector that cannot be read never silently selects everything."""
    with pytest.raises(SelectorError):
        parse_selector(text)


@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.from_regex(r"[a-z0-9]{0,8}", fullmatch=True), max_size=4))
def test_labels_are_selected_by_themselves(labels: dict[str, str]) -> None:
    """The selector made of a pod's own labels matches that pod."""
    assert label_selector({"matchLabels": labels}).matches(labels)


def test_the_empty_selector_is_one_value() -> None:
    """It is compared often."""
    assert label_selector({}) is EVERYTHING
