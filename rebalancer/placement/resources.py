"""NodeResourcesFit and NodeResourcesBalancedAllocation: is there room, and how good would the room be.

Integer and floating-point arithmetic as in Go: divisions truncate, and so do conversions to integers.
Source: https://github.com/kubernetes/kubernetes/tree/v1.36.2/pkg/scheduler/framework/plugins/noderesources
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rebalancer.model.pod import PodShape
from rebalancer.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from rebalancer.placement.arrays import Bools, Floats, Ints
from rebalancer.placement.per_node import EVERYWHERE, PerNode, Where
from rebalancer.placement.profile import SchedulerProfile, ScoringKind, ScoringStrategy
from rebalancer.placement.state import ClusterState

MAX_SCORE = 100


@dataclass(frozen=True, slots=True)
class Shortage:
    """Which nodes have too little of one resource. text: as kube-scheduler puts it."""

    text: str
    nodes: Bools


class Room:
    """What one shape meets on the nodes: what is lacking, and the two scores of what would be in use; follows the state.

    balanced: None where the shape requests none of the resources that NodeResourcesBalancedAllocation looks at.
    """

    def __init__(self, state: ClusterState, shape: PodShape, profile: SchedulerProfile) -> None:
        """Say what will be computed."""
        self._lacking = [(text, PerNode(state, lacks)) for text, lacks in _lacks(state, shape, profile)]
        self._fit = PerNode(state, lambda at: fit_scores(state, shape, profile.fit, at).astype(np.int16))
        counts = any(each.wanted for each in _amounts(state, shape, profile.balanced_resources, False, EVERYWHERE))
        self._balanced = (
            PerNode(state, lambda at: balanced_scores(state, shape, profile, at).astype(np.int16)) if counts else None
        )

    def shortages(self) -> list[Shortage]:
        """Return what is lacking where, only for resources that are lacking somewhere."""
        found = [Shortage(text, nodes.get()) for text, nodes in self._lacking]
        return [shortage for shortage in found if shortage.nodes.any()]

    def fit(self) -> Ints:
        """Return NodeResourcesFit's score of each node."""
        return self._fit.get().astype(np.int64)

    def balanced(self) -> Ints | None:
        """Return NodeResourcesBalancedAllocation's score of each node; None where it does not score."""
        return None if self._balanced is None else self._balanced.get().astype(np.int64)


def _lacks(state: ClusterState, shape: PodShape, profile: SchedulerProfile) -> Iterator[tuple[str, Callable[[Where], Bools]]]:
    """Yield for each resource that counts the words for its lack, and a function that finds it."""
    table, requests = state.table, shape.requests
    yield "Too many pods", lambda at: state.pods[at] + 1 > table.pods[at]
    for text, wanted, used, offered in (
        ("Insufficient cpu", requests.cpu_millicores, state.cpu, table.cpu),
        ("Insufficient memory", requests.memory_bytes, state.memory, table.memory),
        ("Insufficient ephemeral-storage", requests.ephemeral_storage_bytes, state.ephemeral, table.ephemeral),
    ):
        if wanted > 0:
            yield text, lambda at, wanted=wanted, used=used, offered=offered: used[at] + wanted > offered[at]  # type: ignore[misc]
    for name, wanted in requests.scalars.items():
        if wanted and name not in profile.ignored_resources and name.partition("/")[0] not in profile.ignored_groups:
            used, offered = state.scalar(name), table.scalar(name)
            text = f"Insufficient {name}"
            yield text, lambda at, wanted=wanted, used=used, offered=offered: used[at] + wanted > offered[at]  # type: ignore[misc]


@dataclass(frozen=True, slots=True)
class _Amounts:
    """One resource over the nodes. offered: 0 where the resource does not count."""

    offered: Ints
    before: Ints
    wanted: int
    weight: int

    @property
    def after(self) -> Ints:
        """In use once the pod is there."""
        return self.before + self.wanted


def _amounts(
    state: ClusterState, shape: PodShape, resources: tuple[tuple[str, int], ...], defaulted: bool, at: Where
) -> list[_Amounts]:
    """Return the resources that count in a score. defaulted: containers without requests count with 100m and 200Mi."""
    table, requests = state.table, shape.requests
    found = []
    for name, weight in resources:
        if name == CPU:
            before = state.nonzero_cpu if defaulted else state.cpu
            wanted = shape.nonzero_cpu_millicores if defaulted else requests.cpu_millicores
            found.append(_Amounts(table.cpu[at], before[at], wanted, weight))
        elif name == MEMORY:
            before = state.nonzero_memory if defaulted else state.memory
            wanted = shape.nonzero_memory_bytes if defaulted else requests.memory_bytes
            found.append(_Amounts(table.memory[at], before[at], wanted, weight))
        elif name == EPHEMERAL_STORAGE:
            found.append(_Amounts(table.ephemeral[at], state.ephemeral[at], requests.ephemeral_storage_bytes, weight))
        elif requests.amount(name):  # Extended resources that the pod does not ask for are left out.
            found.append(_Amounts(table.scalar(name)[at], state.scalar(name)[at], requests.amount(name), weight))
    return found


