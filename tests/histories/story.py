"""How a story is told: in a new world, in virtual time, and held to every promise at its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from rebalancer.control.happenings import Listener
from rebalancer.service.parts import Parts, build
from tests.histories.processes import VirtualLoop
from tests.histories.replica import Build
from tests.histories.world import POLICY, World


def tell(
    story: Callable[[World], Awaitable[None]],
    *,
    windows: bool = False,
    evaluation_seconds: float = 0.01,
    policy: str = POLICY,
    listener: Listener | None = None,
) -> World:
    """Tell a story and return its world. listener: hears all that every replica tells."""

    async def told(loop: VirtualLoop) -> World:
        """Tell it, and close the book."""
        world = World(
            loop,
            seed=11,
            windows=windows,
            evaluation_seconds=evaluation_seconds,
            lag_seconds=0.01,
            policy=policy,
            build=_heard_by(listener) if listener else build,
        )
        try:
            await story(world)
        finally:
            problems = [*world.failures(), *await world.end()]
        assert [*world.witness.broken, *problems] == []
        return world

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)
        return runner.run(told(loop))


def _heard_by(listener: Listener) -> Build:
    def whole(settings: Any, policy: Any, scheduler: Any, transport: Any, listeners: Iterable[Listener], **more: Any) -> Parts:
        return build(settings, policy, scheduler, transport, [*listeners, listener], **more)

    return whole
