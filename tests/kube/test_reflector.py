"""List and watch against a scripted server: what is reported, from which version it goes on, and that no fault ends it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any

import pytest

from rebalancer.errors import ParseError
from rebalancer.kube.reflector import Reflector, Times
from rebalancer.kube.resources import Resource
from rebalancer.model.change import Bookmark, Changed, Connected, Disconnected, Listed, Removed, Report, Skipped, Unavailable
from tests.kube.scripted import Answering, ScriptedServer, a_server, reply, status, stream

PODS = Resource("Pod", "", "v1", "pods", required=True)
QUICK = Times(silent=0.2, first_delay=0.001, longest_delay=0.01, unreadable=0.01)


def an_object(name: str, version: int) -> dict[str, Any]:
    """An object as the API server writes it."""
    return {"metadata": {"name": name, "namespace": "s", "uid": f"uid-{name}", "resourceVersion": str(version)}}


def an_event(kind: str, name: str, version: int) -> dict[str, Any]:
    """A watch event."""
    return {"type": kind, "object": an_object(name, version)}


def a_bookmark(version: int, end_of_list: bool = False) -> dict[str, Any]:
    """A bookmark event."""
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if end_of_list:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": metadata, "spec": {"containers": None}}}


def a_page(names: list[str], version: int, token: str = "") -> Answering:
    """A page of a list."""
    return reply({"metadata": {"resourceVersion": str(version), "continue": token}, "items": [an_object(n, 1) for n in names]})


def parse(raw: Any) -> str:
    """An object's name stands for the parsed value; one named ``bad`` is malformed."""
    name: str = json.loads(bytes(raw))["metadata"]["name"]
    if name == "bad":
        raise ParseError("Pod s/bad: spec is wrong")
    return name


class Follower:
    """A running reflector and what it reported."""

    def __init__(self, server: ScriptedServer) -> None:
        """Start with no report."""
        self.server = server
        self.reports: list[Report] = []
        self.came = asyncio.Event()
        self.reflector: Reflector

    async def take(self, report: Report) -> None:
        """Note a report."""
        self.reports.append(report)
        self.came.set()

    async def until(self, kind: type, count: int = 1) -> list[Any]:
        """Wait for so many reports of one kind and return them."""
        async with asyncio.timeout(10):
            while len(found := [report for report in self.reports if type(report) is kind]) < count:
                self.came.clear()
                await self.came.wait()
        return found

    def queries(self) -> list[dict[str, str]]:
        """What was asked for, without the fields that are the same every time."""
        return [
            {key: value for key, value in request.query.items() if key not in ("timeoutSeconds", "allowWatchBookmarks", "watch")}
            for request in self.server.asked
        ]


@asynccontextmanager
async def following(*answers: Answering, streamed: bool = False, page_size: int = 2) -> AsyncIterator[Follower]:
    """A reflector that follows a scripted server."""
    async with a_server(*answers) as (server, transport):
        follower = Follower(server)
        follower.reflector = Reflector(
            transport, PODS, parse, follower.take, random=Random(1), times=QUICK, page_size=page_size, streamed=streamed
        )
        task = asyncio.create_task(follower.reflector.run())
        try:
            yield follower
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def test_all_pages_become_one_list_and_the_watch_goes_on_from_its_version():
    """A list is reported once it is complete."""
    events = stream(an_event("ADDED", "d", 11), an_event("MODIFIED", "d", 12), an_event("DELETED", "d", 13), then="hang")
    async with following(a_page(["a", "b"], 10, "more"), a_page(["c"], 10), events) as follower:
        await follower.until(Removed)
    assert follower.reports == [
        Listed("Pod", ["a", "b", "c"], "10"),
        Connected("Pod"),
        Changed("Pod", "d", "11"),
        Changed("Pod", "d", "12"),
        Removed("Pod", "s", "d", "uid-d", "13"),
    ]
    assert follower.queries() == [{"limit": "2"}, {"limit": "2", "continue": "more"}, {"resourceVersion": "10"}]


