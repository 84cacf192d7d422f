"""Three replicas as processes; the one that leads is killed, frozen or cut off in the middle of a run.

Once each here, with a short lease; ``benchmarks/replicas.py`` does it ten times each with the default one and prints figures.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.fleet import FAULTS, Lease, a_fleet, judge

MOST_BEYOND_THE_LEASE_SECONDS = 5.0


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_whatever_befalls_the_leader_nothing_is_evicted_twice_and_another_takes_over(tmp_path: Path) -> None:
    """No pod's eviction is accepted twice, none by a process without the lease; takeover within its duration and 5 s."""
    lease = Lease(duration=6.0, renew=4.0, retry=0.5, request=1.0)
    async with a_fleet(tmp_path, lease=lease) as fleet:
        trials = [await fleet.hit(fault) for fault in FAULTS]
        verdict = judge(await fleet.cluster.look())
    for trial in trials:
        print(f"{trial.fault}: takeover after {trial.takeover:.2f} s, first eviction after {trial.first_eviction:.2f} s")
        assert trial.takeover <= lease.duration + MOST_BEYOND_THE_LEASE_SECONDS, trial
    assert verdict.accepted > 10
    assert verdict.twice == []
    assert verdict.without_lease == []
    assert verdict.without_uid == 0
