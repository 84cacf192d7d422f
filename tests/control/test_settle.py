"""Following replacements: which pod it is, when a move has settled, what is learnt. The evictor's side is in test_evictor."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from rebalancer.control.cooldown import Cooldowns
from rebalancer.control.happenings import Noticed, Settled
from rebalancer.control.lessons import Lessons
from rebalancer.control.settle import SettleTimes, Settling
from rebalancer.model.change import Bookmark
from tests.control.cluster import Json, World, a_node, a_pod, an_approval
from tests.control.virtual import Heard

pytestmark = pytest.mark.looptime


class Follower:
    """A world with two pods of one owner on n1, one of which goes."""

    def __init__(self, world: World) -> None:
        """Follow in this world."""
        self.world = world
        self.heard = Heard()
        self.settling = Settling(world.clock, world.cache, self.heard, SettleTimes(settle=300.0, unknown=15.0))
        self.cooldowns = Cooldowns(first_seconds=600.0, most_seconds=21_600.0)
        self.lessons = Lessons(world.clock, self.cooldowns, self.settling.accuracy, self.heard)
        self.settling.when_finished(self.lessons.finished)

    def follow(self, pod: Json, *, certain: bool = True, strategy: str = "RemoveDuplicates", **landings: float) -> None:
        """Begin to follow a pod's replacement."""
        approval = replace(an_approval(pod, **landings), strategy=strategy)
        known = self.settling.siblings(approval.owner_uid)
        self.settling.follow(approval, self.world.pod(pod["metadata"]["name"]), known, certain=certain)

    def put(self, pod: Json) -> None:
        """Have a pod change, and tell."""
        self.settling.on_facts(self.world.put(pod))

    def remove(self, pod: Json) -> None:
        """Have a pod go, and tell."""
        self.settling.on_facts(self.world.remove(pod))

    @property
    def settled(self) -> list[Settled]:
        """What has settled."""
        return self.heard.of(Settled)


async def a_follower(*more: Json) -> Follower:
    """Return a follower in a world with three nodes."""
    nodes = [a_node("n1"), a_node("n2"), a_node("n3")]
    return Follower(await World(*nodes, a_pod("old"), a_pod("sibling"), *more).sync())


async def test_the_first_new_pod_of_the_owner_is_the_replacement() -> None:
    """It is followed from creation over binding to Ready; then its move has settled, with both times."""
    follower = await a_follower()
    follower.follow(a_pod("old"), n2=0.7, n3=0.3)
    await asyncio.sleep(1)
    follower.put(a_pod("old", terminating=True))
    follower.put(a_pod("new", node=None, phase="Pending"))
    await asyncio.sleep(2)
    follower.put(a_pod("new", node="n2", phase="Pending"))
    await asyncio.sleep(4)
    assert follower.settling.count_of("uid-web") == 1
    follower.put(a_pod("new", node="n2"))
    (settled,) = follower.settled
    assert (settled.outcome, settled.replacement, settled.landed) == ("ready", "ns/new", "n2")
    assert (settled.expected, settled.came_back) == (True, False)
    assert settled.bound_seconds == pytest.approx(3)
    assert settled.ready_seconds == pytest.approx(7)
    assert follower.settling.count_of("uid-web") == 0


async def test_a_sibling_that_was_there_before_is_no_replacement() -> None:
    """A pod known before the request cannot be what came of it, even when it turns Ready now."""
    follower = await a_follower(a_pod("starting", node="n2", ready=False))
    follower.follow(a_pod("old"))
    follower.put(a_pod("starting", node="n2", ready=True))
    follower.remove(a_pod("old"))
    assert follower.settled == []


async def test_a_stateful_pod_comes_back_under_its_name() -> None:
    """For a StatefulSet the same name with another uid is the replacement, and nothing else is."""
    old = a_pod("db-0", app="db", kind="StatefulSet")
    follower = await a_follower(old)
    follower.follow(old)
    follower.remove(old)
    follower.put(a_pod("db-1", node="n2", app="db", kind="StatefulSet"))
    assert follower.settled == []
    follower.put(a_pod("db-0", node="n3", app="db", kind="StatefulSet", uid="uid-db-0-again"))
    assert [(each.replacement, each.landed) for each in follower.settled] == [("ns/db-0", "n3")]


async def test_a_replacement_that_goes_away_is_followed_by_the_next() -> None:
    """A replacement that is deleted before it was Ready does not end the following."""
    follower = await a_follower()
    follower.follow(a_pod("old"))
    follower.remove(a_pod("old"))
    follower.put(a_pod("new1", node="n2", ready=False))
    follower.remove(a_pod("new1", node="n2"))
    follower.put(a_pod("new2", node="n3"))
    assert [(each.replacement, each.landed) for each in follower.settled] == [("ns/new2", "n3")]


async def test_a_pod_without_owner_has_settled_when_it_is_gone() -> None:
    """Nothing comes after a bare pod."""
    bare = a_pod("bare", app="", phase="Failed")
    follower = await a_follower(bare)
    follower.follow(bare)
    assert follower.settled == []
    follower.remove(bare)
    assert [each.outcome for each in follower.settled] == ["gone"]


@pytest.mark.parametrize(("wait", "over"), [(299, False), (301, True)], ids=["before", "after"])
async def test_a_replacement_that_is_never_ready_times_out(wait: float, over: bool) -> None:
    """After the settle timeout the slot is free again, and the workload rests."""
    follower = await a_follower()
    follower.follow(a_pod("old"))
    follower.remove(a_pod("old"))
    follower.put(a_pod("new", node="n2", ready=False))
    await asyncio.sleep(wait)
    follower.settling.look()
    assert [each.outcome for each in follower.settled] == (["timeout"] if over else [])
    assert bool(follower.cooldowns.cooling(follower.world.clock.now())) is over