async def test_a_streamed_list_is_complete_at_its_bookmark():
    """The server's own mark says when the initial events are over; the same stream goes on with changes."""
    events = stream(
        an_event("ADDED", "a", 3),
        an_event("ADDED", "b", 5),
        a_bookmark(9, end_of_list=True),
        an_event("ADDED", "c", 10),
        then="hang",
    )
    async with following(events, streamed=True) as follower:
        await follower.until(Changed)
    assert follower.reports == [Listed("Pod", ["a", "b"], "9"), Connected("Pod"), Changed("Pod", "c", "10")]
    assert follower.queries() == [{"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}]


async def test_changes_inside_a_streamed_list_are_applied_after_it():
    """What changes while the server still sends the list must not be lost."""
    events = stream(an_event("ADDED", "a", 3), an_event("DELETED", "a", 8), a_bookmark(9, end_of_list=True), then="hang")
    async with following(events, streamed=True) as follower:
        await follower.until(Connected)
    assert follower.reports[:2] == [Listed("Pod", ["a"], "9"), Removed("Pod", "s", "a", "uid-a", "8")]


async def test_a_server_without_streamed_lists_is_asked_for_pages():
    """The refusal is remembered: the next list is paged from the start."""
    refusal = reply(status(422, "Invalid", "sendInitialEvents is forbidden"), 422)
    async with following(
        refusal, a_page([], 1), stream({"type": "ERROR", "object": status(410, "Expired")}), a_page([], 2), streamed=True
    ) as follower:
        await follower.until(Listed, 2)
    assert [sorted(query) for query in follower.queries()][:4] == [
        ["resourceVersionMatch", "sendInitialEvents"],
        ["limit"],
        ["resourceVersion"],
        ["limit"],
    ]


async def test_a_streamed_list_that_breaks_off_is_no_list():
    """Half a list would make the rest look deleted."""
    broken = stream(an_event("ADDED", "a", 3), then="cut")
    whole = stream(an_event("ADDED", "a", 3), an_event("ADDED", "b", 4), a_bookmark(9, end_of_list=True), then="hang")
    async with following(broken, whole, streamed=True) as follower:
        (listed,) = await follower.until(Listed)
    assert listed.objects == ["a", "b"]


async def test_after_a_broken_connection_the_watch_goes_on_from_the_last_version():
    """Nothing is listed again: the server replays what was missed."""
    first = stream(an_event("ADDED", "a", 11), then="cut")
    async with following(a_page([], 10), first, stream(an_event("ADDED", "b", 12), then="hang")) as follower:
        changed = await follower.until(Changed, 2)
    assert [change.value for change in changed] == ["a", "b"]
    assert follower.queries()[1:] == [{"resourceVersion": "10"}, {"resourceVersion": "11"}]
    assert any(isinstance(report, Disconnected) for report in follower.reports)


async def test_a_bookmark_moves_the_version_from_which_the_watch_goes_on():
    """Without it, a quiet kind's version would expire."""
    async with following(a_page([], 10), stream(a_bookmark(50)), stream(then="hang")) as follower:
        await follower.until(Connected, 2)
    assert Bookmark("Pod", "50") in follower.reports
    assert follower.queries()[2] == {"resourceVersion": "50"}


@pytest.mark.parametrize(
    "gone",
    [
        pytest.param(reply(status(410, "Expired", "too old resource version"), 410), id="as-a-status"),
        pytest.param(
            stream({"type": "ERROR", "object": status(410, "Expired", "too old resource version: 1 (2)")}), id="in-the-stream"
        ),
    ],
)
async def test_a_version_that_is_gone_means_a_new_list(gone: Answering):
    """410 in either form: list again, and go on from there."""
    async with following(a_page(["a"], 10), gone, a_page(["b"], 20), stream(then="hang")) as follower:
        listed = await follower.until(Listed, 2)
        await follower.until(Connected, 1)
        await follower.server.asked_times(4)
    assert [each.objects for each in listed] == [["a"], ["b"]]
    assert follower.queries()[3] == {"resourceVersion": "20"}


async def test_a_page_that_is_gone_starts_the_list_again_with_larger_pages():
    """Old continue tokens expire while a large cluster is read; larger pages are quicker."""
    expired = reply(status(410, "Expired"), 410)
    async with following(a_page(["a"], 1, "t"), expired, a_page(["a", "b"], 5), stream(then="hang")) as follower:
        (listed,) = await follower.until(Listed)
    assert listed.objects == ["a", "b"]
    assert [query.get("limit") for query in follower.queries()[:3]] == ["2", "2", "8"]


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(reply("<html>502 Bad Gateway</html>", 502), id="html-502"),
        pytest.param(reply("<html>sign in</html>", 200), id="html-200"),
        pytest.param(reply(status(500, "InternalError", "etcd"), 500), id="status-500"),
        pytest.param(reply(status(429, "TooManyRequests", "slow"), 429), id="status-429"),
        pytest.param(stream(b'{"type":"MODIFIED","object":{"meta', then="cut"), id="cut-mid-line"),
        pytest.param(stream(then="hang"), id="silent"),
        pytest.param(stream({"type": "ERROR", "object": status(500, "InternalError", "x")}), id="error-event"),
        pytest.param(stream({"type": "SURPRISE", "object": {}}), id="unknown-event"),
    ],
)
async def test_a_fault_of_the_watch_is_reported_and_the_watch_goes_on(fault: Answering):
    """No fault is taken for an event, none ends the reflector, none makes it list again."""
    async with following(a_page(["a"], 10), fault, stream(an_event("ADDED", "b", 12), then="hang")) as follower:
        await follower.until(Changed)
    assert len([report for report in follower.reports if isinstance(report, Listed)]) == 1
    assert any(isinstance(report, Disconnected) and report.reason for report in follower.reports)
    assert follower.queries()[-1] == {"resourceVersion": "10"}


