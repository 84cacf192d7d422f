"""Strictness of v1alpha2 documents outside the arguments: header, keys, profiles, extension points, metrics."""

from __future__ import annotations

from typing import Any

import pytest

from tests.policy.documents import a_policy, a_profile, loaded, mistakes_in

PLUGINS = "profiles[0].plugins"


@pytest.mark.parametrize(
    ("document", "paths"),
    [
        pytest.param("", {"document"}, id="no text"),
        pytest.param("# a comment\n", {"document"}, id="comment alone"),
        pytest.param({}, {"document"}, id="empty map"),
        pytest.param("[]", {"document"}, id="a list"),
        pytest.param("profiles: []", {"kind", "apiVersion"}, id="no header"),
        pytest.param({"apiVersion": "descheduler/v1alpha2", "profiles": []}, {"kind", "profiles"}, id="no kind"),
        pytest.param({"kind": "DeschedulerPolicy"}, {"apiVersion"}, id="no version"),
        pytest.param({"kind": "DeschedulerPolicy", "apiVersion": "descheduler/v1"}, {"apiVersion"}, id="wrong version"),
        pytest.param(a_policy() | {"profiles": []}, {"profiles"}, id="no profiles"),
        pytest.param(a_policy() | {"profiles": None}, {"profiles"}, id="null profiles"),
        pytest.param(a_policy() | {"profiles": {}}, {"profiles"}, id="profiles of the wrong type"),
        pytest.param(a_policy() | {"profiles": ["x"]}, {"profiles[0]"}, id="profile of the wrong type"),
        pytest.param("a: [", {"line 2, column 1"}, id="no YAML"),
        pytest.param("a: 1\na: 2", {"line 2, column 1"}, id="a key twice"),
        pytest.param(b"\xff", {"document"}, id="no text at all"),
        pytest.param("a: 1\n---\nb: 2", {"document"}, id="two documents"),
        pytest.param({"kind": "ConfigMap", "data": {"a": "kind: Pod"}}, {"data"}, id="ConfigMap without a policy"),
    ],
)
def test_f28_a_document_that_says_nothing_is_a_mistake(document: Any, paths: set[str]) -> None:
    """Empty, headerless or unreadable documents are refused, naming what is missing."""
    assert set(mistakes_in(document)) == paths


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("maxNoOfPodsToEvictTotl", "maxNoOfPodsToEvictTotal"),
        ("MaxNoOfPodsToEvictTotal", "maxNoOfPodsToEvictTotal"),
        ("maxNoOfPodsToEvictPerNamespaces", "maxNoOfPodsToEvictPerNamespace"),
        ("nodeselector", "nodeSelector"),
        ("single_node", "singleNode"),
        ("tracing", None),
    ],
)
def test_f27_unknown_and_miscased_top_level_keys_are_mistakes(key: str, nearest: str | None) -> None:
    """A mistyped limit never becomes no limit: the key is named with the nearest valid one."""
    found = mistakes_in(a_policy(**{key: 1}))
    assert found.keys() == {key}
    assert found[key].nearest == nearest


@pytest.mark.parametrize(
    ("top", "expected"),
    [
        ({"maxNoOfPodsToEvictTotal": -1}, "must be at least 0, not -1"),
        ({"maxNoOfPodsToEvictTotal": 1.5}, "must be a whole number, not 1.5"),
        ({"maxNoOfPodsToEvictPerNode": "3"}, "must be a whole number, not '3'"),
        ({"maxNoOfPodsToEvictPerNamespace": True}, "must be a whole number, not true"),
        ({"gracePeriodSeconds": -1}, "must be at least 0, not -1"),
        ({"nodeSelector": {"a": "b"}}, "must be a string such as pool=a, not {'a': 'b'}"),
        ({"evictionFailureEventNotification": "yes"}, "must be true or false, not 'yes'"),
        ({"singleNode": 1}, "must be true or false, not 1"),
    ],
)
def test_top_level_values_of_the_wrong_kind_are_mistakes(top: dict[str, Any], expected: str) -> None:
    """Each top-level key says what it takes."""
    (mistake,) = mistakes_in(a_policy(**top)).values()
    assert (mistake.path, mistake.expected) == (next(iter(top)), expected)


def test_a_node_selector_that_cannot_be_read_is_a_mistake() -> None:
    """The text form of a selector is checked when the policy is read, not when it is used."""
    assert mistakes_in(a_policy(nodeSelector="pool=(")).keys() == {"nodeSelector"}


def test_h4_a_plugin_at_the_wrong_extension_point_is_told_the_right_one() -> None:
    """A Balance strategy under deschedule is a mistake that says: use balance."""
    document = a_policy(a_profile("RemovePodsViolatingTopologySpreadConstraint"))
    document["profiles"][0]["plugins"] = {"deschedule": {"enabled": ["RemovePodsViolatingTopologySpreadConstraint"]}}
    (mistake,) = mistakes_in(document).values()
    assert mistake.path == f"{PLUGINS}.deschedule.enabled[0]"
    assert mistake.expected.endswith("use balance")


