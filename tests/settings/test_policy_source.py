"""Where the policy comes from: a file or variables, never both, never neither."""

from __future__ import annotations

import pytest
import yaml

from rebalancer.errors import PolicyError, SettingsError
from rebalancer.settings import load_policy, load_settings
from tests.policy.documents import a_policy, loaded

TEXT = yaml.safe_dump(a_policy()).encode()
FILES = {"/policy.yaml": TEXT, "/empty.yaml": b""}


def read(path: str) -> bytes:
    """Return the bytes of a file that exists in the test."""
    if path not in FILES:
        raise FileNotFoundError(2, "No such file or directory", path)
    return FILES[path]


def policy_of(**variables: str) -> object:
    """Return the policy that an environment points at."""
    environ = {f"REBALANCER_{name}": value for name, value in variables.items()}
    return load_policy(load_settings(environ), environ, read=read).policy


def test_a_file_is_read() -> None:
    """REBALANCER_POLICY_FILE names a document."""
    assert policy_of(POLICY_FILE="/policy.yaml") == loaded(a_policy()).policy


def test_variables_make_a_policy() -> None:
    """REBALANCER_STRATEGIES is enough."""
    assert policy_of(STRATEGIES="RemoveDuplicates") != policy_of(STRATEGIES="RemoveFailedPods")


def test_neither_is_refused() -> None:
    """Without a policy there is nothing to do, and that is said."""
    with pytest.raises(SettingsError, match="REBALANCER_POLICY_FILE: must be set, or REBALANCER_STRATEGIES"):
        policy_of()


@pytest.mark.parametrize(
    "other", [{"STRATEGIES": "RemoveDuplicates"}, {"STRATEGIES": "RemoveDuplicates", "POLICY__SINGLE_NODE": "true"}]
)
def test_both_are_refused_naming_both(other: dict[str, str]) -> None:
    """Two policies would leave open which one holds."""
    with pytest.raises(SettingsError, match="REBALANCER_POLICY_FILE: must not be set beside REBALANCER_STRATEGIES"):
        policy_of(POLICY_FILE="/policy.yaml", **other)


def test_a_file_that_cannot_be_read_is_named() -> None:
    """The message holds the path and the reason."""
    with pytest.raises(PolicyError, match=r"/none\.yaml.*\n.*cannot be read: No such file"):
        policy_of(POLICY_FILE="/none.yaml")


def test_an_empty_file_is_refused() -> None:
    """F28: an empty policy is a mistake, not a policy that does nothing."""
    with pytest.raises(PolicyError, match="is empty"):
        policy_of(POLICY_FILE="/empty.yaml")
