"""The memory that moving a workload off a node did not help: it rests, each time twice as long.

Forgotten when the set of nodes changes, for then the answer may be another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# More than this many are never kept; the ones that end first go first.
_MOST = 2000


@dataclass(frozen=True, slots=True)
class Rest:
    """How long one workload stays on one node. until: seconds since the epoch. strikes: how often in a row it did not help."""

    until: float
    strikes: int


class Cooldowns:
    """Rests by (owner uid, node). Times are seconds since the epoch."""

    def __init__(self, *, first_seconds: float, most_seconds: float) -> None:
        self._first_seconds = first_seconds
        self._most_seconds = most_seconds
        self._rests: dict[tuple[str, str], Rest] = {}
        self._nodes = ""

    def strike(self, owner_uid: str, node: str, now: float) -> Rest:
        """Note that moving this owner off this node did not help."""
        before = self._rests.get((owner_uid, node))
        strikes = before.strikes + 1 if before else 1
        seconds = min(self._first_seconds * 2.0 ** (min(strikes, 64) - 1), self._most_seconds)
        rest = Rest(now + seconds, strikes)
        self._rests[owner_uid, node] = rest
        return rest

    def cooling(self, now: float) -> Mapping[tuple[str, str], float]:
        """Return what rests now, and until when."""
        return {pair: rest.until for pair, rest in self._rests.items() if rest.until > now}

    @property
    def rests(self) -> Mapping[tuple[str, str], Rest]:
        """Everything remembered, also what rests no more but would rest longer the next time."""
        return dict(self._rests)

    def nodes_are(self, names: Iterable[str]) -> bool:
        """Note which nodes there are; forgets everything and returns True when they are others than before."""
        mark = hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()[:16]
        if mark == self._nodes:
            return False
        forgotten = bool(self._rests) and bool(self._nodes)
        if self._nodes:
            self._rests.clear()
        self._nodes = mark
        return forgotten

    @property
    def nodes_mark(self) -> str:
        """A digest of the node set that the rests belong to."""
        return self._nodes

    def restore(self, rests: Mapping[tuple[str, str], Rest], nodes_mark: str) -> None:
        """Take over what another process remembered."""
        self._rests = dict(rests)
        self._nodes = nodes_mark

    def trim(self, now: float) -> None:
        """Forget what has long ended, and more than can be kept."""
        kept = {pair: rest for pair, rest in self._rests.items() if rest.until + self._most_seconds > now}
        if len(kept) > _MOST:
            kept = dict(sorted(kept.items(), key=lambda item: (item[1].until, item[0]))[-_MOST:])
        self._rests = kept
