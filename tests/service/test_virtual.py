"""The whole service in virtual time: single-node clusters, windows, hot moments that processes would take too long for.

Its policy moves pods only where the cluster has changed, so that quiet is quiet. Chosen stories of faults and failovers are in
``tests/histories/test_stories.py``.
"""

from __future__ import annotations

import asyncio

import pytest

from rebalancer.control.happenings import Noticed, RunEnded, RunStarted
from rebalancer.kube.resources import RESOURCES
from rebalancer.model.trigger import TriggerKind
from rebalancer.sim.faults import Fault, Trouble
from rebalancer.sim.kinds import NODE
from tests.control.virtual import Heard
from tests.histories.story import tell
from tests.histories.world import World
from tests.service.process import POLICY


def requests(world: World) -> int:
    """Return how many evictions were sent."""
    return world.witness.counts["requests"]


def woken_by(heard: Heard) -> set[TriggerKind]:
    """Return the kinds of triggers that led to runs."""
    return {trigger.kind for run in heard.of(RunStarted) for trigger in run.batch.triggers}


def test_on_one_ready_node_it_keeps_running_and_acts_when_there_is_a_second_h6() -> None:
    """Nothing is evicted on a single node, the process stays up, and a second node is a trigger (H6)."""
    heard = Heard()

    async def story(world: World) -> None:
        """Tell what happens."""
        for name in ("node-02", "node-03"):
            node = world.cluster.registry.get(NODE, "", name)
            world.cluster.registry.update(NODE, node, {**node, "spec": {**node["spec"], "unschedulable": True}})
            world.cluster.lose_node(name)
        await world.begin(1)
        await asyncio.sleep(120)
        assert requests(world) == 0
        assert world.replicas[0].parts.cache.unfresh() == ()
        assert TriggerKind.NODE_JOINED not in woken_by(heard)
        world.cluster.add_node("node-04")
        await asyncio.sleep(60)
        assert [each.ending for each in heard.of(RunEnded)][-1] == "done"
        assert TriggerKind.NODE_JOINED in woken_by(heard)
        assert world.witness.accepted

    tell(story, policy=POLICY, listener=heard)


def test_without_any_node_it_stays_up_and_ready() -> None:
    """Zero nodes are no error: it waits for better days."""
    heard = Heard()

    async def story(world: World) -> None:
        """Tell what happens."""
        for name in ("node-01", "node-02", "node-03"):
            world.cluster.lose_node(name)
            world.cluster.store.remove("nodes", ("", name))
        await world.begin(1)
        await asyncio.sleep(90)
        assert world.replicas[0].parts.cache.unfresh() == ()
        assert not world.replicas[0].task.done()
        assert {each.ending for each in heard.of(RunEnded)} == {"done"}

    tell(story, policy=POLICY, listener=heard)


def test_what_came_outside_a_window_is_acted_on_when_it_opens() -> None:
    """A node that joins while the window is closed is looked at when it opens, and the opening itself is a trigger."""
    heard = Heard()

    async def story(world: World) -> None:
        """Tell what happens."""
        await world.begin(1)
        windows = world.replicas[0].parts.gate.windows
        while windows.closed_because(world.clock.now()) is None:
            await asyncio.sleep(1)
        before = requests(world)
        world.cluster.add_node("node-04")
        while windows.closed_because(world.clock.now()) is not None:
            assert requests(world) == before
            await asyncio.sleep(1)
        await asyncio.sleep(30)
        assert requests(world) > before
        assert TriggerKind.WINDOW_OPENED in woken_by(heard)

    tell(story, windows=True, policy=POLICY, listener=heard)


def test_permissions_revoked_in_mid_flight_are_told_and_it_stays_up() -> None:
    """A token that may not list any more: the caches say so, nothing is evicted, and it goes on when the permission is back."""
    heard = Heard()

    async def story(world: World) -> None:
        """Tell what happens."""
        await world.begin(1)
        await asyncio.sleep(20)
        fault = world.cluster.faults.add(Fault(Trouble.FORBIDDEN, "/pods", watches=True, times=None))
        world.cluster.store.compact()
        (replica,) = world.replicas
        replica.line.change(refused=True)
        await asyncio.sleep(6)
        replica.line.change(refused=False)
        await asyncio.sleep(10)
        unready = replica.parts.cache.unfresh()
        assert any("Pod" in each for each in unready), unready
        before = requests(world)
        world.cluster.add_node("node-04")
        await asyncio.sleep(60)
        assert requests(world) == before
        assert [each for each in heard.of(Noticed) if each.code == "cannot-be-read"]
        world.cluster.faults.remove(fault)
        await asyncio.sleep(240)
        assert replica.parts.cache.unfresh() == ()
        assert requests(world) > before

    tell(story, policy=POLICY, listener=heard)


@pytest.mark.parametrize("replicas", [1, 3], ids=["one", "three"])
def test_an_idle_controller_lists_nothing_again(replicas: int) -> None:
    """After the first sync an hour of quiet costs no list request, streamed or in pages, from however many replicas."""

    async def story(world: World) -> None:
        """Tell what happens."""
        await world.begin(replicas)
        await asyncio.sleep(60)
        once = {resource.path: 1 for resource in RESOURCES}
        assert [{path: heard.lists for path, heard in each.line.heard.items()} for each in world.replicas] == [once] * replicas
        await asyncio.sleep(3600)
        assert [{path: heard.lists for path, heard in each.line.heard.items()} for each in world.replicas] == [once] * replicas
        assert len([each for each in world.replicas if each.leads]) == 1

    tell(story, policy=POLICY)
