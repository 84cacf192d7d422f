"""Several replicas of ``rebalancer run`` on one cluster, and what becomes of them when the one that leads is hit."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rebalancer.sim.kubeconfig import kubeconfig
from tests.e2e.cluster_process import ClusterProcess, Eviction, Going, LeaseWrite, Record, Workload
from tests.e2e.proxy import Proxy

# Pods older than some seconds are to go, so that there is always something to do, and every fault hits a run.
POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: default
  pluginConfig:
  - name: PodLifeTime
    args: {maxPodLifeTimeSeconds: 5}
  plugins:
    deschedule: {enabled: [PodLifeTime]}
"""
SETTINGS = {
    "REBALANCER_DEBOUNCE_QUIET_SECONDS": "0.2",
    "REBALANCER_TICK_SECONDS": "1",
    "REBALANCER_CAP_NODE": "none",
    "REBALANCER_CAP_TOTAL": "none",
    "REBALANCER_EVICTIONS_PER_MINUTE": "none",
    "REBALANCER_MAX_IN_FLIGHT": "2",
    "REBALANCER_COOLDOWN_SECONDS": "1",
    "REBALANCER_COOLDOWN_MAXIMUM_SECONDS": "1",
    "REBALANCER_LISTEN_ADDRESS": "127.0.0.1",
    "REBALANCER_LISTEN_PORT": "0",
    "REBALANCER_LOG_FORMAT": "json",
}
FAULTS = ("killed", "frozen", "cut off")
_LOOK_SECONDS = 0.1
_PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Lease:
    """Its times, in seconds."""

    duration: float = 15.0
    renew: float = 10.0
    retry: float = 2.0
    request: float = 3.0

    def settings(self) -> Mapping[str, str]:
        """Return them as variables."""
        return {
            "REBALANCER_LEASE_DURATION_SECONDS": str(self.duration),
            "REBALANCER_LEASE_RENEW_SECONDS": str(self.renew),
            "REBALANCER_LEASE_RETRY_SECONDS": str(self.retry),
            "REBALANCER_EVICTION_TIMEOUT_SECONDS": str(self.request),
        }


@dataclass
class Trial:
    """One fault. Times in seconds from the fault: until another held the lease, until its first eviction was accepted."""

    fault: str
    takeover: float
    first_eviction: float


@dataclass
class Verdict:
    """What the whole record says.

    accepted: evictions accepted. twice: pods whose eviction was accepted, or that were marked for deletion, more than once.
    without_lease: accepted evictions from a client that did not hold the lease when they arrived.
    refused_without_lease: those that the server refused, so that they did no harm. without_uid: requests without a precondition.
    """

    accepted: int = 0
    requests: int = 0
    twice: list[str] = field(default_factory=list)
    without_lease: list[Eviction] = field(default_factory=list)
    refused_without_lease: int = 0
    without_uid: int = 0


def judge(records: list[Record]) -> Verdict:
    """Return what a record says."""
    evictions = [each for each in records if isinstance(each, Eviction)]
    accepted = [each for each in evictions if each.status == 201]
    times = Counter(each.uid for each in accepted)
    went = Counter(each.uid for each in records if isinstance(each, Going))
    strays = [each for each in evictions if each.client != each.holder]
    return Verdict(
        accepted=len(accepted),
        requests=len(evictions),
        twice=sorted({uid for counts in (times, went) for uid, count in counts.items() if count > 1}),
        without_lease=[each for each in strays if each.status == 201],
        refused_without_lease=sum(each.status != 201 for each in strays),
        without_uid=sum(not each.uid for each in evictions),
    )


