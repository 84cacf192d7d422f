"""The policy that the settings point at: a file or variables, one of the two."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rebalancer.errors import Mistake, PolicyError, SettingsError
from rebalancer.policy import Loaded, from_environment, load
from rebalancer.settings.environment import Settings, variable

_SOURCE = "environment"


def load_policy(settings: Settings, environ: Mapping[str, str], *, read: Callable[[str], bytes]) -> Loaded:
    """Return the policy of the file that the settings name, or of the variables.

    read: returns the bytes of a file, or raises OSError. Raises SettingsError where there is neither file nor variables,
    and PolicyError where the policy is wrong or its file cannot be read.
    """
    path = settings.policy.policy_file
    if path is None:
        made = from_environment(environ)
        if made is None:
            neither = "must be set, or REBALANCER_STRATEGIES: without a policy there is nothing to do"
            raise SettingsError(_SOURCE, [Mistake(variable("policy_file"), neither)])
        return made
    try:
        text = read(path)
    except OSError as error:
        raise PolicyError(path, [Mistake("document", f"cannot be read: {error.strerror or error}")]) from error
    return load(text, source=path)
