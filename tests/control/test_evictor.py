"""What stands between an approved plan and a moved pod. Which pods are approved is decided elsewhere, here by a script."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from rebalancer.control.caps import CapSet
from rebalancer.control.evictor import Pace
from rebalancer.control.happenings import Asked, LimitReached, Noticed, Passed
from rebalancer.control.ports import Circumstances, Reported
from rebalancer.control.windows import Window
from rebalancer.errors import KubeUnavailable
from rebalancer.model.answer import (
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
from rebalancer.model.cap import Cap
from rebalancer.model.change import Disconnected
from tests.control.cluster import Json, World, a_budget, a_node, a_pod, a_replica_set
from tests.control.stage import Script, Stage, moving
from tests.control.virtual import EPOCH

pytestmark = pytest.mark.looptime
NODES = (a_node("n1"), a_node("n2"))


def apps(count: int, node: str = "n1") -> list[Json]:
    """Return pods of as many workloads, one each."""
    return [a_pod(f"p{number}", node, app=f"app{number}") for number in range(count)]


async def a_stage(pods: list[Json], *more: Json, **options: object) -> Stage:
    """Return a stage on which these pods are to move."""
    world = await World(*NODES, *pods, *more).sync()
    return Stage(world, moving(pods), **options)  # type: ignore[arg-type]


async def test_a_plan_is_carried_out_in_its_order_and_looked_at_again() -> None:
    """Every approved pod goes, in order; a last look finds nothing left to gain."""
    stage = await a_stage(apps(3))
    ended = await stage.run()
    assert stage.evicted == ["ns/p0", "ns/p1", "ns/p2"]
    assert (ended.ending, ended.accepted, ended.left) == ("done", 3, 0)
    assert len(stage.looks) == 2


async def test_one_move_per_workload_until_its_replacement_is_ready() -> None:
    """The second pod of a workload goes only once the first one's replacement is Ready; another workload need not wait."""
    pods = [a_pod("a1", app="a"), a_pod("a2", app="a"), a_pod("b1", app="b")]
    stage = await a_stage(pods, script=Script(shutdown_seconds=2, startup_seconds=3))
    await stage.run()
    moments = {pod: moment for moment, pod in stage.cluster.asked}
    assert stage.evicted == ["ns/a1", "ns/b1", "ns/a2"]
    assert moments["ns/b1"] - moments["ns/a1"] < 0.1
    assert moments["ns/a2"] - moments["ns/a1"] >= 5


@pytest.mark.parametrize("limit", [1, 2, 5], ids=["one", "two", "five"])
async def test_never_more_in_flight_than_allowed(limit: int) -> None:
    """At no moment are more replacements awaited than the limit says."""
    stage = await a_stage(apps(8), pace=Pace(in_flight=limit), script=Script(shutdown_seconds=1, startup_seconds=4))
    most = 0

    def count(_: object) -> None:
        """Note how many are awaited."""
        nonlocal most
        most = max(most, len(stage.settling.moves) + 1)

    stage.cluster.hook = count
    await stage.run()
    assert len(stage.evicted) == 8
    assert most == limit


async def test_never_more_in_a_minute_than_allowed() -> None:
    """With three per minute, no 60 s hold more than three requests, and all go in the end."""
    stage = await a_stage(apps(10), per_minute=3)
    await stage.run()
    moments = [moment for moment, _ in stage.cluster.asked]
    assert len(moments) == 10
    assert all(sum(begin <= moment <= begin + 60 for moment in moments) <= 3 for begin in moments)
    assert moments[-1] - moments[0] < 185, "no slower than needed"
    assert stage.stuck == [], "a run that waits is alive"


