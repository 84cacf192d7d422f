"""Whatever a document holds, it is a policy or a PolicyError: no other exception, and no silent loss."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rebalancer.errors import PolicyError
from rebalancer.policy import describe, load
from tests.policy.documents import DATA, a_policy, a_profile
from tests.policy.test_examples import EXAMPLES, FULL_EVICTOR

JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**10) | st.floats() | st.text(max_size=5) | st.just("Running"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3),
    max_leaves=6,
)
FULL = a_policy(
    a_profile(*EXAMPLES, evictor=FULL_EVICTOR, **EXAMPLES),
    nodeSelector="a=b",
    maxNoOfPodsToEvictTotal=5,
    gracePeriodSeconds=1,
    metricsProviders=[{"source": "Prometheus", "prometheus": {"url": "http://p"}}],
)


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value inside a document."""
    items = document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    return [path, *(found for key, value in items for found in places(value, (*path, key)))]


def replaced(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a copy of a document with another value at a path."""
    if not path:
        return value
    changed = copy.deepcopy(document)
    inner = changed
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return changed


def read(document: Any) -> bool:
    """Tell whether a document loads; if so, writing, reading and describing it have to work."""
    try:
        policy = load(document, source="x").policy
    except PolicyError:
        return False
    assert load(policy.to_dict(), source="x").policy == policy
    assert load(policy.to_yaml(), source="x").policy == policy
    assert describe(policy)
    return True


@given(path=st.sampled_from(places(FULL)), junk=JUNK)
@settings(max_examples=300, deadline=None)
def test_junk_anywhere_in_a_v1alpha2_document_is_answered(path: tuple[Any, ...], junk: Any) -> None:
    """A value of any kind in any place is accepted or refused, never a crash."""
    read(replaced(FULL, path, junk))


def old_document() -> Any:
    """Return the fullest v1alpha1 document as plain values."""
    from rebalancer.policy.text import values_of_text

    return values_of_text((DATA / "last-form.yaml").read_bytes(), source="x")


OLD = old_document()


@given(path=st.sampled_from(places(OLD)), junk=JUNK)
@settings(max_examples=300, deadline=None)
def test_junk_anywhere_in_a_v1alpha1_document_is_answered(path: tuple[Any, ...], junk: Any) -> None:
    """The same for the old version, lenient as it is."""
    read(replaced(OLD, path, junk))


@given(
    path=st.sampled_from([path for path in places(FULL) if path and isinstance(path[-1], str)]), letter=st.sampled_from("xXs_")
)
@settings(max_examples=200, deadline=None)
def test_a_misspelt_key_anywhere_is_refused(path: tuple[Any, ...], letter: str) -> None:
    """K20, F27: no key of a v1alpha2 document is ever passed over, at any level."""
    changed = copy.deepcopy(FULL)
    inner = changed
    for step in path[:-1]:
        inner = inner[step]
    if path[-2:-1] in [("matchLabels",), ("thresholds",), ("targetThresholds",)]:
        return
    inner[path[-1] + letter] = inner.pop(path[-1])
    assert not read(changed)


@given(text=st.text(max_size=30) | st.binary(max_size=30))
def test_any_text_is_answered(text: str | bytes) -> None:
    """Texts that are no YAML, or YAML of something else, are refused in words."""
    assert not read(text)
