"""What the web part shows, as callables: it knows neither the cache nor the controller."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry


@dataclass(frozen=True, slots=True)
class Faces:
    """Everything that can be asked.

    stuck: loops that have not turned in time, in words; empty when the process is alive.
    unready: what is not synced or not fresh, in words; empty when ready.
    status: the JSON document of ``GET /status``.
    trigger: asks for a run; the argument says who asked.
    may: says whether a bearer token may use a verb (``get``, ``post``) on a path (TokenReview and SubjectAccessReview).
    registry: the metrics. metrics_need_token: they are not open to everybody.
    """

    stuck: Callable[[], tuple[str, ...]]
    unready: Callable[[], tuple[str, ...]]
    status: Callable[[], Mapping[str, Any]]
    trigger: Callable[[str], None]
    may: Callable[[str, str, str], Awaitable[bool]]
    registry: CollectorRegistry
    metrics_need_token: bool = False
