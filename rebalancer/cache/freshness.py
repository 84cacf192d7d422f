"""How fresh the cache is, kind by kind: listed at least once, connected, and not silent for long."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

STALE_DISCONNECTED_SECONDS = 10.0
STALE_SILENT_SECONDS = 90.0
# A watch that is opened may be answered with 410 at once, so one of which nothing was heard counts only after so long.
_PROOF_SECONDS = 2.0


@dataclass(slots=True)
class _State:
    listed: bool = False
    connected: bool = False
    connected_at: float = float("-inf")
    current_at: float = float("-inf")
    heard_at: float = float("-inf")
    reason: str = ""
    unavailable: str = ""
    version: str = ""


class Freshness:
    """Follows the connections of all kinds.

    optional: kinds that may be unavailable without harm. clock: monotonic seconds.
    """

    def __init__(
        self,
        kinds: Iterable[str],
        optional: Iterable[str],
        clock: Callable[[], float],
        *,
        disconnected_seconds: float = STALE_DISCONNECTED_SECONDS,
        silent_seconds: float = STALE_SILENT_SECONDS,
    ) -> None:
        """Start with nothing heard of any kind."""
        self._states = {kind: _State() for kind in kinds}
        self._optional = frozenset(optional)
        self._clock = clock
        self._disconnected_seconds = disconnected_seconds
        self._silent_seconds = silent_seconds

    def heard(self, kind: str, version: str = "") -> None:
        """Something came over the connection, up to this version."""
        state = self._states[kind]
        state.heard_at = self._clock()
        if state.connected:
            state.current_at = state.heard_at
        if version:
            state.version = version

    def listed(self, kind: str, version: str) -> None:
        """The whole kind was taken over."""
        state = self._states[kind]
        state.listed, state.unavailable = True, ""
        state.current_at = self._clock()
        self.heard(kind, version)

    def connected(self, kind: str) -> None:
        """Changes flow."""
        state = self._states[kind]
        state.connected, state.reason, state.unavailable = True, "", ""
        state.connected_at = self._clock()

    def disconnected(self, kind: str, reason: str) -> None:
        """Changes do not flow any more."""
        state = self._states[kind]
        if self._flows(state):
            state.current_at = self._clock()
        state.connected, state.reason = False, reason

    def _flows(self, state: _State) -> bool:
        """Say whether changes are known to flow: something came over this connection, or it has stood for a while."""
        if not state.connected:
            return False
        return state.heard_at >= state.connected_at or self._clock() - state.connected_at >= _PROOF_SECONDS

    def unavailable(self, kind: str, reason: str) -> None:
        """The kind cannot be read at all."""
        self.disconnected(kind, reason)
        self._states[kind].unavailable = reason

    def synced(self, kind: str) -> bool:
        """Say whether the kind has been listed, or is optional and cannot be."""
        state = self._states[kind]
        return state.listed or (bool(state.unavailable) and kind in self._optional)

    def missing(self) -> frozenset[str]:
        """Return the kinds of which nothing is known."""
        return frozenset(kind for kind, state in self._states.items() if not state.listed or state.unavailable)

    def heard_at(self, kind: str) -> float:
        """Return when something of a kind was last heard (monotonic seconds); minus infinity before the first."""
        return self._states[kind].heard_at

    def version(self, kind: str) -> str:
        """Return the last version heard of a kind; empty before the first."""
        return self._states[kind].version

    def complaints(self) -> tuple[str, ...]:
        """Name every kind that is not synced or has gone stale, and why, in words; empty when all is well."""
        now = self._clock()
        found = []
        for kind, state in self._states.items():
            if state.unavailable:
                if kind not in self._optional:
                    found.append(f"{kind}: {state.unavailable}")
            elif not state.listed:
                found.append(f"{kind}: not listed yet" + (f" ({state.reason})" if state.reason else ""))
            elif not self._flows(state) and now - state.current_at >= self._disconnected_seconds:
                why = state.reason or "connected just now"
                found.append(f"{kind}: disconnected for {now - state.current_at:.0f} s ({why})")
            elif (silent := now - max(state.heard_at, state.connected_at)) >= self._silent_seconds:
                found.append(f"{kind}: silent for {silent:.0f} s")
        return tuple(found)
