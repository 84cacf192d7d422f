"""Where a pod may land, given that ties are random and that in large clusters only a sample of the nodes is scored.

Source: https://github.com/kubernetes/kubernetes/blob/v1.36.2/pkg/scheduler/schedule_one.go (numFeasibleNodesToFind, selectHost)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import ItemsView, Iterator, Mapping, Sequence, ValuesView
from functools import lru_cache

import numpy as np

from rebalancer.placement.arrays import Floats, Ints

_FEWEST = 100
_LOWEST_PERCENTAGE = 5
_NEGLIGIBLE = 1e-9


def nodes_to_score(nodes: int, percentage: int = 0) -> int:
    """Return how many feasible nodes kube-scheduler looks for.

    percentage: as configured, 0 where it depends on the number of nodes.
    """
    if nodes < _FEWEST:
        return nodes
    if percentage == 0:
        percentage = max(50 - nodes // 125, _LOWEST_PERCENTAGE)
    return min(nodes, max(nodes * percentage // 100, _FEWEST))


def landing_weights(scores: Ints, sampled: int) -> Floats:
    """Return the probability of each node to be chosen, summing to 1.

    scores: of the feasible nodes, at least one. sampled: how many of them are scored; the sample is taken to be random.
    A group of equal scores wins when one of its nodes is in the sample and no better node is; within it all are alike.
    """
    count = len(scores)
    below = scores.max() - scores
    nodes = np.bincount(below)
    groups = np.flatnonzero(nodes)
    sizes = nodes[groups]
    if sampled >= count:
        return np.where(below == 0, 1.0 / sizes[0], 0.0)
    none = _none_sampled(count, sampled)
    ends = np.cumsum(sizes)
    wins = none[ends - sizes] - none[ends]
    per_node: Floats = np.zeros(len(nodes))
    per_node[groups] = wins / sizes
    weights: Floats = per_node[below]
    weights[weights < _NEGLIGIBLE] = 0.0
    total: float = float(weights.sum())
    return weights / total


@lru_cache(maxsize=16)
def _none_sampled(count: int, sampled: int) -> Floats:
    """Return for each s the probability that no node of s given ones is in the sample."""
    left = np.arange(count, 0, -1, dtype=np.float64)
    return np.append(1.0, np.cumprod(np.maximum(left - sampled, 0.0) / left))


class LandingWeights(Mapping[str, float]):
    """Node to probability. Of thousands of nodes most are possible landings, so a dictionary per approved pod would be large."""

    __slots__ = ("_names", "_positions", "_weights")

    def __init__(self, names: Sequence[str], weights: Floats) -> None:
        """Keep the nodes with a probability. names: of all nodes, sorted, shared by whoever keeps weights of them."""
        self._names = names
        self._positions = np.flatnonzero(weights).astype(np.int32)
        self._weights = weights[self._positions]

    def __getitem__(self, name: str) -> float:
        """Return the probability of a node that is a landing."""
        at = bisect_left(self._names, name)
        if at < len(self._names) and self._names[at] == name:
            place = int(np.searchsorted(self._positions, at))
            if place < len(self._positions) and self._positions[place] == at:
                return float(self._weights[place])
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        """Yield the nodes in the order of names."""
        return (self._names[position] for position in self._positions.tolist())

    def __len__(self) -> int:
        """Return how many nodes are possible."""
        return len(self._positions)

    def items(self) -> ItemsView[str, float]:
        """Return node and probability in the order of names."""
        return _Items(self)

    def values(self) -> ValuesView[float]:
        """Return the probabilities in the order of names."""
        return _Values(self)

    def weights(self) -> list[float]:
        """Return what ``values`` shows."""
        weights: list[float] = self._weights.tolist()
        return weights

    def pairs(self) -> Iterator[tuple[str, float]]:
        """Yield what ``items`` shows."""
        return zip(self, self.weights(), strict=True)

    def __repr__(self) -> str:
        """Show what a dictionary would show."""
        return repr(dict(self.pairs()))


class _Items(ItemsView[str, float]):
    """Goes through both arrays at once instead of looking up each name."""

    _mapping: LandingWeights

    def __iter__(self) -> Iterator[tuple[str, float]]:
        return self._mapping.pairs()


class _Values(ValuesView[float]):
    """Goes through the weights instead of looking up each name."""

    _mapping: LandingWeights

    def __iter__(self) -> Iterator[float]:
        return iter(self._mapping.weights())
