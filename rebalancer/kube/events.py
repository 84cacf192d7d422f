"""Kubernetes Events about what was moved: queued, aggregated, sent beside everything else, never in the way.

events.k8s.io/v1 where the server has it, the core API otherwise. The shape is upstream's, for those who look for it.
https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from rebalancer.errors import KubeError, KubeForbidden, KubeUnavailable
from rebalancer.kube.backoff import Backoff
from rebalancer.kube.moment import micro_time, whole_time
from rebalancer.kube.reply import Reply
from rebalancer.kube.transport import Transport

CONTROLLER = "sigs.k8s.io.descheduler"
ACTION = "Descheduled"
SERIES_SECONDS = 360.0
"""Equal events within this time become one series, as the server's own components do it."""

_NOTE_BYTES = 1024
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Regarding:
    """The object an event is about."""

    kind: str
    api_version: str
    namespace: str
    name: str
    uid: str

    def reference(self) -> dict[str, str]:
        """Return the JSON form of the reference."""
        fields = {
            "kind": self.kind,
            "apiVersion": self.api_version,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
        }
        return {key: value for key, value in fields.items() if value}


@dataclass(frozen=True, slots=True)
class Note:
    """One event to publish.

    reason: in CamelCase, upstream puts the strategy here. text: what happened, cut after 1,024 bytes. warning: instead of Normal.
    """

    regarding: Regarding
    reason: str
    text: str
    warning: bool = False
    action: str = ACTION


@dataclass(slots=True)
class _Series:
    name: str
    first_at: float
    last_at: float
    count: int = 1
    sent: int = 0


