"""The HTTP skin: aiohttp on loopback around ``answering``, watch streams, and injected faults.

Whether an answer is right is decided elsewhere; here are sockets, chunks, timeouts and cut connections only.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from aiohttp import web

from rebalancer.sim.answering import Front, OpenWatch
from rebalancer.sim.faults import Fault, Faults, Trouble, answer_of
from rebalancer.sim.problems import expired
from rebalancer.sim.requests import Answer, Request
from rebalancer.sim.streams import error_line, line

_MAX_BODY_BYTES = 3 * 1024 * 1024
_MIN_WATCH_SECONDS = 1800.0
_BOOKMARK_SECONDS = 60.0


class Server:
    """Serves one cluster on a loopback port.

    port: 0 for any free one; after ``start`` the one that is used. bookmark_seconds: between bookmarks of a quiet watch.
    """

    def __init__(
        self,
        front: Front,
        faults: Faults,
        source: random.Random,
        port: int = 0,
        bookmark_seconds: float = _BOOKMARK_SECONDS,
    ) -> None:
        self._front = front
        self._faults = faults
        self._source = source
        self._runner: web.AppRunner | None = None
        self._streams: set[OpenWatch] = set()
        self._bookmark_seconds = bookmark_seconds
        self.stopping = asyncio.Event()
        self.port = port

    @property
    def url(self) -> str:
        """Where clients connect to."""
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Begin to listen. Raises OSError if the port is taken."""
        app = web.Application(client_max_size=_MAX_BODY_BYTES)
        app.router.add_route("*", "/{path:.*}", self._respond)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, keepalive_timeout=75)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self._front.paths.address = f"127.0.0.1:{self.port}"

    async def stop(self) -> None:
        """Close every connection and stop to listen."""
        self.stopping.set()
        self.drop_watches()
        if self._runner is not None:
            await asyncio.sleep(0)
            await self._runner.cleanup()
            self._runner = None
            await asyncio.sleep(0)

    def drop_watches(self) -> None:
        """End every open watch, as a restart does."""
        for opened in tuple(self._streams):
            if opened.watch is not None:
                opened.watch.close()

    async def _respond(self, http: web.Request) -> web.StreamResponse:
        path, token = split_token(http.path)
        request = Request(
            method=http.method,
            path=path,
            query=dict(http.query),
            body=await http.read(),
            content_type=http.headers.get("Content-Type", ""),
            accept=http.headers.get("Accept", ""),
            authorization=http.headers.get("Authorization", "") or token,
            user_agent=http.headers.get("User-Agent", ""),
            impersonated_user=http.headers.get("Impersonate-User", ""),
            impersonated_groups=tuple(http.headers.getall("Impersonate-Group", ())),
        )
        await self._faults.connected()
        watching = http.query.get("watch", "") in {"1", "true", "True"}
        fault = self._faults.met_by(request, watching)
        if fault is not None:
            spoilt = await self._spoil(http, fault, watching)
            if spoilt is not None:
                return spoilt
        answer = self._front.answer(request)
        if isinstance(answer, OpenWatch):
            return await self._stream(http, answer, fault)
        if fault is not None and fault.trouble is Trouble.CUT_LINE:
            return await self._cut(http, answer)
        return _plain(answer)

    async def _spoil(self, http: web.Request, fault: Fault, watching: bool) -> web.StreamResponse | None:
        answer = answer_of(fault)
        if answer is not None:
            return _plain(answer)
        if fault.trouble is Trouble.SLOW:
            await asyncio.sleep(fault.delay_seconds)
        elif fault.trouble is Trouble.RESET:
            _abort(http)
            return web.Response(status=500)
        elif fault.trouble is Trouble.SILENT and not watching:
            await self.stopping.wait()
            _abort(http)
        return None

    async def _cut(self, http: web.Request, answer: Answer) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers={"Content-Type": answer.content_type})
        response.content_length = len(answer.body)
        await response.prepare(http)
        await response.write(answer.body[: len(answer.body) // 2])
        _abort(http)
        return response

    async def _stream(self, http: web.Request, opened: OpenWatch, fault: Fault | None) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        watch = opened.watch
        if watch is None:
            await response.prepare(http)
            if opened.problem is not None:
                await response.write(error_line(opened.problem))
            return response
        self._streams.add(opened)
        try:
            await response.prepare(http)
            await _Pump(self, http, response, opened, fault).run(self._timeout(opened))
        except (ConnectionError, asyncio.CancelledError):
            if http.transport is not None and not http.transport.is_closing():
                raise
        finally:
            watch.close()
            self._streams.discard(opened)
        return response

    def _timeout(self, opened: OpenWatch) -> float:
        asked = opened.options.timeout_seconds
        return asked if asked is not None else _MIN_WATCH_SECONDS * (1 + self._source.random())

    def now_line(self, opened: OpenWatch) -> Callable[..., bytes]:
        """Return how changes of a watch are written."""
        clock = self._front.registry.clock
        return lambda change: line(opened, change, clock())

    @property
    def bookmark_seconds(self) -> float:
        """Seconds between bookmarks."""
        return self._bookmark_seconds

    async def connected(self) -> None:
        """Return once something may be sent."""
        await self._faults.connected()


class _Pump:
    """Writes the changes of one watch to one connection until its time is up."""

    def __init__(
        self, server: Server, http: web.Request, response: web.StreamResponse, opened: OpenWatch, fault: Fault | None
    ) -> None:
        self._server = server
        self._http = http
        self._response = response
        self._opened = opened
        self._fault = fault
        self._written = 0

    async def run(self, timeout_seconds: float) -> None:
        """Write until the timeout, the watch's end or a fault."""
        watch = self._opened.watch
        assert watch is not None
        encode = self._server.now_line(self._opened)
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout_seconds
        next_bookmark = loop.time() + self._server.bookmark_seconds
        while True:
            until = min(end, next_bookmark) if self._opened.options.bookmarks else end
            try:
                async with asyncio.timeout_at(until):
                    await watch.wait()
            except TimeoutError:
                if loop.time() >= end:
                    if self._opened.options.bookmarks:
                        watch.bookmark()
                        await self._write([encode(change) for change in watch.take()])
                    return
                watch.bookmark()
                next_bookmark = loop.time() + self._server.bookmark_seconds
            changes = watch.take()
            if not await self._write([encode(change) for change in changes]):
                return
            if watch.closed and not changes:
                return

    async def _write(self, lines: list[bytes]) -> bool:
        await self._server.connected()
        fault = self._fault
        if fault is None:
            await self._response.write(b"".join(lines))
            return True
        for text in lines:
            if self._written >= fault.after_lines:
                if fault.trouble is Trouble.SILENT:
                    await self._server.stopping.wait()
                    return False
                if fault.trouble is Trouble.CUT_LINE:
                    await self._response.write(text[: len(text) // 2])
                    _abort(self._http)
                    return False
                if fault.trouble is Trouble.GONE_IN_STREAM:
                    await self._response.write(error_line(expired("too old resource version: 1 (2)")))
                    return False
            await self._response.write(text)
            self._written += 1
        return True


def split_token(path: str) -> tuple[str, str]:
    """Return the path of a request and the Authorization that its beginning ``/as/<token>`` stands for, if it has one.

    kubectl sends no token over plain HTTP, so a kubeconfig for loopback carries it in the server's address.
    """
    if not path.startswith("/as/"):
        return path, ""
    token, _, rest = path.removeprefix("/as/").partition("/")
    return f"/{rest}", f"Bearer {token}"


def _plain(answer: Answer) -> web.Response:
    headers = {"Content-Type": answer.content_type, **answer.headers}
    return web.Response(status=answer.status, body=answer.body, headers=headers)


def _abort(http: web.Request) -> None:
    if isinstance(http.transport, asyncio.Transport):
        http.transport.abort()
