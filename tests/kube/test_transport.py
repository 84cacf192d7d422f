"""Requests: time limits, renewed credentials and authorities, errors in words. What replies mean is tested elsewhere."""

from __future__ import annotations

import os
import ssl
import tempfile
from pathlib import Path

import pytest
import trustme

from rebalancer.errors import KubeForbidden, KubeUnavailable, WatchExpired
from rebalancer.kube.config import Access
from rebalancer.kube.credentials import Fixed, TokenFile
from rebalancer.kube.transport import NotSent, Transport
from tests.kube.scripted import Clock, ScriptedServer, a_server, reply, status, stream


async def read_lines(transport: Transport, into: list[bytes], silent_seconds: float = 5) -> list[bytes]:
    """Read a stream to its end."""
    async with transport.stream("/w", {}, verb="watch", resource="pods", silent_seconds=silent_seconds) as lines:
        async for line in lines:
            into.append(line)  # noqa: PERF401 (what came before a failure counts)
    return into


async def test_a_request_gives_status_headers_and_bytes_whatever_the_status():
    """A reply without success is a value too."""
    async with a_server(reply({"a": 1}, 404, **{"Retry-After": "7"})) as (server, transport):
        answer = await transport.request("GET", "/api/v1/pods", query={"limit": 1}, timeout_seconds=5)
    assert (answer.status, answer.body, answer.retry_after_seconds) == (404, b'{"a": 1}', 7.0)
    assert server.asked[0].query["limit"] == "1"
    assert server.asked[0].headers["User-Agent"].startswith("rebalancer/")


async def test_a_server_that_does_not_answer_is_given_up_after_the_time_limit():
    """No request waits for ever."""
    async with a_server() as (_, transport):
        with pytest.raises(KubeUnavailable, match="no reply in time") as caught:
            await transport.request("GET", "/api/v1/pods", timeout_seconds=0.05)
    assert not isinstance(caught.value, NotSent)


async def test_a_refused_connection_is_known_not_to_have_had_an_effect():
    """Nothing was sent where nobody listens."""
    transport = Transport(Access(server="http://127.0.0.1:9", credentials=Fixed(None), source="a test"))
    with pytest.raises(NotSent, match="cannot be reached"):
        await transport.request("POST", "/x", body={"a": 1}, timeout_seconds=5)
    await transport.close()


async def test_a_reply_cut_short_is_unavailable():
    """Half a body is no reply."""
    async with a_server(stream(b"{", then="cut")) as (_, transport):
        with pytest.raises(KubeUnavailable):
            await transport.request("GET", "/api/v1/pods", timeout_seconds=5)


async def test_after_a_401_the_token_file_is_read_again_once(tmp_path: Path):
    """A rotated token is picked up at once where the server insists, with its newline left out."""
    path = tmp_path / "token"
    path.write_text("old\n")
    credentials = TokenFile(path, Clock())
    async with a_server(reply({}), reply(status(401), 401), reply({}), credentials=credentials) as (server, transport):
        await transport.request("GET", "/a", timeout_seconds=5)
        path.write_text("new\n")
        answer = await transport.request("GET", "/b", timeout_seconds=5)
    assert answer.status == 200
    assert [request.headers["Authorization"] for request in server.asked] == ["Bearer old", "Bearer old", "Bearer new"]


async def test_a_second_401_is_given_back():
    """Credentials that stay wrong are not tried for ever."""
    async with a_server(reply(status(401), 401), reply(status(401), 401)) as (server, transport):
        answer = await transport.request("GET", "/a", timeout_seconds=5)
    assert (answer.status, len(server.asked)) == (401, 2)
    with pytest.raises(KubeUnavailable):
        answer.require("list", "pods")


