"""Values of variables: how each kind is read, what is refused, what contradicts, all at once."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.errors import SettingsError
from rebalancer.model.cap import Cap
from rebalancer.settings import Settings, load_settings


def given(**variables: str) -> Settings:
    """Return the settings that these variables give."""
    return load_settings({f"REBALANCER_{name}": value for name, value in variables.items()})


def mistakes_in(**variables: str) -> dict[str, str]:
    """Return what was expected, by the names of the variables without their prefix."""
    with pytest.raises(SettingsError) as caught:
        given(**variables)
    return {mistake.path.removeprefix("REBALANCER_"): mistake.expected for mistake in caught.value.mistakes}


@pytest.mark.parametrize(
    ("name", "text", "group", "value"),
    [
        ("TICK_SECONDS", "7.5", "triggers", 7.5),
        ("NODE_SETTLE_SECONDS", "0", "triggers", 0.0),
        ("DEBOUNCE_QUIET_SECONDS", "0", "triggers", 0.0),
        ("DRY_RUN", "plan", "mode", "plan"),
        ("DRY_RUN", "server", "mode", "server"),
        ("DRY_RUN", "false", "mode", "off"),
        ("PLACEMENT", "fit", "mode", "fit"),
        ("PLACEMENT", "false", "mode", "off"),
        ("PLACEMENT", "off", "mode", "off"),
        ("SINGLE_REPLICA", "surge", "mode", "surge"),
        ("PROTECTED_NAMESPACES", "a, b", "mode", ("a", "b")),
        ("PROTECTED_NAMESPACES", '["a"]', "mode", ("a",)),
        ("PROTECTED_NAMESPACES", "[]", "mode", ()),
        ("CAP_NODE", "0", "caps", Cap(number=0)),
        ("CAP_TOTAL", "10%", "caps", Cap(percent=10)),
        ("CAP_TOTAL", "none", "caps", None),
        ("EVICTIONS_PER_MINUTE", "none", "caps", None),
        ("EVICTIONS_PER_MINUTE", "0", "caps", 0),
        ("MAX_IN_FLIGHT", "1", "caps", 1),
        ("LEADER_ELECTION", "false", "lease", False),
        ("EVENTS", "no", "evictions", False),
        ("LISTEN_PORT", "0", "serving", 0),
        ("LISTEN_PORT", "65535", "serving", 65535),
        ("LOG_LEVEL", "WARNING", "serving", "warning"),
        ("PAUSE_PENDING_PODS", "5%", "pauses", Cap(percent=5)),
        ("POLICY_FILE", "/policy.yaml", "policy", "/policy.yaml"),
        ("KUBECONFIG", "/config", "cluster", "/config"),
    ],
)
def test_each_kind_of_value_is_read(name: str, text: str, group: str, value: Any) -> None:
    """Texts become what they stand for."""
    assert getattr(getattr(given(**{name: text}), group), name.lower()) == value


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_value_counts_as_not_set(text: str) -> None:
    """A chart may render nothing for what the user left out; no limit is written as none."""
    assert given(CAP_TOTAL=text, TICK_SECONDS=text, DRY_RUN=text, WINDOWS=text, PROTECTED_NAMESPACES=text) == Settings()


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("TICK_SECONDS", "0", "must be more than 0, not '0'"),
        ("TICK_SECONDS", "-1", "must be more than 0, not '-1'"),
        ("TICK_SECONDS", "5m", "must be a number, not '5m'"),
        ("TICK_SECONDS", "nan", "must be a finite number, not 'nan'"),
        ("TICK_SECONDS", "inf", "must be a finite number, not 'inf'"),
        ("NODE_SETTLE_SECONDS", "-0.1", "must be at least 0, not '-0.1'"),
        ("DRY_RUN", "true", "must be one of off, plan, server, not 'true'"),
        ("SINGLE_REPLICA", "maybe", "must be one of auto, evict, skip, surge, not 'maybe'"),
        ("CAP_NODE", "-1", "must be a number such as 20 or a percentage such as 10%, not '-1' (or none)"),
        ("CAP_NODE", "1.5", "must be a number such as 20 or a percentage such as 10%, not '1.5' (or none)"),
        ("EVICTIONS_PER_MINUTE", "-1", "must be at least 0, not '-1'"),
        ("EVICTIONS_PER_MINUTE", "10%", "must be a whole number, not '10%'"),
        ("MAX_IN_FLIGHT", "0", "must be at least 1, not '0'"),
        ("MAX_IN_FLIGHT_PER_WORKLOAD", "0", "must be at least 1, not '0'"),
        ("LISTEN_PORT", "65536", "must be at most 65535, not '65536'"),
        ("LISTEN_PORT", "-1", "must be at least 0, not '-1'"),
        ("LEADER_ELECTION", "perhaps", "must be true or false, not 'perhaps'"),
        ("LOG_FORMAT", "xml", "must be one of auto, json, console, not 'xml'"),
        ("PROTECTED_NAMESPACES", "[a", "must be JSON, not '[a'"),
        ("WINDOWS", "22-06", "must be JSON, not '22-06'"),
        ("WINDOWS", "{}", "must be a list, not {}"),
    ],
)
def test_wrong_values_are_refused(name: str, text: str, expected: str) -> None:
    """Below, above, absurd: each is answered with what would have been right."""
    found = mistakes_in(**{name: text})
    assert list(found) == [name]
    assert found[name].startswith(expected) or name == "WINDOWS"


def test_windows_are_read() -> None:
    """A start, a length in either form, a zone and profiles."""
    text = (
        '[{"cron": "0 22 * * 1-5", "duration": "6h", "timeZone": "Europe/Berlin"},'
        ' {"cron": "30 1 * * *", "durationSeconds": 90, "profiles": ["quiet"]}]'
    )
    first, second = given(WINDOWS=text, BLACKOUTS=text).pauses.windows
    assert (first.cron, first.length_seconds, first.time_zone, first.profiles) == ("0 22 * * 1-5", 21600.0, "Europe/Berlin", ())
    assert (second.cron, second.length_seconds, second.time_zone, second.profiles) == ("30 1 * * *", 90.0, "UTC", ("quiet",))


@pytest.mark.parametrize(
    ("window", "path", "word"),
    [
        ('{"duration": "1h"}', "WINDOWS[0].cron", "required"),
        ('{"cron": "0 22 * *", "duration": "1h"}', "WINDOWS[0].cron", "five cron fields"),
        ('{"cron": "0 25 * * *", "duration": "1h"}', "WINDOWS[0].cron", "five cron fields"),
        ('{"cron": "0 22 * * *"}', "WINDOWS[0]", "exactly one of"),
        ('{"cron": "0 22 * * *", "duration": "1h", "durationSeconds": 3600}', "WINDOWS[0]", "exactly one of"),
        ('{"cron": "0 22 * * *", "duration": "0s"}', "WINDOWS[0]", "more than 0"),
        ('{"cron": "0 22 * * *", "durationSeconds": 0}', "WINDOWS[0].durationSeconds", "more than 0"),
        ('{"cron": "0 22 * * *", "duration": "1 hour"}', "WINDOWS[0].duration", "not a duration"),
        ('{"cron": "0 22 * * *", "duration": "1h", "timeZone": "Mars/North"}', "WINDOWS[0].timeZone", "IANA"),
        ('{"cron": "0 22 * * *", "duration": "1h", "timezone": "UTC"}', "WINDOWS[0].timezone", "not known"),
    ],
)
def test_windows_that_make_no_sense_are_refused(window: str, path: str, word: str) -> None:
    """A window that would never or always be open by mistake stops the start."""
    found = mistakes_in(WINDOWS=f"[{window}]")
    assert list(found) == [path]
    assert word in found[path]


@pytest.mark.parametrize(
    ("fine", "wrong", "path"),
    [
        (
            {"DEBOUNCE_QUIET_SECONDS": "5", "DEBOUNCE_MAXIMUM_SECONDS": "5"},
            {"DEBOUNCE_QUIET_SECONDS": "5.1", "DEBOUNCE_MAXIMUM_SECONDS": "5"},
            "DEBOUNCE_MAXIMUM_SECONDS",
        ),
        (
            {"COOLDOWN_SECONDS": "5", "COOLDOWN_MAXIMUM_SECONDS": "5"},
            {"COOLDOWN_SECONDS": "6", "COOLDOWN_MAXIMUM_SECONDS": "5"},
            "COOLDOWN_MAXIMUM_SECONDS",
        ),
        ({"LEASE_RENEW_SECONDS": "14.9"}, {"LEASE_RENEW_SECONDS": "15"}, "LEASE_RENEW_SECONDS"),
        ({"LEASE_RETRY_SECONDS": "9.9"}, {"LEASE_RETRY_SECONDS": "10"}, "LEASE_RETRY_SECONDS"),
        ({"EVICTION_TIMEOUT_SECONDS": "12.9"}, {"EVICTION_TIMEOUT_SECONDS": "13"}, "EVICTION_TIMEOUT_SECONDS"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(fine: dict[str, str], wrong: dict[str, str], path: str) -> None:
    """At the limit it starts, beyond it does not."""
    given(**fine)
    assert list(mistakes_in(**wrong)) == [path]


def test_a_long_timeout_is_fine_without_a_lease() -> None:
    """Nobody waits for a lease that is not held."""
    assert given(EVICTION_TIMEOUT_SECONDS="30", LEADER_ELECTION="false").evictions.eviction_timeout_seconds == 30


def test_every_mistake_is_reported_at_once() -> None:
    """Names, values, contradictions and the policy's own variables, in one error that names each."""
    found = mistakes_in(
        TIKC_SECONDS="5",
        TICK_SECONDS="x",
        CAP_NODE="x",
        DEBOUNCE_QUIET_SECONDS="100",
        STRATEGIES="RemoveDuplicate",
        POLICY__SINGLE_NODE="yes",
    )
    assert set(found) == {
        "TIKC_SECONDS",
        "TICK_SECONDS",
        "CAP_NODE",
        "DEBOUNCE_MAXIMUM_SECONDS",
        "STRATEGIES",
        "POLICY__SINGLE_NODE",
    }


def test_a_contradiction_is_not_made_up_from_a_wrong_value() -> None:
    """Where one side cannot be read, nothing is said of the two together."""
    assert set(mistakes_in(DEBOUNCE_QUIET_SECONDS="100", DEBOUNCE_MAXIMUM_SECONDS="x")) == {"DEBOUNCE_MAXIMUM_SECONDS"}


def test_settings_do_not_change() -> None:
    """The value that was read at the start is the value of the whole life."""
    settings: Any = given()
    with pytest.raises(AttributeError):
        settings.mode = None
    with pytest.raises(ValueError, match="frozen"):
        settings.mode.dry_run = "plan"


def test_the_processs_own_environment_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the given mapping counts."""
    monkeypatch.setenv("REBALANCER_TICK_SECONDS", "7")
    monkeypatch.setenv("REBALANCER_NONSENSE", "7")
    assert given() == Settings()
    assert Settings().triggers.tick_seconds == 300.0