async def test_limits_on_node_namespace_and_total_f12() -> None:
    """At most 3 from each node, 4 from ns1, 5 in all; a full namespace does not stop others; one line per limit (F12)."""
    pods = [
        *(a_pod(f"b{number}", "n1", app=f"b{number}") for number in range(2)),
        *(a_pod(f"a{number}", "n1", app=f"a{number}") for number in range(3)),
        *(a_pod(f"c{number}", "n2", app=f"c{number}") for number in range(5)),
    ]
    for pod in pods:
        pod["metadata"]["namespace"] = "ns2" if pod["metadata"]["name"].startswith("b") else "ns1"
    caps = CapSet("policy", node=Cap(number=3), namespace=Cap(number=4), total=Cap(number=5))
    stage = await a_stage(pods, caps=[caps], script=Script(lands="n1", answers=[]), pace=Pace(in_flight=10))
    await stage.run()
    assert len(stage.evicted) == 5
    for node in ("n1", "n2"):
        assert sum(each.approval.node == node for each in stage.heard.of(Asked)) <= 3
    assert sum(pod.startswith("ns1/") for pod in stage.evicted) <= 4
    told = [each.limit for each in stage.heard.of(LimitReached)]
    assert len(told) == len(set(told))


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        ([CapSet("settings", node=Cap(number=0))], 0),
        ([CapSet("settings", node=Cap(number=2))], 2),
        ([CapSet("settings", node=Cap(number=4)), CapSet("policy", total=Cap(number=3))], 3),
        ([CapSet("settings", node=Cap(percent=50))], 2),
        ([CapSet("settings", node=Cap(number=99))], 4),
        ([], 4),
    ],
    ids=["nothing at all", "a number", "the tighter of two", "half of four", "more than there are", "none"],
)
async def test_caps_of_a_run(sets: list[CapSet], expected: int) -> None:
    """Numbers and percentages, of settings and policy: the tighter one holds over all looks of a run."""
    stage = await a_stage(apps(4), caps=sets)
    ended = await stage.run()
    assert len(stage.evicted) == expected == ended.accepted


async def test_a_budget_of_one_lets_four_go_one_at_a_time_f4() -> None:
    """Budget 1, four candidates, three seconds to stop: all four go before the deadline, one at a time, no refusals (F4)."""
    pods = [a_pod(f"w{number}") for number in range(4)]
    stage = await a_stage(pods, a_budget(allowed=1, current=9), script=Script(shutdown_seconds=3, budget_allows=1), deadline=60)
    ended = await stage.run()
    moments = [moment for moment, _ in stage.cluster.asked]
    assert len(stage.evicted) == 4 == ended.accepted
    assert ended.refused == 0
    assert all(later - earlier >= 3 for earlier, later in itertools.pairwise(moments))


async def test_a_short_deadline_ends_a_run_that_waits_for_a_budget_f4() -> None:
    """With a deadline shorter than the shutdown only one goes, and nothing is shouted (F4)."""
    pods = [a_pod(f"w{number}") for number in range(4)]
    stage = await a_stage(pods, a_budget(allowed=1, current=9), script=Script(shutdown_seconds=3, budget_allows=1), deadline=2)
    ended = await stage.run()
    assert len(stage.evicted) == 1
    assert ended.ending == "deadline"
    assert not [each for each in stage.heard.of(Noticed) if each.loud]


async def test_a_refusal_by_a_budget_is_tried_again_with_growing_pauses() -> None:
    """Held, held, accepted: two seconds, then four; and Retry-After wins where it is longer."""
    answers = [HeldByBudget("held"), HeldByBudget("held"), HeldByBudget("held", retry_after_seconds=30.0)]
    stage = await a_stage(apps(1), script=Script(answers=list(answers)))
    ended = await stage.run()
    moments = [moment for moment, _ in stage.cluster.asked]
    gaps = [later - earlier for earlier, later in itertools.pairwise(moments)]
    assert gaps == [pytest.approx(2, abs=0.6), pytest.approx(4, abs=0.6), pytest.approx(30, abs=0.6)]
    assert (ended.accepted, ended.refused) == (1, 3)


async def test_one_refusal_holds_back_every_pod_of_the_budget_but_no_other() -> None:
    """After a refusal the other pods of that budget wait along; a pod outside of it goes at once."""
    pods = [a_pod("w1", app="web"), a_pod("w2", app="web"), a_pod("x", app="other")]
    script = Script(answers=[HeldByBudget("held")])
    stage = await a_stage(pods, a_budget(allowed=2, current=9), script=script, pace=Pace(per_workload=2))
    await stage.run()
    asked = [pod for _, pod in stage.cluster.asked]
    assert asked[:2] == ["ns/w1", "ns/x"]
    assert sorted(asked[2:]) == ["ns/w1", "ns/w2"]


async def test_a_budget_over_two_workloads_is_not_spent_twice_while_its_watch_lags() -> None:
    """The budget's status has not moved yet, but one of its two pods was accepted: the other is not asked for."""
    pods = apps(2)
    for pod in pods:
        pod["metadata"]["labels"]["app"] = "web"
    stage = await a_stage(pods, a_budget(allowed=1, current=9), deadline=30)
    ended = await stage.run()
    assert stage.evicted == ["ns/p0"]
    assert (ended.refused, ended.ending) == (0, "deadline")


