"""Build everything and connect it: the one composition root."""

from __future__ import annotations

import asyncio
import os
import socket
import uuid
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from random import Random

from rebalancer.cache.store import REQUIRED, Cache
from rebalancer.control.clock import LoopClock
from rebalancer.control.cooldown import Cooldowns
from rebalancer.control.debounce import Debounce
from rebalancer.control.dryrun import OnlyReport, ServerTries
from rebalancer.control.evictor import Evictor, Pace, Recheck
from rebalancer.control.gate import Gate
from rebalancer.control.happenings import Listener, Noticed, Settled, Teller, TriggerSeen
from rebalancer.control.leadership import Election, ElectionTimes
from rebalancer.control.ledger import Ledger
from rebalancer.control.lessons import Lessons
from rebalancer.control.memory import Memory, VolatileState
from rebalancer.control.pause import PauseLimits
from rebalancer.control.ports import Clock, EvictionPort, Reply, StatePort, Surged
from rebalancer.control.pulse import Pulses
from rebalancer.control.rate import SlidingWindow
from rebalancer.control.recheck import doubt
from rebalancer.control.record import Record
from rebalancer.control.run import Controller, RunTimes
from rebalancer.control.settle import Move, SettleTimes, Settling
from rebalancer.control.triggers import TriggerMaker
from rebalancer.control.windows import Window, Windows
from rebalancer.eligibility.objection import Objection
from rebalancer.eligibility.rollout import rollout_of
from rebalancer.kube.events import EventSink
from rebalancer.kube.eviction import EvictionApi
from rebalancer.kube.lease import LeaseApi
from rebalancer.kube.reflector import Reflector
from rebalancer.kube.resources import RESOURCES
from rebalancer.kube.review import ReviewApi
from rebalancer.kube.rollout import RolloutApi
from rebalancer.kube.state import StateApi
from rebalancer.kube.transport import Transport
from rebalancer.model.answer import Accepted, Gone, Unsupported
from rebalancer.model.change import Disconnected, Report, Skipped, Unavailable
from rebalancer.model.plan import Approval
from rebalancer.model.pod import Owner, Pod
from rebalancer.model.trigger import Trigger
from rebalancer.placement.profile import SchedulerConfig
from rebalancer.policy import Policy
from rebalancer.service.evaluation import Beside, Evaluation, InForce, caps_of, wanted_triggers
from rebalancer.service.measures import MetricsListener
from rebalancer.service.notes import EventListener
from rebalancer.service.status import Status
from rebalancer.settings import Settings, WindowSetting
from rebalancer.web.metrics import Metrics

_BACKGROUND = "descheduler.alpha.kubernetes.io/request-evict-only"
# The lease and the state are small; whoever answers slower than this does not answer.
_SMALL_REQUEST_SECONDS = 3.0


@dataclass(slots=True)
class Parts:
    """Everything that a service consists of."""

    settings: Settings
    clock: Clock
    transport: Transport
    cache: Cache
    reflectors: tuple[Reflector, ...]
    tell: Teller
    pulses: Pulses
    debounce: Debounce
    triggers: TriggerMaker
    gate: Gate
    election: Election | None
    settling: Settling
    evictor: Evictor
    controller: Controller
    record: Record
    lessons: Lessons
    in_force: InForce
    events: EventSink | None
    review: ReviewApi
    metrics: Metrics
    status: Status
    arrivals: asyncio.Event = field(default_factory=asyncio.Event)

    def trigger(self, trigger: Trigger, *, urgent: bool = False) -> None:
        """Take a trigger in."""
        self.tell(TriggerSeen(trigger))
        self.debounce.add(trigger, urgent=urgent)

    def policy_taken_over(self, policy: Policy) -> None:
        """Have everything that depends on the policy follow a new one."""
        self.triggers.wanted = wanted_triggers(policy)
        self.lessons.forget_distrust()
        self.status.caps = caps_of(self.settings, policy)


