"""NodePorts: host ports that are taken.

Source: https://github.com/kubernetes/kubernetes/tree/v1.36.2/pkg/scheduler/framework/plugins/nodeports
"""

from __future__ import annotations

import numpy as np

from rebalancer.model.pod import HostPort, PodShape
from rebalancer.placement.arrays import Bools
from rebalancer.placement.state import ClusterState, PodCount

_ANY = ("", "0.0.0.0")


def clash(one: HostPort, other: HostPort) -> bool:
    """Say whether two host ports cannot both be had on one node."""
    if one.port != other.port or (one.protocol or "TCP") != (other.protocol or "TCP"):
        return False
    return one.ip in _ANY or other.ip in _ANY or one.ip == other.ip


class PortUse:
    """Who stands in the way of one shape's host ports; follows the state."""

    def __init__(self, state: ClusterState, shape: PodShape) -> None:
        """Count the pods that take one of the ports."""
        wanted = shape.host_ports

        def stands_in_the_way(other: PodShape) -> bool:
            return any(clash(mine, theirs) for theirs in other.host_ports for mine in wanted)

        self._count = PodCount(stands_in_the_way, True, state.size)
        for other in state.shapes_with_ports():
            if self._count.concerns(other):
                for node, live, dying in state.placed(other):
                    self._count.change(other, node, live, dying)
        state.follow_pods(self._count, None)

    def taken(self) -> Bools:
        """Return the nodes where a port is taken."""
        return np.greater(self._count.per_node, 0)
