"""Single replicas are replaced by a rollout, the replacement first: the whole controller on a cluster that rolls out.

Which Deployments qualify is tested in ``tests/eligibility/test_rollout.py``, what a plan makes of it in
``tests/decide/test_single_replicas.py``, the rights that it needs in ``tests/chart/test_roles_in_use.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from prometheus_client import generate_latest

from rebalancer.control.happenings import Asked, LimitReached, Looked, Noticed, Settled
from rebalancer.control.ports import Surged
from rebalancer.sim.faults import Fault, Trouble
from rebalancer.sim.kinds import DEPLOYMENT, kind_named
from rebalancer.sim.requests import Request
from tests.builders import Object
from tests.e2e.surging import ELSEWHERE, HOME, Theatre, a_workload, tell

STATEFUL_SET = kind_named("statefulsets", "apps")
WEB = (DEPLOYMENT, a_workload("web"))


def to_deployment(request: Request) -> bool:
    """Say whether a request asks for a rollout."""
    return "/deployments/" in request.path


def test_the_replacement_is_ready_before_the_old_pod_goes_though_a_budget_forbids_every_eviction() -> None:
    """One patch of the template, no eviction; there is a Ready pod all the time; it lands as predicted, and all is told."""
    seen: list[dict[str, Any]] = []

    def look(theatre: Theatre, request: Request) -> None:
        """Look at the status page at the moment of the rollout."""
        if to_deployment(request):
            asyncio.get_running_loop().call_later(0.2, lambda: seen.append(theatre.parts.status.document()))

    async def story(theatre: Theatre) -> None:
        """Tell what happens."""
        theatre.after = look
        await theatre.furnish(WEB, guarded=True)
        (old,) = theatre.pods("web")
        async with theatre.operating():
            theatre.taint()
            (settled,) = await theatre.settled()
            await asyncio.sleep(120)
        assert (settled.outcome, settled.landed, settled.expected, settled.came_back) == ("ready", ELSEWHERE, True, False)
        assert settled.ready_seconds is not None
        assert theatre.evictions == []
        (patch,) = theatre.rollouts
        assert patch.method == "PATCH"
        assert patch.path.endswith("/namespaces/default/deployments/web")
        template = patch.body["spec"]["template"]
        assert template == {"metadata": {"annotations": {"rebalancer.io/surged-for": old["metadata"]["uid"]}}}
        assert patch.body["metadata"]["uid"] == theatre.deployment("web")["metadata"]["uid"]
        assert theatre.fewest == {"web": 1}
        assert theatre.nodes_of("web") == [ELSEWHERE]
        assert len(theatre.heard.of(Settled)) == 1

        (asked,) = theatre.heard.of(Asked)
        assert isinstance(asked.answer, Surged)
        assert asked.approval.rollout == "web"
        (line,) = [each for each in theatre.log.lines if each["event"] == "surged"]
        assert (line["pod"], line["rollout"]) == (f"default/{old['metadata']['name']}", "web")
        notes = [event["message"] for event in theatre.cluster.store.objects("events")]
        assert any(note.startswith("rollout of Deployment web, to replace it before it leaves node-01 node") for note in notes)
        figures = generate_latest(theatre.parts.metrics.registry).decode()
        assert (
            'rebalancer_evictions_total{answer="Surged",profile="default",strategy="RemovePodsViolatingNodeTaints"} 1.0'
            in figures
        )

        (status,) = seen
        assert status["mode"]["singleReplica"] == "surge"
        assert [(each["rollout"], each["from"]) for each in status["inFlight"]] == [("web", HOME)]
        assert status["budgetsCharged"] == {}
        used = status["caps"]["thisRun"]
        assert (used["total"], used["byNode"], used["byNamespace"]) == (1, {HOME: 1}, {"default": 1})
        assert used["byWorkload"] == {theatre.deployment("web")["metadata"]["uid"]: 1}
        assert theatre.parts.status.document()["runs"][-1]["looks"]

    tell(story)


@pytest.mark.parametrize(
    ("settings", "guarded", "code"),
    [
        pytest.param({"single_replica": "auto"}, True, "budget", id="auto"),
        pytest.param({"single_replica": "evict"}, True, "budget", id="evict"),
        pytest.param({"single_replica": "skip"}, False, "single-replica", id="skip"),
    ],
)
def test_without_surge_a_single_replica_stays_where_a_budget_or_the_setting_keeps_it(
    settings: dict[str, str], guarded: bool, code: str
) -> None:
    """The other values never roll out; nothing is sent."""

    async def story(theatre: Theatre) -> None:
        """Tell what happens."""
        await theatre.furnish(WEB, guarded=guarded)
        async with theatre.operating():
            theatre.taint()
            await theatre.until(lambda: any(code in look.plan.refused_counts for look in theatre.heard.of(Looked)))
            await asyncio.sleep(60)
        assert theatre.evictions == theatre.rollouts == []
        assert theatre.nodes_of("web") == [HOME]

    tell(story, **settings)


@pytest.mark.parametrize("value", ["auto", "evict"])
def test_a_single_replica_that_nothing_keeps_is_evicted(value: str) -> None:
    """An outage, however short: it is what these values say."""

    async def story(theatre: Theatre) -> None:
        """Tell what happens."""
        await theatre.furnish(WEB)
        async with theatre.operating():
            theatre.taint()
            await theatre.settled()
        assert len(theatre.evictions) == 1
        assert theatre.rollouts == []
        assert theatre.fewest == {"web": 0}

    tell(story, single_replica=value)


def test_of_two_replicas_one_is_evicted_as_ever() -> None:
    """Surge is for single replicas alone, and the same run does both."""

    async def story(theatre: Theatre) -> None:
        """Tell what happens."""
        await theatre.furnish(WEB, (DEPLOYMENT, a_workload("pair", 2)))
        async with theatre.operating():
            theatre.taint()
            await theatre.settled(3)
        assert len(theatre.evictions) == 2
        assert [each.path.rpartition("/")[2] for each in theatre.rollouts] == ["web"]
        assert theatre.fewest == {"web": 1, "pair": 1}

    tell(story)


ROLLING = "RollingUpdate"
REFUSED = [
    pytest.param(DEPLOYMENT, {"strategy": {"type": "Recreate"}}, "surge-recreate", id="Recreate"),
    pytest.param(
        DEPLOYMENT,
        {"strategy": {"type": ROLLING, "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}},
        "surge-none",
        id="maxSurge 0",
    ),
    pytest.param(
        DEPLOYMENT,
        {"strategy": {"type": ROLLING, "rollingUpdate": {"maxSurge": "0%", "maxUnavailable": 1}}},
        "surge-none",
        id="maxSurge 0%",
    ),
    pytest.param(
        DEPLOYMENT,
        {"strategy": {"type": ROLLING, "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}},
        "surge-unavailable",
        id="maxUnavailable 1",
    ),
    pytest.param(STATEFUL_SET, {"serviceName": "web"}, "surge-owner", id="StatefulSet"),
]


@pytest.mark.parametrize(("kind", "spec", "code"), REFUSED)
def test_where_no_rollout_starts_the_replacement_first_the_pod_stays(kind: Any, spec: dict[str, Any], code: str) -> None:
    """Refused in the plan by a code of its own; nothing is sent."""

    async def story(theatre: Theatre) -> None:
        """Tell what happens."""
        await theatre.furnish((kind, a_workload("web", **spec)))
        async with theatre.operating():
            theatre.taint()
            await theatre.until(lambda: any(code in look.plan.refused_counts for look in theatre.heard.of(Looked)))
            await asyncio.sleep(60)
        assert theatre.evictions == theatre.rollouts == []
        assert theatre.nodes_of("web") == [HOME]

    tell(story)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param({"paused": True}, "surge-paused", id="paused"),
        pytest.param({"template": a_workload("web", more={"v": "2"})["spec"]["template"]}, "workload-in-rollout", id="rollout"),
    ],
)
def test_a_deployment_that_somebody_changes_meanwhile_is_left_to_him(change: Object, code: str) -> None:
    """While the account is being written, right before the request: the world is not as planned, and the next look says why."""
    changed: list[str] = []

    def strike(theatre: Theatre, request: Request) -> None:
        """Change the Deployment once, as the state is written."""
        if "/configmaps" in request.path and not changed:
            changed.append(request.path)
            theatre.change(DEPLOYMENT, "default", "web", **change)

    async def story(theatre: Theatre) -> None:
        """Tell what happens."""
        theatre.before = strike
        # Its new pods, if there come any, take their time.
        slow = {"sim.rebalancer.io/start-seconds": "15"}
        await theatre.furnish((DEPLOYMENT, a_workload("web", more=slow)))
        async with theatre.operating():
            theatre.taint()
            await theatre.until(lambda: any(code in look.plan.refused_counts for look in theatre.heard.of(Looked)))
            sent = list(theatre.rollouts)
        assert changed
        assert sent == theatre.evictions == []

    tell(story)


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        pytest.param({"evictions_per_minute": "1"}, 60.0, id="per minute"),
        pytest.param({"max_in_flight": "1"}, None, id="in flight"),
    ],
)
def test_rollouts_count_like_evictions_for_how_fast_it_goes(settings: dict[str, str], seconds: float | None) -> None:
    """Never more in a minute, or at once, than is allowed."""
    in_flight: list[int] = []

    async def story(theatre: Theatre) -> None:
        """Tell what happens."""
        theatre.after = lambda theatre, request: (
            in_flight.append(len(theatre.parts.settling.moves)) if to_deployment(request) else None
        )
        await theatre.furnish(*((DEPLOYMENT, a_workload(name)) for name in ("a", "b", "c")))
        async with theatre.operating():
            theatre.taint()
            await theatre.until(lambda: len(theatre.heard.of(Settled)) == 3, seconds=400)
        moments = [each.at for each in theatre.rollouts]
        assert len(moments) == 3
        assert theatre.fewest == {"a": 1, "b": 1, "c": 1}
        if seconds is not None:
            assert all(later - earlier >= seconds for earlier, later in pairwise(moments))
        else:
            assert in_flight == [0, 0, 0]

    tell(story, **settings)


def test_rollouts_count_for_the_caps_of_a_run() -> None:
    """Of three workloads two are moved in the first run; what is left comes with the next."""

    async def story(theatre: Theatre) -> None:
        """Tell what happens."""
        await theatre.furnish(*((DEPLOYMENT, a_workload(name)) for name in ("a", "b", "c")))
        async with theatre.operating():
            theatre.taint()
            await theatre.settled(2)
            first = {each.number for each in theatre.heard.of(Asked)}
            await theatre.settled(3)
        runs = [each.number for each in theatre.heard.of(Asked)]
        assert len(first) == 1
        assert runs.count(runs[0]) == 2
        assert runs[2] > runs[0]
        told = {code for look in theatre.heard.of(Looked) for code in look.plan.refused_counts}
        assert "cap-total" in told or theatre.heard.of(LimitReached)

    tell(story, cap_total="2")


def test_a_replacement_that_never_gets_ready_leaves_the_old_pod_and_the_workload_rests() -> None:
    """The move times out, the rest is the Deployment's, for the next rollout has another ReplicaSet; nothing more is sent."""

    def spoil(theatre: Theatre, request: Request) -> None:
        """Have whatever comes of the rollout never be Ready."""
        if to_deployment(request):
            template = theatre.deployment("web")["spec"]["template"]
            annotations = {**template["metadata"]["annotations"], "sim.rebalancer.io/never-ready": "true"}
            changed = {**template, "metadata": {**template["metadata"], "annotations": annotations}}
            theatre.change(DEPLOYMENT, "default", "web", template=changed)

    async def story(theatre: Theatre) -> None:
        """Tell what happens."""
        theatre.after = spoil
        await theatre.furnish(WEB)
        (old,) = theatre.pods("web")
        async with theatre.operating():
            theatre.taint()
            (settled,) = await theatre.settled()
            rests = theatre.parts.status.document()["cooldowns"]
            await asyncio.sleep(300)
        assert settled.outcome == "timeout"
        assert [(each["owner"], each["node"]) for each in rests] == [(theatre.deployment("web")["metadata"]["uid"], HOME)]
        assert len(theatre.rollouts) == 1
        assert theatre.fewest == {"web": 1}
        assert old["metadata"]["uid"] in {pod["metadata"]["uid"] for pod in theatre.ready("web")}
        assert any("cooldown" in look.plan.refused_counts for look in theatre.heard.of(Looked))

    tell(story)