class Evictions:
    """The eviction port on the API server; the grace period is that of the policy in force."""

    def __init__(self, transport: Transport, cache: Cache, settings: Settings, in_force: InForce, *, dry_run: bool) -> None:
        self._transport = transport
        self._cache = cache
        self._settings = settings
        self._in_force = in_force
        self._dry_run = dry_run

    async def evict(self, approval: Approval) -> Reply:
        """Send one eviction, or start a rollout where the plan has one instead."""
        if approval.rollout:
            return await self._surge(approval)
        api = EvictionApi(
            self._transport,
            timeout_seconds=self._settings.evictions.eviction_timeout_seconds,
            grace_seconds=self._in_force.policy.grace_period_seconds,
            dry_run=self._dry_run,
        )
        namespace, _, name = approval.pod.partition("/")
        pod = self._cache.pod(approval.pod)
        in_background = self._settings.mode.background_evictions and pod is not None and _BACKGROUND in pod.shape.annotations
        reason = f"triggered by {approval.profile}/{approval.strategy}: {approval.reason}"
        return await api.evict(namespace, name, approval.uid, reason, in_background=in_background)

    async def _surge(self, approval: Approval) -> Reply:
        """Start the replacement first, where that can still be."""
        pod = self._cache.pod(approval.pod)
        if pod is None or pod.uid != approval.uid:
            return Gone("it is no longer there")
        target = rollout_of(self._cache.snapshot(), pod.shape)
        if isinstance(target, Objection):
            return Unsupported(str(target))
        if target.uid != approval.owner_uid or target.replicas != 1:
            return Unsupported(f"it is no longer the only replica of Deployment {approval.rollout}")
        api = RolloutApi(
            self._transport, timeout_seconds=self._settings.evictions.eviction_timeout_seconds, dry_run=self._dry_run
        )
        answer = await api.restart(target.namespace, target.name, target.uid, approval.uid, approval.strategy)
        return Surged(target.uid) if isinstance(answer, Accepted) else answer


@dataclass(frozen=True, slots=True)
class Makers:
    """How the parts are made on which it rests that no eviction does harm; tests show what happens without each of them."""

    ledger: Callable[[Callable[[str], Pod | None]], Ledger] = Ledger
    gate: Callable[..., Gate] = Gate
    evictions: Callable[..., EvictionPort] = Evictions
    recheck: Recheck = doubt


