"""Three replicas as processes; the leader is killed, frozen and cut off in the middle of runs, as often as wanted.

Run: ``python -m benchmarks.replicas [--times 10] [--lease 15]``. Exit code 1 where a pod was evicted twice, a process without the
lease evicted, or a takeover took longer than the lease's duration and 5 s. Logs of the replicas stay in ``--logs``.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import machine
from tests.e2e.fleet import FAULTS, Lease, Trial, Verdict, a_fleet, judge

MOST_BEYOND_THE_LEASE_SECONDS = 5.0


async def measure(times: int, lease: Lease, folder: Path) -> tuple[list[Trial], Verdict]:
    """Let each fault befall the leader so many times."""
    trials: list[Trial] = []
    async with a_fleet(folder, lease=lease) as fleet:
        for number in range(times):
            for fault in FAULTS:
                trial = await fleet.hit(fault)
                trials.append(trial)
                print(
                    f"{number + 1:>3}. {fault:<8} takeover after {trial.takeover:6.2f} s, "
                    f"first eviction after {trial.first_eviction:6.2f} s",
                    flush=True,
                )
        return trials, judge(await fleet.cluster.look())


def _spread(what: str, seconds: list[float]) -> str:
    return f"{what} median {statistics.median(seconds):.2f} s, worst {max(seconds):.2f} s"


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--times", type=int, default=10, help="of each fault")
    parser.add_argument("--lease", type=float, default=15.0, help="duration of the lease (seconds); the default needs a while")
    parser.add_argument("--logs", type=Path, help="keep the replicas' logs in this folder")
    options = parser.parse_args()
    standard = Lease()
    share = options.lease / standard.duration
    lease = Lease(options.lease, standard.renew * share, standard.retry * share, min(standard.request, options.lease / 5))
    with tempfile.TemporaryDirectory(prefix="replicas-") as temporary:
        folder = options.logs or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        trials, verdict = asyncio.run(measure(options.times, lease, folder))
    print("; ".join(f"{name}: {value}" for name, value in machine().items()))
    late = 0
    for fault in FAULTS:
        takeovers = [trial.takeover for trial in trials if trial.fault == fault]
        firsts = [trial.first_eviction for trial in trials if trial.fault == fault]
        late += sum(seconds > lease.duration + MOST_BEYOND_THE_LEASE_SECONDS for seconds in takeovers)
        print(f"{fault:<8} {len(takeovers)} times, lease {lease.duration:g} s: {_spread('takeover', takeovers)}", end="; ")
        print(_spread("first eviction", firsts))
    print(
        f"{verdict.requests} requests, {verdict.accepted} accepted; accepted twice: {len(verdict.twice)}; "
        f"accepted from a process without the lease: {len(verdict.without_lease)}, refused: {verdict.refused_without_lease}"
    )
    return 1 if verdict.twice or verdict.without_lease or verdict.without_uid or late else 0


if __name__ == "__main__":
    sys.exit(main())
