"""Rollouts in place of evictions, as control sees them: what is asked, what is accounted, and when such a move is at its end."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from rebalancer.control.dryrun import OnlyReport, ServerTries
from rebalancer.control.happenings import Asked, Noticed, Settled
from rebalancer.control.ports import Circumstances, Reply, Reported, Surged
from rebalancer.control.settle import SettleTimes, Settling
from rebalancer.model.answer import Forbidden, HeldByBudget, Unknown
from rebalancer.model.change import Bookmark
from rebalancer.model.plan import Approval, Plan
from rebalancer.model.snapshot import Snapshot
from tests.control.cluster import Json, World, a_budget, a_node, a_pod, a_replica_set, an_approval
from tests.control.stage import Evaluator, Script, Stage
from tests.control.virtual import Heard

pytestmark = pytest.mark.looptime


def a_set(name: str, replicas: int) -> Json:
    """Return a ReplicaSet of the Deployment ``web``."""
    found = a_replica_set(name, replicas)
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "uid-deployment", "controller": True}
    return {**found, "metadata": {**found["metadata"], "ownerReferences": [reference]}}


def a_rollout(pod: Json, **landings: float) -> Approval:
    """Return the approval of a pod that is to be replaced by a rollout."""
    return replace(an_approval(pod, **landings), owner_uid="uid-deployment", rollout="web")


class Follower:
    """A Deployment of one replica on n1, whose rollout has been asked for."""

    def __init__(self, world: World, *, certain: bool = True) -> None:
        """Follow it."""
        self.world = world
        self.heard = Heard()
        self.settling = Settling(world.clock, world.cache, self.heard, SettleTimes(settle=300.0, unknown=15.0))
        known = self.settling.siblings("uid-deployment", rollout=True)
        self.settling.follow(a_rollout(a_pod("old"), n2=1.0), world.pod("old"), known, certain=certain)

    def put(self, *objects: Json) -> None:
        """Have objects change, and tell."""
        for each in objects:
            self.settling.on_facts(self.world.put(each))

    @property
    def outcomes(self) -> list[str]:
        """How moves have settled."""
        return [each.outcome for each in self.heard.of(Settled)]

    async def pass_time(self, seconds: float) -> None:
        """Let time pass, in which the watch of pods says that it is alive."""
        await asyncio.sleep(seconds)
        await self.world.cache.receive(Bookmark("Pod", "1"))
        self.settling.look()


async def a_follower(*, certain: bool = True) -> Follower:
    """Return a follower; a pod of an earlier revision is still going."""
    world = await World(
        a_node("n1"),
        a_node("n2"),
        a_set("web", 1),
        a_set("earlier", 0),
        a_pod("old"),
        a_pod("left", app="earlier", terminating=True),
    ).sync()
    return Follower(world, certain=certain)


async def test_the_replacement_is_a_pod_of_another_replica_set_and_the_end_is_when_the_old_pod_goes() -> None:
    """Ready first, then the old pod goes: only then is the workload moved, and free for another move."""
    follower = await a_follower()
    follower.put(a_set("next", 1), a_pod("new", "n2", app="next", phase="Pending"))
    (move,) = follower.settling.moves
    assert (move.replacement_key, move.landed) == ("ns/new", "n2")
    await asyncio.sleep(4)
    follower.put(a_pod("new", "n2", app="next"))
    assert follower.outcomes == []
    assert follower.settling.count_of("uid-deployment") == 1
    await asyncio.sleep(3)
    follower.put(a_pod("old", terminating=True))
    (settled,) = follower.heard.of(Settled)
    assert (settled.outcome, settled.replacement, settled.landed, settled.expected) == ("ready", "ns/new", "n2", True)
    assert settled.ready_seconds == pytest.approx(4.0)
    assert follower.settling.moves == ()


async def test_a_replacement_that_is_replaced_itself_has_to_stand_anew() -> None:
    """Somebody deletes it: the next pod is the replacement, and its time counts."""
    follower = await a_follower()
    follower.put(a_set("next", 1), a_pod("new", "n2", app="next"))
    await asyncio.sleep(5)
    follower.settling.on_facts(follower.world.remove(a_pod("new", "n2", app="next")))
    follower.put(a_pod("newer", "n2", app="next"))
    follower.put(a_pod("old", terminating=True))
    (settled,) = follower.heard.of(Settled)
    assert settled.replacement == "ns/newer"
    assert settled.ready_seconds == pytest.approx(5.0)


async def test_a_rollout_that_gets_stuck_times_out_and_the_old_pod_is_shown_as_it_is() -> None:
    """It was not going, so it is no longer taken to be."""
    follower = await a_follower()
    follower.put(a_set("next", 1), a_pod("new", "n2", app="next", ready=False))
    assert next(iter(follower.world.cache.snapshot().on("n1"))).terminating
    await follower.pass_time(301)
    assert follower.outcomes == ["timeout"]
    shown = {pod.name: pod.terminating for pod in follower.world.cache.snapshot().on("n1")}
    assert shown == {"left": True, "old": False}


async def test_without_a_reply_a_rollout_that_begins_is_followed_to_its_end() -> None:
    """A new pod of the Deployment says that the request arrived."""
    follower = await a_follower(certain=False)
    follower.put(a_set("next", 1), a_pod("new", "n2", app="next", phase="Pending"))
    await follower.pass_time(60)
    assert follower.outcomes == []
    follower.put(a_pod("new", "n2", app="next"), a_pod("old", terminating=True))
    assert follower.outcomes == ["ready"]


async def test_without_a_reply_and_without_a_new_pod_nothing_was_rolled_out() -> None:
    """Then it may be asked for again."""
    follower = await a_follower(certain=False)
    await follower.pass_time(21)
    assert follower.outcomes == ["not-evicted"]


def planning(*approvals: Approval) -> Evaluator:
    """Return an evaluation that approves these while their pods are there."""

    def evaluate(snapshot: Snapshot, circumstances: Circumstances) -> Plan:
        there = {pod.uid for pod in snapshot.all_pods() if not pod.terminating}
        return Plan(evaluated_at=snapshot.now, approved=tuple(each for each in approvals if each.uid in there))

    return evaluate


async def a_stage(*approvals: Approval, answers: list[Reply], objects: tuple[Json, ...]) -> Stage:
    """Return a stage with three nodes."""
    world = await World(a_node("n1"), a_node("n2"), a_node("n3"), *objects).sync()
    return Stage(world, planning(*approvals), script=Script(answers=answers))


async def test_a_rollout_goes_past_a_budget_and_the_ledger_is_not_charged() -> None:
    """The budget allows nothing; the request is sent at once, and counts for caps all the same."""
    old = a_pod("old")
    stage = await a_stage(
        a_rollout(old), answers=[Surged("uid-deployment")], objects=(old, a_set("web", 1), a_budget(allowed=0), a_budget("two"))
    )
    task = asyncio.create_task(stage.run())
    await asyncio.sleep(0.5)
    assert [type(each.answer) for each in stage.heard.of(Asked)] == [Surged]
    assert stage.ledger.charges == {}
    assert stage.controller.current is not None
    tally = stage.controller.current.tally
    assert (tally.total, tally.by_workload) == (1, {"uid-deployment": 1})
    ended = await task
    assert ended.accepted == 1


@pytest.mark.parametrize("answer", [Unknown("no reply"), Reported("tried")])
async def test_no_answer_to_a_rollout_charges_a_budget(answer: Reply) -> None:
    """Neither one that may have arrived nor a trial."""
    old = a_pod("old")
    stage = await a_stage(a_rollout(old), answers=[answer], objects=(old, a_set("web", 1), a_budget(allowed=1)))
    task = asyncio.create_task(stage.run())
    await asyncio.sleep(0.5)
    assert len(stage.heard.of(Asked)) == 1
    assert stage.ledger.charges == {}
    await task


async def test_what_a_rollout_brings_is_no_change_of_the_world() -> None:
    """The replacement belongs to a ReplicaSet that nobody knew, and lands where the next one of the plan is expected too."""
    old, other = a_pod("old"), a_pod("other", app="other")
    stage = await a_stage(
        a_rollout(old, n2=1.0),
        an_approval(other, n2=1.0),
        answers=[Surged("uid-deployment")],
        objects=(old, other, a_set("web", 1), a_replica_set("other", 2)),
    )
    looks: list[int] = []

    def lands(approval: Approval) -> None:
        """Have the replacement of the first one land."""
        looks.append(len(stage.looks))
        if approval.rollout:
            stage.told(stage.world.put(a_set("next", 1)))
            stage.told(stage.world.put(a_pod("new", "n2", app="next", phase="Pending")))

    stage.cluster.hook = lands
    await stage.run()
    assert looks == [1, 1]


@pytest.mark.parametrize("first", ["rollout", "eviction"])
async def test_what_is_forbidden_of_rollouts_and_of_evictions_is_kept_apart(first: str) -> None:
    """Each is refused once in a namespace, told in words, and does not stop the other."""
    singles, others = [a_pod("a", app="a"), a_pod("b", app="b")], [a_pod("c", app="c"), a_pod("d", app="d")]
    rollouts = [replace(an_approval(pod), rollout=pod["metadata"]["name"]) for pod in singles]
    evictions = [an_approval(pod) for pod in others]
    refused = rollouts if first == "rollout" else evictions
    allowed = evictions if first == "rollout" else rollouts
    answers: list[Reply] = [Forbidden("you may not")]
    sets = tuple(a_replica_set(name, 1) for name in "abcd")
    stage = await a_stage(*refused, *allowed, answers=answers, objects=(*singles, *others, *sets))
    await stage.run()
    asked = [each.approval.pod for each in stage.heard.of(Asked)]
    assert asked == [refused[0].pod, *(each.pod for each in allowed)]
    (noticed,) = [each for each in stage.heard.of(Noticed) if each.code == "forbidden"]
    assert noticed.text == f"no {first} in namespace ns: you may not"


async def test_a_held_budget_of_others_does_not_hold_a_rollout() -> None:
    """While a budget is asked again and again for an eviction, the rollout under it goes."""
    old, other = a_pod("old"), a_pod("other", app="other")
    other["metadata"]["labels"]["app"] = "web"
    stage = await a_stage(
        an_approval(other),
        a_rollout(old),
        answers=[HeldByBudget("held", 60.0), Surged("uid-deployment")],
        objects=(old, other, a_set("web", 1), a_replica_set("other", 2), a_budget(allowed=1)),
    )
    task = asyncio.create_task(stage.run())
    await asyncio.sleep(5)
    assert [each.approval.pod for each in stage.heard.of(Asked)] == ["ns/other", "ns/old"]
    await task


async def test_a_dry_run_says_that_it_would_be_a_rollout() -> None:
    """The one that asks nobody, and the one that has the server try."""

    class Rolls:
        """Accepts a trial."""

        async def evict(self, approval: Approval) -> Reply:
            """Say that a rollout began."""
            return Surged("uid-deployment")

    answer = await OnlyReport().evict(a_rollout(a_pod("old")))
    assert answer == Reported("ns/old would have been replaced by a rollout of Deployment web")
    assert isinstance(await ServerTries(Rolls()).evict(a_rollout(a_pod("old"))), Reported)