def build(
    settings: Settings,
    policy: Policy,
    scheduler: SchedulerConfig,
    transport: Transport,
    listeners: Iterable[Listener],
    *,
    random: Random,
    clock: Clock | None = None,
    beside: Beside | None = None,
    makers: Makers = Makers(),
) -> Parts:
    """Build a service that is not running yet. Has to be called inside the event loop.

    clock: the real one where it is left out. beside: how to compute beside the loop; in a thread where it is left out.
    makers: what is exchanged in tests.
    """
    clock = clock or LoopClock()
    tell = Teller(listeners)
    pulses = Pulses(clock)
    in_force = InForce(policy)
    instance = f"{os.environ.get('HOSTNAME') or socket.gethostname()}_{uuid.UUID(int=random.getrandbits(128), version=4)}"
    times, evictions, lease = settings.triggers, settings.evictions, settings.lease
    cache = Cache(
        clock=clock.monotonic,
        wall_clock=clock.now,
        disconnected_seconds=settings.watch.stale_disconnected_seconds,
        silent_seconds=settings.watch.stale_silent_seconds,
    )
    election = None
    if lease.leader_election and settings.mode.dry_run != "plan":
        election = Election(
            LeaseApi(transport, lease.lease_namespace, lease.lease_name, timeout_seconds=_SMALL_REQUEST_SECONDS),
            clock,
            tell,
            pulses,
            identity=instance,
            times=ElectionTimes(
                lease.lease_duration_seconds,
                lease.lease_renew_seconds,
                lease.lease_retry_seconds,
                evictions.eviction_timeout_seconds,
            ),
            jitter=random.random,
        )
    gate = makers.gate(
        clock,
        cache,
        Windows(map(_window, settings.pauses.windows), map(_window, settings.pauses.blackouts)),
        PauseLimits(settings.pauses.pause_pending_pods, settings.pauses.pause_not_ready_nodes),
        election,
        tell,
        request_seconds=evictions.eviction_timeout_seconds,
    )
    port, state, per_minute = _way_out(settings, transport, cache, in_force, makers)
    rate = SlidingWindow(per_minute, 60.0)
    cooldowns = Cooldowns(first_seconds=evictions.cooldown_seconds, most_seconds=evictions.cooldown_maximum_seconds)
    ledger = makers.ledger(cache.pod)
    settling = Settling(clock, cache, tell, SettleTimes(evictions.settle_timeout_seconds))
    record = Record(clock, Memory(state), rate, cooldowns, tell)
    lessons = Lessons(clock, cooldowns, settling.accuracy, tell)
    settling.when_finished(lessons.finished)

    def stayed(move: Move, settled: Settled) -> None:
        if settled.outcome == "not-evicted":
            record.forget_asked(move.approval.uid)
            ledger.give_back(move.approval.uid)
        elif move.going and settled.outcome in ("ready", "gone"):
            record.note_settled(move.approval.uid)

    settling.when_finished(stayed)
    debounce = Debounce(clock, quiet_seconds=times.debounce_quiet_seconds, maximum_seconds=times.debounce_maximum_seconds)
    evictor = Evictor(
        clock=clock,
        source=cache,
        port=port,
        gate=gate,
        caps=lambda: caps_of(settings, in_force.policy),
        rate=rate,
        ledger=ledger,
        settling=settling,
        record=record,
        pace=Pace(settings.caps.max_in_flight, settings.caps.max_in_flight_per_workload),
        tell=tell,
        recheck=makers.recheck,
    )

    def took(profile: str, strategy: str, seconds: float) -> None:
        metrics.strategy_took(profile, strategy, seconds)

    controller = Controller(
        clock=clock,
        source=cache,
        evaluate=Evaluation(in_force, settings, scheduler, tell, beside, took),
        evictor=evictor,
        gate=gate,
        debounce=debounce,
        settling=settling,
        ledger=ledger,
        record=record,
        cooldowns=cooldowns,
        lessons=lessons,
        pulses=pulses,
        times=RunTimes(deadline=times.run_deadline_seconds),
        tell=tell,
        background=settings.mode.background_evictions,
    )
    triggers = TriggerMaker(cache.node, settle_seconds=times.node_settle_seconds, wanted=wanted_triggers(policy))
    status = Status(
        clock=clock,
        source=cache,
        election=election,
        gate=gate,
        debounce=debounce,
        settling=settling,
        cooldowns=cooldowns,
        ledger=ledger,
        lessons=lessons,
        rate=rate,
        caps=caps_of(settings, policy),
        mode={
            "dryRun": settings.mode.dry_run,
            "placement": settings.mode.placement,
            "singleReplica": settings.mode.single_replica,
        },
    )
    status.controller = controller
    metrics = Metrics(descheduler_names=settings.serving.descheduler_metrics)
    metrics.watch("rebalancer_in_flight", "Evictions whose replacements are not Ready yet.", lambda: len(settling.moves))
    metrics.watch("rebalancer_cooldowns", "Workloads that rest on a node.", lambda: len(cooldowns.cooling(clock.now())))
    metrics.watch("rebalancer_caches_unfresh", "Kinds that are not synced or stale.", lambda: len(cache.unfresh()))
    metrics.watch("rebalancer_pods", "Pods known.", lambda: cache.count("Pod"))
    metrics.watch("rebalancer_nodes", "Nodes known.", lambda: cache.count("Node"))
    tell.listen(MetricsListener(metrics))
    tell.listen(status)
    events = None
    if settings.evictions.events and settings.mode.dry_run == "off":
        events = EventSink(
            transport,
            random=random,
            instance=instance,
            namespace=lease.lease_namespace,
            refused=lambda words: tell(Noticed("events-refused", f"Events are not written: {words}")),
        )
        tell.listen(
            EventListener(
                events, lambda key, uid: _owner(cache, key, uid), lambda: in_force.policy.eviction_failure_event_notification
            )
        )
    parts = Parts(
        settings=settings,
        clock=clock,
        transport=transport,
        cache=cache,
        reflectors=(),
        tell=tell,
        pulses=pulses,
        debounce=debounce,
        triggers=triggers,
        gate=gate,
        election=election,
        settling=settling,
        evictor=evictor,
        controller=controller,
        record=record,
        lessons=lessons,
        in_force=in_force,
        events=events,
        review=ReviewApi(transport, timeout_seconds=_SMALL_REQUEST_SECONDS),
        metrics=metrics,
        status=status,
    )
    parts.reflectors = tuple(_reflectors(parts, random))
    metrics.watch(
        "rebalancer_watch_backlog_bytes",
        "What watches have received and not taken in yet; a full buffer makes the API server wait.",
        lambda: sum(reflector.backlog_bytes for reflector in parts.reflectors),
    )
    return parts


