"""The service without one of the things that keep it safe, put together through the composition root."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from rebalancer.cache.store import Cache
from rebalancer.control.gate import Gate
from rebalancer.control.ledger import Ledger
from rebalancer.control.ports import Reply
from rebalancer.kube.eviction import EvictionApi
from rebalancer.kube.transport import Transport
from rebalancer.model.plan import Approval
from rebalancer.model.pod import Pod
from rebalancer.model.snapshot import Snapshot
from rebalancer.service.evaluation import InForce
from rebalancer.service.parts import Makers, build
from rebalancer.settings import Settings
from tests.histories.replica import Build


class NoAccount(Ledger):
    """A ledger that never spends: only the server's status counts."""

    def spend(self, pod: Pod, snapshot: Snapshot) -> None:
        """Forget it."""


def anybody(clock: Any, source: Any, windows: Any, limits: Any, election: Any, tell: Any, *, request_seconds: float) -> Gate:
    """Return a gate that does not ask who leads."""
    return Gate(clock, source, windows, limits, None, tell, request_seconds=request_seconds)


class _Unconditional(EvictionApi):
    def body(self, namespace: str, name: str, uid: str, reason: str) -> dict[str, Any]:
        body = super().body(namespace, name, uid, reason)
        del body["deleteOptions"]["preconditions"]
        return body


class AnyPodOfThatName:
    """An eviction port whose requests carry no UID."""

    def __init__(self, transport: Transport, cache: Cache, settings: Settings, in_force: InForce, *, dry_run: bool) -> None:
        """Send through this transport."""
        self._api = _Unconditional(transport, timeout_seconds=settings.evictions.eviction_timeout_seconds, dry_run=dry_run)

    async def evict(self, approval: Approval) -> Reply:
        """Send."""
        namespace, _, name = approval.pod.partition("/")
        return await self._api.evict(namespace, name, approval.uid, approval.strategy)


def never_doubted(*_: object) -> None:
    """Trust the plan, whatever has happened since."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A crippled service. makers: what is crippled. shows: words of a promise that it breaks sooner or later."""

    makers: Makers
    shows: str

    @property
    def build(self) -> Build:
        """How it is put together."""
        return partial(build, makers=self.makers)


MUTANTS: Mapping[str, Mutant] = {
    "no ledger": Mutant(Makers(ledger=NoAccount), "held by a budget without a race"),
    "no lease check": Mutant(Makers(gate=anybody), "left of its lease"),
    "no precondition": Mutant(Makers(evictions=AnyPodOfThatName), "another pod of the same name was evicted"),
    "no re-check": Mutant(Makers(recheck=never_doubted), "that its sender knows"),
}
