"""The life of the process: start in order, stop in order, whatever the moment.

Start: listen, stand for election, then list (so that the caches cannot be older than the lease), then work.
Stop: no new request; the one on the wire may end; Events out; the lease back; connections closed.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from rebalancer.cache.collector import freeze
from rebalancer.control.debounce import Batch
from rebalancer.control.happenings import Noticed, RunEnded
from rebalancer.errors import KubeError
from rebalancer.model.trigger import Trigger, TriggerKind
from rebalancer.service.parts import Parts
from rebalancer.service.policy_watch import PolicyWatch
from rebalancer.web.faces import Faces
from rebalancer.web.server import serving

# Kinds whose watches have to catch up before a new leader acts.
_CATCH_UP = frozenset({"Pod", "Node", "PodDisruptionBudget"})
_FIRST_ATTEMPT_SECONDS = 3.0
# A stop takes less than five seconds in all: so long for the reply that is missing, so long for Events. Where no reply came,
# Events will hardly get through either.
_REPLY_SECONDS = 3.0
_EVENTS_SECONDS = 1.0
_LAST_EVENTS_SECONDS = 0.2
_LAG_SAMPLE_SECONDS = 1.0
_SHORTEST_REST_SECONDS = 0.05


class Stop:
    """Whether the process was told to stop. The second signal does not wait."""

    def __init__(self) -> None:
        """Nobody has said so yet."""
        self.event = asyncio.Event()

    def listen(self) -> None:
        """Take SIGTERM and SIGINT."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._told, number)

    def _told(self, number: int) -> None:
        if self.event.is_set():
            os._exit(128 + number)
        self.event.set()


async def serve(parts: Parts, stop: Stop, *, policy_file: Path | None, listen: bool = True) -> None:
    """Run the controller until it is told to stop."""
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError, ValueError):
        loop.add_signal_handler(signal.SIGHUP, lambda: parts.trigger(Trigger(TriggerKind.MANUAL, "", "SIGHUP"), urgent=True))
    async with _faces(parts, listen), _working(parts, policy_file) as tasks:
        tasks.append(_start(parts.controller.serve(), "runs"))
        parts.trigger(Trigger(TriggerKind.TICK, "", "start"))
        await _until(stop.event, tasks)


async def run_once(parts: Parts, stop: Stop, *, sync_seconds: float = 120.0) -> RunEnded | None:
    """Make one run, and return how it ended; None where it was told to stop before. Raises KubeError if nothing can be read."""
    batch = Batch((Trigger(TriggerKind.MANUAL, "", "once"),))
    async with _working(parts, None) as tasks:
        once = _start(_once(parts, batch, sync_seconds), "run")
        tasks.append(once)
        await _until(stop.event, tasks, first=once)
        if not once.done():
            return None
        ended: RunEnded = once.result()
        return ended


async def _once(parts: Parts, batch: Batch, sync_seconds: float) -> RunEnded:
    try:
        async with asyncio.timeout(sync_seconds):
            while parts.cache.unfresh():
                await parts.clock.sleep(0.05)
    except TimeoutError:
        raise KubeError("the cluster could not be read in time: " + "; ".join(parts.cache.unfresh())) from None
    return await parts.controller.once(batch)


@asynccontextmanager
async def _working(parts: Parts, policy_file: Path | None) -> AsyncIterator[list[asyncio.Task[Any]]]:
    """Have everything around the runs work while the block runs; then stop in order."""
    tasks: list[asyncio.Task[Any]] = []
    election = parts.election
    try:
        if election is not None:
            tasks.append(_start(_elections(parts), "election"))
            # The first list is to be newer than the lease; a standby does not wait for long.
            await parts.clock.wait_for(election.attempted, _FIRST_ATTEMPT_SECONDS)
        tasks += [_start(reflector.run(), f"watch {reflector.resource.kind}") for reflector in parts.reflectors]
        tasks += [
            _start(_freeze_once_synced(parts), "sync"),
            _start(_arrivals(parts), "arrivals"),
            _start(_ticks(parts), "ticks"),
            _start(_windows(parts), "windows"),
            _start(_settling(parts), "settling"),
            _start(_lag(parts), "lag"),
        ]
        if policy_file is not None:
            tasks.append(_start(_policy(parts, policy_file).serve(), "policy"))
        if parts.events is not None:
            tasks.append(_start(parts.events.run(), "events"))
        yield tasks
    finally:
        await _stop(parts, tasks)


async def _stop(parts: Parts, tasks: list[asyncio.Task[Any]]) -> None:
    parts.gate.stopping = True
    parts.evictor.wake.set()
    answered = await parts.evictor.idle(min(parts.settings.evictions.eviction_timeout_seconds, _REPLY_SECONDS))
    keep = {task for task in tasks if task.get_name() == "events"}
    await _cancel([task for task in tasks if task not in keep])
    if parts.events is not None:
        left = await parts.events.flush(_EVENTS_SECONDS if answered else _LAST_EVENTS_SECONDS)
        if left:
            parts.tell(Noticed("events-lost", f"{left} Events could not be written before the end"))
    await _cancel(list(keep))
    if parts.election is not None:
        if answered:
            await parts.election.release()
        else:
            parts.tell(Noticed("lease-kept", "a request has no reply yet, so the lease is left to expire", loud=False))
    await parts.transport.close()


