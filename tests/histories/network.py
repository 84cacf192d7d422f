"""One client's way to the embedded cluster without sockets: same requests, same answers, virtual time, weather of its own.

What is on the wire does not belong to the client: it arrives although the client was frozen or killed meanwhile.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Protocol

from rebalancer.errors import KubeUnavailable
from rebalancer.kube.reply import Reply
from rebalancer.kube.resources import RESOURCES
from rebalancer.kube.transport import NotSent
from rebalancer.sim.answering import Front, OpenWatch
from rebalancer.sim.faults import Fault, Faults, Trouble, answer_of
from rebalancer.sim.problems import expired
from rebalancer.sim.requests import Answer, Request
from rebalancer.sim.streams import error_line, line

_BOOKMARK_SECONDS = 60.0
_LISTS = frozenset(resource.path for resource in RESOURCES)
# Each watch is behind by as much as it likes; that of budgets by more than that of pods, which is the harder case.
_SLOWER_PATH, _SLOWER = "/poddisruptionbudgets", 4.0
_ANSWERING = frozenset(
    {
        Trouble.GONE,
        Trouble.THROTTLED,
        Trouble.INTERNAL,
        Trouble.BAD_GATEWAY,
        Trouble.UNAVAILABLE,
        Trouble.UNAUTHORIZED,
        Trouble.FORBIDDEN,
    }
)


class Audit(Protocol):
    """Who sees every request of one client."""

    def leaves(self, request: Request) -> Any:
        """See a request as its client sends it; what is returned comes back with ``arrives``."""

    def arrives(self, request: Request, mark: Any, answer: Callable[[Request], Answer | OpenWatch]) -> Answer | OpenWatch:
        """See a request as it reaches the server, and have it answered."""

    async def on_its_way(self, request: Request) -> None:
        """Let happen what happens while a request is on the wire."""


@dataclass
class Heard:
    """What came over the watch of one path. Times are of the loop.

    listed: a whole list had come. lists: how many were asked for, streamed or in pages.
    """

    listed: bool = False
    lists: int = 0
    connected: bool = False
    broken_at: float = 0.0
    heard_at: float = 0.0


@dataclass
class Weather:
    """What goes wrong between one client and the cluster.

    refused: no connection can be made, streams break. void: what is sent is lost and nothing comes back. deaf: streams bring
    nothing. replies_lost: requests arrive, their replies do not. lag_seconds: by which streams are behind.
    latency_seconds: of a request, each way.
    """

    refused: bool = False
    void: bool = False
    deaf: bool = False
    replies_lost: bool = False
    lag_seconds: float = 0.002
    latency_seconds: float = 0.003


class Line:
    """A transport that speaks to the front of an embedded cluster. count: is told of each fault that is met."""

    def __init__(
        self, front: Front, faults: Faults, audit: Audit, count: Callable[[str], None], token: str = "admin-token"
    ) -> None:
        """Connect. Has to be made outside of the client's process: what is on the wire is not of it."""
        self._front = front
        self._faults = faults
        self._audit = audit
        self._count = count
        self._token = token
        self._wire = contextvars.copy_context()
        self._streams: dict[_Stream, None] = {}
        self._audible = asyncio.Event()
        self._audible.set()
        self._sent: dict[asyncio.Task[Reply], None] = {}
        self.access = SimpleNamespace(server="direct://embedded")
        self.weather = Weather()
        self.heard: dict[str, Heard] = {}
        self.gone = False

    def change(self, **weather: Any) -> None:
        """Change the weather. Open streams notice."""
        for name, value in weather.items():
            setattr(self.weather, name, value)
        if self.weather.refused:
            self.break_streams()
        if self.weather.deaf or self.weather.void:
            self._audible.clear()
        else:
            self._audible.set()

    def break_streams(self) -> None:
        """Break every open stream in the middle."""
        for stream in tuple(self._streams):
            stream.break_off()

    async def request(
        self,
        method: str,
        path: str,
        *,
        timeout_seconds: float,
        query: Mapping[str, str | int] | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> Reply:
        """Send one request and return the reply. Raises KubeUnavailable, and NotSent where it cannot have arrived."""
        if self.gone:
            raise NotSent("the process is gone")
        request = self._request(method, path, query, body, content_type)
        if self.weather.refused:
            self._count("request: connection refused")
            await asyncio.sleep(0.01)
            raise NotSent("connection refused")
        mark = self._audit.leaves(request)
        sent = asyncio.get_running_loop().create_task(self._carry(request, mark), name="on the wire", context=self._wire.copy())
        self._sent[sent] = None
        sent.add_done_callback(self._arrived)
        try:
            async with asyncio.timeout(timeout_seconds):
                return await asyncio.shield(sent)
        except TimeoutError:
            raise KubeUnavailable("no reply in time") from None

    async def _carry(self, request: Request, mark: Any) -> Reply:
        weather = self.weather
        await asyncio.sleep(weather.latency_seconds)
        await self._audit.on_its_way(request)
        if weather.void:
            self._count("request: lost")
            return await self._nothing()
        fault = self._faults.met_by(request, False)
        if fault is not None:
            self._count(f"request: {fault.trouble}")
            if (spoilt := answer_of(fault)) is not None:
                return _reply(spoilt)
            if fault.trouble is Trouble.SLOW:
                await asyncio.sleep(fault.delay_seconds)
            elif fault.trouble is Trouble.SILENT:
                return await self._nothing()
            elif fault.trouble is Trouble.RESET:
                raise KubeUnavailable("connection reset by peer")
        if request.method == "GET" and request.path in _LISTS:
            self.heard.setdefault(request.path, Heard()).lists += 1
        answer = self._audit.arrives(request, mark, self._front.answer)
        assert isinstance(answer, Answer)
        if weather.void or weather.replies_lost or (fault is not None and fault.trouble is Trouble.CUT_LINE):
            self._count("request: reply lost")
            return await self._nothing()
        await asyncio.sleep(weather.latency_seconds)
        return _reply(answer)

    def _arrived(self, sent: asyncio.Task[Reply]) -> None:
        """Forget a request; nobody may wait for its reply any more."""
        self._sent.pop(sent, None)
        if not sent.cancelled():
            sent.exception()

    async def _nothing(self) -> Reply:
        await asyncio.sleep(120.0)
        raise KubeUnavailable("no reply")

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str | int], *, verb: str, resource: str, silent_seconds: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a watch. Raises what a real one raises."""
        weather = self.weather
        if self.gone or weather.refused:
            self._count("watch: connection refused")
            await asyncio.sleep(0.01)
            raise NotSent("connection refused")
        if weather.void:
            self._count("watch: no connection")
            await asyncio.sleep(10.0)
            raise NotSent("no connection in time")
        await asyncio.sleep(weather.latency_seconds)
        request = self._request("GET", path, query, None, "")
        fault = self._faults.met_by(request, True)
        if fault is not None:
            self._count(f"watch: {fault.trouble}")
            if (spoilt := answer_of(fault)) is not None:
                _reply(spoilt).require(verb, resource)
            if fault.trouble is Trouble.RESET:
                raise KubeUnavailable("connection reset by peer")
        answer = self._front.answer(request)
        if not isinstance(answer, OpenWatch):
            _reply(answer).require(verb, resource)
            raise KubeUnavailable("no watch")
        heard = self.heard.setdefault(path, Heard())
        heard.lists += bool(answer.options.initial)
        stream = _Stream(answer, self._front, heard, fault, _SLOWER if path.endswith(_SLOWER_PATH) else 1.0)
        self._streams[stream] = None
        try:
            async with aclosing(stream.lines(weather, self._audible, silent_seconds)) as lines:
                yield lines
        finally:
            self._streams.pop(stream, None)
            stream.close()
            heard.connected = False
            heard.broken_at = asyncio.get_running_loop().time()

    async def close(self) -> None:
        """Close: nothing can be sent any more."""
        self.gone = True

    async def bury(self) -> None:
        """Forget what is still on the wire."""
        self.gone = True
        for task in tuple(self._sent):
            task.cancel()
        await asyncio.gather(*self._sent, return_exceptions=True)
        self.break_streams()

    def _request(
        self, method: str, path: str, query: Mapping[str, str | int] | None, body: Mapping[str, Any] | None, content_type: str
    ) -> Request:
        return Request(
            method=method,
            path=path,
            query={key: str(value) for key, value in (query or {}).items()},
            body=json.dumps(body).encode() if body is not None else b"",
            content_type=content_type,
            accept="application/json",
            authorization=f"Bearer {self._token}",
            user_agent="rebalancer/test",
        )


def _reply(answer: Answer) -> Reply:
    headers = {"content-type": answer.content_type, **{name.lower(): value for name, value in answer.headers.items()}}
    return Reply(answer.status, headers, answer.body)


@dataclass(eq=False)
class _Stream:
    """One open watch, as its client sees it."""

    opened: OpenWatch
    front: Front
    heard: Heard
    fault: Fault | None
    slower: float
    broken: bool = field(default=False, init=False)

    def break_off(self) -> None:
        self.broken = True
        self.close()

    def close(self) -> None:
        if self.opened.watch is not None:
            self.opened.watch.close()

    async def lines(self, weather: Weather, audible: asyncio.Event, silent_seconds: float) -> AsyncGenerator[bytes, None]:
        watch = self.opened.watch
        if watch is None:
            assert self.opened.problem is not None
            yield error_line(self.opened.problem)
            return
        loop = asyncio.get_running_loop()
        self.heard.heard_at = loop.time()
        self.heard.connected = not self.opened.options.initial
        end = loop.time() + (self.opened.options.timeout_seconds or 1800.0)
        bookmark_at = loop.time() + _BOOKMARK_SECONDS
        while True:
            silent_at = self.heard.heard_at + silent_seconds
            try:
                async with asyncio.timeout_at(min(end, bookmark_at, silent_at) if audible.is_set() else silent_at):
                    await audible.wait()
                    await watch.wait()
            except TimeoutError:
                if loop.time() >= silent_at:
                    raise KubeUnavailable("silent for too long") from None
                if self.opened.options.bookmarks:
                    watch.bookmark()
                    bookmark_at = loop.time() + _BOOKMARK_SECONDS
            if self.broken:
                raise KubeUnavailable("the connection broke")
            if self.fault is not None and self.fault.trouble not in _ANSWERING:
                if self.fault.trouble is Trouble.GONE_IN_STREAM:
                    yield error_line(expired("too old resource version: 1 (2)"))
                    return
                raise KubeUnavailable("the connection broke")
            changes = watch.take()
            await asyncio.sleep(weather.lag_seconds * self.slower)
            for change in changes:
                self.heard.heard_at = loop.time()
                if change.initial_end:
                    self.heard.listed = self.heard.connected = True
                yield line(self.opened, change, self.front.registry.clock())
            if watch.closed or loop.time() >= end:
                return
