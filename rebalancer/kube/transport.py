"""Requests to the API server: raw bytes in and out, on the client library's configuration and connections.

What the library lacks is added here: every request has a time limit, credentials and certificate authorities are renewed
while running, a 401 is tried once more with fresh credentials, watch lines may have any length, and a netrc file cannot
interfere. Failures to connect become KubeUnavailable; statuses stay values (``reply``).
"""

from __future__ import annotations

import ssl
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from contextlib import ExitStack, aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
from kubernetes_asyncio.client.configuration import Configuration
from kubernetes_asyncio.client.rest import RESTClientObject

from rebalancer import __version__
from rebalancer.errors import KubeConfigError, KubeUnavailable
from rebalancer.kube.config import Access, Pem
from rebalancer.kube.credentials import KeyPair
from rebalancer.kube.reply import Reply

MATERIAL_PERIOD_SECONDS = 60.0
"""How often the files of authorities and client certificates are compared with what is in use."""

CONNECT_SECONDS = 10.0
LONGEST_LINE_BYTES = 64 * 2**20
_READ_BUFFER_BYTES = 2**18

_UNSENT = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientProxyConnectionError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientConnectorCertificateError,
)

Material = tuple[bytes | None, bytes | None, bytes | None]
Query = Mapping[str, str | int]


class NotSent(KubeUnavailable):
    """No connection could be made: the request cannot have had an effect."""


class Transport:
    """Speaks to one API server.

    access: where it is, and who we are. clock: monotonic seconds.
    """

    def __init__(
        self, access: Access, *, user_agent: str = f"rebalancer/{__version__}", clock: Callable[[], float] = time.monotonic
    ):
        self.access = access
        self._user_agent = user_agent
        self._clock = clock
        self._client: _Client | None = None
        self._material: Material = (None, None, None)
        self._compared_at = float("-inf")

    async def request(
        self,
        method: str,
        path: str,
        *,
        timeout_seconds: float,
        query: Query | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> Reply:
        """Send one request and return the whole reply, whatever its status.

        Raises KubeUnavailable where there was no reply in time; NotSent where the request cannot even have arrived.
        """
        timeout = aiohttp.ClientTimeout(total=timeout_seconds, sock_connect=min(CONNECT_SECONDS, timeout_seconds))

        reply: Reply | None = None
        for _ in range(2):
            async with self._sent(method, path, query, body, content_type, timeout) as response:
                reply = Reply(response.status, _lowered(response.headers), await response.read())
            if reply.status != 401:
                break
            self.access.credentials.forget()
        assert reply is not None
        return reply

    @asynccontextmanager
    async def stream(
        self, path: str, query: Query, *, verb: str, resource: str, silent_seconds: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a stream of lines (a watch); the block is entered once the server has taken it up.

        silent_seconds: a connection without a byte for so long is given up.
        Raises, on entry and while iterating, what ``Reply.require`` and ``request`` raise. A line cut short is not given out.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=silent_seconds)
        for attempt in (1, 2):
            async with self._sent("GET", path, query, None, "application/json", timeout) as response:
                if response.status == 401 and attempt == 1:
                    self.access.credentials.forget()
                    continue
                if response.status != 200:
                    Reply(response.status, _lowered(response.headers), await response.read()).require(verb, resource)
                async with aclosing(Lines(response.content)) as lines:
                    yield lines
                return

    async def close(self) -> None:
        """Close every connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.rest.close()

    @asynccontextmanager
    async def _sent(
        self,
        method: str,
        path: str,
        query: Query | None,
        body: Mapping[str, Any] | None,
        content_type: str,
        timeout: aiohttp.ClientTimeout,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send, and give out the response before its body is read; failures while it is in use are translated too."""
        try:
            authorization = await self.access.credentials.authorization()
        except KubeConfigError as error:
            raise NotSent(str(error)) from error
        url = self.access.server + path + (f"?{urlencode(query)}" if query else "")
        headers = {"Accept": "application/json", "User-Agent": self._user_agent, "Content-Type": content_type}
        if authorization is not None:
            if not authorization.isprintable():
                raise NotSent(f"{self.access.source}: the credentials hold characters that a header cannot")
            headers["Authorization"] = authorization
        client = await self._current()
        client.users += 1
        response: aiohttp.ClientResponse | None = None
        try:
            try:
                response = await client.send(method, url, headers, body, timeout)
            except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError):
                # The authority may have been replaced since its file was read.
                renewed = await self._current(at_once=True)
                if renewed is client:
                    raise
                client.users -= 1
                await client.leave()
                client = renewed
                client.users += 1
                response = await client.send(method, url, headers, body, timeout)
            yield response
        except _UNSENT as error:
            raise NotSent(f"{self.access.server} cannot be reached: {error}") from error
        except TimeoutError as error:
            raise KubeUnavailable(f"{method} {self.access.server}{path}: no reply in time") from error
        except (aiohttp.ClientError, OSError) as error:
            raise KubeUnavailable(f"{method} {self.access.server}{path}: {_words(error)}") from error
        finally:
            if response is not None:
                response.close() if response.content and not response.content.at_eof() else response.release()
            client.users -= 1
            await client.leave()

    async def _current(self, at_once: bool = False) -> _Client:
        """Return a client that uses the certificates as they are on disk now (or were a minute ago)."""
        now = self._clock()
        pair = self.access.credentials.key_pair()
        if (
            self._client is not None
            and pair == self._client.pair
            and not at_once
            and now - self._compared_at < MATERIAL_PERIOD_SECONDS
        ):
            return self._client
        self._compared_at = now
        try:
            material = _read(self.access, pair)
        except OSError as error:
            if self._client is not None:  # in the middle of a rotation: what was read before still works
                return self._client
            raise KubeConfigError(f"{error.filename}: {error.strerror}") from error
        if self._client is None or material != self._material:
            fresh = _Client(_rest(self.access, material, pair), pair)
            old, self._client, self._material = self._client, fresh, material
            if old is not None:
                old.retired = True
                await old.leave()
        return self._client


