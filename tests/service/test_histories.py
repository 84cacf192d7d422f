"""Random histories of changes, faults, failovers and window edges: what was promised about evictions holds in every one.

The number of histories is the environment variable HISTORIES (by default few enough for every run of the tests).
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.control.virtual import VirtualLoop
from tests.service.histories import ACTIONS, History

_COUNT = int(os.environ.get("HISTORIES", "12"))
_QUIET_SECONDS = 240.0
totals: Counter[str] = Counter()

steps = st.lists(st.tuples(st.floats(min_value=0.0, max_value=25.0), st.sampled_from(ACTIONS)), min_size=3, max_size=14)


async def live(seed: int, windows: bool, replicas: int, script: list[tuple[float, str]]) -> History:
    """Live through one history: a start, what the script says, then quiet."""
    history = History(seed, windows=windows)
    await history.start(replicas)
    try:
        await history.act("a node joins")
        for seconds, action in script:
            await asyncio.sleep(seconds)
            await history.act(action)
            if action == "a node leaves":
                await history.act("a node joins")
        await history.heal()
        before = len(history.accepted)
        history.cluster.add_node(f"node-late-{seed % 7}")
        await asyncio.sleep(_QUIET_SECONDS)
        totals["accepted after the faults"] += len(history.accepted) - before
        totals["histories with progress after the faults"] += len(history.accepted) > before
        assert len(history.parts_that_lead()) == 1, "when faults end, exactly one leads"
        (parts,) = history.parts_that_lead()
        assert parts.gate.closed_because() is None or windows, parts.gate.closed_because()
    finally:
        await history.close()
    return history


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(
    max_examples=_COUNT,
    deadline=None,
    print_blob=True,
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)
@given(
    seed=st.integers(min_value=0, max_value=2**31),
    windows=st.booleans(),
    replicas=st.integers(min_value=1, max_value=3),
    script=steps,
)
def test_promises_hold_in_every_history(seed: int, windows: bool, replicas: int, script: list[tuple[float, str]]) -> None:
    """No cap is exceeded in a run or 60 s, nothing is asked twice, nothing goes out of window, leadership or sync."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        history = runner.run(live(seed, windows, replicas, script))
    assert history.broken() == []
    totals.update(history.faults)
    totals["histories"] += 1
    totals["requests"] += len(history.requests)
    totals["accepted"] += len(history.accepted)
    for replica in history.replicas:
        totals.update({f"met: {what}": count for what, count in replica.transport.weather.met.items()})
    for each in history.requests:
        totals[f"answers {each.status} {each.reason}".strip()] += 1
    totals["refused by a budget"] += sum(each.reason == "budget" for each in history.requests)


@pytest.mark.slow
def test_what_the_histories_came_to() -> None:
    """The figures are printed, evictions did happen, and at most 1 % of requests met a budget."""
    print()
    for name, count in sorted(totals.items()):
        print(f"{count:7} {name}")
    if totals["histories"]:
        assert totals["accepted"] > 0
        assert totals["refused by a budget"] <= max(1, 0.01 * totals["requests"])
