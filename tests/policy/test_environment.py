"""Policies from environment variables: the same values as from a document, and mistakes under the variables' names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rebalancer.errors import PolicyError
from rebalancer.policy import from_environment, is_policy_variable, policy_variables
from rebalancer.policy.policy import Policy
from tests.policy.documents import REQUIRED, a_policy, a_profile, loaded
from tests.policy.test_examples import EXAMPLES, FULL_EVICTOR


def snake(name: str) -> str:
    """Return upstream's name in upper snake case, written out once more so that the rule is tested and not repeated."""
    plain = name.replace("PVC", "Pvc").replace("PDB", "Pdb")
    return "".join(f"_{letter}" if letter.isupper() else letter.upper() for letter in plain).lstrip("_")


def variables(strategy: str, args: dict[str, Any]) -> dict[str, str]:
    """Return the variables that give a strategy its arguments: texts as they are, everything else as JSON."""
    return {
        f"REBALANCER_STRATEGY__{snake(strategy)}__{snake(name)}": value if isinstance(value, str) else json.dumps(value)
        for name, value in args.items()
    }


def policy_of(environ: dict[str, str]) -> Policy:
    """Return the policy of the variables."""
    found = from_environment(environ)
    assert found is not None
    return found.policy


def paths_in(environ: dict[str, str]) -> dict[str, str | None]:
    """Return the paths of the mistakes in the variables, with the nearest names."""
    with pytest.raises(PolicyError) as caught:
        from_environment(environ)
    return {mistake.path: mistake.nearest for mistake in caught.value.mistakes}


@pytest.mark.parametrize("strategy", EXAMPLES)
def test_variables_and_a_document_give_the_same_policy(strategy: str) -> None:
    """Every argument of every strategy and of the evictor can be given either way."""
    environ = {
        "REBALANCER_STRATEGIES": strategy,
        "REBALANCER_POLICY__MAX_NO_OF_PODS_TO_EVICT_TOTAL": "0",
        "REBALANCER_POLICY__NODE_SELECTOR": "pool=a",
        "REBALANCER_POLICY__SINGLE_NODE": "true",
        **variables("DefaultEvictor", FULL_EVICTOR),
        **variables(strategy, EXAMPLES[strategy]),
    }
    profile = a_profile(strategy, name="default", evictor=FULL_EVICTOR, **{strategy: EXAMPLES[strategy]})
    document = a_policy(profile, maxNoOfPodsToEvictTotal=0, nodeSelector="pool=a", singleNode=True)
    assert policy_of(environ) == loaded(document).policy


def test_strategies_keep_their_order() -> None:
    """A list between commas, with or without blanks, or as JSON; each strategy stands where it belongs."""
    names = ["LowNodeUtilization", "PodLifeTime", "RemoveDuplicates"]
    needed = {key: value for name in names for key, value in variables(name, REQUIRED.get(name, {})).items()}
    for text in (" LowNodeUtilization, PodLifeTime,RemoveDuplicates ", json.dumps(names)):
        uses = policy_of({"REBALANCER_STRATEGIES": text} | needed).uses()
        assert [use.name for _, use in uses] == ["PodLifeTime", "LowNodeUtilization", "RemoveDuplicates"]


@pytest.mark.parametrize("environ", [{}, {"REBALANCER_STRATEGIES": ""}, {"REBALANCER_TICK_SECONDS": "5", "HOME": "/"}])
def test_without_variables_there_is_no_policy(environ: dict[str, str]) -> None:
    """Empty variables count as not set, and settings are none of it."""
    assert from_environment(environ) is None


def test_an_empty_argument_counts_as_not_set() -> None:
    """A chart may render an empty value for what the user left out."""
    environ = {"REBALANCER_STRATEGIES": "RemoveFailedPods", "REBALANCER_STRATEGY__REMOVE_FAILED_PODS__REASONS": ""}
    assert policy_of(environ) == policy_of({"REBALANCER_STRATEGIES": "RemoveFailedPods"})