class _Client:
    """Connections that share one set of certificates; closed once it is retired and nobody uses it."""

    def __init__(self, rest: RESTClientObject, pair: KeyPair | None) -> None:
        self.rest = rest
        self.pair = pair
        self.users = 0
        self.retired = False

    async def send(
        self, method: str, url: str, headers: dict[str, str], body: Mapping[str, Any] | None, timeout: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        response: aiohttp.ClientResponse = await self.rest.request(
            method, url, headers=headers, body=body, _preload_content=False, _request_timeout=timeout
        )
        return response

    async def leave(self) -> None:
        if self.retired and not self.users:
            await self.rest.close()


def _read(access: Access, pair: KeyPair | None) -> Material:
    def content(pem: Pem | None) -> bytes | None:
        return pem.read_bytes() if isinstance(pem, Path) else pem

    certificate, key = (pair.certificate, pair.key) if pair else (content(access.certificate), content(access.key))
    return content(access.ca), certificate, key


def _rest(access: Access, material: Material, pair: KeyPair | None) -> RESTClientObject:
    """Build the library's connections; what is not in a file anyway is written to one only as long as OpenSSL reads it."""
    sources = (access.ca, pair.certificate, pair.key) if pair else (access.ca, access.certificate, access.key)
    with ExitStack() as stack:
        names: list[str | None] = []
        for source, content in zip(sources, material, strict=True):
            if isinstance(source, Path) or content is None:
                names.append(str(source) if source is not None else None)
            else:
                copy = stack.enter_context(tempfile.NamedTemporaryFile(prefix="rebalancer-"))
                copy.write(content)
                copy.flush()
                names.append(copy.name)
        configuration = Configuration(host=access.server)
        configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file = names
        configuration.verify_ssl = access.verify
        configuration.disable_strict_ssl_verification = not access.strict
        configuration.tls_server_name = access.server_name
        configuration.proxy = access.proxy
        try:
            rest = RESTClientObject(configuration)
        except (ssl.SSLError, OSError, ValueError) as error:
            raise KubeConfigError(f"{access.source}: the certificates cannot be used: {error}") from error
    # The library's session looks into netrc on every request and then fails on the token; its connections are kept.
    with_netrc = rest.pool_manager
    rest.pool_manager = aiohttp.ClientSession(connector=with_netrc.connector, read_bufsize=_READ_BUFFER_BYTES)
    with suppress(RuntimeError):
        with_netrc.detach()
    return rest


class Lines(AsyncIterator[bytes]):
    """The lines of one response, as they come."""

    def __init__(self, content: aiohttp.StreamReader) -> None:
        """Nothing has been taken yet."""
        self._content = content
        self._taken_bytes = 0
        self._lines = _lines(self._chunks())

    @property
    def waiting_bytes(self) -> int:
        """Return how much has been received and not taken yet."""
        return self._content.total_bytes - self._taken_bytes

    def __anext__(self) -> Coroutine[Any, Any, bytes]:
        """Return the next line."""
        return self._lines.__anext__()

    async def aclose(self) -> None:
        """Give up the rest."""
        await self._lines.aclose()

    async def _chunks(self) -> AsyncGenerator[bytes, None]:
        async for chunk in self._content.iter_any():
            self._taken_bytes += len(chunk)
            yield chunk


async def _lines(chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Split into lines of any length; a last line without its end is dropped, since it may be cut short."""
    pending: list[bytes] = []
    size = 0
    async for chunk in chunks:
        first, *others = chunk.split(b"\n")
        pending.append(first)
        size += len(first)
        if size > LONGEST_LINE_BYTES:
            raise KubeUnavailable(f"a line of the stream is longer than {LONGEST_LINE_BYTES} bytes")
        if not others:
            continue
        if size:
            yield pending[0] if len(pending) == 1 else b"".join(pending)
        last = others.pop()
        for line in others:
            if line:
                yield line
        pending, size = [last], len(last)


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _words(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
