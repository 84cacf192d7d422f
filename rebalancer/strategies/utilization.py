"""How full nodes are by requests, and how the two utilisation strategies sort them. Amounts in millicores, bytes, pieces.

Source: https://github.com/kubernetes-sigs/descheduler#lownodeutilization
Pods that are finished or terminating do not count (F11): the first hold no room, the second are leaving it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from rebalancer.model.node import Node
from rebalancer.model.pod import PodShape
from rebalancer.model.resources import CPU, MEMORY, PODS, Resources
from rebalancer.strategies.view import View

BASIC = (CPU, MEMORY, PODS)


def all_resources(thresholds: Iterable[str]) -> tuple[str, ...]:
    """Return the resources that are kept account of: those named, and cpu, memory and pods."""
    return tuple(sorted({*thresholds, *BASIC}))


def offers(node: Node, resource: str) -> bool:
    """Tell whether a node has any of a resource; devices whose plugin went away count 0 and are none (F13, F31)."""
    return node.allocatable.amount(resource) > 0


def percent(used: int, capacity: int) -> float:
    """Return a share in percent; of nothing it is 0."""
    return used / capacity * 100 if capacity > 0 else 0.0


@dataclass(slots=True)
class Usage:
    """One node's requested amounts, as a strategy goes on.

    offered: what the node offers; a resource it does not know is absent.
    limits: the amount up to which it may be filled (of LowNodeUtilization: above which it is over-used).
    """

    node: Node
    used: dict[str, int]
    offered: Mapping[str, int]
    limits: dict[str, int] = field(default_factory=dict)

    def percent(self, resource: str) -> float:
        """Return the requested share of a resource in percent."""
        return percent(self.used[resource], self.offered.get(resource, 0))

    def over(self) -> tuple[str, ...]:
        """Return the resources of which more is requested than the limit; a resource the node does not know is never over."""
        return tuple(name for name, limit in self.limits.items() if name in self.offered and self.used[name] > limit)

    def worst_share(self, resources: Iterable[str]) -> float:
        """Return the highest share among the resources that the node knows."""
        return max((self.percent(name) for name in resources if name in self.offered), default=0.0)


def usage_of(view: View, node: Node, resources: tuple[str, ...]) -> Usage:
    """Return a node's usage at this point of the run."""

    def amounts() -> tuple[Mapping[str, int], Mapping[str, int]]:
        requested = view.requested(node.name)
        used = {name: requested.amount(name) for name in resources}
        return used, {name: node.allocatable.amount(name) for name in resources if offers(node, name)}

    used, offered = view.of_node(node, ("usage", resources), amounts)
    return Usage(node, dict(used), offered)


def capped(offered: int, threshold: float | None) -> int:
    """Return a share of an amount, rounded down as upstream does; all of it where there is no threshold."""
    return offered if threshold is None else int(threshold * 0.01 * offered)


def set_limits(usage: Usage, thresholds: Mapping[str, float]) -> None:
    """Set the limits of a node from percentages; a resource without one may be used up."""
    usage.limits = {name: capped(usage.offered.get(name, 0), thresholds.get(name)) for name in usage.used}


def shifted(usages: Iterable[Usage], resources: Iterable[str], by: Mapping[str, float], sign: int) -> dict[str, float]:
    """Return thresholds at a distance from the mean over all nodes that know the resource, within 0 and 100."""
    known = tuple(usages)
    result = {}
    for name in resources:
        shares = [usage.percent(name) for usage in known if name in usage.offered]
        mean = sum(shares) / len(shares) if shares else 0.0
        result[name] = min(100.0, max(0.0, mean + sign * by[name]))
    return result


def is_at_or_below(usage: Usage, thresholds: Mapping[str, float]) -> bool:
    """Tell whether every resource is at or below its threshold (K1); one that the node does not know is no obstacle."""
    return all(name not in usage.offered or usage.percent(name) <= limit for name, limit in thresholds.items())


def overshoot(usage: Usage, thresholds: Mapping[str, float]) -> float:
    """Return by how many percentage points the worst resource is above its threshold (F6)."""
    return max((usage.percent(name) - thresholds.get(name, 100.0) for name in usage.used if name in usage.offered), default=0.0)


class Room:
    """What all destinations together can still take: upstream's budget, one number per resource."""

    def __init__(self, destinations: Iterable[Usage], resources: tuple[str, ...]) -> None:
        self.left: dict[str, int] = {}
        self.unknown: set[str] = set()
        known = tuple(destinations)
        for name in resources:
            offering = [usage for usage in known if name in usage.offered]
            if offering:
                self.left[name] = sum(usage.limits[name] - usage.used[name] for usage in offering)
            else:
                self.unknown.add(name)

    def is_left(self) -> bool:
        """Tell whether something of every resource is left."""
        return all(amount > 0 for amount in self.left.values())

    def take(self, requests: Resources) -> None:
        """Take one pod's requests from what is left."""
        for name in self.left:
            self.left[name] -= requests.amount(name)


def subtract(usage: Usage, shape: PodShape) -> None:
    """Take a pod off a node's usage."""
    for name in usage.used:
        usage.used[name] -= shape.requests.amount(name)


def after(usage: Usage, shape: PodShape, resource: str) -> float:
    """Return the share of a resource in percent once a pod of the shape has been added."""
    return percent(usage.used[resource] + shape.requests.amount(resource), usage.offered.get(resource, 0))


Tolerates = Callable[[PodShape], bool]