def test_every_mistake_is_reported_at_once_under_the_variables_names() -> None:
    """Misspelt names come with the nearest, wrong values with what was expected."""
    environ = {
        "REBALANCER_STRATEGIES": "LowNodeUtilization,RemoveDuplicate",
        "REBALANCER_STRATEGY__LOW_NODE_UTILIZATION__THRESHOLDS": '{"cpu": 200}',
        "REBALANCER_STRATEGY__LOW_NODE_UTILIZATION__TARGET_THRESHOLD": '{"cpu": 50}',
        "REBALANCER_STRATEGY__LOW_NODES_UTILIZATION__NUMBER_OF_NODES": "1",
        "REBALANCER_STRATEGY__DEFAULT_EVICTOR__NODE_FIT": "yes",
        "REBALANCER_POLICY__NODE_SELECTOR": "a=(",
        "REBALANCER_POLICY__SINGLE_NODES": "true",
    }
    assert paths_in(environ) == {
        "REBALANCER_STRATEGIES": "RemoveDuplicates",
        "REBALANCER_STRATEGY__LOW_NODE_UTILIZATION__THRESHOLDS.cpu": None,
        "REBALANCER_STRATEGY__LOW_NODE_UTILIZATION__TARGET_THRESHOLDS": None,
        "REBALANCER_STRATEGY__LOW_NODE_UTILIZATION__TARGET_THRESHOLD": (
            "REBALANCER_STRATEGY__LOW_NODE_UTILIZATION__TARGET_THRESHOLDS"
        ),
        "REBALANCER_STRATEGY__LOW_NODES_UTILIZATION__NUMBER_OF_NODES": (
            "REBALANCER_STRATEGY__LOW_NODE_UTILIZATION__NUMBER_OF_NODES"
        ),
        "REBALANCER_STRATEGY__DEFAULT_EVICTOR__NODE_FIT": None,
        "REBALANCER_POLICY__NODE_SELECTOR": None,
        "REBALANCER_POLICY__SINGLE_NODES": "REBALANCER_POLICY__SINGLE_NODE",
    }


def test_arguments_without_a_list_of_strategies_are_a_mistake() -> None:
    """Arguments of a strategy do not enable it."""
    found = paths_in({"REBALANCER_STRATEGY__POD_LIFE_TIME__MAX_POD_LIFE_TIME_SECONDS": "5"})
    assert set(found) >= {"REBALANCER_STRATEGIES"}


def test_real_load_is_refused_under_the_variables_name() -> None:
    """The refusal is the same as for a document."""
    args = REQUIRED["LowNodeUtilization"] | {"metricsUtilization": {"source": "KubernetesMetrics"}}
    environ = {"REBALANCER_STRATEGIES": "LowNodeUtilization"} | variables("LowNodeUtilization", args)
    assert set(paths_in(environ)) == {"REBALANCER_STRATEGY__LOW_NODE_UTILIZATION__METRICS_UTILIZATION"}


def test_warnings_name_the_variable() -> None:
    """A deprecated boolean is warned of as it was written."""
    environ = {"REBALANCER_STRATEGIES": "RemoveDuplicates", "REBALANCER_STRATEGY__DEFAULT_EVICTOR__EVICT_DAEMON_SET_PODS": "true"}
    found = from_environment(environ)
    assert found is not None
    (warning,) = found.warnings
    assert warning.startswith("REBALANCER_STRATEGY__DEFAULT_EVICTOR: evictDaemonSetPods is deprecated")


def test_every_variable_is_known_as_one_of_the_policy() -> None:
    """The list is complete over the catalogue, and no setting is taken for one."""
    names = policy_variables()
    assert all(is_policy_variable(name) for name in names)
    assert len(set(names)) == len(names)
    assert "REBALANCER_STRATEGY__LOW_NODE_UTILIZATION__TARGET_THRESHOLDS" in names
    assert "REBALANCER_STRATEGY__REMOVE_PODS_VIOLATING_INTER_POD_ANTI_AFFINITY__LABEL_SELECTOR" in names
    assert not is_policy_variable("REBALANCER_POLICY_FILE")