class EventSink:
    """Publishes events in the background.

    capacity: how many may wait; beyond it the oldest is dropped. instance: this process's name.
    namespace: where events about objects without one go.
    wall_clock: seconds since the epoch. random: for names and jitter.
    refused: told once for each way in which the server refuses an event for good, in words.
    sent, dropped: counters.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        random: Random,
        instance: str,
        controller: str = CONTROLLER,
        namespace: str = "default",
        capacity: int = 1000,
        timeout_seconds: float = 5.0,
        wall_clock: Callable[[], float] = time.time,
        refused: Callable[[str], None] = lambda words: None,
    ) -> None:
        self.sent = 0
        self.dropped = 0
        self._transport = transport
        self._random = random
        self._instance = instance[:128]
        self._controller = controller
        self._namespace = namespace
        self._capacity = capacity
        self._timeout_seconds = timeout_seconds
        self._wall_clock = wall_clock
        self._refused = refused
        self._refusals: set[str] = set()
        self._core = False
        self._series: OrderedDict[Note, _Series] = OrderedDict()
        self._waiting: OrderedDict[Note, None] = OrderedDict()
        self._in_hand = 0
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._backoff = Backoff(0.5, 10.0, random)

    def post(self, note: Note) -> None:
        """Queue an event; never blocks, never fails. An equal one that waits, or went out lately, is counted up instead."""
        now = self._wall_clock()
        series = self._series.get(note)
        if series is not None and now - series.last_at < SERIES_SECONDS:
            series.count, series.last_at = series.count + 1, now
        else:
            suffix = f"{self._random.getrandbits(64):016x}"
            self._series[note] = _Series(f"{note.regarding.name[:200]}.{suffix}", now, now)
        self._series.move_to_end(note)
        self._waiting.setdefault(note, None)
        while len(self._waiting) > self._capacity:
            self._waiting.popitem(last=False)
            self.dropped += 1
        while len(self._series) > 2 * self._capacity:
            self._series.popitem(last=False)
        self._idle.clear()
        self._work.set()

    async def run(self) -> None:
        """Send what is queued until cancelled."""
        while True:
            await self._work.wait()
            while self._waiting:
                note, _ = self._waiting.popitem(last=False)
                self._in_hand = 1
                await self._deliver(note)
                self._in_hand = 0
            self._work.clear()
            self._idle.set()

    async def flush(self, deadline_seconds: float) -> int:
        """Wait until everything is sent, at most so long; return how many were left. ``run`` has to be running."""
        with suppress(TimeoutError):
            async with asyncio.timeout(deadline_seconds):
                await self._idle.wait()
        return len(self._waiting) + self._in_hand

    async def _deliver(self, note: Note) -> None:
        series = self._series.get(note)
        if series is None:
            return
        for _ in range(_ATTEMPTS):
            try:
                reply = await self._send(note, series)
                if reply.status in (404, 409) and series.sent:
                    # The first of the series has expired; begin another one.
                    series.sent, series.name = 0, f"{note.regarding.name[:200]}.{self._random.getrandbits(64):016x}"
                    reply = await self._send(note, series)
                if reply.status == 404 and not self._core and reply.detail is None:
                    self._core = True
                    reply = await self._send(note, series)
                reply.require("patch" if series.sent else "create", "events" if self._core else "events.events.k8s.io")
            except KubeUnavailable as error:
                await asyncio.sleep(self._backoff.next_seconds(error.retry_after_seconds))
            except KubeError as error:
                self._tell_once(error)
                break
            else:
                self._backoff.reset()
                series.sent = series.count
                self.sent += 1
                return
        self.dropped += 1

    def _tell_once(self, error: KubeError) -> None:
        """Tell of a refusal, unless the same was told before: a missing permission is one finding, not one per event."""
        key = f"{error.verb} {error.resource}" if isinstance(error, KubeForbidden) else str(error)
        if key not in self._refusals and len(self._refusals) < self._capacity:
            self._refusals.add(key)
            self._refused(str(error))

    async def _send(self, note: Note, series: _Series) -> Reply:
        namespace = note.regarding.namespace or self._namespace
        group = "/api/v1" if self._core else "/apis/events.k8s.io/v1"
        path = f"{group}/namespaces/{namespace}/events"
        if series.sent:
            repeated: dict[str, Any] = (
                {"count": series.count, "lastTimestamp": whole_time(series.last_at)}
                if self._core
                else {"series": {"count": max(2, series.count), "lastObservedTime": micro_time(series.last_at)}}
            )
            return await self._transport.request(
                "PATCH",
                f"{path}/{series.name}",
                body=repeated,
                content_type="application/merge-patch+json",
                timeout_seconds=self._timeout_seconds,
            )
        body = self._core_body(note, series, namespace) if self._core else self._body(note, series, namespace)
        return await self._transport.request("POST", path, body=body, timeout_seconds=self._timeout_seconds)

    def _body(self, note: Note, series: _Series, namespace: str) -> dict[str, Any]:
        body: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": series.name, "namespace": namespace},
            "eventTime": micro_time(series.first_at),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": note.action,
            "reason": note.reason[:128] or "NotSet",
            "regarding": note.regarding.reference(),
            "note": _cut(note.text),
            "type": "Warning" if note.warning else "Normal",
        }
        if series.count > 1:
            body["series"] = {"count": series.count, "lastObservedTime": micro_time(series.last_at)}
        return body

    def _core_body(self, note: Note, series: _Series, namespace: str) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": series.name, "namespace": namespace},
            "involvedObject": note.regarding.reference(),
            "reason": note.reason[:128] or "NotSet",
            "message": _cut(note.text),
            "type": "Warning" if note.warning else "Normal",
            "action": note.action,
            "source": {"component": self._controller},
            "reportingComponent": self._controller,
            "reportingInstance": self._instance,
            "firstTimestamp": whole_time(series.first_at),
            "lastTimestamp": whole_time(series.last_at),
            "count": series.count,
        }


def _cut(text: str) -> str:
    """Shorten to what the server accepts, in whole characters."""
    raw = text.encode()
    return text if len(raw) <= _NOTE_BYTES else raw[: _NOTE_BYTES - 3].decode(errors="ignore") + "…"
