"""Names of variables: unknown ones stop the start, each with the nearest valid name; those of others are left alone."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rebalancer.errors import SettingsError
from rebalancer.policy import is_policy_variable, policy_variables
from rebalancer.settings import load_settings, setting_names

NAMES = setting_names()


def nearest_names(environ: dict[str, str]) -> dict[str, str | None]:
    """Return the mistakes in an environment by their paths, with the nearest names; none where it is right."""
    try:
        load_settings(environ)
    except SettingsError as error:
        return {mistake.path: mistake.nearest for mistake in error.mistakes}
    return {}


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("REBALANCER_TIKC_SECONDS", "REBALANCER_TICK_SECONDS"),
        ("REBALANCER_TICK", "REBALANCER_TICK_SECONDS"),
        ("REBALANCER_DRYRUN", "REBALANCER_DRY_RUN"),
        ("REBALANCER_POLICYFILE", "REBALANCER_POLICY_FILE"),
        ("REBALANCER_STRATEGYS", "REBALANCER_STRATEGIES"),
        ("REBALANCER_XYZ", None),
        ("REBALANCER_", None),
        ("REBALANCER_tick_seconds", "REBALANCER_TICK_SECONDS"),
    ],
)
def test_an_unknown_name_is_a_mistake_with_the_nearest(name: str, nearest: str | None) -> None:
    """A misspelt setting never silently leaves the default in force."""
    assert nearest_names({name: "5"}) == {name: nearest}


def test_an_unknown_name_is_a_mistake_even_where_it_is_empty() -> None:
    """A misspelt name is wrong whatever its value."""
    assert nearest_names({"REBALANCER_TIKC_SECONDS": ""}) == {"REBALANCER_TIKC_SECONDS": "REBALANCER_TICK_SECONDS"}


@given(name=st.sampled_from(NAMES), place=st.integers(min_value=0), letter=st.sampled_from("AEXZ_"), kind=st.sampled_from("did"))
def test_any_single_typo_is_noticed(name: str, place: int, letter: str, kind: str) -> None:
    """One letter dropped, doubled up or put in anywhere: the start is stopped and a valid name suggested."""
    prefix = len("REBALANCER_")
    at = prefix + place % (len(name) - prefix)
    typo = {"d": name[:at] + name[at + 1 :], "i": name[:at] + letter + name[at:]}[kind]
    assume(typo not in NAMES and not is_policy_variable(typo))
    found = nearest_names({typo: "1"})
    assert found.keys() == {typo}
    assert found[typo] is not None


@given(name=st.sampled_from(NAMES), place=st.integers(min_value=0))
def test_two_letters_that_changed_places_find_their_name(name: str, place: int) -> None:
    """The most frequent typo of all is answered with the name that was meant."""
    prefix = len("REBALANCER_")
    at = prefix + place % (len(name) - prefix - 1)
    typo = name[:at] + name[at + 1] + name[at] + name[at + 2 :]
    assume(typo not in NAMES and not is_policy_variable(typo))
    assert nearest_names({typo: "1"}) == {typo: name}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REBALANCER_SERVICE_HOST", "10.0.0.1"),
        ("REBALANCER_SERVICE_PORT", "8080"),
        ("REBALANCER_SERVICE_PORT_HTTP", "8080"),
        ("REBALANCER_PORT", "tcp://10.0.0.1:8080"),
        ("REBALANCER_PORT_8080_TCP", "tcp://10.0.0.1:8080"),
        ("REBALANCER_PORT_8080_TCP_ADDR", "10.0.0.1"),
        ("REBALANCER_METRICS_SERVICE_HOST", "10.0.0.1"),
        ("REBALANCER_METRICS_PORT", "tcp://10.0.0.1:8080"),
        ("rebalancer_tick_seconds", "x"),
        ("PATH", "/bin"),
        ("OTHER_TICK_SECONDS", "5"),
    ],
)
def test_variables_of_others_are_left_alone(name: str, value: str) -> None:
    """What Kubernetes sets for a Service of the same name, and what has another prefix, is none of ours."""
    assert load_settings({name: value}) == load_settings({})


def test_a_port_that_a_person_typed_is_a_mistake() -> None:
    """REBALANCER_PORT is passed over only where it is what Kubernetes sets."""
    assert nearest_names({"REBALANCER_PORT": "8080"}).keys() == {"REBALANCER_PORT"}


def test_no_setting_has_a_name_that_kubernetes_could_set() -> None:
    """A Service named rebalancer must never change a setting."""
    assert not [name for name in NAMES if name == "REBALANCER_PORT" or name.startswith("REBALANCER_SERVICE_")]


def test_names_are_unique_over_all_groups() -> None:
    """A variable belongs to one setting, and to no policy."""
    assert len(set(NAMES)) == len(NAMES)
    assert not set(NAMES) & set(policy_variables())
