"""Cases F4, F11 and F12 once more, in the controller: timing edges, several budgets, percentages, every answer of the server."""

from __future__ import annotations

import itertools

import pytest

from rebalancer.control.caps import CapSet
from rebalancer.control.evictor import Pace
from rebalancer.control.happenings import LimitReached, Noticed
from rebalancer.control.rate import SlidingWindow
from rebalancer.control.tally import Tally
from rebalancer.model.answer import Answer, BudgetForbidden, Gone, HeldByBudget, Replaced, Throttled, Unknown
from rebalancer.model.cap import Cap
from tests.control.cluster import Json, World, a_budget, a_node, a_pod, a_replica_set, an_approval
from tests.control.stage import Script, Stage, moving

pytestmark = pytest.mark.looptime


async def a_stage(pods: list[Json], *more: Json, **options: object) -> Stage:
    """Return a stage with two nodes on which these pods are to move."""
    world = await World(a_node("n1"), a_node("n2"), *pods, *more).sync()
    return Stage(world, moving(pods), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("deadline", "expected"), [(20.0, 4), (10.0, 3), (6.0, 2), (3.0, 1), (2.0, 1)])
async def test_f4_as_many_go_as_the_deadline_has_room_for(deadline: float, expected: int) -> None:
    """F4: budget 1, four candidates, 3 s of shutdown: one after the other until the deadline, quietly, never refused."""
    pods = [a_pod(f"w{number}") for number in range(4)]
    script = Script(shutdown_seconds=3, startup_seconds=1, budget_allows=1)
    stage = await a_stage(pods, a_budget(allowed=1, current=9), script=script, deadline=deadline)
    ended = await stage.run()
    moments = [moment for moment, _ in stage.cluster.asked]
    assert len(stage.evicted) == expected == ended.accepted
    assert ended.refused == 0
    assert all(later - earlier >= 3 for earlier, later in itertools.pairwise(moments))
    assert not [each for each in stage.heard.of(Noticed) if each.loud]


async def test_f4_forty_candidates_and_a_budget_of_ten_with_three_minutes_of_shutdown() -> None:
    """F4, as reported: all forty go in one run with a deadline of an hour, never more than ten at once, and none is refused."""
    pods = [a_pod(f"w{number:02}") for number in range(40)]
    script = Script(shutdown_seconds=180, budget_allows=10)
    budget = a_budget(allowed=10, current=40, desired=30)
    stage = await a_stage(pods, budget, script=script, deadline=3600.0, pace=Pace(in_flight=40, per_workload=40))
    ended = await stage.run()
    moments = [moment for moment, _ in stage.cluster.asked]
    assert len(stage.evicted) == 40
    assert ended.refused == 0
    assert all(sum(begin <= moment < begin + 180 for moment in moments) <= 10 for begin in moments)


async def test_f4_a_budget_that_never_recovers_holds_up_no_other() -> None:
    """F4: beside a workload whose budget allows nothing, one with a budget of one goes on pod by pod."""
    pods = [a_pod(f"{app}{number}", app=app) for app in ("api", "web") for number in range(3)]
    script = Script(shutdown_seconds=3, budget_allows=1)
    budgets = (a_budget(allowed=1, current=9), a_budget("api", app="api", allowed=0, current=9))
    stage = await a_stage(pods, *budgets, script=script, deadline=60.0)
    ended = await stage.run()
    assert stage.evicted == ["ns/web0", "ns/web1", "ns/web2"]
    assert (ended.refused, ended.ending) == (0, "deadline")


async def test_f4_a_budget_whose_status_lies_is_asked_again_quietly() -> None:
    """F4: where only the server knows that the budget is spent, the pauses grow, nothing is loud and all go in the end."""
    pods = [a_pod(f"w{number}") for number in range(3)]
    held: list[Answer] = [HeldByBudget("held"), BudgetForbidden("stale"), HeldByBudget("held", retry_after_seconds=10.0)]
    stage = await a_stage(pods, a_budget(allowed=9, current=9), script=Script(answers=list(held)), deadline=120.0)
    ended = await stage.run()
    moments = [moment for moment, _ in stage.cluster.asked]
    assert len(stage.evicted) == 3
    assert ended.refused == 3
    assert [later - earlier for earlier, later in itertools.pairwise(moments)][:3] == [
        pytest.approx(2, abs=0.6),
        pytest.approx(4, abs=0.6),
        pytest.approx(10, abs=0.6),
    ]
    assert not [each for each in stage.heard.of(Noticed) if each.loud]


