"""What ``GET /status`` shows: a picture of the controller as plain JSON values."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from rebalancer.control.caps import Caps
from rebalancer.control.cooldown import Cooldowns
from rebalancer.control.debounce import Debounce
from rebalancer.control.gate import Gate
from rebalancer.control.happenings import Asked, Happening, Looked, RunEnded, RunStarted
from rebalancer.control.leadership import Election
from rebalancer.control.ledger import Ledger
from rebalancer.control.lessons import Lessons
from rebalancer.control.ports import Clock, SnapshotSource
from rebalancer.control.rate import SlidingWindow
from rebalancer.control.run import Controller
from rebalancer.control.settle import Settling
from rebalancer.model.plan import Plan

_RUNS_KEPT = 10
_TRIGGERS_SHOWN = 100


class Status:
    """Listens for what runs did, and gathers the rest when asked."""

    def __init__(
        self,
        *,
        clock: Clock,
        source: SnapshotSource,
        election: Election | None,
        gate: Gate,
        debounce: Debounce,
        settling: Settling,
        cooldowns: Cooldowns,
        ledger: Ledger,
        lessons: Lessons,
        rate: SlidingWindow,
        caps: Caps,
        mode: Mapping[str, str],
    ) -> None:
        self._clock = clock
        self._source = source
        self._election = election
        self._gate = gate
        self._debounce = debounce
        self._settling = settling
        self._cooldowns = cooldowns
        self._ledger = ledger
        self._lessons = lessons
        self._rate = rate
        self.caps = caps
        self._mode = mode
        self._runs: deque[dict[str, Any]] = deque(maxlen=_RUNS_KEPT)
        self.controller: Controller | None = None

    def __call__(self, happening: Happening) -> None:
        """Note what concerns runs."""
        match happening:
            case RunStarted(number, batch):
                triggers = [f"{trigger.kind} {trigger.subject}".strip() for trigger in batch.triggers[:_TRIGGERS_SHOWN]]
                self._runs.append({"run": number, "startedAt": _moment(self._clock.now()), "triggers": triggers, "looks": []})
            case Looked() if self._runs:
                self._runs[-1]["looks"].append({"seconds": round(happening.seconds, 3), "plan": _kept(happening.plan)})
            case Asked() if self._runs:
                asked = {"pod": happening.approval.pod, "answer": type(happening.answer).__name__}
                self._runs[-1].setdefault("asked", []).append(asked)
            case RunEnded() if self._runs:
                self._runs[-1] |= {
                    "ending": happening.ending,
                    "reason": happening.reason,
                    "evicted": happening.accepted,
                    "refused": happening.refused,
                    "left": happening.left,
                    "seconds": round(happening.seconds, 2),
                }
            case _:
                pass

    def document(self) -> dict[str, Any]:
        """Return the picture."""
        now, moment = self._clock.now(), self._clock.monotonic()
        wait = self._rate.wait_seconds(moment)
        change = self._gate.windows.next_change(now)
        run = self.controller.current if self.controller else None
        return {
            "now": _moment(now),
            "mode": dict(self._mode),
            "leader": self._leader(),
            "gate": {"closedBecause": self._gate.closed_because() or self._gate.paused_because()},
            "windows": {
                "all": [window.describe() for window in self._gate.windows.all],
                "closedProfiles": sorted(self._gate.windows.closed_profiles(now)),
                "nextChange": None if change is None else _moment(change),
            },
            "caches": {"problems": list(self._source.unfresh())},
            "triggersWaiting": [f"{trigger.kind} {trigger.subject}".strip() for trigger in self._debounce.waiting[:100]],
            "caps": {
                "limits": self.caps.describe(),
                "perMinuteWaitSeconds": wait,
                "thisRun": run.tally.to_dict() if run else None,
            },
            "inFlight": [
                {
                    "pod": move.approval.pod,
                    "from": move.approval.node,
                    "strategy": move.approval.strategy,
                    "rollout": move.approval.rollout,
                    "certain": move.certain,
                    "going": move.going,
                    "replacement": move.replacement_key,
                    "landed": move.landed,
                    "seconds": round(moment - move.accepted_at, 1),
                }
                for move in self._settling.moves
            ],
            "budgetsCharged": self._ledger.charges,
            "cooldowns": [
                {"owner": owner, "node": node, "until": _moment(until)}
                for (owner, node), until in sorted(self._cooldowns.cooling(now).items())
            ],
            "landings": {"accuracy": self._settling.accuracy.share, "distrusted": self._lessons.distrust},
            "strategiesAtOdds": {owner: list(pair) for owner, pair in self._lessons.stopped(now).items()},
            "runs": [_shown(run) for run in self._runs],
        }

    def _leader(self) -> dict[str, Any]:
        election = self._election
        if election is None:
            return {"leading": True, "holder": "", "election": False}
        return {
            "leading": election.leading,
            "holder": election.holder,
            "election": True,
            "remainingSeconds": round(election.remaining_seconds(), 1),
            "actingInSeconds": round(election.acting_in(), 1),
            "problem": election.problem,
        }


def _kept(plan: Plan) -> Plan:
    """Return a plan without its refusals one by one: those can be many, and ``explain`` computes them anew."""
    return replace(plan, refused=plan.refused[:50])


def _shown(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run with its plans written out: of a large cluster they are long, so that waits until somebody reads them."""
    return {**run, "looks": [{**look, "plan": look["plan"].to_dict()} for look in run["looks"]]}


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
