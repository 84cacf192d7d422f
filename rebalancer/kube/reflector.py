"""List and watch one kind for ever: what the API server has becomes reports for a sink.

Enters: pages of a list, or a streamed list (``sendInitialEvents``), then watch events. Leaves: values of
``rebalancer.model.change``, in order. The rules: https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import msgspec

from rebalancer.errors import KubeError, KubeForbidden, KubeUnavailable, ParseError, WatchExpired
from rebalancer.kube.backoff import Backoff
from rebalancer.kube.reply import decode_status
from rebalancer.kube.resources import Resource
from rebalancer.kube.transport import Lines, Transport
from rebalancer.model.change import Bookmark, Changed, Connected, Disconnected, Listed, Removed, Report, Skipped, Unavailable

Parse = Callable[[bytes | msgspec.Raw], Any]
Sink = Callable[[Report], Awaitable[None]]

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_SHORT_LIFE_SECONDS = 3.0
_HURRIED_SECONDS = 4.0

# What a parser may raise for an object that no API server should send.
_MALFORMED = (ParseError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True, slots=True)
class Times:
    """The reflector's patience, in seconds.

    silent: a watch without a byte for so long is given up and opened anew, well before the cache counts as stale.
    watch_shortest, watch_longest: how long the server is asked to keep a watch open (then credentials are shown again).
    request: for one page of a list. first_delay, longest_delay: between attempts. unreadable: between attempts to read a kind
    that is forbidden or missing. slice: longest stretch of parsing before the event loop gets its turn.
    """

    silent: float = 75.0
    watch_shortest: float = 300.0
    watch_longest: float = 600.0
    request: float = 60.0
    first_delay: float = 0.5
    longest_delay: float = 30.0
    unreadable: float = 60.0
    slice: float = 0.002


class _Metadata(msgspec.Struct, frozen=True, gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815 (the API's own name)
    annotations: dict[str, str] | None = None


class _Identified(msgspec.Struct, frozen=True, gc=False):
    metadata: _Metadata = _Metadata()


class _Event(msgspec.Struct, frozen=True, gc=False):
    type: str
    object: msgspec.Raw = msgspec.Raw()


class _ListMetadata(msgspec.Struct, frozen=True, gc=False, rename={"continue_": "continue"}):
    resourceVersion: str = ""  # noqa: N815 (the API's own name)
    continue_: str = ""


class _Page(msgspec.Struct, frozen=True, gc=False):
    metadata: _ListMetadata
    items: list[msgspec.Raw] | None = None


_IDENTIFIED = msgspec.json.Decoder(_Identified)
_EVENT = msgspec.json.Decoder(_Event)
_PAGE = msgspec.json.Decoder(_Page)
_VERSION_FIELD = b'"resourceVersion":"'
_METADATA_FIELD = b'"metadata":{'
_HEAD_BYTES = 700
_UNDECODABLE = (msgspec.MsgspecError, UnicodeDecodeError)


class Reflector:
    """Follows one kind.

    parse: one object's bytes to a value; what it raises makes that object a Skipped. sink: takes the reports, one after another.
    random: for jitter. page_size: objects per page of a list. streamed: ask for a streamed list first.
    """

    def __init__(
        self,
        transport: Transport,
        resource: Resource,
        parse: Parse,
        sink: Sink,
        *,
        random: Random,
        times: Times = Times(),
        page_size: int = 500,
        streamed: bool = True,
    ) -> None:
        self.resource = resource
        self.received = 0
        self._transport = transport
        self._parse = parse
        self._sink = sink
        self._random = random
        self._times = times
        self._page_size = page_size
        self._streamed = streamed
        self._backoff = Backoff(times.first_delay, times.longest_delay, random)
        self._version = ""
        self._turn_ends = 0.0
        self._cut: asyncio.Timeout | None = None
        self._lines: AsyncIterator[bytes] | None = None
        self._hurried = False

    async def run(self) -> None:
        """Follow until cancelled. Failures of the API server are reported and tried again; they never end it."""
        while True:
            delay_seconds = await self._attempt()
            await asyncio.sleep(delay_seconds)

    @property
    def backlog_bytes(self) -> int:
        """Return how much the open watch has received and not taken in yet."""
        return self._lines.waiting_bytes if isinstance(self._lines, Lines) else 0

    def refresh(self) -> None:
        """Open the watch anew, so that the server soon says up to which version nothing has changed.

        A watch that is to end after some seconds gets a bookmark shortly before; an open one only about once a minute. While
        nothing is open, or a list is being read, it is the next watch that will end soon.
        """
        self._hurried = True
        if self._cut is not None:
            self._cut.reschedule(asyncio.get_running_loop().time())

    async def _attempt(self) -> float:
        """Follow until something ends it; return how long to wait, in seconds."""
        kind = self.resource.kind
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            await self._follow()
        except WatchExpired as error:
            self._version = ""
            await self._sink(Disconnected(kind, str(error)))
        except KubeUnavailable as error:
            await self._sink(Disconnected(kind, str(error)))
            return self._backoff.next_seconds(error.retry_after_seconds)
        except KubeError as error:
            self._version = ""
            await self._sink(Unavailable(kind, str(error)))
            return self._times.unreadable * self._random.uniform(0.5, 1.5)
        else:
            await self._sink(Disconnected(kind, "the watch ended"))
        if self._hurried:
            return 0.0
        if loop.time() - started < _SHORT_LIFE_SECONDS:
            return self._backoff.next_seconds()
        self._backoff.reset()
        return 0.0

    async def _follow(self) -> None:
        """List if nothing is known, then watch until the server ends it."""
        version = self._version
        if not version and self._streamed:
            try:
                await self._watch("")
                return
            except (KubeForbidden, KubeUnavailable, WatchExpired):
                raise
            except KubeError:
                self._streamed = False  # the server does not know streamed lists
        if not version:
            await self._list()
            version = self._version
        await self._watch(version)

    async def _list(self) -> None:
        """Read all pages. Where a page's token expires, start again with larger pages."""
        limit = self._page_size
        while True:
            try:
                objects, version = await self._pages(limit)
                break
            except WatchExpired:
                limit *= 4
                await asyncio.sleep(self._backoff.next_seconds())
        await self._sink(Listed(self.resource.kind, objects, version))
        self._version = version

    async def _pages(self, limit: int) -> tuple[list[Any], str]:
        objects: list[Any] = []
        token = ""
        while True:
            query: dict[str, str | int] = {"limit": limit} | ({"continue": token} if token else {})
            reply = await self._transport.request("GET", self.resource.path, query=query, timeout_seconds=self._times.request)
            reply.require("list", self.resource.rbac_name)
            try:
                page = _PAGE.decode(reply.body)
            except _UNDECODABLE as error:
                raise KubeUnavailable(f"the list of {self.resource.rbac_name} is not a list: {error}") from error
            for raw in page.items or ():
                value = await self._parsed(raw)
                if value is not None:
                    objects.append(value)
                await self._give_way()
            token = page.metadata.continue_
            if not token:
                return objects, page.metadata.resourceVersion

    async def _watch(self, version: str) -> None:
        """Watch from a version; without one, ask for a streamed list before. Returns when the server ends the watch."""
        hurried, self._hurried = self._hurried, False
        # A list that begins now is new enough by itself, and may take its time.
        soon = hurried and bool(version)
        seconds = _HURRIED_SECONDS if soon else self._random.uniform(self._times.watch_shortest, self._times.watch_longest)
        query: dict[str, str | int] = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": int(seconds)}
        query |= (
            {"resourceVersion": version} if version else {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        )
        async with self._transport.stream(
            self.resource.path,
            query,
            verb="watch",
            resource=self.resource.rbac_name,
            silent_seconds=self._times.silent,
        ) as lines:
            self._lines = lines
            if not version:
                await self._initial(lines)
            await self._sink(Connected(self.resource.kind))
            if self._hurried:
                return
            try:
                async with asyncio.timeout(None) as cut:
                    self._cut = cut
                    async for line in lines:
                        await self._take(self._event(line))
                        await self._give_way()
            except TimeoutError:
                if not cut.expired():
                    raise
            finally:
                self._cut = None

    async def _initial(self, lines: AsyncIterator[bytes]) -> None:
        """Collect a streamed list; changes that the server lets through before its end are applied after it."""
        objects: list[Any] = []
        later: list[_Event] = []
        async for line in lines:
            event = self._event(line)
            if event.type == "ADDED" and not later:
                value = await self._parsed(event.object)
                if value is not None:
                    objects.append(value)
            elif event.type == "BOOKMARK":
                metadata = self._metadata(event)
                if (metadata.annotations or {}).get(INITIAL_EVENTS_END) == "true":
                    await self._sink(Listed(self.resource.kind, objects, metadata.resourceVersion))
                    for each in later:
                        await self._take(each)
                        await self._give_way()
                    self._version = metadata.resourceVersion
                    return
            else:
                later.append(event)
            await self._give_way()
        raise KubeUnavailable(f"the streamed list of {self.resource.rbac_name} ended before it was complete")

    def _event(self, line: bytes) -> _Event:
        """Decode a line; an ERROR in the stream is raised."""
        try:
            event = _EVENT.decode(line)
        except _UNDECODABLE as error:
            raise KubeUnavailable(f"the watch of {self.resource.rbac_name} sent something that is no event: {error}") from error
        if event.type == "ERROR":
            status = decode_status(event.object)
            words = status.message if status else bytes(event.object)[:200].decode(errors="replace")
            if status and (status.code == 410 or status.reason in ("Expired", "Gone")):
                raise WatchExpired(words)
            wait = status.details.retryAfterSeconds if status and status.details else None
            raise KubeUnavailable(f"the watch of {self.resource.rbac_name} failed: {words}", wait)
        return event

    def _metadata(self, event: _Event) -> _Metadata:
        try:
            return _IDENTIFIED.decode(event.object).metadata
        except _UNDECODABLE as error:
            raise KubeUnavailable(f"a {event.type} of {self.resource.rbac_name} cannot be read: {error}") from error

    async def _take(self, event: _Event) -> None:
        """Report one event."""
        kind = self.resource.kind
        self.received += 1
        version = _version_in(event.object)
        if event.type in ("ADDED", "MODIFIED"):
            value = await self._parsed(event.object)
            await (self._sink(Changed(kind, value, version)) if value is not None else self._remove(event, version))
        elif event.type == "DELETED":
            await self._remove(event, version)
        elif event.type == "BOOKMARK":
            version = self._metadata(event).resourceVersion
            await self._sink(Bookmark(kind, version))
        else:
            raise KubeUnavailable(f"the watch of {self.resource.rbac_name} sent an event of type {event.type!r}")
        self._version = version or self._version

    async def _remove(self, event: _Event, version: str) -> None:
        try:
            metadata = _IDENTIFIED.decode(event.object).metadata
        except _UNDECODABLE:
            return  # nobody can say which object this was, and it was reported as skipped
        await self._sink(Removed(self.resource.kind, metadata.namespace, metadata.name, metadata.uid, version))

    async def _parsed(self, raw: msgspec.Raw) -> Any | None:
        try:
            return self._parse(raw)
        except _MALFORMED as error:
            await self._sink(Skipped(self.resource.kind, str(error) or type(error).__name__))
            return None

    async def _give_way(self) -> None:
        """Let the event loop have its turn once a slice is used up."""
        now = time.perf_counter()
        if now >= self._turn_ends:
            await asyncio.sleep(0)
            self._turn_ends = time.perf_counter() + self._times.slice


def _version_in(raw: msgspec.Raw) -> str:
    """Return the resource version of an object; empty where it cannot be found.

    The API server writes the metadata first, so the first such field is the object's own; other orders are decoded.
    """
    head = bytes(memoryview(raw)[:_HEAD_BYTES])
    start, metadata = head.find(_VERSION_FIELD), head.find(_METADATA_FIELD)
    # Only where nothing but plain fields stands before it can it not be somebody else's.
    if 0 < metadata < start and head.count(b"{", 0, start) == 2:
        start += len(_VERSION_FIELD)
        end = head.find(b'"', start)
        if end > 0:
            return head[start:end].decode(errors="replace")
    try:
        return _IDENTIFIED.decode(raw).metadata.resourceVersion
    except _UNDECODABLE:
        return ""