def fit_scores(state: ClusterState, shape: PodShape, strategy: ScoringStrategy, at: Where = EVERYWHERE) -> Ints:
    """Return NodeResourcesFit's score of some nodes, 0 to 100."""
    total: Ints = np.zeros_like(state.pods[at])
    weights: Ints = np.zeros_like(total)
    for each in _amounts(state, shape, strategy.resources, True, at):
        offered = each.offered > 0
        capacity = np.maximum(each.offered, 1)
        after = each.after
        if strategy.kind is ScoringKind.LEAST_ALLOCATED:
            score = np.where(after > each.offered, 0, (capacity - after) * MAX_SCORE // capacity)
            counts = offered
        elif strategy.kind is ScoringKind.MOST_ALLOCATED:
            score = np.minimum(after, capacity) * MAX_SCORE // capacity
            counts = offered
        else:
            utilisation = np.where(after > each.offered, MAX_SCORE, after * MAX_SCORE // capacity)
            score = _broken_line(strategy.points)[np.clip(utilisation, 0, MAX_SCORE)]
            counts = offered & (score > 0)
        total += np.where(counts, score * each.weight, 0)
        weights += np.where(counts, each.weight, 0)
    if strategy.kind is ScoringKind.REQUESTED_TO_CAPACITY_RATIO:
        return np.floor(total / np.maximum(weights, 1) + 0.5).astype(np.int64)
    return total // np.maximum(weights, 1)


def _broken_line(points: tuple[tuple[int, int], ...]) -> Ints:
    """Return the score of each whole percentage from 0 to 100, interpolated between the points with integers."""
    scaled = [(utilisation, score * (MAX_SCORE // 10)) for utilisation, score in points]
    scores = []
    for percent in range(MAX_SCORE + 1):
        value = scaled[-1][1]
        for position, (utilisation, score) in enumerate(scaled):
            if percent <= utilisation:
                value = score
                if position:
                    earlier, lower = scaled[position - 1]
                    value = lower + int((score - lower) * (percent - earlier) / (utilisation - earlier))
                break
        scores.append(value)
    return np.array(scores, dtype=np.int64)


def balanced_scores(state: ClusterState, shape: PodShape, profile: SchedulerProfile, at: Where = EVERYWHERE) -> Ints:
    """Return NodeResourcesBalancedAllocation's score of some nodes: how far the pod evens out the shares in use."""
    amounts = _amounts(state, shape, profile.balanced_resources, False, at)
    size = len(amounts[0].offered)
    after = _evenness([(each.offered, each.after) for each in amounts], size)
    before = _evenness([(each.offered, each.before) for each in amounts], size)
    half = MAX_SCORE // 2
    return half + np.trunc((half + after - before) / 2).astype(np.int64)


def _evenness(resources: list[tuple[Ints, Ints]], size: int) -> Ints:
    """Return 100 less the standard deviation, in percent, of the shares in use; resources that a node lacks do not count."""
    offered = [each > 0 for each, _ in resources]
    shares: list[Floats] = [
        np.where(present, np.minimum(used / np.maximum(amount, 1), 1.0), 0.0)
        for present, (amount, used) in zip(offered, resources, strict=True)
    ]
    if len(shares) == 2 and all(present.all() for present in offered):
        # The usual case, for which kube-scheduler halves the difference; the general formula would round differently.
        deviation = np.abs((shares[0] - shares[1]) / 2)
    else:
        deviation = _deviation(offered, shares, size)
    return ((1 - deviation) * float(MAX_SCORE)).astype(np.int64)


def _deviation(offered: list[Bools], shares: list[Floats], size: int) -> Floats:
    """Return the standard deviation of the shares that each node has; 0 where it has only one."""
    count: Ints = np.zeros(size, dtype=np.int64)
    total: Floats = np.zeros(size)
    alternating: Floats = np.zeros(size)
    for present, share in zip(offered, shares, strict=True):
        alternating = alternating + np.where(count == 0, share, -share)
        count += present
        total = total + share
    mean = total / np.maximum(count, 1)
    squares: Floats = np.zeros(size)
    for present, share in zip(offered, shares, strict=True):
        squares = squares + np.where(present, (share - mean) * (share - mean), 0.0)
    general = np.where(count > 2, np.sqrt(squares / np.maximum(count, 1)), 0.0)
    return np.where(count == 2, np.abs(alternating / 2), general)
