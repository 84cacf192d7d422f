"""InterPodAffinity: what a pod wants near it or far from it, and what pods already there want of it.

Source: https://github.com/kubernetes/kubernetes/tree/v1.36.2/pkg/scheduler/framework/plugins/interpodaffinity
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from rebalancer.model.pod import AffinityTerm, PodShape
from rebalancer.placement.arrays import Bools, Ints
from rebalancer.placement.profile import SchedulerProfile
from rebalancer.placement.state import ClusterState, PodCount

_MAX_SCORE = 100


class Neighbours:
    """The inter-pod terms that bear on one shape, on one state; follows the state.

    Terms of pods that are already there are gathered per topology value; the shape's own terms are counted per node.
    """

    def __init__(self, state: ClusterState, shape: PodShape, profile: SchedulerProfile) -> None:
        """Read the terms of everybody and start counting."""
        self._state = state
        self._shape = shape
        self._labels = state.snapshot.namespace_labels(shape.namespace)
        self._hard_weight = profile.hard_affinity_weight
        own_preferences = bool(shape.preferred_affinity or shape.preferred_anti_affinity)
        self._theirs_count = own_preferences or not profile.ignore_preferred
        self._effects: dict[PodShape, tuple[tuple[str, ...], tuple[tuple[str, int], ...]]] = {}
        self._forbidden: dict[str, Ints] = {}
        self._wishes: dict[str, Ints] = {}
        self._contributions = 0
        for other in state.shapes_with_terms(shape.namespace):
            if self.concerns(other):
                for node, live, dying in state.placed(other):
                    self.change(other, node, live, dying)
        state.follow_terms(self, shape.namespace)
        self._near = state.count_all(shape.affinity) if shape.affinity else None
        self._apart = self._counted(shape.anti_affinity)
        self._preferred: list[tuple[int, AffinityTerm, PodCount]] = []
        for sign, terms in ((1, shape.preferred_affinity), (-1, shape.preferred_anti_affinity)):
            self._preferred += [(sign * each.weight, each.term, state.count_all((each.term,))) for each in terms]

    def _counted(self, terms: Iterable[AffinityTerm]) -> list[tuple[AffinityTerm, PodCount]]:
        return [(term, self._state.count_all((term,))) for term in terms]

    def _means_us(self, term: AffinityTerm) -> bool:
        return term.selects(self._shape.namespace, self._labels, self._shape.labels)

    def _effect(self, other: PodShape) -> tuple[tuple[str, ...], tuple[tuple[str, int], ...]]:
        """Return by which topology keys a pod of that shape keeps ours away, and by which it wishes for it, with weights."""
        forbidden = tuple(term.topology_key for term in other.anti_affinity if self._means_us(term))
        wishes: list[tuple[str, int]] = []
        if self._theirs_count:
            if self._hard_weight > 0:
                wishes += [(term.topology_key, self._hard_weight) for term in other.affinity if self._means_us(term)]
            for sign, terms in ((1, other.preferred_affinity), (-1, other.preferred_anti_affinity)):
                wishes += [(each.term.topology_key, sign * each.weight) for each in terms if self._means_us(each.term)]
        return forbidden, tuple(wishes)

    def concerns(self, shape: PodShape) -> bool:
        """Say whether pods of that shape have terms that mean ours."""
        if shape in self._effects:
            return True
        effect = self._effect(shape)
        if not effect[0] and not effect[1]:
            return False
        self._effects[shape] = effect
        return True

    def change(self, shape: PodShape, node: int, live: int, dying: int) -> None:
        """Take up that pods of that shape came to or left a node."""
        pods = live + dying
        forbidden, wishes = self._effects[shape]
        for key in forbidden:
            self._at(self._forbidden, key, node, pods)
        for key, weight in wishes:
            if self._at(self._wishes, key, node, pods * weight):
                self._contributions += pods

    def _at(self, sums: dict[str, Ints], key: str, node: int, amount: int) -> bool:
        """Add to the topology value that a node has; say whether it has one."""
        column = self._state.table.column(key)
        code = int(column.codes[node])
        if code < 0:
            return False
        if key not in sums:
            sums[key] = np.zeros(len(column.values) + 1, dtype=np.int64)  # The last stays 0: code -1 finds it.
        sums[key][code] += amount
        return True

    def _by_domain(self, key: str, per_node: Ints) -> Ints:
        """Return for each node the sum over all nodes that share its topology value; 0 where it has none."""
        codes = self._state.table.column(key).codes
        sums = np.bincount(codes + 1, per_node, int(codes.max(initial=-1)) + 2)
        sums[0] = 0
        return sums.astype(np.int64)[codes + 1]

    def refused_by_affinity(self) -> Bools | None:
        """Return which nodes do not have near them what the pod requires; None where it requires nothing."""
        if self._near is None:
            return None
        keys = {term.topology_key for term in self._shape.affinity}
        refused = np.zeros(self._state.size, dtype=np.bool_)
        unlabelled = np.zeros(self._state.size, dtype=np.bool_)
        anywhere = False
        for key in sorted(keys):
            present = self._state.table.has(key)
            unlabelled |= ~present
            refused |= self._by_domain(key, self._near.per_node) <= 0
            anywhere = anywhere or bool(self._near.per_node[present].any())
        if not anywhere and all(self._means_us(term) for term in self._shape.affinity):
            return unlabelled  # The first pod of a group may go anywhere, or none ever could.
        return refused | unlabelled

    def refused_by_anti_affinity(self) -> Bools | None:
        """Return which nodes have near them what the pod forbids; None where it forbids nothing."""
        if not self._apart:
            return None
        refused = np.zeros(self._state.size, dtype=np.bool_)
        for term, count in self._apart:
            refused |= self._by_domain(term.topology_key, count.per_node) > 0
        return refused

    def refused_by_existing(self) -> Bools | None:
        """Return which nodes have near them a pod that forbids ours; None where nobody does."""
        refused: Bools | None = None
        for key, sums in self._forbidden.items():
            here = (sums > 0)[self._state.table.column(key).codes]
            refused = here if refused is None else refused | here
        return refused

    def scores(self, feasible: Bools) -> Ints | None:
        """Return the normalised score of each node; None where nobody has a preference, for then the plugin does not score."""
        contributions = self._contributions
        raw: Ints = np.zeros(self._state.size, dtype=np.int64)
        for key, sums in self._wishes.items():
            raw += sums[self._state.table.column(key).codes]
        for weight, term, count in self._preferred:
            contributions += int(count.per_node[self._state.table.has(term.topology_key)].sum())
            raw += weight * self._by_domain(term.topology_key, count.per_node)
        if not contributions:
            return None
        among = raw[feasible]
        lowest, highest = int(among.min()), int(among.max())
        if highest == lowest:
            return np.zeros(self._state.size, dtype=np.int64)
        return (float(_MAX_SCORE) * ((raw - lowest) / float(highest - lowest))).astype(np.int64)
