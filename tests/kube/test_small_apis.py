"""Lease, state, reviews, discovery: what is sent, what is read, and which replies are values."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.errors import KubeError, KubeForbidden, KubeUnavailable
from rebalancer.kube.discovery import discover
from rebalancer.kube.lease import LeaseApi
from rebalancer.kube.moment import micro_time, read_time
from rebalancer.kube.resources import RESOURCES
from rebalancer.kube.review import ReviewApi, User
from rebalancer.kube.state import StateApi
from rebalancer.model.lease import LeaseRecord
from tests.kube.recorded import steps
from tests.kube.scripted import a_server, reply, status

LEASE = {
    "metadata": {
        "name": "descheduler",
        "namespace": "kube-system",
        "uid": "u",
        "resourceVersion": "7",
        "labels": {"team": "platform"},
        "annotations": {"rebalancer.io/paused": "true"},
        "managedFields": [{"manager": "x"}],
    },
    "spec": {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-12-01T12:00:00.000000Z",
        "renewTime": "2026-12-01T12:00:01.250000Z",
        "leaseTransitions": 3,
    },
}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        pytest.param(0.0, "1970-01-01T00:00:00.000000Z", id="whole-seconds-keep-six-digits"),
        pytest.param(1796126401.25, "2026-12-01T12:00:01.250000Z", id="fraction"),
    ],
)
def test_a_micro_time_has_six_digits_and_is_utc(seconds: float, text: str):
    """The API server refuses other forms, and local time with a Z would be hours off."""
    assert micro_time(seconds) == text
    assert read_time(text) == seconds


async def test_a_lease_is_read_and_replaced_at_its_version():
    """What others wrote to its metadata stays; the version goes along, so that a slower writer loses."""
    async with a_server(reply(LEASE), reply(LEASE | {"metadata": LEASE["metadata"] | {"resourceVersion": "8"}})) as (
        server,
        transport,
    ):
        api = LeaseApi(transport, "kube-system", "descheduler", timeout_seconds=3)
        record = await api.read()
        assert record == LeaseRecord("a", 15.0, 1796126400.0, 1796126401.25, 3, "7", {"rebalancer.io/paused": "true"})
        written = await api.write(LeaseRecord("b", 14.2, 1796126410.0, 1796126410.0, 4, record.version, record.annotations))
    assert written is not None
    assert written.version == "8"
    assert (server.asked[1].method, server.asked[1].path) == (
        "PUT",
        "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/descheduler",
    )
    metadata: Any = LEASE["metadata"]
    assert server.bodies[1] == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {key: value for key, value in metadata.items() if key != "managedFields"},
        "spec": {
            "holderIdentity": "b",
            "leaseDurationSeconds": 15,
            "leaseTransitions": 4,
            "acquireTime": "2026-12-01T12:00:10.000000Z",
            "renewTime": "2026-12-01T12:00:10.000000Z",
        },
    }


async def test_a_lease_that_is_not_there_is_created():
    """None is read, and a record without a version creates."""
    async with a_server(reply(status(404, "NotFound"), 404), reply(LEASE, 201)) as (server, transport):
        api = LeaseApi(transport, "n", "l", timeout_seconds=3)
        assert await api.read() is None
        assert await api.write(LeaseRecord("a", 15, 1.0, 1.0, 0)) is not None
    assert (server.asked[1].method, server.asked[1].path) == ("POST", "/apis/coordination.k8s.io/v1/namespaces/n/leases")


@pytest.mark.parametrize(
    ("version", "code"),
    [
        pytest.param("", 409, id="created-by-somebody-else"),
        pytest.param("7", 409, id="replaced-by-somebody-else"),
        pytest.param("7", 404, id="deleted-by-somebody-else"),
    ],
)
async def test_whoever_is_slower_gets_none(version: str, code: int):
    """A lost race is a value, not a failure."""
    async with a_server(reply(status(code, "Conflict"), code)) as (_, transport):
        api = LeaseApi(transport, "n", "l", timeout_seconds=3)
        assert await api.write(LeaseRecord("a", 15, 1.0, 1.0, 0, version)) is None


async def test_a_released_lease_has_no_holder_and_runs_out_at_once():
    """Another replica takes over without waiting; the annotations stay."""
    async with a_server(reply(LEASE)) as (server, transport):
        api = LeaseApi(transport, "n", "l", timeout_seconds=3)
        await api.release(LeaseRecord("a", 15, 1.0, 2.0, 3, "7", {"k": "v"}), now=5.0)
    spec = server.bodies[0]["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("", 1, 3)
    assert server.bodies[0]["metadata"]["annotations"] == {"k": "v"}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(reply(status(403, "Forbidden", "no"), 403), KubeForbidden, id="forbidden"),
        pytest.param(reply("<html>", 502), KubeUnavailable, id="html-502"),
        pytest.param(reply("<html>", 200), KubeUnavailable, id="html-200"),
        pytest.param(reply(status(422, "Invalid", "x"), 422), KubeError, id="invalid"),
    ],
)
async def test_a_lease_that_cannot_be_used_is_an_error_of_the_tree(answer: Any, expected: type[Exception]):
    """No JSON error, no client exception ever leaves this package."""
    async with a_server(answer) as (_, transport):
        with pytest.raises(expected):
            await LeaseApi(transport, "n", "l", timeout_seconds=3).read()


async def test_a_server_that_hangs_does_not_hold_the_election_up():
    """Each request ends by itself."""
    async with a_server() as (_, transport):
        with pytest.raises(KubeUnavailable):
            await LeaseApi(transport, "n", "l", timeout_seconds=0.05).read()


async def test_state_is_one_key_of_a_config_map():
    """Read with its version, written only at that version, other keys left alone."""
    found = {"metadata": {"resourceVersion": "4"}, "data": {"state": "{}", "other": "x"}}
    async with a_server(reply(status(404), 404), reply(found, 201), reply(found), reply(found), reply(status(409), 409)) as (
        server,
        transport,
    ):
        api = StateApi(transport, "n", "rebalancer", timeout_seconds=3)
        assert await api.read() == ("", "")
        assert await api.write("{}", "") == "4"
        assert await api.read() == ("{}", "4")
        assert await api.write("new", "4") == "4"
        assert await api.write("late", "3") is None
    assert [request.method for request in server.asked] == ["GET", "POST", "GET", "PATCH", "PATCH"]
    assert server.bodies[3] == {"data": {"state": "new"}, "metadata": {"resourceVersion": "4"}}


async def test_a_token_is_reviewed_and_its_user_asked_about():
    """Who it is, and whether they may read the status."""
    known = {"authenticated": True, "user": {"username": "me", "uid": "1", "groups": ["g"], "extra": {"k": ["v"]}}}
    async with a_server(
        reply({"status": known}, 201),
        reply({"status": {"allowed": True}}, 201),
        reply({"status": {"allowed": True, "denied": True}}, 201),
        reply({"status": {"error": "bad token"}}, 201),
    ) as (server, transport):
        api = ReviewApi(transport, timeout_seconds=3)
        user = await api.user_of("secret")
        assert user == User("me", "1", ("g",), {"k": ["v"]})
        assert await api.may(user, "get", "/status")
        assert not await api.may(user, "get", "/status")
        assert await api.user_of("wrong") is None
    assert server.bodies[1]["spec"] == {
        "user": "me",
        "uid": "1",
        "groups": ["g"],
        "extra": {"k": ["v"]},
        "nonResourceAttributes": {"path": "/status", "verb": "get"},
    }


async def test_a_real_server_is_discovered():
    """From recorded discovery documents: the version, evictions, Events, and what is not served."""
    documents = {step["request"]["path"]: step["response"]["body"] for step in steps("discovery") if step["note"] == ""}
    recorded = [each for each in RESOURCES if (f"/apis/{each.group}/v1" if each.group else "/api/v1") in documents]
    asked = dict.fromkeys(["/version", "/api/v1", "/apis/events.k8s.io/v1"])
    asked |= dict.fromkeys(f"/apis/{each.group}/v1" if each.group else "/api/v1" for each in recorded)
    async with a_server(*(reply(documents[path]) for path in asked)) as (server, transport):
        found = await discover(transport, timeout_seconds=3, resources=recorded)
    assert [request.path for request in server.asked] == list(asked)
    assert (found.version, found.evicts, found.events, found.missing) == ("v1.36.2", True, True, frozenset())


async def test_a_server_without_evictions_or_kinds_is_seen_through():
    """Old and partial servers: each lack is named."""
    storage = [each for each in RESOURCES if each.kind in ("StorageClass", "Pod")]
    core = {
        "resources": [{"name": "pods"}, {"name": "pods/eviction", "kind": "Eviction", "group": "policy", "version": "v1beta1"}]
    }
    missing = reply("404 page not found", 404)
    async with a_server(reply({"gitVersion": "v1.21.0"}), reply(core), missing, missing) as (_, transport):
        found = await discover(transport, timeout_seconds=3, resources=storage)
    assert (found.evicts, found.events, found.missing) == (False, False, {"StorageClass"})


async def test_something_that_is_no_api_server_is_said_in_words():
    """A wrong address often leads to a web page."""
    async with a_server(reply("<html>welcome</html>")) as (_, transport):
        with pytest.raises(KubeUnavailable, match="does not answer like an API server"):
            await discover(transport, timeout_seconds=3)
