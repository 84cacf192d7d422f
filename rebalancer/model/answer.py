"""What the API server said to one eviction: expected replies are values, not exceptions.

Sources: https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/ and
https://github.com/kubernetes/kubernetes/blob/v1.36.0/pkg/registry/core/pod/storage/eviction.go
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Accepted:
    """The pod will go (or, in a server-side dry run, would have gone)."""

    message: str = ""


@dataclass(frozen=True, slots=True)
class InBackground:
    """Somebody else carries the eviction out (``request-evict-only``): it counts against the caps until it has ended."""

    message: str = ""


@dataclass(frozen=True, slots=True)
class Gone:
    """There is no such pod any more, or its whole namespace is going."""

    message: str = ""


@dataclass(frozen=True, slots=True)
class Replaced:
    """Another pod has the name now: the UID precondition did not hold."""

    message: str = ""


@dataclass(frozen=True, slots=True)
class HeldByBudget:
    """A PodDisruptionBudget does not allow it now. retry_after_seconds: what the server asked for, None where it did not."""

    message: str = ""
    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Throttled:
    """Nothing happened: the server wants fewer requests, or could not be reached at all. Slow everything down."""

    message: str = ""
    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class BudgetForbidden:
    """A PodDisruptionBudget is in a state in which the server refuses to spend it. Retry later."""

    message: str = ""


@dataclass(frozen=True, slots=True)
class Forbidden:
    """RBAC, an admission policy or the credentials refuse it. Asking again does not help."""

    message: str = ""


@dataclass(frozen=True, slots=True)
class Invalid:
    """The server does not accept the request itself."""

    message: str = ""


@dataclass(frozen=True, slots=True)
class Unsupported:
    """The server cannot do it: two budgets select the pod, or it knows no evictions. Not again in this run."""

    message: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Sent, but without a clear reply: counts as accepted until the watch says otherwise."""

    message: str = ""


Answer: TypeAlias = (
    Accepted
    | InBackground
    | Gone
    | Replaced
    | HeldByBudget
    | Throttled
    | BudgetForbidden
    | Forbidden
    | Invalid
    | Unsupported
    | Unknown
)
