"""What control needs from the rest of the world, as protocols.

Real ones are in ``kube`` and ``cache``; tests implement them too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from rebalancer.model.answer import Answer
from rebalancer.model.lease import LeaseRecord
from rebalancer.model.plan import Approval, Plan
from rebalancer.model.pod import Pod
from rebalancer.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Reported:
    """The answer of a port that moves nothing: the pod would have gone (dry run). It uses up caps, and nothing follows."""

    message: str = ""


@dataclass(frozen=True, slots=True)
class Surged:
    """The answer where the replacement starts first: a rollout of this Deployment has begun, the old pod goes after it."""

    deployment_uid: str
    message: str = ""


Reply: TypeAlias = Answer | Reported | Surged


class Clock(Protocol):
    """Time: monotonic for waiting and expiry, wall clock for cron and for what is written down."""

    def monotonic(self) -> float:
        """Return seconds that never go backwards and do not stop while the process is frozen."""

    def now(self) -> float:
        """Return seconds since the epoch, UTC."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""

    async def wait_for(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait until the event is set, at most so long; say whether it is."""


class SnapshotSource(Protocol):
    """The cache, as control sees it."""

    def snapshot(self) -> Snapshot:
        """Return a frozen picture of this moment."""

    def pod(self, key: str) -> Pod | None:
        """Return a pod by ``namespace/name`` as it is now, None where there is none."""

    def pods_of(self, owner_uid: str) -> Iterable[Pod]:
        """Return the pods of an owner as they are now."""

    def assume_evicted(self, key: str, uid: str, timeout_seconds: float) -> None:
        """Show a pod as terminating in snapshots until the watch says so, or the time has passed."""

    def withdraw_assumption(self, uid: str) -> None:
        """Show a pod as the watch reports it again."""

    def unfresh(self) -> tuple[str, ...]:
        """Name what is not synced or has gone stale, in words; empty when all is well."""

    def heard_at(self, kind: str) -> float:
        """Return when something of a kind was last heard, in monotonic seconds."""

    def reached(self, version: str) -> bool:
        """Say whether everything up to this resource version has been seen."""


class EvictionPort(Protocol):
    """Sends one eviction; its answer is a value. Raises nothing but CancelledError."""

    async def evict(self, approval: Approval) -> Reply:
        """Ask for the pod to go, with its UID as a precondition; bounded by the request timeout."""


class Evaluate(Protocol):
    """Works out a plan, beside the event loop."""

    def __call__(self, snapshot: Snapshot, circumstances: Circumstances) -> Awaitable[Plan]:
        """Return what should move, given what this run has done so far."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What an evaluation has to know besides the snapshot and the policy.

    closed_profiles: profiles whose windows are closed.
    cooling: (owner uid, node) pairs that rest, with the time (seconds since the epoch) until which they do.
    evicted_total, evicted_by_node, evicted_by_namespace, evicted_by_workload: what the run has used of its caps so far.
    stopped: owner uid to the two strategies that would undo each other on it.
    distrust_landings: predictions were wrong too often lately; be content with room.
    """

    closed_profiles: frozenset[str] = frozenset()
    cooling: Mapping[tuple[str, str], float] = field(default_factory=dict)
    evicted_total: int = 0
    evicted_by_node: Mapping[str, int] = field(default_factory=dict)
    evicted_by_namespace: Mapping[str, int] = field(default_factory=dict)
    evicted_by_workload: Mapping[str, int] = field(default_factory=dict)
    stopped: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    distrust_landings: bool = False


class LeasePort(Protocol):
    """Reads and writes the one Lease. Raises KubeError when the API server cannot be used; bounded in time."""

    async def read(self) -> LeaseRecord | None:
        """Return the Lease, None where there is none."""

    async def write(self, record: LeaseRecord) -> LeaseRecord | None:
        """Create (empty version) or replace it; None where somebody else was faster."""


class StatePort(Protocol):
    """Keeps one small text where it outlives the process. Raises KubeError when it cannot."""

    async def read(self) -> tuple[str, str]:
        """Return the text and its version, both empty where there is none yet."""

    async def write(self, text: str, version: str) -> str | None:
        """Write it and return the new version; None where somebody else wrote since."""
