"""What is learnt from moves that have ended: rests for what did not help, trust in predictions, strategies at odds.

Enters: each settled move. Leaves: strikes in Cooldowns, ``distrust`` for the next evaluation, warnings.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from rebalancer.control.cooldown import Cooldowns
from rebalancer.control.happenings import Listener, Noticed, Settled
from rebalancer.control.ports import Clock
from rebalancer.control.settle import Accuracy, Move

# These want a pod to start afresh: where it lands does not matter, so it cannot be the wrong place either.
_ANYWHERE = frozenset({"PodLifeTime", "RemoveFailedPods"})
_LEAST_ACCURACY = 0.8
# Two moves of one owner that cancel each other within this time are strategies at odds.
_UNDONE_SECONDS = 3600.0
_STOPPED_SECONDS = 6 * 3600.0


@dataclass(frozen=True, slots=True)
class _Past:
    owner_uid: str
    strategy: str
    left: str
    landed: str
    at: float


class Lessons:
    """Draws the conclusions from settled moves."""

    def __init__(self, clock: Clock, cooldowns: Cooldowns, accuracy: Accuracy, tell: Listener) -> None:
        self._clock = clock
        self._cooldowns = cooldowns
        self._accuracy = accuracy
        self._tell = tell
        self._past: deque[_Past] = deque(maxlen=500)
        self._stopped: dict[str, tuple[tuple[str, str], float]] = {}
        self.distrust = False

    def stopped(self, now: float) -> Mapping[str, tuple[str, str]]:
        """Return the owners on which two strategies would undo each other, and which two. now: seconds since the epoch."""
        self._stopped = {owner: (pair, until) for owner, (pair, until) in self._stopped.items() if until > now}
        return {owner: pair for owner, (pair, _) in self._stopped.items()}

    def forget_distrust(self) -> None:
        """Start afresh: the policy (and perhaps the scheduler's description) is another."""
        self.distrust = False
        self._stopped.clear()
        self._accuracy.outcomes.clear()

    def finished(self, move: Move, settled: Settled) -> None:
        """Learn from one move that has come to its end."""
        approval = settled.approval
        if not approval.owner_uid or settled.outcome in ("not-evicted", "gone"):
            return
        now = self._clock.now()
        anywhere = approval.strategy in _ANYWHERE
        if settled.outcome == "timeout" or (not anywhere and (settled.came_back or settled.expected is False)):
            rest = self._cooldowns.strike(approval.owner_uid, approval.node, now)
            what = "came back to" if settled.came_back else "landed elsewhere than expected after leaving"
            if settled.outcome == "timeout":
                what = "was not Ready in time after leaving"
            self._tell(
                Noticed(
                    "move-did-not-help",
                    f"the replacement of {approval.pod} {what} node {approval.node}; its workload rests there "
                    f"for {rest.until - now:.0f} s",
                    loud=False,
                    values={"pod": approval.pod, "node": approval.node, "landed": settled.landed, "strikes": rest.strikes},
                )
            )
        self._judge_accuracy()
        if settled.landed and not anywhere:
            self._look_for_undoing(settled, now)

    def _judge_accuracy(self) -> None:
        share = self._accuracy.share
        if share is not None and share < _LEAST_ACCURACY and not self.distrust:
            self.distrust = True
            self._tell(
                Noticed(
                    "landings-distrusted",
                    f"only {share:.0%} of the last {len(self._accuracy.outcomes)} replacements landed where they were expected; "
                    "placement falls back to fit (does the scheduler's configuration differ from what rebalancer was told?)",
                    values={"accuracy": round(share, 3)},
                )
            )

    def _look_for_undoing(self, settled: Settled, now: float) -> None:
        approval = settled.approval
        for past in self._past:
            if (
                past.owner_uid == approval.owner_uid
                and past.at > now - _UNDONE_SECONDS
                and past.strategy != approval.strategy
                and past.left == settled.landed
                and past.landed == approval.node
                and past.left != past.landed
            ):
                pair = (min(approval.strategy, past.strategy), max(approval.strategy, past.strategy))
                self._stopped[approval.owner_uid] = (pair, now + _STOPPED_SECONDS)
                self._tell(
                    Noticed(
                        "strategies-at-odds",
                        f"{approval.strategy} moved a pod of {approval.pod}'s workload from {approval.node} back to "
                        f"{settled.landed}, from where {past.strategy} had moved it; the workload is left alone",
                        values={"strategies": pair, "pod": approval.pod},
                    )
                )
                break
        self._past.append(_Past(approval.owner_uid, approval.strategy, approval.node, settled.landed, now))
