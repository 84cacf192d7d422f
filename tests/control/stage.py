"""A controller on a stage: real control over a real cache, a scripted evaluation, a small cluster that does what it is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rebalancer.control.caps import Caps, CapSet
from rebalancer.control.cooldown import Cooldowns
from rebalancer.control.debounce import Batch, Debounce
from rebalancer.control.evictor import Evictor, Pace
from rebalancer.control.gate import Gate
from rebalancer.control.happenings import Asked, RunEnded, Teller
from rebalancer.control.ledger import Ledger
from rebalancer.control.lessons import Lessons
from rebalancer.control.memory import Memory, VolatileState
from rebalancer.control.pause import PauseLimits
from rebalancer.control.ports import Circumstances, Reply, StatePort
from rebalancer.control.pulse import Pulses
from rebalancer.control.rate import SlidingWindow
from rebalancer.control.record import Record
from rebalancer.control.run import Controller, RunTimes
from rebalancer.control.settle import SettleTimes, Settling
from rebalancer.control.windows import Window, Windows
from rebalancer.model.answer import Accepted
from rebalancer.model.change import Bookmark
from rebalancer.model.plan import Approval, Plan
from rebalancer.model.snapshot import Snapshot
from rebalancer.model.trigger import Trigger, TriggerKind
from tests.control.cluster import Json, World, a_budget, a_pod, an_approval
from tests.control.virtual import Heard

BATCH = Batch((Trigger(TriggerKind.MANUAL),))
Evaluator = Callable[[Snapshot, Circumstances], Plan]


@dataclass
class Script:
    """What happens to evictions.

    answers: to be given before any other, in order. shutdown, startup: how long an evicted pod takes to go, and its
    replacement to be Ready. lands: where replacements go. latency: of a request. budget_allows: what the budget allows while
    nobody is down, None for no budget.
    """

    answers: list[Reply] = field(default_factory=list)
    shutdown_seconds: float = 1.0
    startup_seconds: float = 1.0
    lands: str = "n2"
    latency_seconds: float = 0.01
    budget_allows: int | None = None


class Cluster:
    """Takes evictions, and has replacements come up."""

    def __init__(self, world: World, script: Script, told: Callable[[Any], None]) -> None:
        """Play this script."""
        self.world = world
        self.script = script
        self.asked: list[tuple[float, str]] = []
        self.hook: Callable[[Approval], None] = lambda approval: None
        self._told = told
        self._tasks: set[asyncio.Task[None]] = set()
        self._number = 0
        self._budget_version = 1
        self._down = 0

    async def evict(self, approval: Approval) -> Reply:
        """Answer, and let happen what follows."""
        await asyncio.sleep(self.script.latency_seconds)
        self.asked.append((self.world.clock.monotonic(), approval.pod))
        self.hook(approval)
        if self.script.answers:
            answer = self.script.answers.pop(0)
            if not isinstance(answer, Accepted):
                return answer
        else:
            answer = Accepted()
        task = asyncio.create_task(self._replace(approval))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return answer

    async def _replace(self, approval: Approval) -> None:
        name = approval.pod.partition("/")[2]
        app = approval.owner_uid.removeprefix("uid-")
        self._down += 1
        self._tell(a_pod(name, approval.node, app=app, uid=approval.uid, terminating=True))
        self._budget()
        self._number += 1
        new = f"{app}-new{self._number}"
        if app:
            self._tell(a_pod(new, self.script.lands, app=app, phase="Pending"))
        await asyncio.sleep(self.script.shutdown_seconds)
        self._told(self.world.remove(a_pod(name, approval.node, app=app, uid=approval.uid)))
        await asyncio.sleep(self.script.startup_seconds)
        if app:
            self._tell(a_pod(new, self.script.lands, app=app))
        self._down -= 1
        await asyncio.sleep(0.2)
        self._budget()

    def _tell(self, obj: Json) -> None:
        self._told(self.world.put(obj))

    def _budget(self) -> None:
        if self.script.budget_allows is not None:
            self._budget_version += 1
            allowed = max(0, self.script.budget_allows - self._down)
            self._tell(a_budget(allowed=allowed, version=str(self._budget_version), current=9 - self._down))

    async def close(self) -> None:
        """End what still goes on."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class Stage:
    """Everything together."""

    def __init__(
        self,
        world: World,
        evaluate: Evaluator,
        *,
        script: Script | None = None,
        pace: Pace | None = None,
        caps: Iterable[CapSet] = (),
        per_minute: int | None = None,
        windows: Iterable[Window] = (),
        blackouts: Iterable[Window] = (),
        pauses: PauseLimits | None = None,
        state: StatePort | None = None,
        deadline: float = 600.0,
        background: bool = False,
    ) -> None:
        """Set the stage; nothing runs yet."""
        self.world = world
        self.heard = Heard()
        clock, cache = world.clock, world.cache
        tell = Teller([self.heard])
        self.cluster = Cluster(world, script or Script(), self.told)
        self.gate = Gate(clock, cache, Windows(windows, blackouts), pauses or PauseLimits(), None, tell, request_seconds=3.0)
        self.rate = SlidingWindow(per_minute, 60.0)
        self.cooldowns = Cooldowns(first_seconds=600.0, most_seconds=21_600.0)
        self.ledger = Ledger(cache.pod)
        self.settling = Settling(clock, cache, tell, SettleTimes())
        self.record = Record(clock, Memory(state or VolatileState()), self.rate, self.cooldowns, tell)
        self.lessons = Lessons(clock, self.cooldowns, self.settling.accuracy, tell)
        self.settling.when_finished(self.lessons.finished)
        self.debounce = Debounce(clock, quiet_seconds=5.0, maximum_seconds=60.0)
        self.evictor = Evictor(
            clock=clock,
            source=cache,
            port=self.cluster,
            gate=self.gate,
            caps=lambda: Caps(caps),
            rate=self.rate,
            ledger=self.ledger,
            settling=self.settling,
            record=self.record,
            pace=pace or Pace(),
            tell=tell,
        )
        self.pulses = Pulses(clock)
        self.stuck: list[str] = []
        self.looks: list[Snapshot] = []
        self.circumstances: list[Circumstances] = []

        async def evaluation(snapshot: Snapshot, circumstances: Circumstances) -> Plan:
            self.looks.append(snapshot)
            self.circumstances.append(circumstances)
            return evaluate(snapshot, circumstances)

        self.controller = Controller(
            clock=clock,
            source=cache,
            evaluate=evaluation,
            evictor=self.evictor,
            gate=self.gate,
            debounce=self.debounce,
            settling=self.settling,
            ledger=self.ledger,
            record=self.record,
            cooldowns=self.cooldowns,
            lessons=self.lessons,
            pulses=self.pulses,
            times=RunTimes(deadline=deadline),
            tell=tell,
            background=background,
        )

    def told(self, facts: Any) -> None:
        """Pass facts on."""
        self.controller.on_facts(facts)

    async def run(self, batch: Batch = BATCH) -> RunEnded:
        """Make one run, with time passing for what times out."""
        looking = asyncio.create_task(self._look_now_and_then())
        try:
            return await self.controller.once(batch)
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
            await self.cluster.close()

    async def _look_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(1)
            self.settling.look()
            self.stuck += self.pulses.stuck()
            for kind in self.world.cache.kinds:
                await self.world.cache.receive(Bookmark(kind, "1"))

    @property
    def evicted(self) -> list[str]:
        """Pods whose eviction was accepted, in order."""
        return [each.approval.pod for each in self.heard.of(Asked) if isinstance(each.answer, Accepted)]

    @property
    def ended(self) -> list[RunEnded]:
        """How runs ended."""
        return self.heard.of(RunEnded)


def moving(pods: Sequence[Json], **landings: float) -> Evaluator:
    """Return an evaluation that approves those of the pods that are still there, in order, budgets aside."""

    def evaluate(snapshot: Snapshot, circumstances: Circumstances) -> Plan:
        there = {pod.uid for pod in snapshot.all_pods() if not pod.terminating}
        approved = tuple(an_approval(pod, **landings) for pod in pods if pod["metadata"]["uid"] in there)
        return Plan(evaluated_at=snapshot.now, approved=approved)

    return evaluate
