"""Who may evict, by what was written to the Lease: kept at the API server, whatever the replicas make of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

Who = TypeVar("Who")


class Tenure(Generic[Who]):
    """The leases of one history. lease, request: how long a lease holds and an eviction may take, in seconds."""

    def __init__(self, clock: Callable[[], float], lease: float, request: float) -> None:
        """Begin with nobody."""
        self._clock = clock
        self._lease = lease
        self._request = request
        self._held_from: dict[Who, float] = {}
        self._since: dict[Who, float] = {}
        self._identities: dict[Who, str] = {}
        self._forgotten: set[Who] = set()

    def written(self, who: Who, spec: Mapping[str, Any]) -> None:
        """Note from when a holder may count on the lease's duration, and when it gives it back."""
        if identity := spec.get("holderIdentity"):
            if self._held_from.get(who, float("-inf")) + self._lease <= self._clock():
                self._since[who] = self._clock()
            self._held_from[who] = self._clock()
            self._identities[who] = identity
            self._forgotten.discard(who)
        else:
            self._held_from.pop(who, None)

    def deleted(self) -> None:
        """Note that the Lease was deleted: nobody who starts now can know who may still act."""
        self._forgotten.update(self._held_from)

    def problems(self, who: Who, spec: Mapping[str, Any] | None) -> list[str]:
        """Return what forbids an eviction by someone at this moment. spec: of the Lease as it is, None where there is none.

        Nobody acts without a lease that outlasts the request, nor while the Lease names somebody else or one who held it before
        may still act.
        """
        left = {other: at + self._lease - self._clock() for other, at in self._held_from.items()}
        if left.get(who, 0.0) < self._request:
            return [f"sent with {left.get(who, 0.0):.2f} s left of its lease"]
        holder = (spec or {}).get("holderIdentity") or "nobody"
        if holder != self._identities[who] and who not in self._forgotten:
            return [f"sent while the Lease names {holder}"]
        return [
            f"sent while {self._identities[other]} may act for {more:.2f} s"
            for other, more in left.items()
            if other is not who and other not in self._forgotten and more > 0 and self._since[other] <= self._since[who]
        ]