def _way_out(
    settings: Settings, transport: Transport, cache: Cache, in_force: InForce, makers: Makers
) -> tuple[EvictionPort, StatePort, int | None]:
    """Return where evictions go, where accounts are kept and how many go per minute: all that a dry run changes."""
    mode = settings.mode.dry_run
    if mode == "plan":
        return OnlyReport(), VolatileState(), None
    evictions = makers.evictions(transport, cache, settings, in_force, dry_run=mode == "server")
    if mode == "server":
        return ServerTries(evictions), VolatileState(), settings.caps.evictions_per_minute
    lease = settings.lease
    state = StateApi(transport, lease.lease_namespace, lease.state_name, timeout_seconds=_SMALL_REQUEST_SECONDS)
    return evictions, state, settings.caps.evictions_per_minute


def _window(given: WindowSetting) -> Window:
    return Window(given.cron, given.length_seconds, given.time_zone, frozenset(given.profiles))


def _owner(cache: Cache, key: str, uid: str) -> Owner | None:
    pod = cache.pod(key)
    return pod.shape.owner if pod is not None and pod.uid == uid else None


def _reflectors(parts: Parts, random: Random) -> Iterable[Reflector]:
    for resource in RESOURCES:
        yield Reflector(parts.transport, resource, parts.cache.parser(resource.kind), _sink(parts), random=random)


def _sink(parts: Parts) -> Callable[[Report], Awaitable[None]]:
    """Return what takes the reports of a watch: into the cache, and what they meant to everybody concerned."""

    async def take(report: Report) -> None:
        facts = await parts.cache.receive(report)
        if facts:
            parts.controller.on_facts(facts)
            for trigger in parts.triggers.on_facts(facts, parts.clock.monotonic()):
                parts.trigger(trigger)
            if parts.triggers.settling:
                parts.arrivals.set()
        elif isinstance(report, Unavailable):
            loud = report.kind in REQUIRED
            parts.tell(Noticed("cannot-be-read", f"{report.kind}: {report.reason}", loud=loud, values={"kind": report.kind}))
        elif isinstance(report, Skipped):
            parts.tell(Noticed("malformed", f"a {report.kind} was left out: {report.problem}", values={"kind": report.kind}))
        elif isinstance(report, Disconnected):
            parts.tell(Noticed("disconnected", f"{report.kind}: {report.reason}", loud=False, values={"kind": report.kind}))

    return take
