"""Facts to triggers: when a node has joined, what else makes a trigger. Facts themselves are tested with the cache."""

from __future__ import annotations

import pytest

from rebalancer.control.triggers import TriggerMaker
from rebalancer.model.trigger import Trigger, TriggerKind
from tests.control.cluster import World, a_node, a_pod

pytestmark = pytest.mark.looptime
JOINED = Trigger(TriggerKind.NODE_JOINED, "n2", "ready and settled")


async def a_world() -> tuple[World, TriggerMaker]:
    """Return a synced world with one node, and a maker with ten seconds to settle."""
    world = await World(a_node("n1")).sync()
    return world, TriggerMaker(world.cache.node, settle_seconds=10.0)


async def test_a_ready_node_joins_once_it_has_settled() -> None:
    """The trigger comes the settle time after the node can take pods, not before, and once."""
    world, maker = await a_world()
    assert maker.on_facts(world.put(a_node("n2")), now=100.0) == []
    assert maker.next_due == 110.0
    assert maker.due(109.9) == []
    assert maker.due(110.0) == [JOINED]
    assert maker.due(200.0) == []


@pytest.mark.parametrize(
    "unfit",
    [
        a_node("n2", ready=False),
        a_node("n2", cordoned=True),
        a_node("n2", taints=({"key": "node.cilium.io/agent-not-ready", "effect": "NoSchedule"},)),
        a_node("n2", taints=({"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule"},)),
    ],
    ids=["not ready", "cordoned", "network agent missing", "not initialised by the cloud provider"],
)
async def test_a_node_that_cannot_take_pods_yet_joins_when_it_can(unfit: dict[str, object]) -> None:
    """The settle time begins when the last obstacle is gone; what happens to a node before is no change of its own."""
    world, maker = await a_world()
    assert maker.on_facts(world.put(unfit), now=0.0) == []
    assert maker.next_due is None
    assert maker.on_facts(world.put(a_node("n2")), now=50.0) == []
    assert maker.due(60.0) == [JOINED]


async def test_a_node_that_fails_while_it_settles_begins_anew() -> None:
    """A node that turns NotReady during its settle time has not joined; its clock starts again."""
    world, maker = await a_world()
    maker.on_facts(world.put(a_node("n2")), now=0.0)
    maker.on_facts(world.put(a_node("n2", ready=False)), now=5.0)
    assert maker.due(20.0) == []
    maker.on_facts(world.put(a_node("n2")), now=30.0)
    assert maker.due(39.0) == []
    assert maker.due(40.0) == [JOINED]


async def test_a_lasting_taint_does_not_keep_a_node_from_joining() -> None:
    """A dedicated node is there to stay: its taint is no obstacle."""
    world, maker = await a_world()
    maker.on_facts(world.put(a_node("n2", taints=({"key": "dedicated", "value": "gpu", "effect": "NoSchedule"},))), now=0.0)
    assert maker.due(10.0) == [JOINED]


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        (a_node("n1", cordoned=True), "became unschedulable"),
        (a_node("n1", cpu="8"), "capacity changed"),
        (a_node("n1", taints=({"key": "dedicated", "effect": "NoSchedule"},)), "taints changed"),
    ],
    ids=["cordoned", "resized", "tainted"],
)
async def test_a_change_of_a_known_node_is_a_trigger(change: dict[str, object], detail: str) -> None:
    """What may change where pods belong is a reason to look."""
    world, maker = await a_world()
    assert Trigger(TriggerKind.NODE_CHANGED, "n1", detail) in maker.on_facts(world.put(change), now=0.0)


async def test_a_node_that_is_gone_is_a_trigger_and_settles_no_more() -> None:
    """A node that leaves while it settles never joins."""
    world, maker = await a_world()
    maker.on_facts(world.put(a_node("n2")), now=0.0)
    assert maker.on_facts(world.remove(a_node("n2")), now=1.0) == [Trigger(TriggerKind.NODE_CHANGED, "n2", "gone")]
    assert maker.due(100.0) == []


async def test_only_wanted_kinds_are_made() -> None:
    """Where no strategy looks at pods, a failed pod is no trigger."""
    world, maker = await a_world()
    world.put(a_pod("p"))
    failed = world.put(a_pod("p", phase="Failed"))
    assert [trigger.kind for trigger in maker.on_facts(failed, now=0.0)] == [TriggerKind.POD_CHANGED]
    world.put(a_pod("q"))
    maker.wanted = frozenset({TriggerKind.NODE_JOINED})
    assert maker.on_facts(world.put(a_pod("q", phase="Failed")), now=0.0) == []
