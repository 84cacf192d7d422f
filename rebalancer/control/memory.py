"""What must outlive the process, as one small text: rests, the per-minute window, the run's counts, who was asked.

Written before the request that it accounts for. The write is also a fence: two processes that both believe to lead cannot
both write, and the one that cannot write may not ask.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from rebalancer.control.cooldown import Rest
from rebalancer.control.ports import StatePort
from rebalancer.control.tally import Tally

FORM = 1


@dataclass(frozen=True, slots=True)
class Remembered:
    """The state, in wall-clock terms (seconds since the epoch).

    permits: when the per-minute window gave permits.
    asked: pod uid to the moment until which it may not be asked for again.
    run: counts of the run that is going on, None between runs.
    rests, nodes_mark: cooldowns and the node set they belong to.
    """

    permits: tuple[float, ...] = ()
    asked: Mapping[str, float] = field(default_factory=dict)
    run: Tally | None = None
    rests: Mapping[tuple[str, str], Rest] = field(default_factory=dict)
    nodes_mark: str = ""


def encode(state: Remembered) -> str:
    """Write the state as JSON, equal state to equal text."""
    document = {
        "form": FORM,
        "permits": [round(moment, 3) for moment in state.permits],
        "asked": {uid: round(moment, 3) for uid, moment in state.asked.items()},
        "run": state.run.to_dict() if state.run else None,
        "rests": [[owner, node, round(rest.until, 3), rest.strikes] for (owner, node), rest in state.rests.items()],
        "nodes": state.nodes_mark,
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def decode(text: str) -> Remembered | None:
    """Read what ``encode`` wrote; None where it is empty, damaged or of another form."""
    if not text:
        return Remembered()
    try:
        document = json.loads(text)
        if document["form"] != FORM:
            return None
        return Remembered(
            permits=tuple(float(moment) for moment in document["permits"]),
            asked={str(uid): float(moment) for uid, moment in document["asked"].items()},
            run=Tally.from_dict(document["run"]) if document["run"] else None,
            rests={
                (str(owner), str(node)): Rest(float(until), int(strikes)) for owner, node, until, strikes in document["rests"]
            },
            nodes_mark=str(document["nodes"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


class Memory:
    """Reads the state when leadership begins, and writes it before each request."""

    def __init__(self, port: StatePort) -> None:
        self._port = port
        self._version = ""

    async def recall(self) -> Remembered | None:
        """Read what was written last; None where it cannot be understood. Raises KubeError."""
        text, self._version = await self._port.read()
        return decode(text)

    async def note(self, state: Remembered) -> bool:
        """Write the state; False where somebody else wrote since, so that this process may not act. Raises KubeError."""
        version = await self._port.write(encode(state), self._version)
        if version is None:
            return False
        self._version = version
        return True


class VolatileState:
    """A StatePort that forgets: for dry runs, which have nothing to account for."""

    def __init__(self) -> None:
        self._text = ""
        self._version = 0

    async def read(self) -> tuple[str, str]:
        """Return what was written last in this process."""
        return self._text, str(self._version) if self._version else ""

    async def write(self, text: str, version: str) -> str | None:
        """Keep it, unless the version is not the last one."""
        if version != (str(self._version) if self._version else ""):
            return None
        self._text = text
        self._version += 1
        return str(self._version)
