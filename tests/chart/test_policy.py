"""The policy: same place and form as in the descheduler's chart, read by the program, followed without a restart."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from rebalancer.policy import Policy, load
from tests.chart.rendering import container, environment, of_kind, only, pod_template, policy_text, values_of

OLD_POLICY = yaml.safe_load(values_of("configmap-0.18.yaml")["data"]["policy.yaml"])


def policy_of(values: dict[str, Any]) -> Policy:
    """Return the policy as the program reads it."""
    return load(policy_text(values), source="policy.yaml").policy


def names(policy: Policy) -> set[str]:
    """Return the strategies of all profiles."""
    return {use.name for profile in policy.profiles for use in (*profile.deschedule, *profile.balance)}


def test_the_default_policy_loads() -> None:
    """H3: what the chart ships without any value of the user's is read without a mistake or a warning."""
    loaded = load(policy_text({}), source="policy.yaml")
    assert loaded.warnings == ()
    assert names(loaded.policy) == {
        "RemoveDuplicates",
        "RemovePodsViolatingTopologySpreadConstraint",
        "LowNodeUtilization",
        "RemovePodsHavingTooManyRestarts",
        "RemovePodsViolatingNodeTaints",
        "RemovePodsViolatingNodeAffinity",
        "RemovePodsViolatingInterPodAntiAffinity",
    }


def test_the_default_policy_is_upstreams() -> None:
    """Who moves over without values of their own keeps the strategies and arguments that they had."""
    ours = yaml.safe_load(policy_text({}))
    assert ours["profiles"] == values_of("upstream-0.36-values.yaml")["deschedulerPolicy"]["profiles"]


def test_the_default_values_of_upstream_load() -> None:
    """All of them, as an upgrade that reuses values hands them on."""
    assert policy_of(values_of("upstream-0.36-values.yaml")) == policy_of({})


def test_the_config_map_of_0_18_loads() -> None:
    """With its version named, and without: charts of that time had no such value, and Helm merges our profiles in."""
    named = {"deschedulerPolicyAPIVersion": "descheduler/v1alpha1", "deschedulerPolicy": {"strategies": OLD_POLICY["strategies"]}}
    silent = {"deschedulerPolicy": {"strategies": OLD_POLICY["strategies"]}}
    direct = load(values_of("configmap-0.18.yaml"), source="configmap").policy
    assert policy_of(named) == policy_of(silent)
    # Helm sorts the keys of a map; in those days the strategies of one ran in no order at all.
    assert sorted(policy_of(named).profiles, key=lambda profile: profile.name) == sorted(
        direct.profiles, key=lambda profile: profile.name
    )
    assert names(direct) == set(OLD_POLICY["strategies"])


def test_flags_that_limited_0_18_become_keys_of_the_policy() -> None:
    """Dropping a selector or a limit would widen what is evicted."""
    policy = policy_of(values_of("upstream-0.20-values.yaml"))
    assert policy.max_per_node == 10
    assert policy.node_selector.matches({"pool": "general"})
    assert not policy.node_selector.matches({"pool": "batch"})
    text = yaml.safe_load(policy_text(values_of("upstream-0.20-values.yaml")))
    assert text["evictLocalStoragePods"] is True


def test_no_limit_in_0_18_was_zero() -> None:
    """There --max-pods-to-evict-per-node=0 meant unlimited; today 0 means none."""
    assert policy_of({"cmdOptions": {"max-pods-to-evict-per-node": 0}}).max_per_node is None


def test_large_numbers_stay_whole() -> None:
    """Helm keeps numbers as floats; 2e+09 would be read as a text."""
    evictor = {"name": "DefaultEvictor", "args": {"priorityThreshold": {"value": 2000000000}}}
    lifetime = {"name": "PodLifeTime", "args": {"maxPodLifeTimeSeconds": 604800000}}
    profile = {"name": "p", "pluginConfig": [evictor, lifetime], "plugins": {"deschedule": {"enabled": ["PodLifeTime"]}}}
    assert names(policy_of({"deschedulerPolicy": {"profiles": [profile]}})) == {"PodLifeTime"}


def test_the_policy_may_use_templates() -> None:
    """As upstream's may."""
    profile = {"name": "{{ .Release.Name }}", "pluginConfig": [], "plugins": {}}
    assert policy_of({"deschedulerPolicy": {"profiles": [profile]}}).profiles[0].name == "rebalancer"


def test_a_change_of_the_policy_restarts_nothing() -> None:
    """The program watches the file, so the pod template stays as it is unless a restart is asked for."""
    other = {"deschedulerPolicy": {"maxNoOfPodsToEvictTotal": 7}}
    assert policy_text(other) != policy_text({})
    assert pod_template(other) == pod_template({})
    restart = {"restartOnPolicyChange": True}
    assert pod_template(other | restart) != pod_template(restart)


def test_the_policy_is_mounted_as_a_directory() -> None:
    """A file mounted by subPath never follows its ConfigMap."""
    (mount,) = container({})["volumeMounts"]
    assert "subPath" not in mount
    assert environment({})["REBALANCER_POLICY_FILE"] == f"{mount['mountPath']}/policy.yaml"
    (volume,) = pod_template({})["spec"]["volumes"]
    assert (volume["name"], volume["configMap"]["name"]) == (mount["name"], only("ConfigMap", {})["metadata"]["name"])


@pytest.mark.parametrize("kind", ["Deployment", "CronJob", "Job"])
def test_a_config_map_of_ones_own_is_used(kind: str) -> None:
    """With `deschedulerPolicy: null` the ConfigMap of the full name is mounted and none is made, as upstream does it."""
    values = {"kind": kind, "deschedulerPolicy": None, "fullnameOverride": "own-policy"}
    assert of_kind("ConfigMap", values) == []
    assert pod_template(values)["spec"]["volumes"][0]["configMap"] == {"name": "own-policy"}
