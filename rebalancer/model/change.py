"""What a list-and-watch of one kind reports: values that travel from the API server's side to the cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Listed:
    """The whole truth about one kind at one version: what is not in it does not exist.

    objects: parsed values of ``rebalancer.model``. version: the resource version of the list.
    """

    kind: str
    objects: Sequence[Any]
    version: str


@dataclass(frozen=True, slots=True)
class Changed:
    """One object was added or modified. value: what it is now, parsed. version: its resource version."""

    kind: str
    value: Any
    version: str = ""


@dataclass(frozen=True, slots=True)
class Removed:
    """One object is gone, or has become unreadable.

    namespace: empty for kinds without one. uid: may be empty. version: of the change.
    """

    kind: str
    namespace: str
    name: str
    uid: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Nothing changed up to this version; the connection is alive."""

    kind: str
    version: str


@dataclass(frozen=True, slots=True)
class Connected:
    """The server took up (or took up again) the stream of changes."""

    kind: str


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The stream of changes broke. reason: in words."""

    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The kind cannot be read: RBAC forbids it, or the server does not have it. Tried again now and then. reason: in words."""

    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """One object is malformed and was left out. problem: which one and why, in words."""

    kind: str
    problem: str


Report: TypeAlias = Listed | Changed | Removed | Bookmark | Connected | Disconnected | Unavailable | Skipped
