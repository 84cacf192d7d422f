"""Environment variables to settings: the names checked, every mistake reported at once.

pydantic-settings ignores a variable whose name is misspelt, so names are checked here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError
from pydantic_settings import EnvSettingsSource

from rebalancer.errors import Mistake, PolicyError, SettingsError
from rebalancer.parse.arguments import mistakes_of
from rebalancer.parse.spelling import nearest_name
from rebalancer.policy import from_environment, is_policy_variable
from rebalancer.policy.environment import STRATEGIES
from rebalancer.settings.groups import (
    PREFIX,
    CapSettings,
    ClusterSettings,
    EvictionSettings,
    Group,
    LeaseSettings,
    ModeSettings,
    PauseSettings,
    PolicySettings,
    ServingSettings,
    TriggerSettings,
    WatchSettings,
)

_SOURCE = "environment"
# https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
_SERVICE_LINK = re.compile(
    r"REBALANCER_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_SERVICE_ADDRESS = re.compile(r"(tcp|udp|sctp)://\S+")


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, one group per subject."""

    mode: ModeSettings = field(default_factory=ModeSettings)
    policy: PolicySettings = field(default_factory=PolicySettings)
    triggers: TriggerSettings = field(default_factory=TriggerSettings)
    caps: CapSettings = field(default_factory=CapSettings)
    evictions: EvictionSettings = field(default_factory=EvictionSettings)
    pauses: PauseSettings = field(default_factory=PauseSettings)
    lease: LeaseSettings = field(default_factory=LeaseSettings)
    watch: WatchSettings = field(default_factory=WatchSettings)
    serving: ServingSettings = field(default_factory=ServingSettings)
    cluster: ClusterSettings = field(default_factory=ClusterSettings)


GROUPS: Mapping[str, type[Group]] = {
    "mode": ModeSettings,
    "policy": PolicySettings,
    "triggers": TriggerSettings,
    "caps": CapSettings,
    "evictions": EvictionSettings,
    "pauses": PauseSettings,
    "lease": LeaseSettings,
    "watch": WatchSettings,
    "serving": ServingSettings,
    "cluster": ClusterSettings,
}
"""The group of each subject; the same subjects as the fields of Settings."""


class _Given(EnvSettingsSource):
    """Reads the variables that it is given, and no others."""

    def __init__(self, group: type[Group], environ: Mapping[str, str]) -> None:
        self._environ = environ
        super().__init__(group)

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return {name.lower(): value for name, value in self._environ.items() if value.strip()}


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return PREFIX + name.upper()


def setting_names() -> tuple[str, ...]:
    """Return the environment variable of every setting."""
    return tuple(variable(name) for group in GROUPS.values() for name in group.model_fields)


def load_settings(environ: Mapping[str, str]) -> Settings:
    """Return the settings that the variables give; an empty variable counts as not set.

    Raises SettingsError with every mistake at once: names that are no setting, wrong values, values that contradict each
    other, and mistakes in a policy that is made of variables.
    """
    mistakes = list(_unknown_names(environ))
    known = set(setting_names())
    given = {name: value for name, value in environ.items() if name in known}
    groups: dict[str, Any] = {}
    wrong: set[str] = set()
    for subject, group in GROUPS.items():
        values = _Given(group, given)()
        try:
            groups[subject] = group.model_validate(values)
        except ValidationError as error:
            found = {str(item["loc"][0]) for item in error.errors(include_url=False)}
            wrong |= found
            mistakes += mistakes_of(error, "", {name: variable(name) for name in group.model_fields})
            groups[subject] = group.model_validate({name: value for name, value in values.items() if name not in found})
    settings = Settings(**groups)
    mistakes += [
        Mistake(variable(names[0]), expected)
        for names, broken, expected in _contradictions()
        if not wrong & set(names) and broken(settings)
    ]
    try:
        policy = from_environment(environ)
    except PolicyError as error:
        mistakes += error.mistakes
    else:
        if policy is not None and settings.policy.policy_file is not None:
            both = "must not be set beside REBALANCER_STRATEGIES and its fellows: a policy has one source"
            mistakes.append(Mistake(variable("policy_file"), both))
    if mistakes:
        raise SettingsError(_SOURCE, mistakes)
    return settings


def _unknown_names(environ: Mapping[str, str]) -> Iterator[Mistake]:
    """Yield a mistake for each variable of ours that nobody reads."""
    names = [name.removeprefix(PREFIX) for name in setting_names()]
    for name, value in sorted(environ.items()):
        if not name.startswith(PREFIX) or is_policy_variable(name) or name.removeprefix(PREFIX) in names:
            continue
        if _SERVICE_LINK.fullmatch(name) or (name.endswith("_PORT") and _SERVICE_ADDRESS.fullmatch(value)):
            continue
        near = nearest_name(name.removeprefix(PREFIX), (*names, STRATEGIES.removeprefix(PREFIX)))
        yield Mistake(name, "is not a setting", PREFIX + near if near else None)


def _contradictions() -> tuple[tuple[tuple[str, ...], Callable[[Settings], bool], str], ...]:
    """Return what must not be: the settings concerned, whether it is so, and what would be right."""
    return (
        (
            ("debounce_maximum_seconds", "debounce_quiet_seconds"),
            lambda given: given.triggers.debounce_maximum_seconds < given.triggers.debounce_quiet_seconds,
            "must be at least REBALANCER_DEBOUNCE_QUIET_SECONDS",
        ),
        (
            ("cooldown_maximum_seconds", "cooldown_seconds"),
            lambda given: given.evictions.cooldown_maximum_seconds < given.evictions.cooldown_seconds,
            "must be at least REBALANCER_COOLDOWN_SECONDS",
        ),
        (
            ("lease_renew_seconds", "lease_duration_seconds"),
            lambda given: given.lease.lease_renew_seconds >= given.lease.lease_duration_seconds,
            "must be less than REBALANCER_LEASE_DURATION_SECONDS, or two replicas could work at once",
        ),
        (
            ("lease_retry_seconds", "lease_renew_seconds"),
            lambda given: given.lease.lease_retry_seconds >= given.lease.lease_renew_seconds,
            "must be less than REBALANCER_LEASE_RENEW_SECONDS, or one failed attempt would lose the lease",
        ),
        (
            ("eviction_timeout_seconds", "lease_renew_seconds", "lease_duration_seconds"),
            lambda given: (
                given.lease.leader_election
                and given.evictions.eviction_timeout_seconds + given.lease.lease_retry_seconds
                >= given.lease.lease_duration_seconds
            ),
            "with REBALANCER_LEASE_RETRY_SECONDS must be less than REBALANCER_LEASE_DURATION_SECONDS, or no request could start",
        ),
    )
