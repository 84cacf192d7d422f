"""Carry out a plan: one request at a time, each only if nothing has come up against it.

A plan and the run it belongs to enter; an Outcome leaves. Which pods, and in which order, is the plan's; whether and when is
decided here, anew before each request: gate, caps, in-flight limits, budgets, the per-minute window, the newest snapshot.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from rebalancer.control.caps import Caps
from rebalancer.control.gate import Gate
from rebalancer.control.happenings import Asked, LimitReached, Listener, Noticed, Passed
from rebalancer.control.ledger import Ledger
from rebalancer.control.ports import Clock, EvictionPort, Reply, Reported, SnapshotSource, Surged
from rebalancer.control.rate import SlidingWindow
from rebalancer.control.recheck import Doubt, OwnDoing, Progress, doubt
from rebalancer.control.record import Record
from rebalancer.control.settle import Settling, sets_of
from rebalancer.control.tally import Tally, namespace_of
from rebalancer.model.answer import (
    Accepted,
    BudgetForbidden,
    Forbidden,
    Gone,
    HeldByBudget,
    InBackground,
    Invalid,
    Replaced,
    Throttled,
    Unknown,
    Unsupported,
)
from rebalancer.model.plan import Approval, Plan
from rebalancer.model.pod import Pod
from rebalancer.model.snapshot import Snapshot

# While something is waited for, the gate is looked at this often: windows close and leases end without an event.
_LOOK_SECONDS = 0.5
_SLOWEST_SECONDS = 60.0

Recheck = Callable[[Snapshot, Snapshot, Approval, OwnDoing, Progress], Doubt | None]


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast.

    in_flight: moves at once. per_workload: of one workload at once. retry, retry_most: first and longest pause (seconds).
    """

    in_flight: int = 5
    per_workload: int = 1
    retry: float = 2.0
    retry_most: float = 30.0


