"""One reaction to a batch: evaluate, evict, look again.

It goes on until nothing is left to gain, a cap is reached, the gate closes or the run's deadline passes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from rebalancer.control.cooldown import Cooldowns
from rebalancer.control.debounce import Batch, Debounce
from rebalancer.control.evictor import Evictor, Outcome, Run
from rebalancer.control.gate import Gate
from rebalancer.control.happenings import Listener, Looked, Noticed, RunEnded, RunStarted
from rebalancer.control.ledger import Ledger
from rebalancer.control.lessons import Lessons
from rebalancer.control.ports import Circumstances, Clock, Evaluate, SnapshotSource
from rebalancer.control.pulse import Pulses
from rebalancer.control.record import Record
from rebalancer.control.settle import Settling
from rebalancer.control.tally import Tally
from rebalancer.errors import InputError
from rebalancer.model.plan import Plan
from rebalancer.model.trigger import Fact, FactKind

_WORLD_FACTS = frozenset(
    {
        FactKind.NODE_JOINED,
        FactKind.NODE_BECAME_SCHEDULABLE,
        FactKind.NODE_BECAME_UNSCHEDULABLE,
        FactKind.NODE_LABELS_CHANGED,
        FactKind.NODE_TAINTS_CHANGED,
        FactKind.NODE_CAPACITY_CHANGED,
        FactKind.NODE_GONE,
    }
)
_PASSING_FACTS = frozenset({FactKind.BUDGET_CHANGED, FactKind.POD_READY, FactKind.OTHER_CHANGED})
# Refusals that end by themselves once a replacement is up.
_PASSING_CODES = frozenset({"budget", "budget-stale", "workload-unready", "workload-in-rollout", "cap-in-flight"})

IN_PROGRESS = "descheduler.alpha.kubernetes.io/eviction-in-progress"


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Seconds. deadline: of a whole run. pause: least time between two looks. patience: for budgets to recover after progress."""

    deadline: float = 600.0
    pause: float = 0.5
    patience: float = 45.0


