"""Every exception of the project, in one tree.

RebalancerError
├── InputError          the user's input is wrong: settings, policy, dump. Exit code 2, nothing is evicted
│   ├── SettingsError   an environment variable or a combination of them
│   ├── PolicyError     a DeschedulerPolicy document
│   └── DumpError       an object dump that cannot be read at all
├── ParseError          one Kubernetes object is malformed: reported and skipped, the rest goes on
│   ├── QuantityError
│   └── SelectorError
├── KubeError           the API server could not be used (raised in ``kube/`` only)
│   ├── KubeUnavailable   no answer, or an answer that invites a retry
│   ├── KubeForbidden     RBAC: names the resource and the verb
│   ├── KubeConfigError   no usable configuration for reaching a cluster
│   └── WatchExpired      410: the version is gone, list again
├── LeaseLost           leadership ended: whatever is going on stops
└── BrokenInvariant     a bug: crash loudly

Expected replies of the API server (an eviction held by a budget, say) are values, not exceptions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class RebalancerError(Exception):
    """The root of everything that this project raises on purpose."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong in the user's input.

    path: where, in the notation of the input (``profiles[0].pluginConfig[1].args.thresholds.Pods``, ``REBALANCER_TICK_SECONDS``).
    expected: what would have been right, as a sentence without a full stop.
    nearest: the valid name that comes nearest to the one given, or None.
    """

    path: str
    expected: str
    nearest: str | None = None

    def __str__(self) -> str:
        hint = f" (did you mean {self.nearest!r}?)" if self.nearest else ""
        return f"{self.path}: {self.expected}{hint}"


class InputError(RebalancerError):
    """The user's input is wrong; carries every mistake that was found, not only the first."""

    def __init__(self, source: str, mistakes: Sequence[Mistake]) -> None:
        self.source = source
        self.mistakes = tuple(mistakes)
        lines = "\n".join(f"  {mistake}" for mistake in self.mistakes)
        count = "1 mistake" if len(self.mistakes) == 1 else f"{len(self.mistakes)} mistakes"
        super().__init__(f"{source}: {count}\n{lines}")


class SettingsError(InputError):
    """An environment variable, or a combination of them, is wrong."""


class PolicyError(InputError):
    """A DeschedulerPolicy document is wrong."""


class DumpError(InputError):
    """A dump of objects cannot be read."""


class ParseError(RebalancerError):
    """One Kubernetes object is malformed. The message names the field."""


class QuantityError(ParseError):
    """A resource quantity that the API server would reject."""


class SelectorError(ParseError):
    """A label selector that the API server would reject."""


class KubeError(RebalancerError):
    """The API server could not be used."""


class KubeUnavailable(KubeError):
    """No answer, or an answer that invites a retry.

    retry_after_seconds: what the server asked for, None where it asked for nothing.
    """

    def __init__(self, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class KubeForbidden(KubeError):
    """RBAC refused a request.

    verb, resource: what was refused, as a Role would name it (``list``, ``poddisruptionbudgets.policy``).
    """

    def __init__(self, message: str, verb: str, resource: str) -> None:
        super().__init__(message)
        self.verb = verb
        self.resource = resource


class KubeConfigError(KubeError):
    """There is no usable configuration for reaching a cluster."""


class WatchExpired(KubeError):
    """The resource version is gone from the server's history (410)."""


class LeaseLost(RebalancerError):
    """Leadership ended; whatever is going on stops."""


class BrokenInvariant(RebalancerError):
    """A bug in this project. Never caught: a crash is safer than a wrong eviction."""