async def test_a_server_that_closes_at_once_is_not_asked_without_pause():
    """Delays grow from one short-lived watch to the next."""
    times = Times(first_delay=0.05, longest_delay=1.0)
    async with a_server(a_page([], 1), *[stream() for _ in range(100)]) as (server, transport):
        reflector = Reflector(transport, PODS, parse, Follower(server).take, random=Random(1), times=times, streamed=False)
        task = asyncio.create_task(reflector.run())
        await asyncio.sleep(0.4)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    assert 2 <= len(server.asked) <= 8


async def test_a_malformed_object_is_reported_and_left_out():
    """One object that cannot be read takes neither the list nor the watch down; a known one that becomes unreadable is gone."""
    events = stream(an_event("MODIFIED", "bad", 11), an_event("ADDED", "c", 12), then="hang")
    async with following(a_page(["a", "bad"], 10), events) as follower:
        await follower.until(Changed)
    assert follower.reports == [
        Skipped("Pod", "Pod s/bad: spec is wrong"),
        Listed("Pod", ["a"], "10"),
        Connected("Pod"),
        Skipped("Pod", "Pod s/bad: spec is wrong"),
        Removed("Pod", "s", "bad", "uid-bad", "11"),
        Changed("Pod", "c", "12"),
    ]


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(reply(status(403, "Forbidden", "pods is forbidden"), 403), id="forbidden"),
        pytest.param(reply("404 page not found\n", 404), id="not-there"),
    ],
)
async def test_a_kind_that_cannot_be_read_is_reported_and_tried_again(refusal: Answering):
    """RBAC may be granted later, an API may appear."""
    async with following(refusal, a_page(["a"], 1), stream(then="hang")) as follower:
        (unavailable,) = await follower.until(Unavailable)
        await follower.until(Listed)
    assert "cannot list pods" in unavailable.reason


async def test_a_refresh_opens_the_watch_anew_for_some_seconds():
    """A watch that ends soon makes the server say up to which version it has sent everything."""
    async with following(a_page([], 10), stream(then="hang"), stream(a_bookmark(30), then="hang")) as follower:
        await follower.until(Connected)
        follower.reflector.refresh()
        (bookmark,) = await follower.until(Bookmark)
    assert bookmark.version == "30"
    assert int(follower.server.asked[2].query["timeoutSeconds"]) <= 5
    assert follower.queries()[2] == {"resourceVersion": "10"}


@pytest.mark.parametrize(
    ("raw", "version"),
    [
        pytest.param(b'{"kind":"Pod","metadata":{"name":"a","resourceVersion":"7"}}', "7", id="as-the-server-writes-it"),
        pytest.param(b'{"metadata": {"name": "a", "resourceVersion": "7"}}', "7", id="with-spaces"),
        pytest.param(b'{"spec":{"claimRef":{"resourceVersion":"3"}},"metadata":{"resourceVersion":"7"}}', "7", id="spec-first"),
        pytest.param(b'{"metadata":{"labels":{"resourceVersion":"3"},"resourceVersion":"7"}}', "7", id="a-label-of-that-name"),
    ],
)
async def test_the_version_of_an_event_is_its_objects_own(raw: bytes, version: str):
    """Wherever the field stands, and whatever else is called like it."""
    line = b'{"type":"ADDED","object":' + raw.replace(b'"metadata"', b'"metadata"') + b"}\n"
    async with a_server(a_page([], 1), stream(line), stream(then="hang")) as (server, transport):
        follower = Follower(server)
        reflector = Reflector(transport, PODS, lambda _: "x", follower.take, random=Random(1), times=QUICK, streamed=False)
        task = asyncio.create_task(reflector.run())
        (changed,) = await follower.until(Changed)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    assert changed.version == version
