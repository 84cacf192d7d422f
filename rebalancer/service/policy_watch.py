"""Follow the policy file: a good new version is taken over and told with its difference, a bad one is told and not used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rebalancer.control.happenings import Listener, Noticed
from rebalancer.control.ports import Clock
from rebalancer.control.pulse import Pulses
from rebalancer.errors import PolicyError
from rebalancer.policy import Policy, load
from rebalancer.service.evaluation import InForce, difference


class PolicyWatch:
    """Reads one file now and then. A ConfigMap that is mounted changes by its links, so contents are compared, not times."""

    def __init__(
        self,
        path: Path,
        in_force: InForce,
        clock: Clock,
        pulses: Pulses,
        tell: Listener,
        *,
        check_seconds: float,
        taken_over: Callable[[Policy, str], None],
    ) -> None:
        """Follow a file. taken_over: called with a new policy and what is different, in words."""
        self._path = path
        self._in_force = in_force
        self._clock = clock
        self._pulses = pulses
        self._tell = tell
        self._check_seconds = check_seconds
        self._taken_over = taken_over
        self._seen: bytes | None = self._read()

    async def serve(self) -> None:
        """Look at the file until cancelled."""
        while True:
            self._pulses.turned("policy", bound_seconds=6 * self._check_seconds + 30)
            await self._clock.sleep(self._check_seconds)
            self.look()

    def look(self) -> None:
        """Look once."""
        text = self._read()
        if text is None or text == self._seen:
            return
        self._seen = text
        try:
            loaded = load(text, source=str(self._path))
        except PolicyError as error:
            self._tell(Noticed("policy-rejected", f"the new policy is wrong and the last good one stays: {error}"))
            return
        for warning in loaded.warnings:
            self._tell(Noticed("policy-warning", warning))
        changes = difference(self._in_force.policy, loaded.policy)
        if not changes:
            return
        words = "; ".join(f"{path}: {old!r} -> {new!r}" for path, (old, new) in changes.items())
        self._in_force.policy = loaded.policy
        self._tell(Noticed("policy-changed", words, loud=False, values={"changes": len(changes)}))
        self._taken_over(loaded.policy, ", ".join(changes))

    def _read(self) -> bytes | None:
        try:
            return self._path.read_bytes()
        except OSError as error:
            # In the middle of an update of a mounted ConfigMap, or gone: the last good one stays.
            self._tell(Noticed("policy-unreadable", f"{self._path}: {error.strerror or error}"))
            return None
