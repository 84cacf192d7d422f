"""The heartbeat of every loop: liveness means that each has turned lately."""

from __future__ import annotations

from dataclasses import dataclass

from rebalancer.control.ports import Clock


@dataclass(slots=True)
class _Beat:
    turned_at: float
    bound_seconds: float


class Pulses:
    """Who turned when. A loop says how long its next turn may take before it counts as stuck."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._beats: dict[str, _Beat] = {}

    def turned(self, loop: str, *, bound_seconds: float = 60.0) -> None:
        """Note that a loop has turned, and that it will turn again within the bound."""
        self._beats[loop] = _Beat(self._clock.monotonic(), bound_seconds)

    def ended(self, loop: str) -> None:
        """Note that a loop has ended and will not turn again."""
        self._beats.pop(loop, None)

    def stuck(self) -> tuple[str, ...]:
        """Name the loops that have not turned in time, in words."""
        now = self._clock.monotonic()
        return tuple(
            f"{loop}: last turned {now - beat.turned_at:.0f} s ago, allowed {beat.bound_seconds:g} s"
            for loop, beat in sorted(self._beats.items())
            if now - beat.turned_at > beat.bound_seconds
        )