@dataclass(slots=True)
class Run:
    """One run, as far as the evictor keeps account of it.

    deadline: monotonic seconds. accepted: requests that use up caps; moved: those of them by which a pod really goes.
    evicted, owners: uids of what this run moved; rollouts: those of the owners that are Deployments, which were rolled out.
    reported: uids of what would have gone. out: not again in this run; forbidden: namespaces in which there are no evictions, or
    (True) no rollouts. told: limits that were told already.
    """

    number: int
    deadline: float
    tally: Tally
    accepted: int = 0
    moved: int = 0
    refused: int = 0
    reported: set[str] = field(default_factory=set)
    evicted: set[str] = field(default_factory=set)
    owners: set[str] = field(default_factory=set)
    rollouts: set[str] = field(default_factory=set)
    out: set[str] = field(default_factory=set)
    forbidden: set[tuple[str, bool]] = field(default_factory=set)
    told: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How carrying out a plan ended.

    ending: ``done``, ``changed`` (the world did: look again), ``closed`` (the gate), ``deadline``, ``superseded`` (the next
    batch is due and only waiting was left), ``fenced`` (another process wrote the state).
    left: approved pods that were not asked for.
    """

    ending: str
    reason: str = ""
    left: int = 0


@dataclass(slots=True)
class _Candidate:
    approval: Approval
    retry_at: float = 0.0
    attempts: int = 0


@dataclass(slots=True)
class _Slowness:
    """Throttling slows everything: nothing goes before ``not_before``; the pause doubles until a request gets through."""

    not_before: float = 0.0
    pause: float = 0.0


class Evictor:
    """Sends evictions for one controller."""

    def __init__(
        self,
        *,
        clock: Clock,
        source: SnapshotSource,
        port: EvictionPort,
        gate: Gate,
        caps: Callable[[], Caps],
        rate: SlidingWindow,
        ledger: Ledger,
        settling: Settling,
        record: Record,
        pace: Pace,
        tell: Listener,
        recheck: Recheck = doubt,
    ) -> None:
        """Send through ``port``. recheck: says before each request whether its approval still holds."""
        self._clock = clock
        self._source = source
        self._port = port
        self._gate = gate
        self._caps = caps
        self._rate = rate
        self._ledger = ledger
        self._settling = settling
        self._record = record
        self._pace = pace
        self._tell = tell
        self._recheck = recheck
        self._slow = _Slowness()
        self._held: dict[str, float] = {}
        self._world = 0
        settling.when_diverged(self.world_changed)
        self._answered = asyncio.Event()
        self._answered.set()
        self._replyless = False
        self.wake = asyncio.Event()

    async def idle(self, seconds: float) -> bool:
        """Wait until no request is on the wire, at most so long; say whether the last one had its reply."""
        answered = self._answered.is_set() or await self._clock.wait_for(self._answered, seconds)
        return answered and not self._replyless

    def world_changed(self) -> None:
        """Note that the world is not as planned: nodes changed, or a replacement landed elsewhere. The plan ends."""
        self._world += 1
        self.wake.set()

    async def carry_out(
        self, plan: Plan, then: Snapshot, run: Run, batch_due: Callable[[], bool], turned: Callable[[], None]
    ) -> Outcome:
        """Send the plan's evictions as fast as is allowed.

        then: the snapshot the plan was made on. batch_due: whether the next batch waits. turned: called at each turn.
        """
        pending = [_Candidate(approval) for approval in plan.approved]
        world = self._world
        progress = Progress()
        asked = 0
        while pending:
            turned()
            await asyncio.sleep(0)  # To check an approval with thousands of landings takes milliseconds.
            self.wake.clear()
            now = self._clock.monotonic()
            if (reason := self._gate.closed_because()) is not None:
                return Outcome("closed", reason, len(pending))
            if now >= run.deadline:
                return Outcome("deadline", "the run's deadline has passed", len(pending))
            if asked and self._world != world:
                return Outcome("changed", "the nodes, or where replacements landed, are not as planned", len(pending))
            newest = self._source.snapshot()
            self._ledger.catch_up(newest)
            chosen, wait = self._choose(pending, newest, run, now)
            if chosen is None:
                if not pending:
                    break
                if batch_due() and not self._rate_is_why(now):
                    return Outcome("superseded", "only waiting was left, and the next batch is due", len(pending))
                await self._clock.wait_for(self.wake, min(wait, _LOOK_SECONDS, run.deadline - now))
                continue
            found = self._recheck(then, newest, chosen.approval, _own_doing(run, newest), progress)
            if found is not None:
                self._tell(Passed(run.number, chosen.approval, found.code, found.reason))
                if found.look_again:
                    return Outcome("changed", found.reason, len(pending))
                pending.remove(chosen)
                continue
            verdict = await self._ask(chosen, then, run, progress)
            asked += 1
            if verdict == "again":
                continue
            if verdict == "fenced":
                return Outcome("fenced", "another process has written the state since", len(pending))
            if verdict == "changed":
                return Outcome("changed", "the world changed while the request was prepared", len(pending))
            pending.remove(chosen)
            if chosen.approval.uid in run.evicted and chosen.approval.uid not in run.reported:
                progress.moved.append(chosen.approval)
        return Outcome("done")

    def _rate_is_why(self, now: float) -> bool:
        wait = self._rate.wait_seconds(now)
        return wait is not None and wait > 0

    def _choose(self, pending: list[_Candidate], newest: Snapshot, run: Run, now: float) -> tuple[_Candidate | None, float]:
        """Return the first candidate that may go now, or how long to wait at most. Drops those that can no longer go."""
        free_in = self._rate.wait_seconds(now)
        pause = max(self._slow.not_before - now, 0.0 if free_in is None else free_in)
        if len(self._settling.moves) >= self._pace.in_flight:
            return None, _LOOK_SECONDS
        if pause > 0:
            return None, max(pause, 0.01)
        for candidate in list(pending):
            approval = candidate.approval
            if (dropped := self._drop(candidate, newest, run)) is not None:
                code, reason = dropped
                pending.remove(candidate)
                if reason:
                    run.out.add(approval.uid)
                    self._tell(Passed(run.number, approval, code, reason))
                continue
            if free_in is None:
                pending.remove(candidate)
                self._limit(run, "0 evictions per minute")
                continue
            if self._waits(candidate, newest, now):
                continue
            return candidate, 0.0
        return None, _LOOK_SECONDS

    def _drop(self, candidate: _Candidate, newest: Snapshot, run: Run) -> tuple[str, str] | None:
        """Return code and reason (empty: told already) where a candidate can no longer go in this run."""
        approval = candidate.approval
        if approval.uid in run.out or _right(approval) in run.forbidden:
            return "out", ""
        if self._record.was_asked(approval.uid):
            return "asked-before", "its eviction was asked for and accepted already"
        if (limit := self._caps().reached(approval, run.tally, newest)) is not None:
            self._limit(run, limit)
            return "cap", ""
        if (closed := self._gate.windows.closed_because(self._clock.now(), approval.profile)) is not None:
            return "window", closed
        pod = self._source.pod(approval.pod)
        if pod is None or pod.uid != approval.uid:
            return "gone", "it is no longer there"
        objection = self._objection(approval, pod, newest)
        if objection is not None and objection[0] == "budgets-several":
            return objection
        return None

    def _waits(self, candidate: _Candidate, newest: Snapshot, now: float) -> bool:
        """Say whether a candidate has to wait for its workload, its budget or the end of a pause."""
        approval = candidate.approval
        if candidate.retry_at > now or self._settling.count_of(approval.owner_uid) >= self._pace.per_workload:
            return True
        pod = self._source.pod(approval.pod)
        if pod is None or approval.rollout:
            return False
        for budget in self._ledger.charged(pod, newest):
            if self._held.get(budget.uid, 0.0) > now:
                return True
        return self._ledger.objection(pod, newest) is not None

    def _objection(self, approval: Approval, pod: Pod, newest: Snapshot) -> tuple[str, str] | None:
        """Return what budgets have against it; a rollout is no eviction, and asks none."""
        return None if approval.rollout else self._ledger.objection(pod, newest)

    def _limit(self, run: Run, limit: str) -> None:
        if limit not in run.told:
            run.told.add(limit)
            self._tell(LimitReached(run.number, limit))

    async def _ask(self, candidate: _Candidate, then: Snapshot, run: Run, progress: Progress) -> str:
        """Account for a request, check once more, send it and take its answer in."""
        approval = candidate.approval
        if not self._rate.take(self._clock.monotonic()):
            return "again"
        run.tally.count(approval)
        self._record.note_asked(approval.uid)
        written = await self._record.write(run.tally)
        # From here to the request nothing waits: what is checked now is what holds when the request starts.
        newest = self._source.snapshot()
        pod = self._source.pod(approval.pod)
        reason = self._gate.closed_because(approval.profile)
        found = self._recheck(then, newest, approval, _own_doing(run, newest), progress)
        there = pod is not None and pod.uid == approval.uid
        held = pod is not None and there and self._objection(approval, pod, newest) is not None
        if written != "written" or reason is not None or found is not None or held or pod is None or not there:
            run.tally.discount(approval)
            self._record.forget_asked(approval.uid)
            if written == "unwritten":
                self._slow_down(None)
                return "again"
            if written == "fenced":
                return "fenced"
            return "again" if reason is not None or (held and found is None) else "changed"
        known = self._settling.siblings(approval.owner_uid, rollout=bool(approval.rollout))
        charged = () if approval.rollout else self._ledger.charged(pod, newest)
        began_at = self._clock.monotonic()
        self._answered.clear()
        self._replyless = True
        try:
            answer = await self._port.evict(approval)
            self._replyless = isinstance(answer, Unknown)
        finally:
            self._answered.set()
            self._rate.ended(self._clock.monotonic())
        self._tell(Asked(run.number, approval, answer, self._clock.monotonic() - began_at))
        return self._take_in(candidate, answer, pod, known, newest, run, tuple(budget.uid for budget in charged))

    def _take_in(
        self,
        candidate: _Candidate,
        answer: Reply,
        pod: Pod,
        known: frozenset[str],
        newest: Snapshot,
        run: Run,
        charged: tuple[str, ...],
    ) -> str:
        approval = candidate.approval
        now = self._clock.monotonic()
        if isinstance(answer, Accepted | InBackground | Unknown | Reported | Surged):
            self._slow.pause = 0.0
            run.accepted += 1
            run.evicted.add(approval.uid)
            if approval.owner_uid:
                run.owners.add(approval.owner_uid)
            if approval.rollout:
                run.rollouts.add(approval.owner_uid)
            else:
                self._ledger.spend(pod, newest)
            if isinstance(answer, Reported):
                # Nothing goes, so nothing is followed, and the next run may report it anew.
                run.reported.add(approval.uid)
                run.out.add(approval.uid)
                self._record.forget_asked(approval.uid)
            else:
                run.moved += 1
                if isinstance(answer, Unknown):
                    self._record.note_unknown(approval.uid)
                else:
                    self._record.note_accepted(approval.uid)
                background = isinstance(answer, InBackground)
                certain = not isinstance(answer, Unknown)
                self._settling.follow(approval, pod, known, certain=certain, in_background=background)
            return "sent"
        run.tally.discount(approval)
        self._record.forget_asked(approval.uid)
        run.refused += 1
        if isinstance(answer, HeldByBudget | BudgetForbidden):
            asked_for = answer.retry_after_seconds if isinstance(answer, HeldByBudget) else None
            pause = min(self._pace.retry * 2.0**candidate.attempts, self._pace.retry_most)
            candidate.attempts += 1
            candidate.retry_at = now + max(pause, asked_for or 0.0)
            for uid in charged:
                self._held[uid] = candidate.retry_at
            return "again"
        if isinstance(answer, Throttled):
            self._slow_down(answer.retry_after_seconds)
            return "again"
        if isinstance(answer, Forbidden):
            run.forbidden.add(_right(approval))
            what = "rollout" if approval.rollout else "eviction"
            text = f"no {what} in namespace {namespace_of(approval)}: {answer.message}"
            self._tell(Noticed("forbidden", text, values={"namespace": namespace_of(approval)}))
        elif isinstance(answer, Gone | Replaced | Invalid | Unsupported):
            run.out.add(approval.uid)
        return "sent"

    def _slow_down(self, asked_for: float | None) -> None:
        self._slow.pause = min(max(2 * self._slow.pause, 1.0), _SLOWEST_SECONDS)
        self._slow.not_before = self._clock.monotonic() + max(self._slow.pause, asked_for or 0.0)


def _right(approval: Approval) -> tuple[str, bool]:
    """Return what has to be allowed for it: evictions in its namespace, or rollouts there."""
    return namespace_of(approval), bool(approval.rollout)


def _own_doing(run: Run, newest: Snapshot) -> OwnDoing:
    """Return what the run has changed itself; of a rollout, what comes belongs to a ReplicaSet that is new."""
    if not run.rollouts:
        return OwnDoing(run.evicted, run.owners)
    return OwnDoing(run.evicted, run.owners.union(sets_of(newest, run.rollouts)))
