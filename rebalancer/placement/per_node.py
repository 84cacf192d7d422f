"""A value per node that is worked out again only on the nodes whose pods have changed since.

A run asks for the same shape again and again while its approvals touch a node or two at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rebalancer.placement.arrays import Ints
from rebalancer.placement.state import ClusterState

Where: TypeAlias = slice | Ints
"""Positions of nodes, as an index of arrays."""

EVERYWHERE = slice(None)


class PerNode:
    """An array over the nodes. compute: gives the values at some positions; each depends on what is in use on its node only."""

    __slots__ = ("_compute", "_seen", "_state", "_values")

    def __init__(self, state: ClusterState, compute: Callable[[Where], NDArray[Any]]) -> None:
        """Compute when first asked."""
        self._state = state
        self._compute = compute
        self._seen = 0
        self._values: NDArray[Any] | None = None

    def get(self) -> NDArray[Any]:
        """Return the values now. Never written to afterwards, so an answer may keep them."""
        touched = self._state.touched
        if self._values is None:
            self._values = self._compute(EVERYWHERE)
        elif self._seen < len(touched):
            at = np.array(sorted(set(touched[self._seen :])), dtype=np.int64)
            values = self._values.copy()
            values[at] = self._compute(at)
            self._values = values
        self._seen = len(touched)
        return self._values