async def test_two_budgets_mean_no_request() -> None:
    """A pod with two budgets is passed over with both names; the next one goes."""
    pods = [a_pod("w1", app="web"), a_pod("x", app="other")]
    stage = await a_stage(pods, a_budget("one"), a_budget("two"))
    await stage.run()
    assert stage.evicted == ["ns/x"]
    (passed,) = stage.heard.of(Passed)
    assert passed.code == "budgets-several"
    assert "ns/one" in passed.reason
    assert "ns/two" in passed.reason


async def test_throttling_slows_everything_down() -> None:
    """After a 429 without a budget nothing at all goes for a while, longer each time, at least Retry-After."""
    answers = [Throttled("slow"), Throttled("slow"), Throttled("slow", retry_after_seconds=20.0)]
    stage = await a_stage(apps(3), script=Script(answers=list(answers)))
    await stage.run()
    moments = [moment for moment, _ in stage.cluster.asked]
    gaps = [later - earlier for earlier, later in itertools.pairwise(moments)]
    assert gaps[:3] == [pytest.approx(1, abs=0.6), pytest.approx(2, abs=0.6), pytest.approx(20, abs=0.6)]
    assert len(stage.evicted) == 3


@pytest.mark.parametrize("answer", [Gone("gone"), Replaced("other uid"), Invalid("no"), Unsupported("two budgets")], ids=repr)
async def test_a_final_answer_ends_the_matter_for_this_pod_and_uses_no_cap(answer: object) -> None:
    """The pod is not asked for again in this run, and the cap is there for another one."""
    stage = await a_stage(apps(3), script=Script(answers=[answer]), caps=[CapSet("settings", total=Cap(number=2))])  # type: ignore[list-item]
    ended = await stage.run()
    assert stage.evicted == ["ns/p1", "ns/p2"]
    assert [pod for _, pod in stage.cluster.asked].count("ns/p0") == 1
    assert (ended.accepted, ended.refused) == (2, 1)


async def test_a_missing_permission_is_told_and_its_namespace_left_alone() -> None:
    """RBAC revoked: a loud sentence, no further request in that namespace in this run."""
    stage = await a_stage(apps(3), script=Script(answers=[Forbidden("no permission")]))
    await stage.run()
    assert len(stage.cluster.asked) == 1
    assert [(each.code, each.loud) for each in stage.heard.of(Noticed)] == [("forbidden", True)]


async def test_a_budget_in_a_bad_state_is_tried_again_later() -> None:
    """A 403 that is about the budget is no missing permission."""
    stage = await a_stage(apps(1), script=Script(answers=[BudgetForbidden("status is stale")]))
    await stage.run()
    assert stage.evicted == ["ns/p0"]
    assert not stage.heard.of(Noticed)


async def test_a_pod_is_never_asked_for_twice_after_acceptance() -> None:
    """Even where the watch is late and the evaluation names the pod again and again, one request is all."""
    pods = apps(1)
    world = await World(*NODES, *pods).sync()
    approved = moving(pods)(world.cache.snapshot(), Circumstances())
    stage = Stage(world, lambda snapshot, _: approved, script=Script(shutdown_seconds=120.0), deadline=200.0)
    await stage.run()
    assert [pod for _, pod in stage.cluster.asked] == ["ns/p0"]
    assert {each.code for each in stage.heard.of(Passed)} <= {"asked-before", "gone"}


async def test_an_unknown_answer_counts_as_accepted() -> None:
    """Sent without a reply: it uses the cap and is not repeated while nobody knows."""
    stage = await a_stage(apps(2), script=Script(answers=[Unknown("no reply")]), caps=[CapSet("settings", total=Cap(number=1))])
    ended = await stage.run()
    assert [pod for _, pod in stage.cluster.asked] == ["ns/p0"]
    assert ended.accepted == 1


@pytest.mark.parametrize(("background", "expected"), [(True, 1), (False, 3)], ids=["understood", "not understood"])
async def test_evictions_that_others_carry_out_count_until_they_end(background: bool, expected: int) -> None:
    """Two pods are being evicted by somebody else: of a cap of three, one is left."""
    others = [a_pod(f"vm{number}", "n2", app=f"vm{number}") for number in range(2)]
    for pod in others:
        pod["metadata"]["annotations"] = {"descheduler.alpha.kubernetes.io/eviction-in-progress": ""}
    pods = apps(4)
    world = await World(*NODES, *pods, *others).sync()
    stage = Stage(world, moving(pods), caps=[CapSet("settings", total=Cap(number=3))], background=background)
    await stage.run()
    assert len(stage.evicted) == expected


