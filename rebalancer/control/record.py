"""Who was asked, and what of it is written down: the live side of ``memory``.

Gathers what the parts know into one Remembered and writes it; takes one over when leadership begins. Converts between the
process's monotonic clock and the wall clock in which things are written.
"""

from __future__ import annotations

from rebalancer.control.cooldown import Cooldowns
from rebalancer.control.happenings import Listener, Noticed
from rebalancer.control.memory import Memory, Remembered
from rebalancer.control.ports import Clock
from rebalancer.control.rate import SlidingWindow
from rebalancer.control.tally import Tally
from rebalancer.errors import KubeError

# How long a uid stays taken. A request without a clear end: until the watch must have shown what became of it. An accepted one:
# longer than any grace period that is worth waiting for.
_ASKED_SECONDS = 60.0
_ACCEPTED_SECONDS = 3600.0
# A request without reply: longer than a watch may be silent without anybody noticing.
_UNKNOWN_SECONDS = 240.0
# From a permit to the end of its request, at most: the state is written and the eviction answered within that.
_REQUEST_SECONDS = 6.0


class Record:
    """Keeps the account of one process, and writes it before each request."""

    def __init__(self, clock: Clock, memory: Memory, rate: SlidingWindow, cooldowns: Cooldowns, tell: Listener) -> None:
        self._clock = clock
        self._memory = memory
        self._rate = rate
        self._cooldowns = cooldowns
        self._tell = tell
        self._asked: dict[str, float] = {}
        self._told = ""
        self.current = False
        self.left_over: Tally | None = None

    def was_asked(self, uid: str) -> bool:
        """Say whether a pod's eviction was accepted (or may have been), or is on the wire."""
        return self._asked.get(uid, 0.0) > self._clock.now()

    def note_asked(self, uid: str) -> None:
        """Note that a pod is about to be asked for."""
        self._asked[uid] = self._clock.now() + _ASKED_SECONDS

    def note_unknown(self, uid: str) -> None:
        """Note that no reply came: it may have been accepted."""
        self._asked[uid] = self._clock.now() + _UNKNOWN_SECONDS

    def note_settled(self, uid: str) -> None:
        """Note that a pod has been replaced: it is gone or seen going, so it need not be kept in mind for long."""
        if uid in self._asked:
            self._asked[uid] = min(self._asked[uid], self._clock.now() + _ASKED_SECONDS)

    def note_accepted(self, uid: str) -> None:
        """Note that the server said yes."""
        self._asked[uid] = self._clock.now() + _ACCEPTED_SECONDS

    def forget_asked(self, uid: str) -> None:
        """Take it back: the server refused, or the request was never sent."""
        self._asked.pop(uid, None)

    async def recall(self) -> bool:
        """Take over what was written last. False where it cannot be read now: then nothing may be done."""
        try:
            state = await self._memory.recall()
        except KubeError as error:
            self._tell_once("state-unreadable", f"what was remembered cannot be read: {error}")
            return False
        self._told = ""
        if state is None:
            self._tell(Noticed("state-damaged", "what was remembered cannot be understood and is started afresh"))
            state = Remembered()
        offset = self._clock.monotonic() - self._clock.now()
        moment = self._clock.monotonic()
        self._rate.restore((min(permit + offset, moment) for permit in state.permits), _REQUEST_SECONDS)
        self._asked = {**state.asked, **self._asked}
        self._cooldowns.restore(state.rests, state.nodes_mark)
        self.left_over = state.run
        self.current = True
        return True

    async def write(self, tally: Tally | None) -> str:
        """Write the account: ``written``, ``fenced`` (somebody else wrote since) or ``unwritten`` (no answer; try again)."""
        now = self._clock.now()
        offset = now - self._clock.monotonic()
        self._asked = {uid: until for uid, until in self._asked.items() if until > now}
        self._cooldowns.trim(now)
        state = Remembered(
            permits=tuple(permit + offset for permit in self._rate.given),
            asked=dict(self._asked),
            run=tally,
            rests=self._cooldowns.rests,
            nodes_mark=self._cooldowns.nodes_mark,
        )
        try:
            done = await self._memory.note(state)
        except KubeError as error:
            # It may have been written all the same: the version that is known here may be an old one.
            self.current = False
            self._tell_once("state-unwritten", f"the state could not be written, so nothing is sent: {error}")
            return "unwritten"
        self._told = ""
        if not done:
            self.current = False
        return "written" if done else "fenced"

    def _tell_once(self, code: str, text: str) -> None:
        """Tell of a problem when it appears, not at every attempt."""
        if text != self._told:
            self._told = text
            self._tell(Noticed(code, text))