class Controller:
    """Takes batches, one at a time, and reacts to each with a run."""

    def __init__(
        self,
        *,
        clock: Clock,
        source: SnapshotSource,
        evaluate: Evaluate,
        evictor: Evictor,
        gate: Gate,
        debounce: Debounce,
        settling: Settling,
        ledger: Ledger,
        record: Record,
        cooldowns: Cooldowns,
        lessons: Lessons,
        pulses: Pulses,
        times: RunTimes,
        tell: Listener,
        background: bool = False,
    ) -> None:
        """Put together what a run needs. background: evictions that others carry out count against the caps until they end."""
        self._background = background
        self._clock = clock
        self._source = source
        self._evaluate = evaluate
        self._evictor = evictor
        self._gate = gate
        self._debounce = debounce
        self._settling = settling
        self._ledger = ledger
        self._record = record
        self._cooldowns = cooldowns
        self._lessons = lessons
        self._pulses = pulses
        self._times = times
        self._tell = tell
        self._number = 0
        self._passing = asyncio.Event()
        self.current: Run | None = None
        self.last: deque[RunEnded] = deque(maxlen=20)

    def on_facts(self, facts: Iterable[Fact]) -> None:
        """Take in what became true: wakes whoever waits for it."""
        facts = tuple(facts)
        self._settling.on_facts(facts)
        kinds = {fact.kind for fact in facts}
        if kinds & _WORLD_FACTS:
            self._evictor.world_changed()
            if FactKind.NODE_JOINED in kinds or FactKind.NODE_GONE in kinds:
                self._cooldowns.nodes_are(self._source.snapshot().nodes)
        if kinds & _PASSING_FACTS:
            self._passing.set()
            self._evictor.wake.set()

    async def serve(self) -> None:
        """React to batches until cancelled."""
        while True:
            await self._gate.opened(self._turned)
            if not self._record.current and not await self._recall():
                continue
            batch = await self._debounce.next_batch(self._turned)
            if self._gate.closed_because() is not None or not self._record.current:
                self._debounce.put_back(batch.triggers)
                continue
            await self.react(batch)

    async def once(self, batch: Batch) -> RunEnded:
        """React to one batch, and return how that ended. A gate that opens by itself is waited for, at most a run's deadline."""
        give_up_at = self._clock.monotonic() + self._times.deadline
        while (reason := self._gate.closed_because() or self._gate.paused_because()) is not None:
            waits = self._gate.opens_by_itself()
            if not waits or self._clock.monotonic() >= give_up_at:
                # A window or a pause is as it should be; a lease that somebody else keeps, or caches that stay old, is not.
                ended = RunEnded(0, "unavailable" if waits else "closed", reason, 0, 0, 0, 0.0)
                self._tell(ended)
                return ended
            await self._clock.sleep(0.05)
        while not self._record.current and self._clock.monotonic() < give_up_at:
            await self._recall()
        return await self.react(batch)

    async def react(self, batch: Batch) -> RunEnded:
        """Run. What could not be done because the gate closed is put back for the next batch."""
        self._number += 1
        began_at = self._clock.monotonic()
        run = Run(self._number, began_at + self._times.deadline, self._tally())
        if self._background:
            for pod in self._source.snapshot().all_pods():
                if IN_PROGRESS in pod.shape.annotations and not pod.terminating and not pod.finished:
                    run.tally.count_background(pod)
        self.current = run
        self._tell(RunStarted(run.number, batch))
        try:
            outcome = await self._looks(run)
        finally:
            self.current = None
        for uid in run.reported:
            self._ledger.give_back(uid)
        if outcome.ending in ("closed", "fenced"):
            # It is to be gone on with, here or in another process, and its counts with it: a restart is no way around a cap.
            self._debounce.put_back(batch.triggers)
            self._record.left_over = run.tally
        elif run.accepted:
            # Its counts are done with; the next run starts afresh, in this process or another.
            await self._record.write(None)
        seconds = self._clock.monotonic() - began_at
        ended = RunEnded(run.number, outcome.ending, outcome.reason, run.accepted, run.refused, outcome.left, seconds)
        self.last.append(ended)
        self._tell(ended)
        return ended

    def _turned(self) -> None:
        self._pulses.turned("runs")

    async def _recall(self) -> bool:
        if await self._record.recall():
            self._cooldowns.nodes_are(self._source.snapshot().nodes)
            return True
        await self._clock.sleep(1.0)
        return False

    def _tally(self) -> Tally:
        """Begin to count, or go on with the counts of a run that could not be ended, in this process or another."""
        now = self._clock.now()
        left_over, self._record.left_over = self._record.left_over, None
        if left_over is not None and now < left_over.started_at + self._times.deadline:
            # From here on it is this run's account: whoever takes over from us has to find it as long as this run may last.
            left_over.started_at = now
            return left_over
        return Tally(now)

    async def _looks(self, run: Run) -> Outcome:
        look, pause = 0, self._times.pause
        while True:
            look += 1
            self._turned()
            if (reason := self._gate.closed_because() or self._gate.paused_because()) is not None:
                outcome = Outcome("closed", reason)
            else:
                moved, accepted = run.moved, run.accepted
                try:
                    outcome, plan = await self._look(run, look)
                except InputError as error:
                    # A priority class that the policy names is gone, say: nothing to decide on, and nothing to crash for.
                    self._tell(Noticed("cannot-evaluate", str(error)))
                    return Outcome("failed", str(error))
                if run.moved > moved:
                    pause = self._times.pause
                if outcome.ending == "done":
                    if run.moved == moved:
                        if run.accepted > accepted or not await self._recovers(run, plan):
                            return replace(outcome, reason=_ending(run, plan))
                    else:
                        await self._landed(run)
            if outcome.ending in ("deadline", "superseded", "fenced"):
                return outcome
            if outcome.ending == "closed" and not await self._reopens(run):
                return outcome
            if self._clock.monotonic() >= run.deadline:
                return Outcome("deadline", "the run's deadline has passed", outcome.left)
            await self._clock.sleep(pause)
            if outcome.ending == "changed":
                pause = min(2 * pause, 10.0)

    async def _look(self, run: Run, look: int) -> tuple[Outcome, Plan]:
        began_at = self._clock.monotonic()
        snapshot = self._source.snapshot()
        self._ledger.catch_up(snapshot)
        self._passing.clear()
        plan = await self._evaluate(
            self._settling.awaiting(self._ledger.lowered(snapshot)), self._circumstances(run, snapshot.now)
        )
        seconds = self._clock.monotonic() - began_at
        pods = sum(len(bucket) for bucket in snapshot.pods.values()) + len(snapshot.unplaced)
        self._tell(Looked(run.number, look, plan, seconds, len(snapshot.nodes), pods))
        self._settling.begin_plan()
        return await self._evictor.carry_out(plan, snapshot, run, self._batch_due, self._turned), plan

    def _circumstances(self, run: Run, now: float) -> Circumstances:
        return Circumstances(
            closed_profiles=self._gate.windows.closed_profiles(now),
            cooling=self._cooldowns.cooling(now),
            evicted_total=run.tally.total,
            evicted_by_node=dict(run.tally.by_node),
            evicted_by_namespace=dict(run.tally.by_namespace),
            evicted_by_workload=dict(run.tally.by_workload),
            stopped=self._lessons.stopped(now),
            distrust_landings=self._lessons.distrust,
        )

    def _batch_due(self) -> bool:
        return self._debounce.due_in() == 0.0

    async def _landed(self, run: Run) -> None:
        """Wait for the replacements of what was moved; a next batch that is due need only see them exist."""
        while self._settling.moves and self._clock.monotonic() < run.deadline and self._gate.closed_because() is None:
            self._turned()
            if self._batch_due() and all(move.replacement_uid or not move.expects_replacement for move in self._settling.moves):
                return
            await self._pass_time(self._settling.changed, 0.5)

    async def _recovers(self, run: Run, plan: Plan) -> bool:
        """Wait, after progress, for budgets and workloads to recover; False where there is nothing to wait for."""
        if not run.moved or not _PASSING_CODES & set(plan.refused_counts):
            return False
        give_up_at = min(self._clock.monotonic() + self._times.patience, run.deadline)
        while self._clock.monotonic() < give_up_at and not self._batch_due() and self._gate.closed_because() is None:
            self._turned()
            if await self._pass_time(self._passing, 1.0):
                return True
        return False

    async def _reopens(self, run: Run) -> bool:
        """Wait while the caches are not fresh; False where the gate is closed for longer."""
        while self._source.unfresh() and not self._gate.stopping and self._clock.monotonic() < run.deadline:
            self._turned()
            await self._clock.sleep(0.5)
        return self._gate.closed_because() is None and self._gate.paused_because() is None

    async def _pass_time(self, event: asyncio.Event, seconds: float) -> bool:
        event.clear()
        return await self._clock.wait_for(event, seconds)


def _ending(run: Run, plan: Plan) -> str:
    if run.told:
        return "limit reached: " + "; ".join(sorted(run.told))
    if plan.refused_counts:
        counts = ", ".join(f"{count} {code}" for code, count in sorted(plan.refused_counts.items()))
        return f"nothing left to gain ({counts})"
    return "nothing left to gain"