def test_a_rollout_whose_reply_is_lost_is_followed_and_the_same_request_once_more_does_nothing() -> None:
    """The watch tells that it began; a second one for the same pod, from whomever, changes the template no more."""
    late: list[Request] = []

    def lose(theatre: Theatre, request: Request) -> None:
        """Lose the reply."""
        if to_deployment(request):
            late.append(request)
            theatre.line.change(replies_lost=True)
            asyncio.get_running_loop().call_later(0.001, lambda: theatre.line.change(replies_lost=False))

    async def story(theatre: Theatre) -> None:
        """Tell what happens."""
        theatre.after = lose
        await theatre.furnish(WEB, guarded=True)
        async with theatre.operating():
            theatre.taint()
            (settled,) = await theatre.settled()
            await asyncio.sleep(120)
        assert theatre.answers == ["Unknown"]
        assert (settled.outcome, settled.landed) == ("ready", ELSEWHERE)
        assert theatre.parts.status.document()["budgetsCharged"] == {}
        generation = theatre.deployment("web")["metadata"]["generation"]
        theatre.cluster.front.answer(late[0])
        assert theatre.deployment("web")["metadata"]["generation"] == generation
        assert theatre.fewest == {"web": 1}

    tell(story)


def test_without_the_right_to_patch_deployments_it_says_so_and_evicts_what_it_may() -> None:
    """One request per namespace and run; evictions in the same namespace go on."""

    async def story(theatre: Theatre) -> None:
        """Tell what happens."""
        theatre.cluster.faults.add(Fault(Trouble.FORBIDDEN, "/deployments/", "PATCH", times=None))
        await theatre.furnish(WEB, (DEPLOYMENT, a_workload("also")), (DEPLOYMENT, a_workload("pair", 2)))
        async with theatre.operating():
            theatre.taint()
            await theatre.settled(2)
            runs = len({each.number for each in theatre.heard.of(Asked)})
        refused = [each for each in theatre.heard.of(Asked) if each.approval.rollout]
        assert {type(each.answer).__name__ for each in refused} == {"Forbidden"}
        assert len(refused) <= runs
        assert len(theatre.evictions) == 2
        words = [each.text for each in theatre.heard.of(Noticed) if each.code == "forbidden"]
        assert words
        assert all(text.startswith("no rollout in namespace default: ") for text in words)
        assert theatre.fewest["web"] == theatre.fewest["also"] == 1
        assert theatre.nodes_of("web") == theatre.nodes_of("also") == [HOME]

    tell(story)


@pytest.mark.parametrize("mode", ["plan", "server"])
def test_in_a_dry_run_nothing_rolls_out(mode: str) -> None:
    """plan sends nothing at all; server sends the patch for the server to try."""
    check: Callable[[Theatre], bool] = {
        "plan": lambda theatre: theatre.sent == [],
        "server": lambda theatre: bool(theatre.rollouts) and all(each.query.get("dryRun") == "All" for each in theatre.sent),
    }[mode]

    async def story(theatre: Theatre) -> None:
        """Tell what happens."""
        await theatre.furnish(WEB, guarded=True)
        generation = theatre.deployment("web")["metadata"]["generation"]
        async with theatre.operating():
            theatre.taint()
            await theatre.until(lambda: "Reported" in theatre.answers)
            await asyncio.sleep(60)
        assert check(theatre), theatre.sent
        assert set(theatre.answers) == {"Reported"}
        assert theatre.heard.of(Settled) == []
        assert theatre.deployment("web")["metadata"]["generation"] == generation
        assert theatre.nodes_of("web") == [HOME]
        lines = [each for each in theatre.log.lines if each["event"] == "would evict"]
        assert {each["rollout"] for each in lines} == {"web"}

    tell(story, dry_run=mode)
