"""Follow each evicted pod's replacement until it is bound and Ready, and compare with what was predicted.

What is true is read from the cache at each look, so facts may be coalesced or come twice. A move occupies its in-flight slot and
its workload until it has settled or timed out.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field, replace

from rebalancer.control.happenings import Listener, Settled
from rebalancer.control.ports import Clock, SnapshotSource
from rebalancer.model.plan import Approval
from rebalancer.model.pod import Phase, Pod
from rebalancer.model.snapshot import Snapshot
from rebalancer.model.trigger import Fact, FactKind

# Kinds whose replacement has the name of the pod that went.
_SAME_NAME = frozenset({"StatefulSet"})
# By how much a watch that works may be behind.
_LAG_SECONDS = 5.0
_POD_FACTS = frozenset(kind for kind in FactKind if kind.name.startswith("POD_"))


@dataclass(slots=True)
class Move:
    """One eviction that is followed.

    certain: the server said yes; otherwise only the watch can tell.
    expected: nodes that may be the landing. A plan predicts one move after the other; which of them gets which node is a matter
    of order, so moves of one plan whose landings meet share theirs.
    known: uids of the owner's pods at the time, none of which can be the replacement. Times are monotonic seconds.
    """

    approval: Approval
    pod: Pod
    owner_kind: str
    expects_replacement: bool
    known: frozenset[str]
    accepted_at: float
    certain: bool = True
    in_background: bool = False
    going: bool = False
    gone: bool = False
    replacement_uid: str = ""
    replacement_key: str = ""
    landed: str = ""
    expected: set[str] = field(default_factory=set)
    bound_after: float | None = None
    stood_after: float | None = None


@dataclass(frozen=True, slots=True)
class SettleTimes:
    """settle: how long a replacement may take, in seconds. unknown: how long a request without reply counts as accepted."""

    settle: float = 300.0
    unknown: float = 15.0


@dataclass(slots=True)
class Accuracy:
    """How often replacements landed where they were expected, over the last moves."""

    outcomes: deque[bool] = field(default_factory=lambda: deque(maxlen=50))
    least: int = 10

    def note(self, expected: bool) -> None:
        """Add an outcome."""
        self.outcomes.append(expected)

    @property
    def share(self) -> float | None:
        """The share of good predictions, from 0 to 1; None while there are too few to tell."""
        if len(self.outcomes) < self.least:
            return None
        return sum(self.outcomes) / len(self.outcomes)


class Settling:
    """All moves in flight."""

    def __init__(self, clock: Clock, source: SnapshotSource, tell: Listener, times: SettleTimes) -> None:
        self._clock = clock
        self._source = source
        self._tell = tell
        self._times = times
        self._moves: dict[str, Move] = {}
        self._claimed: set[str] = set()
        self._pools: list[set[str]] = []
        self._diverged: list[Callable[[], None]] = []
        self._finished: list[Callable[[Move, Settled], None]] = []
        self.accuracy = Accuracy()
        self.changed = asyncio.Event()

    def when_finished(self, act: Callable[[Move, Settled], None]) -> None:
        """Have a function called for each move that has come to its end."""
        self._finished.append(act)

    def when_diverged(self, act: Callable[[], None]) -> None:
        """Have a function called when a replacement lands elsewhere than the plan took for granted."""
        self._diverged.append(act)

    def begin_plan(self) -> None:
        """Note that another plan is carried out from here on: its predictions are its own."""
        self._pools.clear()

    def _pool(self, move: Move) -> None:
        """Have a move share the expectations of the moves of this plan whose landings meet its own."""
        pool = {node for node, share in move.approval.landings.items() if share > 0.0}
        meeting = [other for other in self._pools if other & pool]
        for other in meeting:
            pool |= other
            self._pools.remove(other)
        if pool:
            self._pools.append(pool)
        move.expected = pool
        for earlier in self._moves.values():
            if any(earlier.expected is other for other in meeting):
                earlier.expected = pool

    def awaiting(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with a pending pod for each replacement that is bound to come and is not there yet."""
        coming = [
            replace(
                move.pod,
                name=f"{move.pod.name}-awaited",
                uid=f"{move.pod.uid}-awaited",
                node=None,
                nominated_node=None,
                phase=Phase.PENDING,
                ready=False,
                deleted_at=None,
                created_at=snapshot.now,
                started_at=None,
            )
            for move in self._moves.values()
            if move.expects_replacement and not move.replacement_uid and (move.certain or move.going)
        ]
        if not coming:
            return snapshot
        return replace(snapshot, unplaced=tuple(sorted((*snapshot.unplaced, *coming), key=lambda pod: pod.uid)))

    @property
    def moves(self) -> tuple[Move, ...]:
        """The moves in flight, oldest first."""
        return tuple(self._moves.values())

    def count_of(self, owner_uid: str) -> int:
        """Return how many moves of a workload are in flight."""
        return sum(move.approval.owner_uid == owner_uid for move in self._moves.values()) if owner_uid else 0

    def siblings(self, owner_uid: str, *, rollout: bool = False) -> frozenset[str]:
        """Return the uids of an owner's pods, to be taken before a request: none of them can be the replacement.

        rollout: the owner is a Deployment, which owns pods by way of its ReplicaSets.
        """
        owners = self._owners(owner_uid, rollout=rollout) if owner_uid else ()
        return frozenset(pod.uid for owner in owners for pod in self._source.pods_of(owner))

    def follow(
        self,
        approval: Approval,
        pod: Pod,
        known: frozenset[str],
        *,
        certain: bool = True,
        in_background: bool = False,
    ) -> Move:
        """Begin to follow the replacement of a pod whose eviction was (or may have been) accepted.

        pod, known: the pod and its siblings' uids, both from before the request.
        """
        owner = pod.shape.owner
        move = Move(
            approval=approval,
            pod=pod,
            owner_kind=owner.kind if owner else "",
            expects_replacement=owner is not None and not pod.finished and not pod.terminating,
            known=known | {approval.uid},
            accepted_at=self._clock.monotonic(),
            certain=certain,
            in_background=in_background,
        )
        self._moves[approval.uid] = move
        self._pool(move)
        self._source.assume_evicted(approval.pod, approval.uid, self._patience(move))
        self.look()
        return move

    def on_facts(self, facts: Iterable[Fact]) -> None:
        """Look again where facts about pods came in."""
        if self._moves and any(fact.kind in _POD_FACTS for fact in facts):
            self.look()

    def look(self) -> None:
        """Compare every move with what the cache says now, and finish those that have come to their end."""
        now = self._clock.monotonic()
        for move in list(self._moves.values()):
            self._look_at(move, now)

    def next_deadline(self) -> float | None:
        """Return when the next move times out, in monotonic seconds."""
        return min((move.accepted_at + self._patience(move) for move in self._moves.values()), default=None)

    def _patience(self, move: Move) -> float:
        return self._times.settle if move.certain or _has_begun(move) else self._times.unknown

    def _look_at(self, move: Move, now: float) -> None:
        approval = move.approval
        old = self._source.pod(approval.pod)
        there = old is not None and old.uid == approval.uid
        if not there:
            move.going = move.gone = True
        elif old is not None and old.terminating:
            move.going = True
        replacement = self._replacement(move, old)
        if replacement is not None:
            self._note_replacement(move, replacement, now)
            if _stands(replacement):
                move.stood_after = now - move.accepted_at if move.stood_after is None else move.stood_after
                # In a rollout the replacement stands first: only then does the old pod go, and with it the move is at its end.
                if move.going or not approval.rollout:
                    self._finish(move, "ready", now)
                    return
        if move.gone and not move.expects_replacement:
            self._finish(move, "gone", now)
        elif now >= move.accepted_at + self._patience(move):
            if not _has_begun(move) and not move.certain and (self._source.unfresh() or not self._told_since(move)):
                # The watch has not said anything since, so it has not said that the pod stayed.
                return
            sure = _has_begun(move) or (move.certain and not move.in_background)
            self._finish(move, "timeout" if sure else "not-evicted", now)

    def _told_since(self, move: Move) -> bool:
        """Say whether pods were heard of so long after a request that its effect would have been heard of, too."""
        return self._source.heard_at("Pod") >= move.accepted_at + _LAG_SECONDS

    def _replacement(self, move: Move, same_name: Pod | None) -> Pod | None:
        if not move.expects_replacement:
            return None
        if move.replacement_uid:
            known = self._source.pod(move.replacement_key)
            if known is not None and known.uid == move.replacement_uid:
                return known
            self._claimed.discard(move.replacement_uid)
            move.replacement_uid = move.replacement_key = move.landed = ""
            move.stood_after = None
        if move.owner_kind in _SAME_NAME:
            found = same_name if same_name is not None and same_name.uid != move.approval.uid else None
        else:
            fresh = (
                pod
                for owner in self._owners(move.approval.owner_uid, rollout=bool(move.approval.rollout))
                for pod in self._source.pods_of(owner)
                if pod.uid not in move.known and pod.uid not in self._claimed and not pod.terminating
            )
            found = min(fresh, key=lambda pod: (pod.created_at, pod.uid), default=None)
        if found is not None:
            self._claimed.add(found.uid)
            move.replacement_uid, move.replacement_key = found.uid, found.key
        return found

    def _owners(self, owner_uid: str, *, rollout: bool) -> tuple[str, ...]:
        """Return the owners whose pods can be the replacement: in a rollout, every ReplicaSet of the Deployment."""
        if not rollout:
            return (owner_uid,)
        return sets_of(self._source.snapshot(), (owner_uid,))

    def _note_replacement(self, move: Move, replacement: Pod, now: float) -> None:
        if replacement.node is not None and not move.landed:
            move.landed = replacement.node
            move.bound_after = now - move.accepted_at
            if move.expected and replacement.node not in move.expected:
                for act in self._diverged:
                    act()

    def _finish(self, move: Move, outcome: str, now: float) -> None:
        approval = move.approval
        del self._moves[approval.uid]
        if not move.going:
            self._source.withdraw_assumption(approval.uid)
        self._claimed.discard(move.replacement_uid)
        expected = move.landed in move.expected if move.expected and move.landed else None
        if expected is not None:
            self.accuracy.note(expected)
        settled = Settled(
            approval=approval,
            outcome=outcome,
            replacement=move.replacement_key,
            landed=move.landed,
            expected=expected,
            came_back=bool(move.landed) and move.landed == approval.node,
            bound_seconds=move.bound_after,
            ready_seconds=move.stood_after if outcome == "ready" else None,
        )
        for act in self._finished:
            act(move, settled)
        self._tell(settled)
        self.changed.set()


def sets_of(snapshot: Snapshot, deployments: Container[str]) -> tuple[str, ...]:
    """Return the uids of the ReplicaSets that Deployments (by uid) own."""
    return tuple(each.uid for each in snapshot.workloads.values() if each.owner is not None and each.owner.uid in deployments)


def _has_begun(move: Move) -> bool:
    """Say whether the cluster shows that the request was obeyed: the pod goes, or a rollout has begun to replace it."""
    return move.going or bool(move.approval.rollout and move.replacement_uid)


def _stands(pod: Pod) -> bool:
    """Say whether a replacement has made it: Ready, or run to its end (Jobs)."""
    return pod.node is not None and not pod.terminating and (pod.ready or pod.phase is Phase.SUCCEEDED)
