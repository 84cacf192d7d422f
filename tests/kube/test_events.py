"""Events: never in the way, aggregated, bounded, flushed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from random import Random

import pytest

from rebalancer.kube.events import EventSink, Note, Regarding
from tests.kube.recorded import steps
from tests.kube.scripted import Answering, Clock, ScriptedServer, a_server, reply, status

POD = Regarding("Pod", "v1", "s", "web-1", "u-1")


def a_note(text: str = "pod eviction from n1 node by sigs.k8s.io/descheduler") -> Note:
    """What is published about an eviction."""
    return Note(POD, "RemoveDuplicates", text)


@asynccontextmanager
async def publishing(*answers: Answering, capacity: int = 100) -> AsyncIterator[tuple[EventSink, ScriptedServer, Clock]]:
    """A sink that sends to a scripted server."""
    clock = Clock(1_796_126_400.0)
    async with a_server(*answers) as (server, transport):
        sink = EventSink(transport, random=Random(1), instance="me", capacity=capacity, timeout_seconds=0.2, wall_clock=clock)
        task = asyncio.create_task(sink.run())
        try:
            yield sink, server, clock
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def test_an_event_has_the_shape_that_upstream_gives_it():
    """Whoever looks for the descheduler's Events finds ours; the body is one that a real server accepted."""
    async with publishing(reply({}, 201)) as (sink, server, _):
        sink.post(a_note())
        assert await sink.flush(5) == 0
    assert server.asked[0].path == "/apis/events.k8s.io/v1/namespaces/s/events"
    body = server.bodies[0]
    assert body["metadata"].pop("name").startswith("web-1.")
    assert body == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "s"},
        "eventTime": "2026-12-01T12:00:00.000000Z",
        "reportingController": "sigs.k8s.io.descheduler",
        "reportingInstance": "me",
        "action": "Descheduled",
        "reason": "RemoveDuplicates",
        "regarding": {"kind": "Pod", "apiVersion": "v1", "namespace": "s", "name": "web-1", "uid": "u-1"},
        "note": "pod eviction from n1 node by sigs.k8s.io/descheduler",
        "type": "Normal",
    }
    posts = [step["request"] for step in steps("write") if step.get("request", {}).get("method") == "POST"]
    (recorded,) = [request["body"] for request in posts if request["path"].endswith("/v1/namespaces/s/events")]
    assert set(recorded) <= set(body)


async def test_equal_events_become_a_series():
    """A later one is counted up on the object that is there; after six minutes a new one begins."""
    async with publishing(reply({}, 201), reply({}), reply({}, 201)) as (sink, server, clock):
        sink.post(a_note())
        await sink.flush(5)
        clock.now += 10
        sink.post(a_note())
        await sink.flush(5)
        clock.now += 360
        sink.post(a_note())
        await sink.flush(5)
    assert [request.method for request in server.asked] == ["POST", "PATCH", "POST"]
    assert server.asked[1].path.rsplit("/", 1)[1] == server.bodies[0]["metadata"]["name"]
    assert server.bodies[1] == {"series": {"count": 2, "lastObservedTime": "2026-12-01T12:00:10.000000Z"}}


async def test_a_series_whose_first_event_has_expired_begins_anew():
    """The server deletes Events after an hour."""
    async with publishing(reply({}, 201), reply(status(404, "NotFound"), 404), reply({}, 201)) as (sink, server, _):
        for _ in range(2):
            sink.post(a_note())
            await sink.flush(5)
    assert [request.method for request in server.asked] == ["POST", "PATCH", "POST"]
    assert sink.dropped == 0


async def test_a_server_without_the_group_gets_core_events():
    """The fallback is remembered."""
    async with publishing(reply("404 page not found\n", 404), reply({}, 201), reply({}, 201)) as (sink, server, _):
        sink.post(a_note("one"))
        sink.post(a_note("two"))
        await sink.flush(5)
    assert [request.path for request in server.asked] == [
        "/apis/events.k8s.io/v1/namespaces/s/events",
        "/api/v1/namespaces/s/events",
        "/api/v1/namespaces/s/events",
    ]
    assert (server.bodies[1]["involvedObject"]["name"], server.bodies[1]["message"]) == ("web-1", "one")
    assert server.bodies[1]["source"] == {"component": "sigs.k8s.io.descheduler"}


async def test_a_refusal_is_told_once():
    """A missing permission is one finding for the operator, however many Events it costs."""
    told: list[str] = []
    refusal = reply(status(403, "Forbidden"), 403)
    async with a_server(refusal, refusal, refusal) as (_, transport):
        sink = EventSink(transport, random=Random(1), instance="me", timeout_seconds=0.2, refused=told.append)
        task = asyncio.create_task(sink.run())
        for text in ("one", "two", "three"):
            sink.post(a_note(text))
        await sink.flush(5)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    assert sink.dropped == 3
    (words,) = told
    assert words.startswith("cannot create events.events.k8s.io")


async def test_posting_never_waits_and_the_queue_is_bounded():
    """With a server that hangs, the oldest are dropped and counted."""
    async with publishing(capacity=3) as (sink, _, _):
        for number in range(10):
            sink.post(a_note(str(number)))
        assert sink.dropped == 7
        assert await sink.flush(0.01) == 3


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(reply(status(403, "Forbidden"), 403), id="forbidden"),
        pytest.param(reply(status(422, "Invalid"), 422), id="invalid"),
        pytest.param(reply(status(404, "NotFound", "namespaces not found"), 404), id="namespace-gone"),
    ],
)
async def test_an_event_that_is_refused_is_dropped_and_the_next_one_goes_out(refusal: Answering):
    """Events are worth no trouble."""
    async with publishing(refusal, reply({}, 201)) as (sink, _, _):
        sink.post(a_note("one"))
        sink.post(a_note("two"))
        assert await sink.flush(5) == 0
    assert (sink.sent, sink.dropped) == (1, 1)


async def test_a_long_note_is_cut_to_what_the_server_accepts():
    """1,024 bytes, in whole characters."""
    async with publishing(reply({}, 201)) as (sink, server, _):
        sink.post(a_note("ö" * 2000))
        await sink.flush(5)
    note = server.bodies[0]["note"]
    assert len(note.encode()) <= 1024
    assert note.endswith("ö…")


async def test_an_object_without_a_namespace_has_its_event_in_the_default_one():
    """Events are namespaced; nodes are not."""
    async with publishing(reply({}, 201)) as (sink, server, _):
        sink.post(Note(Regarding("Node", "v1", "", "n1", "u"), "Looked", "seen", warning=True))
        await sink.flush(5)
    assert server.asked[0].path == "/apis/events.k8s.io/v1/namespaces/default/events"
    assert (server.bodies[0]["type"], server.bodies[0]["regarding"]) == (
        "Warning",
        {"kind": "Node", "apiVersion": "v1", "name": "n1", "uid": "u"},
    )