class Fleet:
    """The replicas of a cluster, by the name of the client that each is."""

    def __init__(
        self, cluster: ClusterProcess, names: tuple[str, ...], lease: Lease, folder: Path, stack: AsyncExitStack
    ) -> None:
        """Start nothing yet."""
        self.cluster = cluster
        self.lease = lease
        self._names = names
        self._folder = folder
        self._stack = stack
        self._proxies: dict[str, Proxy] = {}
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._policy = folder / "policy.yaml"

    async def start(self) -> None:
        """Start every replica."""
        await asyncio.to_thread(self._policy.write_text, POLICY)
        for name in self._names:
            self._proxies[name] = await self._stack.enter_async_context(Proxy(self.cluster.port).listening())
            await self._start(name)

    async def _start(self, name: str) -> None:
        path = self._folder / f"kubeconfig-{name}"
        url = f"http://127.0.0.1:{self._proxies[name].port}"
        await asyncio.to_thread(path.write_text, kubeconfig(url, f"token-{name}"))
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("REBALANCER_", "KUBE"))}
        ours = {"REBALANCER_KUBECONFIG": str(path), "REBALANCER_POLICY_FILE": str(self._policy)}
        log = self._stack.enter_context((self._folder / f"{name}.log").open("ab"))
        self._processes[name] = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "rebalancer", "run", env={**clean, **SETTINGS, **self.lease.settings(), **ours}, stderr=log
        )

    async def stop(self) -> None:
        """End every replica."""
        for process in self._processes.values():
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def leader_in_the_middle_of_a_run(self) -> str:
        """Wait until whoever leads has just evicted something, and return who that is."""
        began_at = _now()
        while _now() < began_at + _PATIENCE_SECONDS:
            records = await self.cluster.look()
            last = next((each for each in reversed(records) if isinstance(each, Eviction)), None)
            if last is not None and last.at > max(began_at, _now() - 2 * _LOOK_SECONDS) and last.status == 201:
                return last.client
            await asyncio.sleep(_LOOK_SECONDS)
        raise AssertionError(f"nothing was evicted for {_PATIENCE_SECONDS:g} s; see {self._folder}")

    async def hit(self, fault: str) -> Trial:
        """Let a fault befall the leader, wait for another to lead and evict, end the fault, and watch for a while."""
        victim = await self.leader_in_the_middle_of_a_run()
        process, proxy = self._processes[victim], self._proxies[victim]
        at = _now()
        if fault == "killed":
            process.kill()
        elif fault == "frozen":
            process.send_signal(signal.SIGSTOP)
        else:
            proxy.cut()
        takeover = await self._first(at, victim, LeaseWrite) - at
        first_eviction = await self._first(at, victim, Eviction) - at
        await asyncio.sleep(max(0.0, at + self.lease.duration + 1.0 - _now()))
        if fault == "killed":
            await process.wait()
            await self._start(victim)
        elif fault == "frozen":
            process.send_signal(signal.SIGCONT)
        else:
            await proxy.heal()
        await asyncio.sleep(2.0 + self.lease.retry)
        if self._processes[victim].returncode is not None:
            raise AssertionError(f"{victim} did not outlive it; see {self._folder}")
        return Trial(fault, takeover, first_eviction)

    async def _first(self, at: float, victim: str, kind: type[LeaseWrite] | type[Eviction]) -> float:
        """Return when another client first wrote the lease, or evicted."""
        while _now() < at + self.lease.duration + _PATIENCE_SECONDS:
            for each in await self.cluster.look():
                if isinstance(each, kind) and each.at > at and each.client != victim and _counts(each):
                    return each.at
            await asyncio.sleep(_LOOK_SECONDS)
        raise AssertionError(f"nobody took over from {victim}; see {self._folder}")


def _counts(record: LeaseWrite | Eviction) -> bool:
    return record.held if isinstance(record, LeaseWrite) else record.status == 201


def _now() -> float:
    return asyncio.get_running_loop().time()


@asynccontextmanager
async def a_fleet(folder: Path, *, lease: Lease, size: int = 3) -> AsyncIterator[Fleet]:
    """Run a cluster and a fleet on it while the block runs."""
    names = tuple(f"replica-{number + 1}" for number in range(size))
    cluster = await asyncio.to_thread(ClusterProcess, Workload(), names)
    try:
        async with AsyncExitStack() as stack:
            fleet = Fleet(cluster, names, lease, folder, stack)
            try:
                await fleet.start()
                yield fleet
            finally:
                await fleet.stop()
    finally:
        await asyncio.to_thread(cluster.close)
