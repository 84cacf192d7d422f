"""The HTTP application: ``/healthz``, ``/readyz``, ``/metrics``, ``/status``, ``POST /-/run``.

Probes are open to everybody. Status and the manual trigger answer on loopback; elsewhere they want a bearer token.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import orjson
from aiohttp import web
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from rebalancer.web.faces import Faces

_FACES: web.AppKey[Faces] = web.AppKey("faces", Faces)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def application(faces: Faces) -> web.Application:
    """Return the application that shows these faces."""
    app = web.Application()
    app[_FACES] = faces
    app.router.add_get("/healthz", _healthz)
    app.router.add_get("/livez", _healthz)
    app.router.add_get("/readyz", _readyz)
    app.router.add_get("/metrics", _guarded(_metrics) if faces.metrics_need_token else _metrics)
    app.router.add_get("/status", _guarded(_status))
    app.router.add_post("/-/run", _guarded(_run))
    return app


async def _healthz(request: web.Request) -> web.Response:
    return _verdict(request.app[_FACES].stuck())


async def _readyz(request: web.Request) -> web.Response:
    return _verdict(request.app[_FACES].unready())


async def _metrics(request: web.Request) -> web.Response:
    text = generate_latest(request.app[_FACES].registry)
    return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})


async def _status(request: web.Request) -> web.Response:
    return _json(request.app[_FACES].status())


async def _run(request: web.Request) -> web.Response:
    request.app[_FACES].trigger(f"asked for over HTTP by {request.remote or 'somebody'}")
    return _json({"accepted": True}, status=202)


def _verdict(problems: tuple[str, ...]) -> web.Response:
    if problems:
        return web.Response(status=503, text="\n".join(problems) + "\n")
    return web.Response(text="ok\n")


def _json(document: Any, status: int = 200) -> web.Response:
    return web.Response(
        body=orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS), status=status, content_type="application/json"
    )


def _guarded(handler: Handler) -> Handler:
    return partial(_only_allowed, handler)


async def _only_allowed(handler: Handler, request: web.Request) -> web.StreamResponse:
    """Let a request through that comes over loopback, or brings a token that may do this."""
    if _is_loopback(request.remote) and _is_local_name(request.host):
        return await handler(request)
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise web.HTTPUnauthorized(headers={"WWW-Authenticate": "Bearer"}, text="a bearer token is needed here\n")
    if not await request.app[_FACES].may(token.strip(), request.method.lower(), request.path):
        raise web.HTTPForbidden(text=f"this token may not {request.method.lower()} {request.path}\n")
    return await handler(request)


def _is_loopback(address: str | None) -> bool:
    try:
        return address is not None and ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _is_local_name(host: str) -> bool:
    """Say whether the Host header names this machine itself: a page in a browser may send requests here under another name."""
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    return name == "localhost" or _is_loopback(name.strip("[]"))
