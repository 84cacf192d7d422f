"""Evictions: what is sent, and what each answer means, against recorded answers of a real API server."""

from __future__ import annotations

import json

import pytest

from rebalancer.kube.eviction import EvictionApi, answer
from rebalancer.kube.reply import Reply
from rebalancer.kube.rollout import RolloutApi
from rebalancer.model.answer import (
    Accepted,
    BudgetForbidden,
    Forbidden,
    Gone,
    HeldByBudget,
    InBackground,
    Invalid,
    Replaced,
    Throttled,
    Unknown,
    Unsupported,
)
from tests.kube.recorded import evictions
from tests.kube.scripted import a_server, reply, status, stream

EXPECTED: dict[str, type] = {
    "status not written yet": HeldByBudget,
    "refused": HeldByBudget,
    "budget unsynced": HeldByBudget,
    "Running, ready=True, disruptionsAllowed 0, healthy 1 of 1 wanted": HeldByBudget,
    "unready, fewer healthy than wanted, default policy": HeldByBudget,
    "UID precondition does not match": Replaced,
    "no such pod": Gone,
    "name differs from the path": Invalid,
    "no metadata": Invalid,
    "not JSON": Invalid,
    "no permission": Forbidden,
    "bad token": Forbidden,
    "Running": Unsupported,
}


@pytest.mark.parametrize(
    ("note", "recorded"), [pytest.param(note, got, id=f"{story}: {note}") for story, note, _, got in evictions()]
)
def test_every_recorded_answer_is_understood(note: str, recorded: Reply):
    """What a real server said becomes the value that it stands for; everything else was accepted."""
    assert type(answer(recorded)) is EXPECTED.get(note, Accepted)


def test_a_budget_that_is_processed_asks_for_patience_and_a_spent_one_does_not():
    """Retry-After is passed on where the server gave it."""
    found = {note: answer(got) for _, note, _, got in evictions()}
    assert found["budget unsynced"] == HeldByBudget("The disruption budget b is still being processed by the server.", 10.0)
    assert found["refused"] == HeldByBudget("The disruption budget b does not allow evicting pods currently", None)


def made(code: int, body: object, **headers: str) -> Reply:
    """A reply that was not recorded."""
    return Reply(code, headers, body.encode() if isinstance(body, str) else json.dumps(body).encode())


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        pytest.param(
            made(429, status(429, "TooManyRequests", "slow down"), **{"retry-after": "3"}),
            Throttled("slow down", 3.0),
            id="flow-control",
        ),
        pytest.param(made(429, "<html>slow</html>"), Throttled("HTTP 429: <html>slow</html>"), id="a-proxy's-429"),
        pytest.param(
            made(403, status(403, "Forbidden", "negative", kind="poddisruptionbudget", name="b")),
            BudgetForbidden("negative"),
            id="budget",
        ),
        pytest.param(
            made(403, status(403, "Forbidden", "going", causes=[{"reason": "NamespaceTerminating"}])),
            Gone("going"),
            id="namespace-goes",
        ),
        pytest.param(made(404, "404 page not found"), Unsupported("HTTP 404: 404 page not found"), id="no-such-api"),
        pytest.param(made(405, status(405, "MethodNotAllowed", "no")), Unsupported("no"), id="not-allowed"),
        pytest.param(made(422, status(422, "Invalid", "bad")), Invalid("bad"), id="invalid"),
        pytest.param(
            made(504, status(504, "Timeout", 'couldn\'t update PodDisruptionBudget "b" due to conflicts', retryAfterSeconds=10)),
            HeldByBudget('couldn\'t update PodDisruptionBudget "b" due to conflicts', 10.0),
            id="budget-conflicts",
        ),
        pytest.param(
            made(500, status(500, "InternalError", 'failed calling webhook "w": refused')),
            Throttled('failed calling webhook "w": refused'),
            id="webhook-down",
        ),
        pytest.param(made(500, status(500, "InternalError", "etcd")), Unknown("etcd"), id="internal-error"),
        pytest.param(made(502, "<html>bad</html>"), Unknown("HTTP 502: <html>bad</html>"), id="html-502"),
        pytest.param(made(503, status(503, "ServiceUnavailable", "x")), Unknown("x"), id="unavailable"),
    ],
)
def test_answers_that_no_story_holds(got: Reply, expected: object):
    """The rarer replies: a server that cannot say whether it has acted leaves the outcome unknown."""
    assert answer(got) == expected


