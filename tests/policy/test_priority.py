"""Priority classes that a policy names are looked up once, all at once."""

from __future__ import annotations

import pytest

from rebalancer.errors import PolicyError
from rebalancer.policy import named_priority_classes, resolve_priority_classes
from rebalancer.policy.policy import Policy
from tests.policy.documents import a_policy, a_profile, loaded


def naming(*classes: str) -> Policy:
    """Return a policy with a profile per class name."""
    profiles = (
        a_profile("RemoveDuplicates", name=f"p{place}", evictor={"priorityThreshold": {"name": name}, "minReplicas": 3})
        for place, name in enumerate(classes)
    )
    return loaded(a_policy(*profiles)).policy


def test_h1_a_class_that_exists_gives_its_value() -> None:
    """The name gives way to the number, and the rest of the policy stays."""
    policy = resolve_priority_classes(naming("c1", "c2"), {"c1": 100, "c2": -5, "c3": 7})
    assert [profile.evictor.priority_below for profile in policy.profiles] == [100, -5]
    assert [profile.evictor.min_replicas for profile in policy.profiles] == [3, 3]
    assert named_priority_classes(policy) == frozenset()


def test_h1_classes_that_are_missing_are_named_with_the_nearest() -> None:
    """Every missing class is reported."""
    with pytest.raises(PolicyError) as caught:
        resolve_priority_classes(naming("batch-hihg", "c2", "nothing-like-it"), {"batch-high": 1, "c2": 2})
    assert [mistake.nearest for mistake in caught.value.mistakes] == ["batch-high", None]


@pytest.mark.parametrize(("value", "fine"), [(1_999_999_999, True), (2_000_000_000, True), (2_000_000_001, False)])
def test_a_class_above_the_highest_threshold_is_refused(value: int, fine: bool) -> None:
    """The limit on numbers holds for the values of classes as well."""
    if fine:
        policy = resolve_priority_classes(naming("c1"), {"c1": value})
        assert policy.profiles[0].evictor.priority_below == value
    else:
        with pytest.raises(PolicyError, match="above the limit"):
            resolve_priority_classes(naming("c1"), {"c1": value})


def test_a_policy_without_names_needs_no_lookup() -> None:
    """Nothing changes where no class is named."""
    policy = loaded(a_policy()).policy
    assert resolve_priority_classes(policy, {}) == policy


def test_the_named_classes_are_told() -> None:
    """Whoever asks the cluster knows what to ask for."""
    assert named_priority_classes(naming("a", "b", "a")) == {"a", "b"}
