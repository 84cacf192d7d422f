"""The account of budgets: what is charged, when a charge ends. The budget rules themselves are tested in eligibility."""

from __future__ import annotations

import pytest

from rebalancer.control.ledger import Ledger
from tests.control.cluster import World, a_budget, a_node, a_pod

pytestmark = pytest.mark.looptime


async def a_world(*more: dict[str, object], budget: dict[str, object] | None = None) -> tuple[World, Ledger]:
    """Return three pods of one app under a budget that allows one disruption."""
    pods = [a_pod("p1"), a_pod("p2"), a_pod("p3")]
    world = await World(a_node("n1"), *pods, budget or a_budget(), *more).sync()
    return world, Ledger(world.cache.pod)


def left(world: World, ledger: Ledger) -> int:
    """Return how many disruptions the evaluation is told are left."""
    snapshot = world.cache.snapshot()
    ledger.catch_up(snapshot)
    return ledger.lowered(snapshot).budgets["ns"][0].disruptions_allowed


async def test_an_accepted_eviction_is_charged_at_once() -> None:
    """Before the server's status moves, a second pod is refused with the budget's name."""
    world, ledger = await a_world()
    assert ledger.objection(world.pod("p2"), world.cache.snapshot()) is None
    ledger.spend(world.pod("p1"), world.cache.snapshot())
    assert left(world, ledger) == 0
    found = ledger.objection(world.pod("p2"), world.cache.snapshot())
    assert found is not None
    assert found[0] == "budget"
    assert "ns/budget" in found[1]


async def test_a_charge_ends_when_the_status_names_the_pod() -> None:
    """Once disruptedPods holds our pod, the status counts it, and it must not be counted twice."""
    world, ledger = await a_world(budget=a_budget(allowed=2))
    ledger.spend(world.pod("p1"), world.cache.snapshot())
    assert left(world, ledger) == 1
    world.put(a_budget(allowed=1, version="2", disrupted=("p1",)))
    assert left(world, ledger) == 1
    assert ledger.charges == {}


async def test_an_older_or_unrelated_status_does_not_end_a_charge() -> None:
    """A budget event that does not know of our eviction yet leaves the charge standing."""
    world, ledger = await a_world()
    ledger.spend(world.pod("p1"), world.cache.snapshot())
    world.put(a_budget(allowed=1, version="2"))
    assert left(world, ledger) == 0


async def test_a_charge_ends_when_the_pod_goes_and_the_status_comes_after() -> None:
    """The pod seen going is not enough: the budget's next status is waited for."""
    world, ledger = await a_world()
    ledger.spend(world.pod("p1"), world.cache.snapshot())
    world.put(a_budget(allowed=1, version="2"))
    world.put(a_pod("p1", terminating=True))
    assert left(world, ledger) == 0
    world.put(a_budget(allowed=0, version="3", current=2))
    assert left(world, ledger) == 0
    assert ledger.charges == {}, "the status itself says 0 now"


async def test_a_charge_that_turns_out_wrong_is_given_back() -> None:
    """A request that had no effect frees what it held."""
    world, ledger = await a_world()
    ledger.spend(world.pod("p1"), world.cache.snapshot())
    ledger.give_back("uid-p1")
    assert left(world, ledger) == 1


@pytest.mark.parametrize(
    ("pod", "budget"),
    [
        (a_pod("p1", phase="Pending", node=None), a_budget()),
        (a_pod("p1", phase="Failed"), a_budget()),
        (a_pod("p1", terminating=True), a_budget()),
        (a_pod("p1", ready=False), a_budget(always_allow=True)),
        (a_pod("p1", ready=False), a_budget(current=2, desired=2)),
    ],
    ids=["pending", "finished", "terminating", "unready and AlwaysAllow", "unready and the budget healthy"],
)
async def test_what_the_server_would_not_check_spends_nothing(pod: dict[str, object], budget: dict[str, object]) -> None:
    """Pods that the server lets go without looking at the budget are not charged to it."""
    world, ledger = await a_world(budget=budget)
    world.put(pod)
    ledger.spend(world.pod("p1"), world.cache.snapshot())
    assert ledger.charges == {}


async def test_an_unready_pod_of_an_unhealthy_budget_is_charged() -> None:
    """IfHealthyBudget protects an unready pod while too few are healthy."""
    world, ledger = await a_world(budget=a_budget(current=1, desired=2))
    world.put(a_pod("p1", ready=False))
    ledger.spend(world.pod("p1"), world.cache.snapshot())
    assert ledger.charges == {"ns/budget": 1}


async def test_two_budgets_on_a_pod_are_named_and_no_request_is_worth_sending() -> None:
    """The server refuses a pod with two budgets, so it is not asked, and the reason names both."""
    world, ledger = await a_world(a_budget("other"))
    found = ledger.objection(world.pod("p1"), world.cache.snapshot())
    assert found is not None
    assert found[0] == "budgets-several"
    assert "ns/budget" in found[1]
    assert "ns/other" in found[1]
