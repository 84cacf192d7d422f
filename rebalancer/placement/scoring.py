"""All scores of one shape: each plugin's, weighted, and their sum.

Source: https://github.com/kubernetes/kubernetes/blob/v1.36.2/pkg/scheduler/framework/runtime/framework.go (RunScorePlugins)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rebalancer.model.pod import PodShape
from rebalancer.placement.affinity import Neighbours
from rebalancer.placement.arrays import Bools, Ints
from rebalancer.placement.node_filters import preferred_weights, unwelcome_taints
from rebalancer.placement.node_table import NodeTable
from rebalancer.placement.profile import Plugin, SchedulerProfile
from rebalancer.placement.resources import Room
from rebalancer.placement.spread import Spread
from rebalancer.placement.state import ClusterState

_MAX_SCORE = 100
_MEBIBYTE = 1024 * 1024
_SMALLEST_IMAGE = 23 * _MEBIBYTE
_LARGEST_IMAGE = 1000 * _MEBIBYTE


@dataclass(frozen=True, slots=True)
class Scores:
    """Weighted scores over all nodes; only those of feasible nodes mean anything.

    plugins: by name, only of those that scored. total: their sum.
    """

    plugins: Mapping[str, Ints]
    total: Ints


class FixedScores:
    """Scores of one shape that follow from the nodes alone; remembered as long as the nodes stay."""

    __slots__ = ("images", "preferred", "unwelcome")

    def __init__(self, table: NodeTable, shape: PodShape, profile: SchedulerProfile) -> None:
        """Compute what does not depend on any pod."""
        self.unwelcome = unwelcome_taints(table, shape)
        self.preferred = preferred_weights(table, shape, profile)
        self.images = image_scores(table, shape)


def score(
    state: ClusterState,
    profile: SchedulerProfile,
    feasible: Bools,
    fixed: FixedScores,
    room: Room,
    spread: Spread,
    neighbours: Neighbours,
) -> Scores:
    """Score the feasible nodes, at least one, as the profile does."""
    plugins: dict[str, Ints] = {}
    total: Ints = np.zeros(state.size, dtype=np.int64)
    for plugin, weight in profile.weights.items():
        raw: Ints | None = None
        if plugin is Plugin.TAINT_TOLERATION:
            raw = _of_highest(fixed.unwelcome, feasible, reverse=True)
        elif plugin is Plugin.NODE_AFFINITY:
            raw = None if fixed.preferred is None else _of_highest(fixed.preferred, feasible, reverse=False)
        elif plugin is Plugin.RESOURCES_FIT:
            raw = room.fit()
        elif plugin is Plugin.BALANCED_ALLOCATION:
            raw = room.balanced()
        elif plugin is Plugin.TOPOLOGY_SPREAD:
            raw = spread.scores(feasible)
        elif plugin is Plugin.INTER_POD_AFFINITY:
            raw = neighbours.scores(feasible)
        elif plugin is Plugin.IMAGE_LOCALITY:
            raw = fixed.images
        elif plugin is Plugin.DYNAMIC_RESOURCES:
            raw = np.zeros(state.size, dtype=np.int64)  # It has nothing to say about a pod without claims.
        if raw is not None:
            weighted = raw * weight
            plugins[str(plugin)] = weighted
            total += weighted
    return Scores(plugins, total)


def _of_highest(raw: Ints, feasible: Bools, *, reverse: bool) -> Ints:
    """Scale to 0..100 by the highest among the feasible nodes (DefaultNormalizeScore)."""
    highest = int(raw[feasible].max(initial=0))
    if highest == 0:
        return np.full(len(raw), _MAX_SCORE if reverse else 0, dtype=np.int64)
    scaled = _MAX_SCORE * raw // highest
    return _MAX_SCORE - scaled if reverse else scaled


def image_scores(table: NodeTable, shape: PodShape) -> Ints:
    """Return ImageLocality's score: how much of the pod's images a node has, less for images that few nodes have.

    Source: https://github.com/kubernetes/kubernetes/blob/v1.36.2/pkg/scheduler/framework/plugins/imagelocality/image_locality.go
    """
    images = (*shape.init_images, *shape.images)
    known = [(size, present) for image in images for size, present in (table.image(full_name(image)),) if size]
    if not known:
        return table.nothing
    sums: Ints = np.zeros(table.size, dtype=np.int64)
    for size, present in known:
        spread = int(present.sum()) / table.size
        sums += np.where(present, int(float(size) * spread), 0)
    largest = _LARGEST_IMAGE * len(images)
    clamped = np.clip(sums, _SMALLEST_IMAGE, max(largest, _SMALLEST_IMAGE))
    return _MAX_SCORE * (clamped - _SMALLEST_IMAGE) // max(largest - _SMALLEST_IMAGE, 1)


def full_name(image: str) -> str:
    """Return the image's name with its tag, ``latest`` where it has none."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
