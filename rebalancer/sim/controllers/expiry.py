"""Events go after an hour, as the API server's own time to live has it."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from rebalancer.sim.deletion import DeleteOptions, delete
from rebalancer.sim.kinds import EVENT
from rebalancer.sim.moments import moment_of
from rebalancer.sim.registry import Registry

KEPT = timedelta(hours=1)
_LOOK_SECONDS = 60.0


class EventExpiry:
    """Removes Events that were last written more than an hour ago."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def run(self) -> None:
        """Look once a minute, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            self.expire()

    def expire(self) -> None:
        """Remove what is too old now."""
        limit = self._registry.clock() - KEPT
        for event in tuple(self._registry.store.objects(EVENT.storage)):
            metadata = event["metadata"]
            last = event.get("lastTimestamp") or event.get("eventTime") or metadata["creationTimestamp"]
            if moment_of(last) < limit:
                delete(self._registry, EVENT, metadata["namespace"], metadata["name"], DeleteOptions())