async def test_a_request_without_reply_counts_until_the_watch_had_time_to_tell() -> None:
    """An unknown answer holds its place; when the pod is still there after a while, it was not evicted."""
    follower = await a_follower()
    follower.follow(a_pod("old"), certain=False)
    assert follower.world.cache.snapshot().on("n1")[0].terminating, "for the evaluation it is on its way out"
    await asyncio.sleep(14)
    follower.settling.look()
    assert follower.settled == []
    await asyncio.sleep(2)
    follower.settling.look()
    assert follower.settled == [], "the watch has said nothing since"
    await follower.world.cache.receive(Bookmark("Pod", "2"))
    follower.settling.look()
    assert [each.outcome for each in follower.settled] == ["not-evicted"]
    assert not follower.world.cache.snapshot().on("n1")[0].terminating


async def test_what_the_server_accepted_stays_accepted_although_the_watch_never_says_so() -> None:
    """The server said yes and nothing is seen of it, for a watch has gone deaf: that is a timeout, not a pod that stayed."""
    follower = await a_follower()
    follower.follow(a_pod("old"))
    await asyncio.sleep(301)
    follower.settling.look()
    assert [each.outcome for each in follower.settled] == ["timeout"]


async def test_a_request_without_reply_that_had_effect_is_followed_like_any_other() -> None:
    """Once the pod is seen going, the answer is known."""
    follower = await a_follower()
    follower.follow(a_pod("old"), certain=False)
    follower.put(a_pod("old", terminating=True))
    await asyncio.sleep(20)
    follower.settling.look()
    assert follower.settled == []
    follower.put(a_pod("new", node="n2"))
    assert [each.outcome for each in follower.settled] == ["ready"]


async def test_a_move_that_comes_back_makes_the_workload_rest_twice_as_long_each_time() -> None:
    """Ten minutes, then twenty, up to six hours; forgotten when the set of nodes changes."""
    follower = await a_follower()
    follower.cooldowns.nodes_are(["n1", "n2", "n3"])
    rests = []
    for number in range(8):
        pod, new = a_pod(f"old{number}"), a_pod(f"new{number}", node="n1")
        follower.put(pod)
        follower.follow(pod)
        follower.put(a_pod(f"old{number}", terminating=True))
        follower.put(new)
        assert follower.settled[-1].came_back
        now = follower.world.clock.now()
        rests.append(round(follower.cooldowns.cooling(now)["uid-web", "n1"] - now))
    assert rests == [600, 1200, 2400, 4800, 9600, 19_200, 21_600, 21_600]
    assert not follower.cooldowns.nodes_are(["n3", "n2", "n1"])
    assert follower.cooldowns.nodes_are(["n1", "n2", "n3", "n4"])
    assert follower.cooldowns.cooling(follower.world.clock.now()) == {}


@pytest.mark.parametrize(("strategy", "rests"), [("PodLifeTime", False), ("RemoveFailedPods", False), ("RemoveDuplicates", True)])
async def test_a_pod_that_only_was_to_start_afresh_may_come_back(strategy: str, rests: bool) -> None:
    """Where it does not matter where a replacement lands, it helped; the workload does not rest there."""
    follower = await a_follower()
    follower.follow(a_pod("old"), strategy=strategy)
    follower.put(a_pod("old", terminating=True))
    follower.put(a_pod("new", node="n1"))
    assert follower.settled[-1].came_back
    assert bool(follower.cooldowns.cooling(follower.world.clock.now())) is rests


@pytest.mark.parametrize(("wrong", "distrust"), [(2, False), (3, True)], ids=["at 80 %", "below 80 %"])
async def test_predictions_that_are_wrong_too_often_are_distrusted_loudly(wrong: int, distrust: bool) -> None:
    """Below 80 % of the last moves placement falls back, and a warning says so once."""
    follower = await a_follower()
    for number in range(10):
        pod = a_pod(f"old{number}", app=f"app{number}")
        follower.put(pod)
        follower.follow(pod, n2=1.0)
        follower.remove(pod)
        follower.put(a_pod(f"new{number}", node="n3" if number < wrong else "n2", app=f"app{number}"))
    assert follower.lessons.distrust is distrust
    told = [each for each in follower.heard.of(Noticed) if each.code == "landings-distrusted"]
    assert [each.loud for each in told] == ([True] if distrust else [])


async def test_two_strategies_that_undo_each_other_are_noticed_and_stopped() -> None:
    """One moves a workload from n1 to n2, another back: both are named and the workload is left alone."""
    follower = await a_follower()
    first = an_approval(a_pod("old"))
    follower.settling.follow(first, follower.world.pod("old"), follower.settling.siblings("uid-web"))
    follower.remove(a_pod("old"))
    follower.put(a_pod("new", node="n2"))
    second = replace(an_approval(a_pod("new", node="n2")), strategy="LowNodeUtilization")
    follower.settling.follow(second, follower.world.pod("new"), follower.settling.siblings("uid-web"))
    follower.remove(a_pod("new", node="n2"))
    follower.put(a_pod("newer", node="n1"))
    pair = ("LowNodeUtilization", "RemoveDuplicates")
    assert follower.lessons.stopped(follower.world.clock.now()) == {"uid-web": pair}
    assert [each.values["strategies"] for each in follower.heard.of(Noticed) if each.code == "strategies-at-odds"] == [pair]
