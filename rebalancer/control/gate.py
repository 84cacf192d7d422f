"""May evictions go out now? Everything that can forbid it, asked in one place and right before each request."""

from __future__ import annotations

from collections.abc import Callable

from rebalancer.control.happenings import GateChanged, Listener
from rebalancer.control.leadership import Election
from rebalancer.control.pause import PauseLimits, paused_by_cluster, paused_by_operator
from rebalancer.control.ports import Clock, SnapshotSource
from rebalancer.control.windows import Windows

# How often a closed gate is looked at. An open one costs nothing: it is asked when somebody wants to go through.
_LOOK_SECONDS = 0.25


class Gate:
    """Leadership, freshness, windows and pauses together."""

    def __init__(
        self,
        clock: Clock,
        source: SnapshotSource,
        windows: Windows,
        limits: PauseLimits,
        election: Election | None,
        tell: Listener,
        *,
        request_seconds: float,
    ) -> None:
        """Guard the way out. election: None where nobody else could be at work (a dry run that writes nothing)."""
        self._clock = clock
        self._source = source
        self.windows = windows
        self._limits = limits
        self._election = election
        self._tell = tell
        self._request_seconds = request_seconds
        self._told: tuple[str, ...] = ()
        self.stopping = False

    def closed_because(self, profile: str | None = None) -> str | None:
        """Return the first reason why no request may start at this very moment; None where one may."""
        if self.stopping:
            return "the process is stopping"
        if self._election is not None:
            if not self._election.leading:
                return f"standby: {self._election.holder or 'nobody'} holds the lease"
            if not self._election.outlasts(self._request_seconds):
                return f"the lease ends in {self._election.remaining_seconds():.1f} s, sooner than a request may take"
            if (left := self._election.acting_in()) > 0:
                return f"a new leader waits {left:.1f} s more for requests of the one before it"
            if not self._source.reached(self._election.taken_over_at_version):
                return "the caches have not reached the version at which leadership began"
            record = self._election.record
            if record is not None and (reason := paused_by_operator(record.annotations)) is not None:
                return reason
        if unfresh := self._source.unfresh():
            return "; ".join(unfresh)
        return self.windows.closed_because(self._clock.now(), profile)

    def opens_by_itself(self) -> bool:
        """Say whether what closes the gate passes within seconds or minutes: leadership, caches that catch up."""
        if self.stopping:
            return False
        if self._election is not None and not self._election.leading:
            return True
        return bool(self._source.unfresh()) or (
            self._election is not None
            and (self._election.acting_in() > 0 or not self._source.reached(self._election.taken_over_at_version))
        )

    def paused_because(self) -> str | None:
        """Return why the state of the cluster forbids a run; costs a snapshot."""
        return paused_by_cluster(self._source.snapshot(), self._limits)

    async def opened(self, turned: Callable[[], None]) -> None:
        """Wait until a run may start. Tells each time when the reasons change. turned: called at every look."""
        while True:
            turned()
            reason = self.closed_because() or self.paused_because()
            kind = _kind(reason)
            if kind != self._told:
                self._told = kind
                self._tell(GateChanged((reason,) if reason else ()))
            if reason is None:
                return
            await self._clock.sleep(_LOOK_SECONDS)


def _kind(reason: str | None) -> tuple[str, ...]:
    """Return the reason without its figures, so that a countdown is not told four times a second."""
    return () if reason is None else ("".join(letter for letter in reason if not letter.isdigit()),)
