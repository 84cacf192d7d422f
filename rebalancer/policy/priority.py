"""Priority classes that a policy names, looked up once before it is used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rebalancer.eligibility.arguments import CRITICAL_PRIORITY, PriorityThreshold
from rebalancer.errors import Mistake, PolicyError
from rebalancer.parse.spelling import nearest_name
from rebalancer.policy.policy import Policy


def named_priority_classes(policy: Policy) -> frozenset[str]:
    """Return the names of the priority classes that have to be looked up."""
    return frozenset(filter(None, (profile.evictor.priority_threshold.name for profile in policy.profiles)))


def resolve_priority_classes(policy: Policy, values: Mapping[str, int], *, source: str = "policy") -> Policy:
    """Return the policy with the value of each named priority class in the place of its name.

    values: the priority classes that exist. Raises PolicyError for each name among them that is missing, and for each
    class whose value is above the highest threshold, 2000000000.
    """
    mistakes: list[Mistake] = []
    profiles = []
    for place, profile in enumerate(policy.profiles):
        name = profile.evictor.priority_threshold.name
        path = f"profiles[{place}].DefaultEvictor.priorityThreshold.name"
        if not name:
            profiles.append(profile)
        elif name not in values:
            mistakes.append(Mistake(path, f"there is no priority class {name!r}", nearest_name(name, values)))
        elif values[name] > CRITICAL_PRIORITY:
            above = f"the priority class {name!r} has the value {values[name]}, above the limit {CRITICAL_PRIORITY}"
            mistakes.append(Mistake(path, above))
        else:
            threshold = PriorityThreshold(value=values[name])
            evictor = profile.evictor.model_copy(update={"priority_threshold": threshold})
            profiles.append(replace(profile, evictor=evictor))
    if mistakes:
        raise PolicyError(source, mistakes)
    return replace(policy, profiles=tuple(profiles))
