"""A small run of the benchmark on the whole controller: it syncs over HTTP, hears every event, runs and lists again."""

from __future__ import annotations

import pytest

from benchmarks.process import run
from benchmarks.scenario import FEW, scaled


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "paged"])
def test_the_whole_controller_is_measured_from_first_sync_to_relist(streamed: bool) -> None:
    """Every pod is known after the sync and after the relist, every event has arrived, and runs have approved pods."""
    kind = scaled(FEW, 40)
    figures = run(kind, streamed=streamed, events=200)
    assert figures["pods known"] == kind.size.pods
    assert figures["approved"] > 0
    assert figures["events taken"] == 400
    assert figures["nodes known"] == kind.size.nodes + 1