async def test_an_eviction_in_the_background_is_not_asked_for_again() -> None:
    """Taken over by somebody else, the pod stays for a while: one request is all."""
    stage = await a_stage(apps(1), script=Script(answers=[InBackground("Eviction triggered evacuation")]), deadline=100)
    ended = await stage.run()
    await stage.run()
    assert [pod for _, pod in stage.cluster.asked] == ["ns/p0"]
    assert ended.accepted == 1


async def test_a_dry_run_reports_the_whole_plan_every_time() -> None:
    """What only reports uses caps, is followed by nothing, and may be reported again by the next run."""
    stage = await a_stage(apps(3), script=Script(answers=[Reported(), Reported(), Reported()] * 2))
    for _ in range(2):
        ended = await stage.run()
        assert (ended.ending, ended.accepted) == ("done", 3)
    assert len(stage.cluster.asked) == 6
    assert stage.settling.moves == ()
    assert len(stage.looks) == 2


async def test_a_window_that_closes_ends_the_run_between_two_evictions_and_keeps_its_triggers() -> None:
    """Nothing goes after the closing; what triggered the run waits for the next opening."""
    window = Window("* * * * *", 0.0 + 20.0)
    opens = 60 - EPOCH % 60
    await asyncio.sleep(opens)
    stage = await a_stage(apps(6), windows=[window], per_minute=None, pace=Pace(in_flight=1), script=Script(startup_seconds=4))
    ended = await stage.run()
    assert ended.ending == "closed"
    assert 0 < len(stage.evicted) < 6
    assert all(moment - opens <= 20 for moment, _ in stage.cluster.asked)
    assert stage.debounce.waiting == ended_triggers()


def ended_triggers() -> tuple[object, ...]:
    """Return what the batch of a stage's run consists of."""
    from tests.control.stage import BATCH

    return BATCH.triggers


async def test_nothing_goes_while_a_watch_is_stale_and_the_rest_goes_when_it_is_back() -> None:
    """Disconnected for ten seconds means stale: requests stop, and resume on a new look after the connection is back."""
    stage = await a_stage(apps(8), pace=Pace(in_flight=1), script=Script(startup_seconds=4))
    world = stage.world

    async def weather() -> None:
        """Cut the watch, and have it taken up again."""
        await asyncio.sleep(3)
        await world.cache.receive(Disconnected("Pod", "cut"))
        await asyncio.sleep(40)
        await world.sync_connection("Pod")

    going = asyncio.create_task(weather())
    await stage.run()
    await going
    moments = [moment for moment, _ in stage.cluster.asked]
    assert len(moments) == 8
    assert not [moment for moment in moments if 13.01 < moment < 43]


async def test_a_pod_that_has_changed_since_is_looked_at_again() -> None:
    """Right before the request the newest snapshot decides: a changed pod ends the plan, and a new look follows."""
    pods = apps(2)
    stage = await a_stage(pods)

    def change(_: object) -> None:
        """Change the second pod while the first is asked for."""
        stage.cluster.hook = lambda _: None
        protected = a_pod("p1", app="app1")
        protected["metadata"]["labels"]["changed"] = "yes"
        stage.told(stage.world.put(protected))

    stage.cluster.hook = change
    await stage.run()
    assert [each.code for each in stage.heard.of(Passed)] == ["pod-changed"]
    assert len(stage.looks) == 3


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (a_pod("stranger", "n1", app="stranger"), "source-changed"),
        (a_pod("stranger", "n2", app="stranger"), "landings-changed"),
        (a_node("n2", cordoned=True), "landings-changed"),
        (a_replica_set("app1", replicas=5, generation=2), "workload-changed"),
    ],
    ids=["a pod came to its node", "a pod came to its landing", "its landing was cordoned", "its workload was scaled"],
)
async def test_a_world_that_changed_ends_the_plan(change: Json, code: str) -> None:
    """What an approval rests on has changed by somebody else's doing: the run looks again before it goes on."""
    pods = apps(2)
    world = await World(*NODES, *pods, a_replica_set("app0", 1), a_replica_set("app1", 1)).sync()
    stage = Stage(world, moving(pods, n2=1.0))

    def happen(_: object) -> None:
        """Change the world while the first pod is asked for."""
        stage.cluster.hook = lambda _: None
        stage.told(world.put(change))

    stage.cluster.hook = happen
    await stage.run()
    looked_again = [each.code for each in stage.heard.of(Passed)] == [code] or change["kind"] == "Node"
    assert looked_again
    assert len(stage.looks) == 3