async def test_a_stream_renews_its_credentials_too(tmp_path: Path):
    """A watch that is refused with 401 is opened once more with a fresh token."""
    path = tmp_path / "token"
    path.write_text("t")
    async with a_server(reply(status(401), 401), stream({"a": 1}), credentials=TokenFile(path, Clock())) as (server, transport):
        assert await read_lines(transport, []) == [b'{"a": 1}']
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("code", "body", "expected"),
    [
        pytest.param(403, status(403, "Forbidden", "no"), KubeForbidden, id="rbac"),
        pytest.param(410, status(410, "Expired", "too old"), WatchExpired, id="expired"),
        pytest.param(502, "<html>bad gateway</html>", KubeUnavailable, id="html-from-a-proxy"),
    ],
)
async def test_a_stream_that_is_refused_raises_what_the_status_means(code: int, body: object, expected: type[Exception]):
    """No line of an error page is ever taken for an event."""
    async with a_server(reply(body, code)) as (_, transport):
        seen: list[bytes] = []
        with pytest.raises(expected):
            await read_lines(transport, seen)
    assert seen == []


async def test_a_line_of_a_stream_may_be_longer_than_any_buffer():
    """An object of six megabytes arrives whole."""
    long = b"x" * (6 * 2**20)
    async with a_server(stream(b"a\n", long + b"\nb\n", b"\n\nc\n")) as (_, transport):
        assert await read_lines(transport, []) == [b"a", long, b"b", b"c"]


async def test_a_line_without_its_end_is_not_given_out():
    """What is cut short would be half an event."""
    async with a_server(stream(b"whole\nhal")) as (_, transport):
        assert await read_lines(transport, []) == [b"whole"]


async def test_a_silent_stream_is_given_up():
    """A half-open connection is noticed by its silence."""
    async with a_server(stream(b"one\n", then="hang")) as (_, transport):
        seen: list[bytes] = []
        with pytest.raises(KubeUnavailable):
            await read_lines(transport, seen, silent_seconds=0.1)
    assert seen == [b"one"]


async def test_a_netrc_file_does_not_interfere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Credentials of a netrc file are for other programs."""
    netrc = tmp_path / "netrc"
    netrc.write_text("default login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    async with a_server(reply({}), credentials=Fixed("Bearer t")) as (server, transport):
        await transport.request("GET", "/a", timeout_seconds=5)
    assert server.asked[0].headers["Authorization"] == "Bearer t"


async def test_a_replaced_authority_is_picked_up_when_the_old_one_fails(tmp_path: Path):
    """The authority's file is read again before a certificate counts as wrong."""
    old, new = trustme.CA(), trustme.CA()
    ca = tmp_path / "ca.crt"
    old.cert_pem.write_to_path(ca)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    new.issue_cert("127.0.0.1").configure_cert(context)
    server = ScriptedServer()
    async with server.serving(context):
        transport = Transport(Access(server=server.url, credentials=Fixed(None), source="a test", ca=ca))
        with pytest.raises(NotSent, match="cannot be reached"):
            await transport.request("GET", "/a", timeout_seconds=5)
        new.cert_pem.write_to_path(ca)
        server.plays(reply({"now": "trusted"}))
        answer = await transport.request("GET", "/a", timeout_seconds=5)
        await transport.close()
    assert answer.ok


async def test_an_authority_given_as_data_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Certificates from a kubeconfig exist on disk only while OpenSSL reads them."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server = ScriptedServer()
    server.plays(reply({}))
    async with server.serving(context):
        pem = authority.cert_pem.bytes()
        transport = Transport(Access(server=server.url, credentials=Fixed(None), source="a test", ca=pem))
        assert (await transport.request("GET", "/a", timeout_seconds=5)).ok
        await transport.close()
    assert os.listdir(tmp_path) == []


async def test_credentials_that_cannot_be_read_mean_that_nothing_was_sent(tmp_path: Path):
    """A missing token file is said in words and tried again later."""
    async with a_server(credentials=TokenFile(tmp_path / "none", Clock())) as (_, transport):
        with pytest.raises(NotSent, match="token file"):
            await transport.request("GET", "/a", timeout_seconds=5)
