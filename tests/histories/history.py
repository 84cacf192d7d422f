"""A history as a value, how histories are drawn, and how one is lived through."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from dataclasses import dataclass, field
from random import Random

from hypothesis import strategies as st

from rebalancer.service.parts import build
from tests.histories.actions import ACTIONS
from tests.histories.processes import VirtualLoop
from tests.histories.replica import Build
from tests.histories.world import WINDOW_OPEN, WINDOW_PERIOD, World

MOST_QUIET_SECONDS = 240.0
"""When faults have ended, an eviction goes out within so long (windows included)."""


@dataclass(frozen=True, slots=True)
class History:
    """What happens.

    lag_seconds: by which watches are behind. evaluation_seconds: how long an evaluation takes.
    steps: seconds to wait, what happens then, and a number that decides whatever has to be chosen.
    """

    seed: int
    replicas: int
    windows: bool
    evaluation_seconds: float
    lag_seconds: float
    steps: tuple[tuple[float, str, int], ...]


@dataclass(slots=True)
class Outcome:
    """What came of it. broken: every promise that was not kept."""

    broken: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


_REPLICAS = (2, 2, 3, 1)
_EVALUATION_SECONDS = (0.01, 0.2, 1.0)
_LAGS_SECONDS = (0.002, 0.05, 0.5)
_PAUSES_SECONDS = (0.0, 0.1, 0.7, 2.0, 5.0, 12.0)
_FEWEST, _MOST = 4, 14
_CHOICES = 10_000

histories = st.builds(
    History,
    seed=st.integers(0, 2**31 - 1),
    replicas=st.sampled_from(_REPLICAS),
    windows=st.booleans(),
    evaluation_seconds=st.sampled_from(_EVALUATION_SECONDS),
    lag_seconds=st.sampled_from(_LAGS_SECONDS),
    steps=st.lists(
        st.tuples(st.sampled_from(_PAUSES_SECONDS), st.sampled_from(tuple(ACTIONS)), st.integers(0, _CHOICES - 1)),
        min_size=_FEWEST,
        max_size=_MOST,
    ).map(tuple),
)


def drawn(seed: int) -> History:
    """Return the history of a number: always the same one."""
    random = Random(seed)
    return History(
        seed,
        random.choice(_REPLICAS),
        random.random() < 0.5,
        random.choice(_EVALUATION_SECONDS),
        random.choice(_LAGS_SECONDS),
        tuple(
            (random.choice(_PAUSES_SECONDS), random.choice(tuple(ACTIONS)), random.randrange(_CHOICES))
            for _ in range(random.randint(_FEWEST, _MOST))
        ),
    )


def live_through(history: History, build: Build = build) -> Outcome:
    """Live through a history in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualLoop)
        return runner.run(_live(loop, history, build))


def forget() -> None:
    """Give back what past histories left: each process that has synced takes all that lives out of the collector's sight."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


async def _live(loop: VirtualLoop, history: History, build: Build) -> Outcome:
    world = World(
        loop,
        seed=history.seed,
        windows=history.windows,
        evaluation_seconds=history.evaluation_seconds,
        lag_seconds=history.lag_seconds,
        build=build,
    )
    outcome = Outcome()
    try:
        await world.begin(history.replicas)
        # Now the first pods are old enough, and evictions go on.
        await asyncio.sleep(26.0)
        for seconds, action, choice in history.steps:
            await asyncio.sleep(seconds)
            await world.act(action, choice)
        await asyncio.sleep(10.0)
        await world.heal()
        outcome.broken += await _resumes(world)
    finally:
        outcome.broken += world.failures()
        outcome.broken += await world.end()
    outcome.broken += world.witness.broken
    outcome.counts += world.counts
    outcome.counts += world.witness.counts
    outcome.counts["histories"] = 1
    outcome.counts["virtual seconds"] = round(loop.time())
    if history.windows:
        outcome.counts["window edges"] = round(loop.time() // WINDOW_PERIOD * 2 + (loop.time() % WINDOW_PERIOD > WINDOW_OPEN))
    return outcome


async def _resumes(world: World) -> list[str]:
    """Wait until an eviction goes out; return what is wrong where none does."""
    loop = asyncio.get_running_loop()
    before, began_at = world.witness.accepted, loop.time()
    while world.witness.accepted == before:
        if loop.time() > began_at + MOST_QUIET_SECONDS:
            reasons = [
                f"{replica.name}: {replica.parts.gate.closed_because() or replica.parts.gate.paused_because() or 'open'}"
                for replica in world.replicas
            ]
            return [f"no progress for {MOST_QUIET_SECONDS:g} s after the faults ended ({'; '.join(reasons)})"]
        await asyncio.sleep(1.0)
    world.counts["seconds until progress, in all"] += round(loop.time() - began_at)
    leaders = [replica.name for replica in world.replicas if replica.leads]
    return [] if len(leaders) == 1 else [f"{leaders} lead"]