@pytest.mark.parametrize(
    ("plugins", "path", "expected", "nearest"),
    [
        ({"balance": {"enabled": ["PodLifeTime"]}}, "balance.enabled[0]", "use deschedule", None),
        ({"filter": {"enabled": ["RemoveDuplicates"]}}, "filter.enabled[0]", "use balance", None),
        ({"balance": {"enabled": ["DefaultEvictor"]}}, "balance.enabled[0]", "use filter or preevictionfilter", None),
        ({"balance": {"enabled": ["RemoveDuplicate"]}}, "balance.enabled[0]", "not 'RemoveDuplicate'", "RemoveDuplicates"),
        ({"Balance": {"enabled": ["RemoveDuplicates"]}}, "Balance", "is not known here", "balance"),
        ({"balance": {"enable": ["RemoveDuplicates"]}}, "balance.enable", "is not known here", "enabled"),
        ({"balance": {"enabled": "RemoveDuplicates"}}, "balance.enabled", "must be a list, not 'RemoveDuplicates'", None),
        ({"balance": {"enabled": [1]}}, "balance.enabled[0]", "must be a string, not 1", None),
        ({"balance": ["RemoveDuplicates"]}, "balance", "must be a map, not ['RemoveDuplicates']", None),
        ({"preEvictionFilter": {}, "preevictionfilter": {}}, "preEvictionFilter", "which is given too", None),
    ],
)
def test_what_stands_wrongly_under_plugins(plugins: Any, path: str, expected: str, nearest: str | None) -> None:
    """Names, types and places under plugins are checked one by one."""
    document = a_policy(a_profile("RemoveDuplicates"))
    document["profiles"][0]["plugins"] = plugins
    found = mistakes_in(document)
    assert found.keys() == {f"{PLUGINS}.{path}"}
    (mistake,) = found.values()
    assert mistake.expected.endswith(expected)
    assert mistake.nearest == nearest


def test_an_enabled_plugin_without_an_entry_is_a_mistake() -> None:
    """Upstream refuses it, and so do we; the evictor alone may be left out."""
    document = a_policy(a_profile("RemoveDuplicates"))
    document["profiles"][0]["pluginConfig"] = []
    (mistake,) = mistakes_in(document).values()
    assert mistake.path == f"{PLUGINS}.balance.enabled[0]"
    assert mistake.expected == "RemoveDuplicates is enabled and has no entry in pluginConfig"


@pytest.mark.parametrize("spelling", ["preEvictionFilter", "preevictionfilter", "filter"])
def test_both_spellings_of_the_pre_eviction_filter_are_accepted(spelling: str) -> None:
    """The documented spelling and the one in the code mean the same; the evictor may be named there."""
    document = a_policy(a_profile("RemoveDuplicates"))
    document["profiles"][0]["plugins"][spelling] = {"enabled": ["DefaultEvictor"]}
    assert loaded(document).warnings == ()


@pytest.mark.parametrize(
    ("plugins", "warned"),
    [
        ({"presort": {"enabled": ["X"]}}, "presort"),
        ({"sort": {"enabled": ["X"]}}, "sort"),
        ({"deschedule": {"disabled": ["*"]}}, "deschedule.disabled"),
    ],
)
def test_sections_without_effect_are_warned_of(plugins: Any, warned: str) -> None:
    """What upstream parses and never uses is accepted, and said to have no effect."""
    document = a_policy(a_profile("RemoveDuplicates"))
    document["profiles"][0]["plugins"] |= plugins
    (warning,) = loaded(document).warnings
    assert warning.startswith(f"{PLUGINS}.{warned}: has no effect")


def test_a_configured_plugin_that_is_not_enabled_is_warned_of() -> None:
    """A strategy that was only configured does nothing, and the user hears of it."""
    document = a_policy(a_profile("RemoveDuplicates"))
    document["profiles"][0]["pluginConfig"].append({"name": "RemoveFailedPods"})
    (warning,) = loaded(document).warnings
    assert warning.startswith("profiles[0].pluginConfig[1]: RemoveFailedPods is configured and not enabled")


def test_a_plugin_that_is_enabled_twice_runs_once() -> None:
    """The second time has no effect, and is warned of."""
    document = a_policy(a_profile("RemoveDuplicates"))
    document["profiles"][0]["plugins"]["balance"]["enabled"] *= 2
    read = loaded(document)
    assert [use.name for _, use in read.policy.uses()] == ["RemoveDuplicates"]
    assert len(read.warnings) == 1


@pytest.mark.parametrize(
    ("entry", "path", "nearest"),
    [
        ({"name": "LowNodeUtilisation"}, "name", "LowNodeUtilization"),
        ({"args": {}}, "name", None),
        ({"name": 3}, "name", None),
        ({"name": "RemoveFailedPods", "arg": {}}, "arg", "args"),
        ({"name": "RemoveFailedPods", "args": []}, "args", None),
        ({"name": "RemoveDuplicates"}, "name", None),
    ],
    ids=["misspelt", "nameless", "number", "unknown key", "args of the wrong type", "twice"],
)
def test_what_stands_wrongly_in_plugin_config(entry: Any, path: str, nearest: str | None) -> None:
    """Each entry of pluginConfig names one plugin, once."""
    document = a_policy(a_profile("RemoveDuplicates"))
    document["profiles"][0]["pluginConfig"].append(entry)
    found = mistakes_in(document)
    assert found.keys() == {f"profiles[0].pluginConfig[1].{path}"}
    assert found[f"profiles[0].pluginConfig[1].{path}"].nearest == nearest


