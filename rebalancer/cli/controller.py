"""``run`` and ``once``: the controller, for as long as it is wanted or for a single run."""

from __future__ import annotations

import asyncio
import atexit
import os
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from rebalancer.control.happenings import Listener
    from rebalancer.placement.profile import SchedulerConfig
    from rebalancer.policy import Loaded
    from rebalancer.service.life import Stop
    from rebalancer.service.parts import Parts
    from rebalancer.settings import Settings

Result = TypeVar("Result")


class DryRun(StrEnum):
    """What a dry run does."""

    OFF = "off"
    PLAN = "plan"
    SERVER = "server"


class Level(StrEnum):
    """From which level on is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


PolicyOption = Annotated[
    str | None, typer.Option("--policy", metavar="FILE", help="A DeschedulerPolicy; overrides REBALANCER_POLICY_FILE.")
]
DryRunOption = Annotated[
    DryRun | None, typer.Option("--dry-run", help="off, plan (report only) or server (dryRun=All); overrides REBALANCER_DRY_RUN.")
]
LevelOption = Annotated[
    Level | None, typer.Option("--log-level", help="debug, info, warning or error; overrides REBALANCER_LOG_LEVEL.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command("run", help="Run the controller until it is told to stop.")(run)
    app.command("once", help="Make one run and exit: for a Job or a CronJob.")(once)


def run(policy: PolicyOption = None, dry_run: DryRunOption = None, log_level: LevelOption = None) -> int:
    """Run the controller. SIGTERM ends it within seconds, a second one at once; SIGHUP asks for a run."""
    return asyncio.run(_run(checked(environment(policy, dry_run, log_level))))


def once(policy: PolicyOption = None, dry_run: DryRunOption = None, log_level: LevelOption = None) -> int:
    """Make one run."""
    return asyncio.run(_once(checked(environment(policy, dry_run, log_level))))


def environment(policy: str | None, dry_run: DryRun | None, log_level: Level | None) -> dict[str, str]:
    """Return the process's environment with what was given on the command line in its place."""
    given = {
        "REBALANCER_POLICY_FILE": policy,
        "REBALANCER_DRY_RUN": dry_run.value if dry_run else None,
        "REBALANCER_LOG_LEVEL": log_level.value if log_level else None,
    }
    return {**os.environ, **{name: value for name, value in given.items() if value is not None}}


@dataclass(frozen=True, slots=True)
class Given:
    """What a user wrote, found to be right. environ: the process's environment with the command line in its place."""

    environ: Mapping[str, str]
    settings: Settings
    loaded: Loaded


def checked(environ: Mapping[str, str]) -> Given:
    """Read settings and policy before anything that takes time is loaded. Raises InputError with every mistake at once."""
    from rebalancer.settings import load_policy, load_settings

    settings = load_settings(environ)
    return Given(environ, settings, load_policy(settings, environ, read=lambda path: Path(path).read_bytes()))


async def _run(given: Given) -> int:
    from rebalancer.service.life import Stop, serve

    stop = Stop()
    stop.listen()
    parts = await _unless_stopped(stop, prepare(given))
    if parts is None:
        return 0
    file = given.settings.policy.policy_file
    await serve(parts, stop, policy_file=Path(file) if file else None)
    return 0


async def _unless_stopped(stop: Stop, work: Coroutine[Any, Any, Result]) -> Result | None:
    """Return what comes of the work, or None if the process is told to stop before it is done."""
    working, waiting = asyncio.create_task(work), asyncio.create_task(stop.event.wait())
    try:
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for task in (working, waiting):
            task.cancel()
        await asyncio.gather(working, waiting, return_exceptions=True)


async def _once(given: Given) -> int:
    from rebalancer.kube.listing import require_lists
    from rebalancer.service.life import Stop, run_once

    stop = Stop()
    stop.listen()
    parts = await _unless_stopped(stop, prepare(given))
    if parts is None:
        return 0
    try:
        await _unless_stopped(stop, require_lists(parts.transport))
    except BaseException:
        await parts.transport.close()
        raise
    ended = await run_once(parts, stop)
    if ended is None:
        return 0
    return 1 if ended.ending in ("failed", "fenced", "unavailable") else 0


async def prepare(given: Given) -> Parts:
    """Look whether the cluster is there and can evict, say what holds, and build the service.

    Raises InputError for a wrong scheduler configuration, KubeError where the cluster cannot be used.
    """
    from random import Random

    from rebalancer.errors import KubeError
    from rebalancer.kube.config import find_access
    from rebalancer.kube.discovery import discover
    from rebalancer.kube.transport import Transport
    from rebalancer.policy import conflicts, describe
    from rebalancer.service.evaluation import caps_of
    from rebalancer.service.logs import LogListener, configure_logging
    from rebalancer.service.parts import build

    environ, settings, loaded = given.environ, given.settings, given.loaded
    log = configure_logging(settings.serving.log_level, settings.serving.log_format)
    listeners: list[Listener] = [LogListener(log)]
    if settings.serving.otlp_endpoint is not None:
        from rebalancer.service.traces import trace_listener

        tracing, send_rest = trace_listener(settings.serving.otlp_endpoint, time.time)
        listeners.append(tracing)
        atexit.register(send_rest)
    scheduler = _scheduler(settings)
    access = find_access(kubeconfig=settings.cluster.kubeconfig, context=settings.cluster.kube_context, environment=environ)
    transport = Transport(access)
    try:
        abilities = await discover(transport, timeout_seconds=10.0)
        if not abilities.evicts:
            raise KubeError(
                f"{access.server} ({abilities.version}) does not serve pods/eviction of policy/v1: nothing can be evicted"
            )
    except BaseException:
        await transport.close()
        raise
    for warning in loaded.warnings:
        log.warning("policy", warning=warning)
    for line in describe(loaded.policy):
        log.info("policy", says=line)
    for conflict in conflicts(loaded.policy):
        log.warning("policy", conflict=conflict)
    log.info(
        "starting",
        cluster=access.server,
        cluster_version=abilities.version,
        dry_run=settings.mode.dry_run,
        placement=settings.mode.placement,
        caps=caps_of(settings, loaded.policy).describe(),
        per_minute=settings.caps.evictions_per_minute,
        in_flight=settings.caps.max_in_flight,
    )
    return build(settings, loaded.policy, scheduler, transport, listeners, random=Random())


def _scheduler(settings: Settings) -> SchedulerConfig:
    from rebalancer.api import typed_scheduler
    from rebalancer.cli.reading import read_document

    file = settings.cluster.scheduler_config_file
    return typed_scheduler(read_document(file, "a KubeSchedulerConfiguration") if file else None)