@pytest.mark.parametrize(
    ("limit", "seconds", "asks"),
    [
        (2, 300.0, {0.0: True, 1.0: True, 150.0: False, 299.0: False, 300.5: True, 300.6: False, 301.5: True}),
        (3, 60.0, {0.0: True, 20.0: True, 40.0: True, 59.9: False, 60.1: True, 61.0: False, 80.1: True}),
        (1, 300.0, {0.0: True, 299.9: False, 300.1: True, 600.0: False, 600.3: True}),
    ],
)
def test_f11_denied_requests_use_nothing_and_given_ones_count_the_whole_window(
    limit: int, seconds: float, asks: dict[float, bool]
) -> None:
    """F11: a permit is free again only when one of those given has left the window; what was denied does not count."""
    window = SlidingWindow(limit, seconds)
    assert {moment: window.take(moment) for moment in asks} == asks


@pytest.mark.parametrize(
    ("percent", "there", "expected"), [(50, 10, 5), (30, 10, 3), (10, 20, 2), (100, 5, 5), (1, 5, 1), (0, 5, 0)]
)
@pytest.mark.parametrize("kind", ["node", "namespace", "workload", "total"])
async def test_f12_a_percentage_is_of_what_was_there_when_the_run_began(
    kind: str, percent: float, there: int, expected: int
) -> None:
    """F12: pods that leave, and replacements that come beside them, change no limit while the run goes on; it is told once."""
    pods = [a_pod(f"p{number:02}", app="web" if kind == "workload" else f"app{number}") for number in range(there)]
    owner = [a_replica_set("web", there)] if kind == "workload" else []
    stage = await a_stage(pods, *owner, caps=[CapSet("settings", **{kind: Cap(percent=percent)})], pace=Pace(in_flight=3))
    ended = await stage.run()
    assert len(stage.evicted) == expected == ended.accepted
    assert len(stage.heard.of(LimitReached)) == (1 if expected < there else 0)


@pytest.mark.parametrize("known", [True, False], ids=["its ReplicaSet is known", "it is not"])
async def test_f12_the_limit_of_a_workload_is_told_once_and_by_name(known: bool) -> None:
    """F12: one line for the workload, not one for each of its pods that stays."""
    pods = [a_pod(f"p{number}") for number in range(6)]
    stage = await a_stage(pods, *([a_replica_set("web", 6)] if known else []), caps=[CapSet("settings", workload=Cap(number=2))])
    await stage.run()
    assert len(stage.evicted) == 2
    assert [each.limit for each in stage.heard.of(LimitReached)] == ["2 of ReplicaSet ns/web (settings)"]


def test_f12_what_percentages_are_of_survives_a_restart() -> None:
    """F12: a run that is gone on with by another process has the same limits; what nothing was taken from is counted anew."""
    tally = Tally(0.0)
    tally.count(an_approval(a_pod("p")))
    assert [tally.whole("node", "n1", lambda: 10), tally.whole("node", "n2", lambda: 5), tally.whole("total", "", lambda: 15)]
    again = Tally.from_dict(tally.to_dict())
    assert (again.whole("node", "n1", lambda: 9), again.whole("total", "", lambda: 14)) == (10, 15)
    assert again.whole("node", "n2", lambda: 6) == 6
    without = {key: value for key, value in tally.to_dict().items() if key != "wholes"}
    assert Tally.from_dict(without).whole("node", "n1", lambda: 9) == 9


@pytest.mark.parametrize(
    ("answer", "asked", "accepted"),
    [
        (Gone("404"), 1, 2),
        (Replaced("409"), 1, 2),
        (Throttled("429", retry_after_seconds=7.0), 2, 3),
        (Throttled("429"), 2, 3),
        (HeldByBudget("429", retry_after_seconds=7.0), 2, 3),
        (Unknown("timeout"), 1, 3),
    ],
    ids=["404", "409", "429 with Retry-After", "429", "429 of a budget", "500 or no reply"],
)
async def test_f12_only_what_may_have_happened_uses_a_limit_up(answer: Answer, asked: int, accepted: int) -> None:
    """F12: with three pods and a limit of three, a refusal leaves the limit to others, and an unclear answer counts."""
    pods = [a_pod(f"p{number}", app=f"app{number}") for number in range(3)]
    stage = await a_stage(pods, script=Script(answers=[answer]), caps=[CapSet("settings", total=Cap(number=3))], deadline=300.0)
    ended = await stage.run()
    assert [pod for _, pod in stage.cluster.asked].count("ns/p0") == asked
    assert ended.accepted == accepted