async def _cancel(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _until(stop: asyncio.Event, tasks: list[asyncio.Task[Any]], first: asyncio.Task[Any] | None = None) -> None:
    """Wait until told to stop, or until a task ends: those around the runs never do, so it has failed and its error is raised."""
    waiting = _start(stop.wait(), "stop")
    try:
        done, _ = await asyncio.wait({waiting, *tasks}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    for task in done:
        if task is not waiting and task is not first and not task.cancelled() and (error := task.exception()) is not None:
            raise error


def _start(work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
    return asyncio.create_task(work, name=name)


@asynccontextmanager
async def _faces(parts: Parts, listen: bool) -> AsyncIterator[None]:
    if not listen:
        yield
        return
    serve_settings = parts.settings.serving
    faces = Faces(
        stuck=parts.pulses.stuck,
        unready=lambda: _unready(parts),
        status=parts.status.document,
        trigger=lambda who: parts.trigger(Trigger(TriggerKind.MANUAL, "", who), urgent=True),
        may=lambda token, verb, path: _may(parts, token, verb, path),
        registry=parts.metrics.registry,
        metrics_need_token=serve_settings.metrics_need_token,
    )
    async with serving(faces, serve_settings.listen_address, serve_settings.listen_port) as port:
        where = f"{serve_settings.listen_address}:{port}"
        parts.tell(Noticed("listening", f"probes, metrics and status on {where}", loud=False, values={"port": port}))
        yield


def _unready(parts: Parts) -> tuple[str, ...]:
    """Name what keeps this process from its work: caches that are not fresh, a lease that it may not use."""
    denied = parts.election.denied if parts.election is not None else ""
    return (*parts.cache.unfresh(), *((denied,) if denied else ()))


async def _may(parts: Parts, token: str, verb: str, path: str) -> bool:
    try:
        user = await parts.review.user_of(token)
        return user is not None and await parts.review.may(user, verb, path)
    except KubeError as error:
        parts.tell(Noticed("review-failed", f"a token could not be reviewed: {error}"))
        return False


async def _elections(parts: Parts) -> None:
    """Stand for election; each time it is won, have memory recalled and the watches catch up."""
    election = parts.election
    assert election is not None

    async def follow() -> None:
        leading = False
        while True:
            await election.changed.wait()
            election.changed.clear()
            if election.leading and not leading:
                parts.record.current = False
                for reflector in parts.reflectors:
                    if reflector.resource.kind in _CATCH_UP:
                        reflector.refresh()
            leading = election.leading

    async with asyncio.TaskGroup() as group:
        group.create_task(follow(), name="election follow-up")
        group.create_task(election.serve(), name="election attempts")


async def _freeze_once_synced(parts: Parts) -> None:
    """Take what the first lists left behind out of the garbage collector's sight: a full collection would block the loop."""
    while not parts.cache.all_synced():
        await parts.clock.sleep(0.1)
    freeze()
    counts = {"nodes": parts.cache.count("Node"), "pods": parts.cache.count("Pod")}
    parts.tell(Noticed("synced", "the caches are synced", loud=False, values=counts))
    await asyncio.Event().wait()


async def _arrivals(parts: Parts) -> None:
    """Turn nodes that have settled into triggers."""
    while True:
        parts.pulses.turned("arrivals")
        due = parts.triggers.next_due
        rest = 10.0 if due is None else max(0.0, min(due - parts.clock.monotonic(), 10.0))
        parts.arrivals.clear()
        await parts.clock.wait_for(parts.arrivals, rest)
        for trigger in parts.triggers.due(parts.clock.monotonic()):
            parts.trigger(trigger)


async def _ticks(parts: Parts) -> None:
    """Trigger at even distances."""
    period = parts.settings.triggers.tick_seconds
    next_at = parts.clock.monotonic() + period
    while True:
        parts.pulses.turned("ticks")
        rest = next_at - parts.clock.monotonic()
        if rest <= 0:
            parts.trigger(Trigger(TriggerKind.TICK))
            next_at = max(next_at + period, parts.clock.monotonic())
            rest = next_at - parts.clock.monotonic()
        # However short the period, everything else gets its turn.
        await parts.clock.sleep(min(max(rest, _SHORTEST_REST_SECONDS), 30.0))


async def _windows(parts: Parts) -> None:
    """Trigger when a window opens, for everybody or for a profile."""
    windows, clock = parts.gate.windows, parts.clock
    closed = _closed(parts)
    while True:
        parts.pulses.turned("windows")
        change = windows.next_change(clock.now())
        rest = 30.0 if change is None else min(max(change - clock.now(), 0.01), 30.0)
        await clock.sleep(rest)
        before, closed = closed, _closed(parts)
        for name in sorted(before - closed):
            parts.trigger(Trigger(TriggerKind.WINDOW_OPENED, name, "opened"))


def _closed(parts: Parts) -> frozenset[str]:
    """Return what is closed now: profiles by name, everything as the empty name."""
    now = parts.clock.now()
    everything = frozenset({""}) if parts.gate.windows.closed_because(now) is not None else frozenset()
    return everything | parts.gate.windows.closed_profiles(now)


async def _lag(parts: Parts) -> None:
    """Measure how late the event loop is."""
    while True:
        due = parts.clock.monotonic() + _LAG_SAMPLE_SECONDS
        await parts.clock.sleep(_LAG_SAMPLE_SECONDS)
        parts.metrics.loop_lag_seconds.observe(max(0.0, parts.clock.monotonic() - due))


async def _settling(parts: Parts) -> None:
    """Have moves time out."""
    while True:
        parts.pulses.turned("settling")
        await parts.clock.sleep(1.0)
        if parts.settling.moves:
            parts.settling.look()
            parts.evictor.wake.set()


def _policy(parts: Parts, path: Path) -> PolicyWatch:
    def taken_over(policy: Any, words: str) -> None:
        parts.policy_taken_over(policy)
        parts.trigger(Trigger(TriggerKind.POLICY_CHANGED, "", words))

    return PolicyWatch(
        path,
        parts.in_force,
        parts.clock,
        parts.pulses,
        parts.tell,
        check_seconds=parts.settings.policy.policy_check_seconds,
        taken_over=taken_over,
    )
