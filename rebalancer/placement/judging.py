"""One shape over all nodes: who refuses it and why, and how the others score.

A Judge remembers what stays true of a shape: as long as the nodes stay (filters and scores that look at nodes alone) or as
long as the run lasts (counts that follow the state). A Judgement is the answer at one moment and never changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from rebalancer.model.pod import PodShape
from rebalancer.placement.affinity import Neighbours
from rebalancer.placement.arrays import Bools, Codes
from rebalancer.placement.node_filters import named_nodes, object_to, static_reasons
from rebalancer.placement.ports import PortUse
from rebalancer.placement.profile import Plugin, SchedulerProfile
from rebalancer.placement.reasons import TEXTS, Reason
from rebalancer.placement.resources import Room, Shortage
from rebalancer.placement.scoring import FixedScores, Scores, score
from rebalancer.placement.spread import Spread
from rebalancer.placement.state import ClusterState
from rebalancer.placement.volumes import VolumeRules


@dataclass(frozen=True)
class Judgement:
    """What the filters and scores said.

    names: of the nodes. codes: each node's first objection (Reason), 0 where it fits.
    shortages: which resources are lacking where.
    texts: reasons whose words are not the usual ones. candidates: how many nodes the sample is taken from.
    scores: None where nothing is scored: no or one feasible node, or an unknown scheduler.
    """

    names: Sequence[str]
    codes: Codes
    candidates: int
    shortages: Sequence[Shortage] = ()
    texts: Mapping[Reason, str] = field(default_factory=dict)
    scores: Scores | None = None

    @cached_property
    def feasible(self) -> Bools:
        """Which nodes fit."""
        return np.equal(self.codes, Reason.FITS)

    def reason(self, node: int) -> Reason:
        """Return a node's first objection."""
        return Reason(int(self.codes[node]))

    def reasons(self, node: int) -> tuple[str, ...]:
        """Return a node's first objection in kube-scheduler's words; more than one where several resources are lacking."""
        reason = self.reason(node)
        if reason is Reason.FITS:
            return ()
        if reason is Reason.RESOURCES:
            return tuple(shortage.text for shortage in self.shortages if shortage.nodes[node])
        return (self._text(reason),)

    def complaints(self) -> dict[str, int]:
        """Return how many nodes are out, by kube-scheduler's words; one that lacks several resources counts under each."""
        found: dict[str, int] = {}
        for code, count in enumerate(np.bincount(self.codes).tolist()):
            if not count or code == Reason.FITS:
                continue
            said = {self._text(Reason(code)): count}
            if code == Reason.RESOURCES:
                here = self.codes == code
                said = {shortage.text: int((shortage.nodes & here).sum()) for shortage in self.shortages}
            for text, nodes in said.items():
                if nodes:
                    found[text] = found.get(text, 0) + nodes
        return found

    def _text(self, reason: Reason) -> str:
        return self.texts.get(reason, TEXTS[reason])


class Judge:
    """Everything known about one shape under one profile."""

    def __init__(self, state: ClusterState, shape: PodShape, profile: SchedulerProfile) -> None:
        """Gather what stays true."""
        self._state = state
        self._shape = shape
        self._profile = profile
        self._static = static_reasons(state.table, shape, profile)
        named = named_nodes(shape)
        self._candidates = state.size if named is None else sum(name in state.table.index for name in named)
        self._spread = Spread(state, shape, profile)
        self._neighbours = Neighbours(state, shape, profile)
        self._ports = PortUse(state, shape) if shape.host_ports else None
        self._volumes = VolumeRules(state, shape, profile) if shape.volumes else None
        self._fixed: FixedScores | None = None
        self._room = Room(state, shape, profile)

    @property
    def spreads_hard(self) -> bool:
        """Hard spread constraints bound where its pods go."""
        return bool(self._spread.hard)

    def judge(self, *, moving: bool = False, scoring: bool = True, only: str | None = None) -> Judgement:
        """Ask every filter and score now.

        moving: leave out nodes that are about to be removed. scoring: False for an unknown scheduler.
        only: the one node that the pod names itself.
        """
        state, filters = self._state, self._profile.filters
        codes = self._static.copy()
        texts: dict[Reason, str] = {}
        lacking: list[Shortage] = []
        if moving and state.table.anything_leaving:
            codes[state.table.leaving] = Reason.LEAVING
        if self._volumes is not None and self._volumes.refusal is not None:
            texts[Reason.CLAIM] = self._volumes.refusal
            codes[codes != Reason.LEAVING] = Reason.CLAIM
        if only is not None and Plugin.NODE_NAME in filters:
            codes[[name != only for name in state.table.names]] = Reason.OTHER_NODE
        if self._ports is not None and Plugin.NODE_PORTS in filters:
            object_to(codes, self._ports.taken(), Reason.PORTS)
        if Plugin.RESOURCES_FIT in filters:
            lacking = self._room.shortages()
            for shortage in lacking:
                object_to(codes, shortage.nodes, Reason.RESOURCES)
        if self._volumes is not None:
            for objection in self._volumes.objections():
                object_to(codes, objection.nodes, objection.reason)
        if Plugin.TOPOLOGY_SPREAD in filters and (refusals := self._spread.refusals()) is not None:
            object_to(codes, refusals[0], Reason.SPREAD_LABEL)
            object_to(codes, refusals[1], Reason.SPREAD)
        if Plugin.INTER_POD_AFFINITY in filters:
            self._ask_neighbours(codes)
        feasible = codes == Reason.FITS
        scores = None
        if scoring and int(feasible.sum()) > 1:
            if self._fixed is None:
                self._fixed = FixedScores(state.table, self._shape, self._profile)
            scores = score(state, self._profile, feasible, self._fixed, self._room, self._spread, self._neighbours)
        return Judgement(state.table.names, codes, self._candidates, lacking, texts, scores)

    def _ask_neighbours(self, codes: Codes) -> None:
        answers: Iterable[tuple[Bools | None, Reason]] = (
            (self._neighbours.refused_by_affinity(), Reason.POD_AFFINITY),
            (self._neighbours.refused_by_anti_affinity(), Reason.POD_ANTI_AFFINITY),
            (self._neighbours.refused_by_existing(), Reason.EXISTING_ANTI_AFFINITY),
        )
        for refused, reason in answers:
            if refused is not None:
                object_to(codes, refused, reason)
