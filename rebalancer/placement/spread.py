"""PodTopologySpread: hard constraints as a filter, soft ones (or the profile's defaults) as a score.

Source: https://github.com/kubernetes/kubernetes/tree/v1.36.2/pkg/scheduler/framework/plugins/podtopologyspread
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from rebalancer.model.pod import PodShape, SpreadConstraint
from rebalancer.model.selector import EVERYTHING, LabelSelector, Operator, Requirement
from rebalancer.model.workload import Workload
from rebalancer.placement.arrays import Bools, Floats, Ints
from rebalancer.placement.node_filters import affinity_admits, taints_admit
from rebalancer.placement.node_table import HOSTNAME
from rebalancer.placement.profile import SchedulerProfile
from rebalancer.placement.state import ClusterState

_MAX_SCORE = 100
_OWNERS: Mapping[str, str] = {"ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "ReplicationController": "v1"}


class Spread:
    """The constraints of one shape on one state; the counts behind it follow the state.

    hard, soft: the constraints that apply. demanding: nodes without one of the soft topology keys get no score.
    """

    def __init__(self, state: ClusterState, shape: PodShape, profile: SchedulerProfile) -> None:
        """Find out which constraints apply and start counting."""
        self._state = state
        self._shape = shape
        constraints = shape.spread
        if not constraints and profile.default_spread:
            selector = default_selector(state, shape)
            constraints = (
                () if selector == EVERYTHING else tuple(replace(each, selector=selector) for each in profile.default_spread)
            )
        self.demanding = bool(shape.spread) or not profile.system_spread
        self.hard = tuple(each for each in constraints if each.hard)
        self.soft = tuple(each for each in constraints if not each.hard)
        self._eligible = {each: self._included(each) for each in constraints}
        self._counts = {each: state.count_live(shape.namespace, each.selector) for each in constraints}
        self._all_hard = _all_present(state, self.hard)
        self._all_soft = _all_present(state, self.soft)
        self._hard_domains = {each: self._domains(each) for each in self.hard}

    def _domains(self, constraint: SpreadConstraint) -> tuple[Bools, Bools]:
        """Return which nodes count for a hard constraint, and which topology values they have."""
        codes = self._state.table.column(constraint.topology_key).codes
        here = self._eligible[constraint] & self._all_hard
        exists = np.bincount(codes[here], minlength=int(codes.max(initial=-1)) + 1) > 0
        return here, exists

    def _included(self, constraint: SpreadConstraint) -> Bools:
        """Return which nodes count in a constraint's domains (nodeAffinityPolicy, nodeTaintsPolicy)."""
        table = self._state.table
        mask = affinity_admits(table, self._shape) if constraint.honor_affinity else table.everywhere
        return mask & taints_admit(table, self._shape) if constraint.honor_taints else mask

    def refusals(self) -> tuple[Bools, Bools] | None:
        """Return which nodes lack a hard constraint's label, and which would become too full; None without hard constraints.

        The first objection of a node is the one that counts, so the two do not overlap.
        """
        if not self.hard:
            return None
        missing = np.zeros(self._state.size, dtype=np.bool_)
        skewed = np.zeros(self._state.size, dtype=np.bool_)
        for constraint in self.hard:
            codes = self._state.table.column(constraint.topology_key).codes
            here, exists = self._hard_domains[constraint]
            sums = self._counts[constraint].by_domain(codes, here, len(exists))
            lowest = float(sums[exists].min()) if exists.any() else math.inf
            if int(exists.sum()) < (constraint.min_domains or 1):
                lowest = 0.0
            own = 1 if constraint.selector.matches(self._shape.labels) else 0
            full = np.append(sums + own - lowest > constraint.max_skew, False)[codes]
            undecided = ~(missing | skewed)
            missing |= undecided & (codes < 0)
            skewed |= undecided & full
        return missing, skewed

    def scores(self, feasible: Bools) -> Ints | None:
        """Return the normalised score of the feasible nodes (0 elsewhere); None without soft constraints."""
        if not self.soft:
            return None
        table = self._state.table
        scored = feasible & self._all_soft if self.demanding else feasible
        raw: Floats = np.zeros(self._state.size)
        for constraint in self.soft:
            codes = table.column(constraint.topology_key).codes
            if constraint.topology_key == HOSTNAME:
                weight = math.log(int(scored.sum()) + 2)
                share = self._counts[constraint].per_node * weight + float(constraint.max_skew - 1)
            else:
                domains = int(codes.max(initial=-1)) + 1
                weight = math.log(int(np.count_nonzero(np.bincount(codes[scored] + 1))) + 2)
                here = self._eligible[constraint] & (codes >= 0)
                if self.demanding:
                    here &= self._all_soft
                sums = self._counts[constraint].by_domain(codes, here, domains)
                share = np.append(sums, 0.0)[codes] * weight + float(constraint.max_skew - 1)
            raw = raw + np.where(codes >= 0, share, 0.0)
        rounded = np.trunc(raw).astype(np.int64)
        rounded += raw - rounded >= 0.5
        return _normalised(rounded, scored)


def _normalised(raw: Ints, scored: Bools) -> Ints:
    among = raw[scored]
    if not among.size:
        return np.zeros(len(raw), dtype=np.int64)
    lowest, highest = int(among.min()), int(among.max())
    if highest == 0:
        return np.where(scored, _MAX_SCORE, 0).astype(np.int64)
    return np.where(scored, _MAX_SCORE * (highest + lowest - raw) // highest, 0).astype(np.int64)


def _all_present(state: ClusterState, constraints: Sequence[SpreadConstraint]) -> Bools:
    mask = state.table.everywhere
    for constraint in constraints:
        present = state.table.has(constraint.topology_key)
        if not present.all():
            mask = mask & present
    return mask


def default_selector(state: ClusterState, shape: PodShape) -> LabelSelector:
    """Return what the pod's Services and its controller select; EVERYTHING where nothing does, and then nothing is spread.

    Source: https://github.com/kubernetes/kubernetes/blob/v1.36.2/pkg/scheduler/framework/plugins/helper/spread.go
    """
    merged: dict[str, str] = {}
    for service in state.snapshot.services.get(shape.namespace, ()):
        if service.selector and all(shape.labels.get(key) == value for key, value in service.selector.items()):
            merged.update(service.selector)
    requirements = [Requirement(key, Operator.IN, (value,)) for key, value in sorted(merged.items())]
    workload = _controller(state, shape)
    if workload is not None and not workload.selector.nothing:
        requirements += [each for each in workload.selector.requirements if each not in requirements]
    return LabelSelector(tuple(requirements))


def _controller(state: ClusterState, shape: PodShape) -> Workload | None:
    owner = next((owner for owner in shape.owners if owner.controller), None)
    if owner is None or _OWNERS.get(owner.kind) != owner.api_version:
        return None
    return state.workload(owner.kind, shape.namespace, owner.name)