def test_an_evacuation_counts_only_for_pods_that_ask_for_it():
    """The text alone does not make a refusal a success."""
    body = status(429, "TooManyRequests", "Eviction triggered evacuation of the machine")
    assert isinstance(answer(made(429, body), in_background=True), InBackground)
    assert isinstance(answer(made(429, body)), Throttled)


async def test_the_request_names_the_uid_and_says_why():
    """Another pod of the same name is never evicted by mistake."""
    async with a_server(reply({"kind": "Status"}, 201)) as (server, transport):
        api = EvictionApi(transport, timeout_seconds=3)
        got = await api.evict("s", "web-1", "u-1", "triggered by p/RemoveDuplicates: two on one node")
    assert got == Accepted()
    assert (server.asked[0].method, server.asked[0].path) == ("POST", "/api/v1/namespaces/s/pods/web-1/eviction")
    assert server.bodies[0] == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {
            "name": "web-1",
            "namespace": "s",
            "annotations": {
                "requested-by": "sigs.k8s.io/descheduler",
                "reason": "triggered by p/RemoveDuplicates: two on one node",
            },
        },
        "deleteOptions": {"preconditions": {"uid": "u-1"}},
    }


async def test_grace_and_dry_run_are_part_of_the_request():
    """A server-side dry run is marked in the delete options, where admission sees it too."""
    async with a_server() as (_, transport):
        api = EvictionApi(transport, timeout_seconds=3, grace_seconds=0, dry_run=True)
        options = api.body("s", "a", "u", "r")["deleteOptions"]
    assert options == {"preconditions": {"uid": "u"}, "gracePeriodSeconds": 0, "dryRun": ["All"]}


async def test_a_reply_that_does_not_come_leaves_the_outcome_unknown():
    """Sent is not refused: the pod may be going."""
    async with a_server() as (_, transport):
        got = await EvictionApi(transport, timeout_seconds=0.05).evict("s", "a", "u", "r")
    assert isinstance(got, Unknown)


async def test_a_reply_that_breaks_off_leaves_the_outcome_unknown():
    """Half a reply says nothing about what was done."""
    async with a_server(stream(b'{"kind"', then="cut", code=201)) as (_, transport):
        got = await EvictionApi(transport, timeout_seconds=3).evict("s", "a", "u", "r")
    assert isinstance(got, Unknown)


async def test_a_server_that_cannot_be_reached_has_done_nothing():
    """A refused connection does not use up caps: it slows things down."""
    async with a_server() as (_, transport):
        pass
    got = await EvictionApi(transport, timeout_seconds=3).evict("s", "a", "u", "r")
    await transport.close()
    assert isinstance(got, Throttled)
    assert "cannot be reached" in got.message


async def test_a_rollout_is_restarted_only_for_the_deployment_that_was_meant():
    """The uid stands in the patch, so that a recreated Deployment conflicts."""
    async with a_server(reply({}), reply(status(409, "Conflict", "uid"), 409)) as (server, transport):
        api = RolloutApi(transport, timeout_seconds=3, dry_run=True)
        answers = [await api.restart("s", "web", "u-9", "p-1", "moved") for _ in range(2)]
    assert [type(each) for each in answers] == [Accepted, Replaced]
    assert server.asked[0].headers["Content-Type"] == "application/merge-patch+json"
    assert server.asked[0].query == {"dryRun": "All"}
    assert server.bodies[0] == {
        "metadata": {"uid": "u-9", "annotations": {"rebalancer.io/reason": "moved"}},
        "spec": {"template": {"metadata": {"annotations": {"rebalancer.io/surged-for": "p-1"}}}},
    }
