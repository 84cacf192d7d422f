"""Three real replicas, the leader killed, frozen or cut off in the middle of a run; ``failover`` does it as often as wanted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.service.failover import LEASE_SECONDS, failovers


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_another_leads_in_time_and_nothing_is_evicted_twice(tmp_path: Path) -> None:
    """Takeover within the lease's duration and five seconds, whatever befell the leader; no pod's eviction is accepted twice."""
    figures = await failovers(1, tmp_path)
    assert sorted(figures.takeover) == ["cut off", "frozen", "killed"]
    for kind, taken in figures.takeover.items():
        assert max(taken) <= LEASE_SECONDS + 5, kind
    assert figures.evictions > 0
    assert figures.double == 0
