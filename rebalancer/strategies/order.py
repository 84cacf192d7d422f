"""In which order pods are asked for. Every key ends with name and UID, so that no order depends on chance (F4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from rebalancer.eligibility.rules import prefers_no_eviction
from rebalancer.model.pod import Pod, PodShape, QosClass

_QOS_RANK = {QosClass.BEST_EFFORT: 0, QosClass.BURSTABLE: 1, QosClass.GUARANTEED: 2}

ShapeRank: TypeAlias = tuple[bool, int, int, bool]


def rank(shape: PodShape) -> ShapeRank:
    """Return how dear the pods of a shape are: no priority first, then low to high, QoS, and those that ask to stay last."""
    return (shape.priority is not None, shape.priority or 0, _QOS_RANK[shape.qos], prefers_no_eviction(shape))


def cheapest_first(pods: Iterable[Pod]) -> list[Pod]:
    """Return the pods in the order in which they are given up."""
    ranks: dict[PodShape, ShapeRank] = {}

    def key(pod: Pod) -> tuple[ShapeRank, str, str, str]:
        shape = pod.shape
        known = ranks.get(shape)
        if known is None:
            known = ranks[shape] = rank(shape)
        return known, shape.namespace, pod.name, pod.uid

    return sorted(pods, key=key)


def by_name(pods: Iterable[Pod]) -> list[Pod]:
    """Return the pods by namespace, name and UID."""
    return sorted(pods, key=lambda pod: (pod.shape.namespace, pod.name, pod.uid))