async def test_our_own_replacements_are_no_change_of_the_world() -> None:
    """What this run moved itself may come to the landings of the next pod without a new look in between."""
    pods = apps(4)
    world = await World(*NODES, *pods).sync()
    stage = Stage(world, moving(pods, n2=1.0))
    await stage.run()
    assert not stage.heard.of(Passed)
    assert len(stage.looks) == 2


@pytest.mark.parametrize(
    ("landings", "looks"), [({"n2": 1.0}, 4), ({}, 2)], ids=["its room was taken as held", "nothing was foreseen"]
)
async def test_the_next_of_a_workload_is_decided_anew_once_the_last_is_gone(landings: dict[str, float], looks: int) -> None:
    """Room that a plan took as held is given back: the next is left to the next look, and other workloads go on meanwhile."""
    pods = [*(a_pod(f"a{number}", app="a") for number in range(3)), a_pod("b", app="b")]
    world = await World(*NODES, *pods).sync()
    stage = Stage(world, moving(pods, **landings), script=Script(shutdown_seconds=2, startup_seconds=3))
    await stage.run()
    assert stage.evicted == ["ns/a0", "ns/b", "ns/a1", "ns/a2"]
    assert {each.code for each in stage.heard.of(Passed)} == ({"room-given-back"} if looks > 2 else set())
    assert len(stage.looks) == looks


async def test_the_next_of_a_workload_goes_at_once_while_the_last_still_terminates() -> None:
    """Nothing has been given back yet, so all is as planned; with two in flight per workload nobody waits."""
    pods = [a_pod(f"a{number}", app="a") for number in range(2)]
    world = await World(*NODES, *pods).sync()
    stage = Stage(world, moving(pods, n2=1.0), script=Script(shutdown_seconds=30), pace=Pace(per_workload=2))
    await stage.run()
    assert stage.evicted == ["ns/a0", "ns/a1"]
    assert not stage.heard.of(Passed)


class BrokenState:
    """A StatePort that fails a number of times, or is always overtaken."""

    def __init__(self, failures: int = 0, overtaken: bool = False) -> None:
        """Fail so often."""
        self.failures = failures
        self.overtaken = overtaken
        self.version = 0

    async def read(self) -> tuple[str, str]:
        """Return nothing yet."""
        return "", str(self.version)

    async def write(self, text: str, version: str) -> str | None:
        """Fail, or not."""
        if self.overtaken:
            return None
        if self.failures:
            self.failures -= 1
            raise KubeUnavailable("no answer")
        self.version += 1
        return str(self.version)


async def test_nothing_is_sent_that_could_not_be_accounted_for() -> None:
    """Where the account cannot be written, no request goes out; once it can, the rest follows."""
    stage = await a_stage(apps(2), state=BrokenState(failures=3))
    ended = await stage.run()
    assert len(stage.evicted) == 2 == ended.accepted
    assert [each.code for each in stage.heard.of(Noticed)] == ["state-unwritten"]
    assert stage.cluster.asked[0][0] > 3


async def test_a_process_that_was_overtaken_sends_nothing() -> None:
    """Somebody else has written the account since: this process may believe to lead, but it may not ask."""
    stage = await a_stage(apps(2), state=BrokenState(overtaken=True))
    ended = await stage.run()
    assert ended.ending == "fenced"
    assert stage.cluster.asked == []


async def test_a_budget_that_is_gone_by_the_time_of_the_request_holds_it_back() -> None:
    """While the account was being written, somebody else used the budget up: no request goes out before it has recovered."""
    pod = a_pod("p0", app="web")
    world = await World(*NODES, pod, a_budget(allowed=1, version="1")).sync()

    class Meanwhile(BrokenState):
        """A state whose first write takes as long as it takes others to use the budget up."""

        async def write(self, text: str, version: str) -> str | None:
            """Write, and have the budget change meanwhile, and recover five seconds later."""
            if self.version == 0:
                stage.told(world.put(a_budget(allowed=0, version="2")))
                asyncio.get_running_loop().call_later(5.0, lambda: stage.told(world.put(a_budget(allowed=1, version="3"))))
            return await super().write(text, version)

    stage = Stage(world, moving([pod]), state=Meanwhile())
    await stage.run()
    assert stage.evicted == ["ns/p0"]
    ((moment, _),) = stage.cluster.asked
    assert moment > 5
