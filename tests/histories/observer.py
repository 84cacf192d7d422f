"""What is seen of one process: the runs it makes, the plans it follows, each request as it leaves and as it arrives."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rebalancer.control.happenings import Asked, Happening, Looked, RunEnded, RunStarted
from rebalancer.model.answer import Accepted, Unknown
from rebalancer.model.budget import Budget
from rebalancer.model.plan import Approval
from rebalancer.model.snapshot import Snapshot
from rebalancer.service.parts import Parts
from rebalancer.sim.answering import OpenWatch
from rebalancer.sim.requests import Answer, Request
from tests.histories.network import Line

if TYPE_CHECKING:
    from tests.histories.witness import Witness

_ASKED_SECONDS = 60.0
"""For so long it is remembered that a pod is about to be asked for."""


@dataclass(slots=True)
class Reaction:
    """A run, together with those in which other processes went on with it.

    started_at: wall clock, in the process that evicted last. owner: who is at it. resumed_at: when that one began.
    """

    started_at: float
    owner: str
    ended: bool = False
    resumed_at: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Intent:
    """An eviction as its sender meant it."""

    pod: str
    uid: str
    reaction: Reaction | None
    budgets: dict[str, Budget] = field(default_factory=dict)
    seen_ready: bool = True


@dataclass(eq=False)
class Observer:
    """Sees all that one process does."""

    name: str
    witness: Witness
    line: Line | None = None
    parts: Parts | None = None
    reaction: Reaction | None = None
    plan: dict[str, Approval] = field(default_factory=dict)
    look: Snapshot | None = None
    accounted: frozenset[str] = frozenset()
    reckoned: Counter[str] = field(default_factory=Counter)

    def looks(self) -> None:
        """Keep the picture that an evaluation begins with."""
        assert self.parts is not None
        self.look = self.parts.cache.snapshot()

    def hear(self, happening: Happening) -> None:
        """Follow runs and plans."""
        if isinstance(happening, RunStarted):
            self.reaction = self.witness.run_started(self)
            self.reckoned.clear()
        elif isinstance(happening, Looked):
            self.plan = {approval.pod: approval for approval in happening.plan.approved}
        elif isinstance(happening, Asked) and isinstance(happening.answer, Accepted | Unknown):
            self.witness.hold_reckoning_to_caps(self, happening.approval)
        elif isinstance(happening, RunEnded) and self.reaction is not None:
            if self.reaction.owner == self.name:
                self.reaction.ended = happening.ending not in ("closed", "fenced")
            self.reaction = None

    def leaves(self, request: Request) -> Any:
        """Judge an eviction as it is sent."""
        if request.method == "POST" and request.path.endswith("/eviction"):
            return self.witness.eviction_leaves(self, request)
        return None

    def arrives(self, request: Request, mark: Any, answer: Callable[[Request], Answer | OpenWatch]) -> Answer | OpenWatch:
        """Judge what becomes of a request."""
        if isinstance(mark, Intent):
            return self.witness.eviction_arrives(self, request, mark, answer)
        given = answer(request)
        if isinstance(given, Answer) and given.status < 300 and request.method in ("PUT", "POST", "PATCH"):
            if "/leases" in request.path:
                self.witness.lease_written(self, request)
            elif "/configmaps" in request.path:
                self._state_written(request)
        return given

    def _state_written(self, request: Request) -> None:
        """Note which evictions are accounted for, and that a run has ended: its counts are no longer kept."""
        (text,) = json.loads(request.body)["data"].values()
        state = json.loads(text)
        self.accounted = frozenset(state["asked"])
        if self.reaction is not None and self.reaction.owner == self.name and state["run"] is None:
            self.reaction.ended = True

    async def on_its_way(self, request: Request) -> None:
        """Have what was prepared for such a request happen."""
        for ambush in tuple(self.witness.ambushes):
            if ambush in self.witness.ambushes and ambush.meets(request):
                self.witness.ambushes.remove(ambush)
                await ambush.strike(request)


@dataclass(frozen=True, slots=True)
class Ambush:
    """What happens while a request is on the wire. meets: which request that is."""

    meets: Callable[[Request], bool]
    strike: Callable[[Request], Awaitable[None]]


def accounts_for(request: Request, now: float, *, within: float = _ASKED_SECONDS) -> set[str]:
    """Return the UIDs of pods of which a write of the state notes that they are asked for. within: since so many seconds."""
    if request.method not in ("POST", "PATCH") or "/configmaps" not in request.path:
        return set()
    (text,) = json.loads(request.body)["data"].values()
    soonest = now + _ASKED_SECONDS - within
    return {uid for uid, until in json.loads(text)["asked"].items() if soonest < until < now + _ASKED_SECONDS + 10.0}
