"""What kube-scheduler will see during one run: the snapshot, and what the run has decided since.

Enters: a snapshot, a scheduler configuration, then approved moves. Leaves: predictions, each for the moment at which it was
asked for.

Replacements (see ``replace``): a StatefulSet's old pod is gone before its replacement comes; every other controller replaces at
once, while the old pod is terminating and still holds room, ports and anti-affinity. Topology spread alone passes terminating
pods over.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import numpy as np

from rebalancer.model.pod import Pod, PodShape
from rebalancer.model.snapshot import Snapshot
from rebalancer.placement.arrays import Bools
from rebalancer.placement.judging import Judge, Judgement
from rebalancer.placement.occupancy import BucketCache
from rebalancer.placement.prediction import Prediction
from rebalancer.placement.profile import DEFAULT, UNKNOWN, SchedulerConfig
from rebalancer.placement.reasons import Reason
from rebalancer.placement.reservations import daemon_reservations, waiting
from rebalancer.placement.state import ClusterState

PodOrShape: TypeAlias = Pod | PodShape
_Where: TypeAlias = tuple[int, bool] | None

_GONE_FIRST = "StatefulSet"
_MOST_ANSWERS = 64


class PlacementView:
    """The working state of one run. Not for sharing between threads."""

    def __init__(
        self,
        snapshot: Snapshot,
        config: SchedulerConfig = DEFAULT,
        *,
        cache: BucketCache | None = None,
        reserve: bool = True,
    ) -> None:
        """Start from a snapshot.

        cache: keep one from run to run, so that only changed nodes are read.
        reserve: let pending and nominated pods and DaemonSets take their room first.
        """
        self.snapshot = snapshot
        self.config = config
        self._state = ClusterState(snapshot, cache)
        self._judges: dict[PodShape, Judge] = {}
        self._answers: dict[tuple[PodShape, bool], Prediction] = {}
        self._answers_version = self._state.version
        self._takers: dict[PodShape, Bools] = {}
        self._takers_version = self._state.version
        self._where: dict[str, _Where] = {}
        self._by_uid: dict[str, Pod] | None = None
        if reserve:
            self.reserve_pending()
            self.reserve_daemons()

    @property
    def nodes(self) -> Sequence[str]:
        """The names of all nodes, sorted; the positions of arrays are positions here."""
        return self._state.table.names

    def position(self, node: str) -> int | None:
        """Return the position of a node in arrays; None for one that is not in the snapshot."""
        return self._state.table.index.get(node)

    def among(self, names: Iterable[str]) -> Bools:
        """Return which nodes bear one of these names."""
        index = self._state.table.index
        mask = np.zeros(self._state.size, dtype=np.bool_)
        mask[[index[name] for name in names if name in index]] = True
        return mask

    # Asking

    def predict(self, pod: PodOrShape, *, moving: bool = False) -> Prediction:
        """Say where a new pod of this shape would go now. moving: leave out nodes that are about to be removed."""
        shape = pod.shape if isinstance(pod, Pod) else pod
        if self._answers_version != self._state.version or len(self._answers) >= _MOST_ANSWERS:
            self._answers.clear()
            self._answers_version = self._state.version
        known = self._answers.get((shape, moving))
        if known is None:
            known = self._answers[shape, moving] = self._predict(shape, moving)
        return known

    def _predict(self, shape: PodShape, moving: bool, only: str | None = None) -> Prediction:
        profile = self.config.profile_for(shape.scheduler_name)
        judgement = self._judge(shape).judge(moving=moving, scoring=profile is not None, only=only)
        unpredictable = None
        if profile is None:
            unpredictable = f"scheduler {shape.scheduler_name!r} is not known here, so only filters are judged"
        elif shape.resource_claims:
            unpredictable = "it has resource claims, whose allocation cannot be foreseen"
        elif profile.foreign:
            unpredictable = f"its scheduler runs plugins that are not known here: {', '.join(profile.foreign)}"
        elif self.config.extenders:
            unpredictable = "its scheduler asks extenders, which cannot be foreseen"
        return Prediction(judgement, 0 if profile is None else profile.percentage_to_score, unpredictable)

    def _judge(self, shape: PodShape) -> Judge:
        judge = self._judges.get(shape)
        if judge is None:
            profile = self.config.profile_for(shape.scheduler_name)
            judge = self._judges[shape] = Judge(self._state, shape, profile or UNKNOWN)
        return judge

    def place(self, pod: Pod) -> Prediction:
        """Say what kube-scheduler would do with a pod that is not there yet; a node that the pod names itself is the only one."""
        return self._predict(pod.shape, False, pod.node) if pod.node else self.predict(pod)

    def replace(self, pod: Pod) -> Prediction:
        """Say what kube-scheduler would do with the replacement of an existing pod, were that evicted now."""
        with self._without(pod):
            return self._predict(pod.shape, True)

    def takers(self, pod: Pod) -> Bools:
        """Return which nodes could take the replacement of an existing pod, were that evicted now: ``replace`` without scores.

        A pod that is terminating holds what it held; only hard spread constraints pass it over. So siblings without such a
        constraint share one answer, wherever they are.
        """
        judge = self._judge(pod.shape)
        if _goes_first(pod) or judge.spreads_hard:
            with self._without(pod):
                return judge.judge(moving=True, scoring=False).feasible
        if self._takers_version != self._state.version:
            self._takers.clear()
            self._takers_version = self._state.version
        known = self._takers.get(pod.shape)
        if known is None:
            known = self._takers[pod.shape] = judge.judge(moving=True, scoring=False).feasible
        return known

    def feasible(self, pod: PodOrShape) -> tuple[str, ...]:
        """Return the nodes that fit, by name."""
        return self.predict(pod).feasible

    def filtered(self, pod: PodOrShape) -> Mapping[str, str]:
        """Return node to reason for the nodes that do not fit."""
        return self.predict(pod).filtered

    def scores(self, pod: PodOrShape) -> Mapping[str, int]:
        """Return node to final score; empty unless at least two nodes fit."""
        return self.predict(pod).scores

    def plugin_scores(self, pod: PodOrShape) -> Mapping[str, Mapping[str, int]]:
        """Return node to plugin to weighted score; empty unless at least two nodes fit."""
        return self.predict(pod).plugin_scores

    def fits(self, pod: PodOrShape, node: str, *, ignore: Collection[str] = ()) -> str | None:
        """Say why a pod does not fit on a node, in kube-scheduler's words; None where it does.

        ignore: uids of pods taken as gone.
        """
        judgement, position = self._one(pod, node, ignore)
        return ", ".join(judgement.reasons(position)) or None

    def objection(self, pod: PodOrShape, node: str, *, ignore: Collection[str] = ()) -> Reason:
        """Say the same as ``fits`` by the reason, whose code is stable."""
        judgement, position = self._one(pod, node, ignore)
        return judgement.reason(position)

    def _one(self, pod: PodOrShape, node: str, ignore: Collection[str]) -> tuple[Judgement, int]:
        position = self._state.table.index[node]
        if not ignore:
            return self.predict(pod).judgement, position
        shape = pod.shape if isinstance(pod, Pod) else pod
        before = self._state.version
        gone = [(other.shape, where) for uid in sorted(ignore) if (other := self._pod(uid)) and (where := self._find(other))]
        for its_shape, (at, dying) in gone:
            self._state.change(its_shape, at, -(not dying), -dying)
        try:
            return self._predict(shape, False).judgement, position
        finally:
            for its_shape, (at, dying) in gone:
                self._state.change(its_shape, at, int(not dying), int(dying))
            self._state.rewind(before)

    def _pod(self, uid: str) -> Pod | None:
        if self._by_uid is None:
            self._by_uid = {pod.uid: pod for bucket in self.snapshot.pods.values() for pod in bucket}
        return self._by_uid.get(uid)

    # Deciding

    def add(self, pod: Pod, node: str) -> None:
        """Let a pod run on a node."""
        if self._find(pod) is not None:
            self.remove(pod)
        position = self._state.table.index[node]
        self._state.change(pod.shape, position, 1, 0)
        self._where[pod.uid] = position, False

    def remove(self, pod: Pod) -> None:
        """Let a pod be gone. One that is not there stays so."""
        where = self._find(pod)
        if where is not None:
            node, dying = where
            self._state.change(pod.shape, node, -(not dying), -dying)
        self._where[pod.uid] = None

    def commit(self, pod: Pod, node: str | None) -> None:
        """Take an eviction as approved: the pod goes the way its controller lets it go, and a stand-in takes its place.

        node: where the replacement is expected; None where none comes or no place is known.
        """
        where = self._find(pod)
        if where is not None:
            at, dying = where
            if _goes_first(pod):
                self._state.change(pod.shape, at, -(not dying), -dying)
                self._where[pod.uid] = None
            elif not dying:
                self._state.change(pod.shape, at, -1, 1)
                self._where[pod.uid] = at, True
        if node is not None:
            self._state.change(pod.shape, self._state.table.index[node], 1, 0)

    @contextmanager
    def _without(self, pod: Pod) -> Iterator[None]:
        """Let a pod go for a moment the way its controller lets it go."""
        where = self._find(pod)
        before = self._state.version
        if where is None:
            yield
            return
        node, dying = where
        if _goes_first(pod):
            live, dead = -(not dying), -int(dying)
        else:
            live, dead = (0, 0) if dying else (-1, 1)
        if live or dead:
            self._state.change(pod.shape, node, live, dead)
        try:
            yield
        finally:
            if live or dead:
                self._state.change(pod.shape, node, -live, -dead)
                self._state.rewind(before)

    def _find(self, pod: Pod) -> _Where:
        """Return where a pod is now and whether it is terminating; None where it holds nothing."""
        if pod.uid in self._where:
            return self._where[pod.uid]
        if pod.node is None or pod.finished or pod.node not in self._state.table.index:
            return None
        return self._state.table.index[pod.node], pod.terminating

    # Those who come first

    def reserve_pending(self) -> None:
        """Let nominated pods, then pending ones in the order of the scheduler's queue, take their room."""
        hopeless: set[PodShape] = set()
        for pod in waiting(self.snapshot.unplaced):
            if pod.uid in self._where:
                continue
            if pod.nominated_node is not None and pod.nominated_node in self._state.table.index:
                self.add(pod, pod.nominated_node)
            elif pod.shape not in hopeless:
                node = self.predict(pod).node
                if node is None:
                    hopeless.add(pod.shape)
                else:
                    self.add(pod, node)

    def reserve_daemons(self) -> None:
        """Hold the room of DaemonSet pods that nodes have still to start."""
        for shape, nodes in daemon_reservations(self._state):
            for node in np.flatnonzero(nodes).tolist():
                self._state.hold(shape, node)

    def close(self) -> None:
        """End the run: nothing may be asked any more."""
        self._state.close()

    def leaving(self) -> Bools:
        """Return which nodes another tool is about to remove, by position."""
        return self._state.table.leaving


def _goes_first(pod: Pod) -> bool:
    owner = pod.shape.owner
    return owner is not None and owner.kind == _GONE_FIRST
