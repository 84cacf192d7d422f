"""What outlives the process: caps, the per-minute window and cooldowns across restarts and failovers."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.control.caps import CapSet
from rebalancer.control.cooldown import Rest
from rebalancer.control.happenings import Noticed
from rebalancer.control.memory import Memory, Remembered, VolatileState, decode, encode
from rebalancer.control.tally import Tally
from rebalancer.model.cap import Cap
from tests.control.cluster import World, a_node, a_pod
from tests.control.stage import Script, Stage, moving

names = st.text(alphabet="abc-/é", min_size=1, max_size=8)
moments = st.floats(min_value=0, max_value=2e9).map(lambda moment: round(moment, 3))
tallies = st.builds(
    Tally, moments, st.integers(0, 9), *(st.dictionaries(names, st.integers(1, 9), max_size=3).map(Counter) for _ in range(3))
)
states = st.builds(
    Remembered,
    permits=st.lists(moments, max_size=5).map(tuple),
    asked=st.dictionaries(names, moments, max_size=5),
    run=st.none() | tallies,
    rests=st.dictionaries(st.tuples(names, names), st.builds(Rest, moments, st.integers(1, 40)), max_size=4),
    nodes_mark=names,
)


@given(states)
def test_what_is_written_is_read_back(state: Remembered) -> None:
    """Every state survives the way through the text."""
    assert decode(encode(state)) == state


@given(st.text() | st.sampled_from(["null", "[]", "{}", '{"form":1}', '{"form":2}', '{"form":1,"permits":[[]]}']))
def test_a_damaged_text_is_recognised(text: str) -> None:
    """Whatever somebody wrote into the ConfigMap: it is understood, empty, or refused, never a crash."""
    state = decode(text)
    assert state is None or isinstance(state, Remembered)


@pytest.mark.looptime
async def test_only_one_of_two_can_write() -> None:
    """The second of two processes that read the same version cannot write any more."""
    port = VolatileState()
    one, two = Memory(port), Memory(port)
    await one.recall()
    await two.recall()
    assert await one.note(Remembered())
    assert not await two.note(Remembered())
    await two.recall()
    assert await two.note(Remembered())
    assert not await one.note(Remembered())


async def a_stage(state: VolatileState, pods: int, **options: object) -> Stage:
    """Return a new process on a state that others have written."""
    candidates = [a_pod(f"p{number}", app=f"app{number}") for number in range(pods)]
    world = await World(a_node("n1"), a_node("n2"), *candidates).sync()
    return Stage(world, moving(candidates), state=state, **options)  # type: ignore[arg-type]


@pytest.mark.looptime
async def test_the_minute_holds_across_a_restart() -> None:
    """Three per minute: a new process that starts within the minute goes on counting where the old one was."""
    state = VolatileState()
    first = await a_stage(state, 3, per_minute=3)
    await first.run()
    began = asyncio.get_running_loop().time()
    second = await a_stage(state, 4, per_minute=3)
    second.world.clock.epoch = first.world.clock.epoch
    await second.run()
    every = [moment for moment, _ in first.cluster.asked] + [moment for moment, _ in second.cluster.asked]
    assert len(every) == 3 + 1, "uids that were accepted before are not asked for again"
    assert second.cluster.asked[0][0] >= 60.0 > began


@pytest.mark.looptime
async def test_the_caps_of_a_run_hold_across_a_failover_in_its_middle() -> None:
    """A run that dies after two of three leaves one to the process that goes on."""
    state = VolatileState()
    caps = [CapSet("settings", total=Cap(number=3))]
    first = await a_stage(state, 2, caps=caps)
    running = asyncio.create_task(first.run())
    await asyncio.sleep(0.5)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert len(first.evicted) == 2
    second = await a_stage(state, 6, caps=caps)
    ended = await second.run()
    assert len(second.evicted) == 1
    assert ended.accepted == 1


@pytest.mark.looptime
async def test_a_run_that_ended_leaves_nothing_to_the_next() -> None:
    """Caps are per run: after an orderly end the next run, in another process, has them whole."""
    state = VolatileState()
    caps = [CapSet("settings", total=Cap(number=2))]
    first = await a_stage(state, 2, caps=caps)
    await first.run()
    second = await a_stage(state, 5, caps=caps)
    await second.run()
    assert (len(first.evicted), len(second.evicted)) == (2, 2)


@pytest.mark.looptime
async def test_cooldowns_survive_a_restart() -> None:
    """A workload that came back rests in the next process, too."""
    state = VolatileState()
    first = await a_stage(state, 1, script=Script(lands="n1"))
    await first.run()
    second = await a_stage(state, 1)
    await second.run()
    assert list(second.circumstances[0].cooling) == [("uid-app0", "n1")]


@pytest.mark.looptime
async def test_a_damaged_state_is_told_and_started_afresh() -> None:
    """Somebody edited the ConfigMap: a warning, and work goes on."""
    state = VolatileState()
    await state.write("not json", "")
    stage = await a_stage(state, 1)
    await stage.run()
    assert len(stage.evicted) == 1
    assert [each.code for each in stage.heard.of(Noticed)] == ["state-damaged"]
