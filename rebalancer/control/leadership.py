"""Our own Lease election: who may evict, and for how much longer.

Sound under what happens to real processes: expiry is judged on a monotonic clock from the moment *before* the write that
renewed it; every call is bounded; a challenger counts the holder's own duration from when it last *saw* the lease change, so
clocks need not agree; a request is only begun while the lease outlasts its timeout (``outlasts``). A new leader waits until
the requests of the one before it must have ended. Source of the protocol:
https://github.com/kubernetes/client-go/blob/master/tools/leaderelection/leaderelection.go
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from rebalancer.control.happenings import LeadershipChanged, Listener, Noticed
from rebalancer.control.ports import Clock, LeasePort
from rebalancer.control.pulse import Pulses
from rebalancer.errors import KubeError, KubeForbidden
from rebalancer.model.lease import LeaseRecord


@dataclass(frozen=True, slots=True)
class ElectionTimes:
    """How long things take, in seconds.

    duration: what the lease promises. renew: without a renewal for so long, a leader stops. retry: between two attempts.
    request: the timeout of one eviction, which a new leader waits out.
    """

    duration: float = 15.0
    renew: float = 10.0
    retry: float = 2.0
    request: float = 3.0


class Election:
    """One candidate. ``serve`` stands until it is cancelled; everything else reads what it found out."""

    def __init__(
        self,
        port: LeasePort,
        clock: Clock,
        tell: Listener,
        pulses: Pulses,
        *,
        identity: str,
        times: ElectionTimes,
        jitter: Callable[[], float],
    ) -> None:
        """Stand for election. jitter: gives numbers from 0 to 1, so that candidates do not march in step."""
        self._port = port
        self._clock = clock
        self._tell = tell
        self._pulses = pulses
        self._identity = identity
        self._times = times
        self._jitter = jitter
        self._seen: LeaseRecord | None = None
        self._seen_at = 0.0
        self._ever_seen = False
        self._renewed_at: float | None = None
        self._may_act_at = 0.0
        self._taken_over_at_version = ""
        self._problem = ""
        self._denied = False
        self.changed = asyncio.Event()
        self.attempted = asyncio.Event()

    @property
    def leading(self) -> bool:
        """Whether this process holds the lease by its own reckoning at this very moment."""
        return self._renewed_at is not None and self._clock.monotonic() < self._renewed_at + self._times.renew

    @property
    def holder(self) -> str:
        """The identity that the lease last named; empty where nobody held it."""
        return self._seen.holder if self._seen else ""

    @property
    def record(self) -> LeaseRecord | None:
        """The lease as last seen."""
        return self._seen

    @property
    def taken_over_at_version(self) -> str:
        """The resource version of the write by which this process became leader: the caches must have reached it."""
        return self._taken_over_at_version

    def remaining_seconds(self) -> float:
        """Return for how much longer nobody else can take the lease; 0 when not leading."""
        if self._renewed_at is None:
            return 0.0
        return max(0.0, self._renewed_at + self._times.duration - self._clock.monotonic())

    def outlasts(self, seconds: float) -> bool:
        """Say whether a request that may take so long can be begun: it would end while the lease still holds."""
        return self.leading and self.remaining_seconds() > seconds

    def acting_in(self) -> float:
        """Return the seconds that a new leader still waits for requests of the one before it to have ended."""
        return max(0.0, self._may_act_at - self._clock.monotonic())

    @property
    def problem(self) -> str:
        """Why the lease could not be read or written the last time, in words; empty when it could."""
        return self._problem

    @property
    def denied(self) -> str:
        """Why this process can never lead, in words: it may not use the lease. Empty where it may."""
        return self._problem if self._denied else ""

    async def serve(self) -> None:
        """Stand for election until cancelled."""
        was_leading = False
        while True:
            self._pulses.turned("election", bound_seconds=4 * (self._times.renew + self._times.retry))
            await self._attempt()
            self.attempted.set()
            if self.leading != was_leading:
                was_leading = self.leading
                self.changed.set()
                self._tell(LeadershipChanged(was_leading, self.holder, self._problem))
            pause = self._times.retry * (1.0 + 0.2 * self._jitter())
            if was_leading and self._renewed_at is not None:
                # Do not oversleep the moment at which leadership ends for want of a renewal: it has to be told.
                left = self._renewed_at + self._times.renew - self._clock.monotonic()
                pause = min(pause, max(left, 0.05))
            await self._clock.sleep(pause)

    async def release(self) -> None:
        """Give the lease back, so that another takes over at once. Without an answer it is left to expire."""
        if self._renewed_at is None or self._seen is None or self._seen.holder != self._identity:
            self._renewed_at = None
            return
        self._renewed_at = None
        freed = replace(self._seen, holder="", duration_seconds=1.0, renewed_at=self._clock.now())
        try:
            async with asyncio.timeout(1.0):
                if await self._port.write(freed) is None:
                    # A renewal may have been cut off on its way: the version that we knew is old.
                    found = await self._port.read()
                    if found is None or found.holder != self._identity:
                        return
                    await self._port.write(replace(freed, version=found.version, annotations=found.annotations))
        except (KubeError, TimeoutError) as error:
            self._tell(Noticed("lease-not-released", f"the lease was left to expire: {error or 'no answer'}", loud=False))
            return
        self._tell(LeadershipChanged(False, "", "released"))

    async def _attempt(self) -> None:
        try:
            async with asyncio.timeout(self._call_bound()):
                await self._try()
        except (KubeError, TimeoutError) as error:
            problem = str(error) or "the API server did not answer in time"
            if problem != self._problem:
                self._tell(Noticed("lease-unusable", f"the lease cannot be read or written: {problem}"))
            self._problem = problem
            self._denied = isinstance(error, KubeForbidden)
        else:
            self._problem = ""
            self._denied = False

    def _call_bound(self) -> float:
        """Return how long one attempt may take: shorter than what is left before leadership ends."""
        bound = self._times.renew / 2
        if self._renewed_at is not None:
            bound = min(bound, self._renewed_at + self._times.renew - self._clock.monotonic())
        return max(bound, 0.5)

    async def _try(self) -> None:
        mine = self._seen if self._seen is not None and self._seen.holder == self._identity else None
        if self.leading and mine is not None and await self._write(replace(mine, renewed_at=self._clock.now()), new=False):
            return
        found = await self._port.read()
        self._note(found)
        if found is None:
            await self._write(self._fresh(None), new=True)
        elif found.holder == self._identity:
            await self._write(replace(found, renewed_at=self._clock.now()), new=not self.leading)
        elif self._is_free(found):
            await self._write(self._fresh(found), new=True)
        else:
            self._renewed_at = None

    def _note(self, found: LeaseRecord | None) -> None:
        """Remember when a lease last changed, as seen from here."""
        known = self._seen
        if found is None:
            self._seen = None
            return
        self._ever_seen = True
        if known is None or (known.holder, known.renewed_at, known.transitions) != (
            found.holder,
            found.renewed_at,
            found.transitions,
        ):
            self._seen_at = self._clock.monotonic()
        self._seen = found

    def _is_free(self, found: LeaseRecord) -> bool:
        if not found.holder:
            return True
        return self._clock.monotonic() >= self._seen_at + found.duration_seconds

    def _fresh(self, found: LeaseRecord | None) -> LeaseRecord:
        now = self._clock.now()
        return LeaseRecord(
            holder=self._identity,
            duration_seconds=self._times.duration,
            acquired_at=now,
            renewed_at=now,
            transitions=found.transitions + 1 if found else 0,
            version=found.version if found else "",
            annotations=found.annotations if found else {},
        )

    async def _write(self, record: LeaseRecord, *, new: bool) -> bool:
        began_at = self._clock.monotonic()
        before = self._seen
        written = await self._port.write(record)
        if written is None:
            # Somebody else was faster: read what they wrote at the next turn; until then nobody may rely on our lease.
            if self._renewed_at is not None and (before is None or before.holder != self._identity):
                self._renewed_at = None
            return False
        self._seen = written
        self._seen_at = began_at
        self._renewed_at = began_at
        if new:
            self._taken_over_at_version = written.version
            self._may_act_at = began_at + self._wait_after(before)
        return True

    def _wait_after(self, before: LeaseRecord | None) -> float:
        """Return how long requests of another may still be on the wire.

        A released lease: none are. An expired one: those begun just before it expired. One that somebody deleted: its holder may
        not know yet, so its whole duration comes on top; the first lease ever needs no wait.
        """
        if before is None:
            return self._times.duration + self._times.request if self._ever_seen else 0.0
        if not before.holder:
            return 0.0
        return self._times.request
