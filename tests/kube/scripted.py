"""An API server that says what a test tells it to, on a loopback socket, and notes what it was asked."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from rebalancer.kube.config import Access
from rebalancer.kube.credentials import Credentials, Fixed
from rebalancer.kube.transport import Transport

CLOSED = web.AppKey("closed", asyncio.Event)

Answering = Callable[[web.Request], Awaitable[web.StreamResponse]]


def status(code: int, reason: str = "", message: str = "", **details: Any) -> dict[str, Any]:
    """A Status body."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message}
    return body | ({"details": details} if details else {})


def reply(body: Any, code: int = 200, **headers: str) -> Answering:
    """Answer with a JSON body (or with a text as it is)."""

    async def answer(_: web.Request) -> web.StreamResponse:
        """Answer once."""
        text, kind = (body, "text/html") if isinstance(body, str) else (json.dumps(body), "application/json")
        return web.Response(text=text, status=code, content_type=kind, headers=headers)

    return answer


def stream(*parts: Any, then: str = "close", code: int = 200) -> Answering:
    """Answer with lines; a bytes part is sent as it is. then: ``close``, ``cut`` (the socket) or ``hang``."""

    async def answer(request: web.Request) -> web.StreamResponse:
        """Answer with a stream."""
        response = web.StreamResponse(status=code, headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for part in parts:
            await response.write(part if isinstance(part, bytes) else json.dumps(part).encode() + b"\n")
        if then == "hang":
            await request.app[CLOSED].wait()
        if then == "cut":
            assert request.transport is not None
            request.transport.abort()
        return response

    return answer


class ScriptedServer:
    """Plays answers in order; when they run out, requests hang until the server is closed."""

    def __init__(self) -> None:
        """Start without a script."""
        self.script: deque[Answering] = deque()
        self.asked: list[web.Request] = []
        self.bodies: list[Any] = []
        self.arrived = asyncio.Event()
        self.url = ""

    def plays(self, *answers: Answering) -> None:
        """Append answers."""
        self.script.extend(answers)

    async def asked_times(self, count: int) -> None:
        """Wait until so many requests have arrived."""
        async with asyncio.timeout(10):
            while len(self.asked) < count:
                self.arrived.clear()
                await self.arrived.wait()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        self.asked.append(request)
        self.bodies.append(json.loads(raw) if raw else None)
        self.arrived.set()
        if not self.script:
            await request.app[CLOSED].wait()
            return web.Response(status=503)
        return await self.script.popleft()(request)

    @asynccontextmanager
    async def serving(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[ScriptedServer]:
        """Listen on loopback."""
        runner = web.AppRunner(app := web.Application(), shutdown_timeout=1)
        app[CLOSED] = asyncio.Event()
        app.router.add_route("*", "/{path:.*}", self._answer)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        port = runner.addresses[0][1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
        try:
            yield self
        finally:
            app[CLOSED].set()
            await runner.cleanup()


@asynccontextmanager
async def a_server(
    *answers: Answering, credentials: Credentials | None = None
) -> AsyncIterator[tuple[ScriptedServer, Transport]]:
    """A scripted server and a transport to it."""
    server = ScriptedServer()
    server.plays(*answers)
    async with server.serving():
        transport = Transport(Access(server=server.url, credentials=credentials or Fixed(None), source="a test"))
        try:
            yield server, transport
        finally:
            await transport.close()


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self, now: float = 1000.0) -> None:
        """Start at a moment."""
        self.now = now

    def __call__(self) -> float:
        """Return the moment."""
        return self.now
