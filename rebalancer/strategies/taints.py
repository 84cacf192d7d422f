"""Whether a pod tolerates what a node does not want.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
"""

from __future__ import annotations

from collections.abc import Iterable

from rebalancer.model.node import Taint, TaintEffect
from rebalancer.model.pod import PodShape

REPELLING = frozenset({TaintEffect.NO_SCHEDULE, TaintEffect.NO_EXECUTE})


def untolerated(shape: PodShape, taints: Iterable[Taint], effects: frozenset[TaintEffect] = REPELLING) -> Taint | None:
    """Return the first taint with one of the effects that the shape does not tolerate, or None."""
    for taint in taints:
        if taint.effect in effects and not any(toleration.tolerates(taint) for toleration in shape.tolerations):
            return taint
    return None
