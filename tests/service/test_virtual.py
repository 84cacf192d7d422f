"""The whole service in virtual time: single-node clusters, windows, hot moments that processes would take too long for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from rebalancer.control.happenings import Noticed, RunEnded
from rebalancer.sim.kinds import NODE
from tests.control.virtual import VirtualLoop
from tests.service.histories import History


def in_virtual_time(story: Callable[[], Awaitable[None]]) -> None:
    """Tell a story in a loop of virtual time."""

    async def told() -> None:
        """Tell it."""
        await story()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(told())


def heard(history: History, kind: type) -> list[object]:
    """Return what was heard of one kind."""
    return [happening for _, _, happening in history.heard if isinstance(happening, kind)]


def test_on_one_ready_node_it_keeps_running_and_acts_when_there_is_a_second_h6() -> None:
    """Nothing is evicted on a single node, the process stays up, and a second node is a trigger (H6)."""

    async def story() -> None:
        """Tell what happens."""
        history = History(1, windows=False)
        for name in ("node-02", "node-03"):
            node = history.cluster.registry.get(NODE, "", name)
            history.cluster.registry.update(NODE, node, {**node, "spec": {**node["spec"], "unschedulable": True}})
            history.cluster.lose_node(name)
        await history.start(1)
        await asyncio.sleep(120)
        assert history.requests == []
        assert history.replicas[0].parts.cache.unfresh() == ()
        history.cluster.add_node("node-04")
        await asyncio.sleep(60)
        assert [each.ending for each in heard(history, RunEnded)][-1] == "done"
        assert any("node-joined" in str(each) for _, _, each in history.heard)
        await history.close()

    in_virtual_time(story)


def test_without_any_node_it_stays_up_and_ready() -> None:
    """Zero nodes are no error: it waits for better days."""

    async def story() -> None:
        """Tell what happens."""
        history = History(1, windows=False)
        for name in ("node-01", "node-02", "node-03"):
            history.cluster.lose_node(name)
            history.cluster.store.remove("nodes", ("", name))
        await history.start(1)
        await asyncio.sleep(90)
        assert history.replicas[0].parts.cache.unfresh() == ()
        assert not history.replicas[0].task.done()
        assert {each.ending for each in heard(history, RunEnded)} == {"done"}
        await history.close()

    in_virtual_time(story)


def test_what_came_outside_a_window_is_acted_on_when_it_opens() -> None:
    """A node that joins while the window is closed is looked at when it opens, and the opening itself is a trigger."""

    async def story() -> None:
        """Tell what happens."""
        history = History(2, windows=True)
        await history.start(1)
        while history.replicas[0].parts.gate.windows.closed_because(history.clock.now()) is None:
            await asyncio.sleep(1)
        before = len(history.requests)
        history.cluster.add_node("node-04")
        while history.replicas[0].parts.gate.windows.closed_because(history.clock.now()) is not None:
            assert len(history.requests) == before
            await asyncio.sleep(1)
        await asyncio.sleep(30)
        assert len(history.requests) > before
        assert any("window-opened" in str(each) for _, _, each in history.heard)
        assert history.broken() == []
        await history.close()

    in_virtual_time(story)


def test_permissions_revoked_in_mid_flight_are_told_and_it_stays_up() -> None:
    """A token that may not list any more: the caches say so, nothing is evicted, and it goes on when the permission is back."""

    async def story() -> None:
        """Tell what happens."""
        from rebalancer.sim.faults import Fault, Trouble

        history = History(3, windows=False)
        await history.start(1)
        fault = history.cluster.faults.add(Fault(Trouble.FORBIDDEN, "/pods", watches=True, times=None))
        history.cluster.store.compact()
        history.replicas[0].transport.weather.cut = True
        await asyncio.sleep(6)
        history.replicas[0].transport.weather.cut = False
        await asyncio.sleep(10)
        unready = history.replicas[0].parts.cache.unfresh()
        assert any("Pod" in each for each in unready), unready
        before = len(history.requests)
        history.cluster.add_node("node-04")
        await asyncio.sleep(60)
        assert len(history.requests) == before
        assert [each for each in heard(history, Noticed) if each.code == "cannot-be-read"]
        history.cluster.faults.remove(fault)
        await asyncio.sleep(240)
        assert history.replicas[0].parts.cache.unfresh() == ()
        assert len(history.requests) > before
        await history.close()

    in_virtual_time(story)


@pytest.mark.parametrize("replicas", [1, 3], ids=["one", "three"])
def test_an_idle_controller_lists_nothing_again(replicas: int) -> None:
    """After the first sync an hour of quiet costs no list request, from however many replicas."""

    async def story() -> None:
        """Tell what happens."""
        history = History(4, windows=False)
        lists: list[str] = []
        answer = history.cluster.front.answer

        def noted(request: object) -> object:
            """Note lists."""
            path, query = request.path, request.query  # type: ignore[attr-defined]
            if request.method == "GET" and "watch" not in query and path.count("/") <= 4:  # type: ignore[attr-defined]
                lists.append(path)
            return answer(request)  # type: ignore[arg-type]

        history.cluster.front.answer = noted  # type: ignore[method-assign, assignment]
        await history.start(replicas)
        await asyncio.sleep(60)
        lists.clear()
        await asyncio.sleep(3600)
        assert lists == []
        assert len(history.parts_that_lead()) == 1
        await history.close()

    in_virtual_time(story)