def test_profiles_have_names_of_their_own() -> None:
    """Two profiles of one name could not be told apart in metrics."""
    found = mistakes_in(a_policy(a_profile("RemoveDuplicates"), a_profile("PodLifeTime")))
    assert found.keys() == {"profiles[1].name"}


def test_a_profile_without_a_name_gets_one() -> None:
    """Upstream accepts it, and so do we, with a warning."""
    profile = a_profile("RemoveDuplicates")
    del profile["name"]
    read = loaded(a_policy(profile))
    assert read.policy.profiles[0].name == "profile-1"
    assert len(read.warnings) == 1


def test_every_mistake_is_reported_at_once() -> None:
    """One look at a policy finds what is wrong on every level of it."""
    document = a_policy(
        a_profile(
            "LowNodeUtilization",
            evictor={"nodeFit": "yes", "minReplica": 2},
            LowNodeUtilization={"thresholds": {"Pods": 101}, "targetThresholds": {}, "numberOfNodes": -1},
        ),
        a_profile("RemoveDuplicates"),
        maxNoOfPodsToEvictTotl=1,
        gracePeriodSeconds="x",
    )
    assert set(mistakes_in(document)) == {
        "maxNoOfPodsToEvictTotl",
        "gracePeriodSeconds",
        "profiles[0].pluginConfig[0].args.nodeFit",
        "profiles[0].pluginConfig[0].args.minReplica",
        "profiles[0].pluginConfig[1].args.thresholds.Pods",
        "profiles[0].pluginConfig[1].args.targetThresholds",
        "profiles[0].pluginConfig[1].args.numberOfNodes",
        "profiles[1].name",
    }


@pytest.mark.parametrize(
    ("providers", "paths"),
    [
        ([{"source": "KubernetesMetrics"}], set()),
        ([{"source": "Prometheus", "prometheus": {"url": "http://prometheus:9090"}}], set()),
        ([{"source": "Prometheus"}], {"metricsProviders[0]"}),
        ([{"source": "Prometheus", "prometheus": {}}], {"metricsProviders[0].prometheus.url"}),
        ([{"source": "Prometheus", "prometheus": {"url": ""}}], {"metricsProviders[0].prometheus.url"}),
        ([{"source": "Prometheus", "prometheus": {"url": "http://x:y"}}], {"metricsProviders[0].prometheus.url"}),
        ([{"source": "prometheus"}], {"metricsProviders[0].source"}),
        ([{}], {"metricsProviders[0].source"}),
        ([{"source": "KubernetesMetrics"}, {"source": "KubernetesMetrics"}], {"metricsProviders[1].source"}),
        ({"source": "KubernetesMetrics"}, {"metricsProviders"}),
        (
            [
                {
                    "source": "Prometheus",
                    "prometheus": {"url": "http://p", "authToken": {"secretReference": {"name": "t", "namespace": ""}}},
                }
            ],
            {"metricsProviders[0].prometheus.authToken.secretReference.namespace"},
        ),
    ],
)
def test_metrics_providers_are_checked_in_full(providers: Any, paths: set[str]) -> None:
    """Sources of real load are read and checked, though nothing uses them yet."""
    assert set(mistakes_in(a_policy(metricsProviders=providers))) == paths


def test_the_old_metrics_collector_becomes_a_provider() -> None:
    """metricsCollector.enabled stands for a KubernetesMetrics provider, and contradicts one that is written out."""
    old = loaded(a_policy(metricsCollector={"enabled": True}))
    new = loaded(a_policy(metricsProviders=[{"source": "KubernetesMetrics"}]))
    assert old.policy == new.policy
    assert loaded(a_policy(metricsCollector={"enabled": False})).policy.metrics_providers == ()
    both = a_policy(metricsCollector={"enabled": True}, metricsProviders=[{"source": "KubernetesMetrics"}])
    assert set(mistakes_in(both)) == {"metricsCollector.enabled"}


@pytest.mark.parametrize("metrics", [{"source": "KubernetesMetrics"}, {"metricsServer": True}])
def test_a_policy_that_asks_for_real_load_is_refused_in_one_sentence(metrics: Any) -> None:
    """Requests are never silently taken for load."""
    args = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}, "metricsUtilization": metrics}
    found = mistakes_in(a_policy(a_profile("LowNodeUtilization", LowNodeUtilization=args)))
    assert found.keys() == {"profiles[0].pluginConfig[0].args.metricsUtilization"}
    assert next(iter(found.values())).expected.startswith("real load is not supported yet")


def test_load_that_is_not_asked_for_is_no_mistake() -> None:
    """An empty metricsUtilization means requests, as upstream has it."""
    args = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}, "metricsUtilization": {}}
    assert not mistakes_in(a_policy(a_profile("LowNodeUtilization", LowNodeUtilization=args)))
