"""A way to the embedded cluster without sockets: same requests, same answers, virtual time, and faults of one client's own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from rebalancer.errors import KubeUnavailable
from rebalancer.kube.reply import Reply
from rebalancer.kube.transport import NotSent
from rebalancer.sim.answering import Front, OpenWatch
from rebalancer.sim.faults import Faults, Trouble, answer_of
from rebalancer.sim.requests import Request
from rebalancer.sim.streams import error_line, line


@dataclass
class Weather:
    """What goes wrong between one client and the cluster.

    cut: no connection can be made, streams break. loses_replies: writes arrive, their replies do not. deaf: streams hear nothing.
    latency: of a request and of each line of a stream, in seconds.
    """

    cut: bool = False
    loses_replies: bool = False
    deaf: bool = False
    latency_seconds: float = 0.005
    watch_delay_seconds: float = 0.0
    met: dict[str, int] = field(default_factory=dict)

    def count(self, what: str) -> None:
        """Note that a fault was met."""
        self.met[what] = self.met.get(what, 0) + 1


class DirectTransport:
    """Speaks to the front of an embedded cluster."""

    def __init__(self, front: Front, faults: Faults, token: str = "admin-token") -> None:
        """Connect."""
        self.front = front
        self.faults = faults
        self.weather = Weather()
        self.access = SimpleNamespace(server="direct://embedded")
        self._token = token
        self.closed = False

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
        """Send one request."""
        weather = self.weather
        if weather.cut:
            weather.count("cut")
            await asyncio.sleep(min(timeout_seconds, 1.0))
            raise NotSent("cut off")
        await asyncio.sleep(weather.latency_seconds)
        request = self._request(method, path, query, body, content_type)
        fault = self.faults.met_by(request, False)
        if fault is not None:
            weather.count(str(fault.trouble))
            spoilt = answer_of(fault)
            if spoilt is not None:
                return Reply(spoilt.status, {name.lower(): value for name, value in spoilt.headers.items()}, spoilt.body)
            if fault.trouble is Trouble.SLOW:
                await asyncio.sleep(fault.delay_seconds)
            elif fault.trouble is Trouble.RESET:
                raise KubeUnavailable("connection reset")
            elif fault.trouble is Trouble.SILENT:
                self.front.answer(request)
                await asyncio.sleep(timeout_seconds)
                raise KubeUnavailable("no reply in time")
        answer = self.front.answer(request)
        assert not isinstance(answer, OpenWatch)
        if weather.loses_replies and method != "GET":
            weather.count("lost reply")
            await asyncio.sleep(timeout_seconds)
            raise KubeUnavailable("no reply in time")
        await asyncio.sleep(weather.latency_seconds)
        headers = {"content-type": answer.content_type, **{name.lower(): value for name, value in answer.headers.items()}}
        return Reply(answer.status, headers, answer.body)

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str | int], *, verb: str, resource: str, silent_seconds: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a watch."""
        if self.weather.cut:
            self.weather.count("cut")
            await asyncio.sleep(1.0)
            raise NotSent("cut off")
        await asyncio.sleep(self.weather.latency_seconds)
        request = self._request("GET", path, query, None, "")
        fault = self.faults.met_by(request, True)
        if fault is not None:
            self.weather.count(f"watch {fault.trouble}")
            spoilt = answer_of(fault)
            if spoilt is not None:
                Reply(spoilt.status, {}, spoilt.body).require(verb, resource)
        answer = self.front.answer(request)
        if not isinstance(answer, OpenWatch):
            Reply(answer.status, {}, answer.body).require(verb, resource)
            raise KubeUnavailable("no watch")
        lines = self._lines(answer, silent_seconds, fault is not None)
        try:
            yield lines
        finally:
            await lines.aclose()
            if answer.watch is not None:
                answer.watch.close()

    async def _lines(self, opened: OpenWatch, silent_seconds: float, spoilt: bool) -> Any:
        if opened.watch is None:
            assert opened.problem is not None
            yield error_line(opened.problem)
            return
        loop = asyncio.get_running_loop()
        watch, weather = opened.watch, self.weather
        end = loop.time() + (opened.options.timeout_seconds or 1800.0)
        bookmark_at = loop.time() + 60.0
        heard_at = loop.time()
        while loop.time() < end:
            if weather.cut or spoilt:
                weather.count("broken stream")
                raise KubeUnavailable("the connection broke")
            if weather.deaf:
                weather.count("deaf")
                await asyncio.sleep(1.0)
                if loop.time() - heard_at >= silent_seconds:
                    raise KubeUnavailable("silent")
                continue
            try:
                async with asyncio.timeout(max(0.001, min(end, bookmark_at, loop.time() + 5.0) - loop.time())):
                    await watch.wait()
            except TimeoutError:
                if opened.options.bookmarks and loop.time() >= min(bookmark_at, end):
                    watch.bookmark()
                    bookmark_at = loop.time() + 60.0
            if weather.deaf or weather.cut:
                continue
            for change in watch.take():
                await asyncio.sleep(weather.watch_delay_seconds)
                heard_at = loop.time()
                yield line(opened, change, self.front.registry.clock())
            if watch.closed:
                return

    async def close(self) -> None:
        """Close."""
        self.closed = True

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
