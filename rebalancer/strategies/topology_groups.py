"""Topology spread constraints as kube-scheduler counts them: which nodes and pods belong to one, and how far off it is.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rebalancer.model.node import Node
from rebalancer.model.pod import PodShape, SpreadConstraint
from rebalancer.strategies.node_affinity import is_required_match
from rebalancer.strategies.taints import untolerated
from rebalancer.strategies.view import View


def identity(shape: PodShape, constraint: SpreadConstraint) -> tuple[object, ...]:
    """Return what makes two pods share one constraint: its fields, and what the pod's own rules let in as domains."""
    keys = tuple(sorted({each.topology_key for each in shape.spread if each.hard is constraint.hard}))
    affinity = (tuple(sorted(shape.node_selector.items())), shape.required_node) if constraint.honor_affinity else ()
    tolerations = shape.tolerations if constraint.honor_taints else ()
    return (shape.namespace, constraint, keys, affinity, tolerations)


def eligible_nodes(nodes: Sequence[Node], shape: PodShape, constraint: SpreadConstraint) -> dict[str, str]:
    """Return the domain of each node that counts for the constraint: it has every key, and the policies let it in."""
    keys = {each.topology_key for each in shape.spread if each.hard is constraint.hard}
    found = {}
    for node in nodes:
        if any(key not in node.labels for key in keys):
            continue
        if constraint.honor_affinity and not is_required_match(shape, node):
            continue
        if constraint.honor_taints and untolerated(shape, node.taints) is not None:
            continue
        found[node.name] = node.labels[constraint.topology_key]
    return found


@dataclass(slots=True)
class Group:
    """One constraint with its members and its counts at this point of the run.

    constraint: as written. upheld: the strategy acts on it; the others only bound where a pod may land.
    members: shapes that carry it. counted: shapes that it counts. domain_of: node to domain. counts: pods by domain.
    """

    constraint: SpreadConstraint
    upheld: bool
    members: dict[PodShape, None]
    counted: frozenset[PodShape]
    domain_of: Mapping[str, str]
    counts: dict[str, int]

    def smallest(self) -> int:
        """Return the global minimum that the scheduler compares with: 0 while there are fewer domains than minDomains."""
        wanted = self.constraint.min_domains
        if wanted is not None and len(self.counts) < wanted:
            return 0
        return min(self.counts.values(), default=0)

    def violation(self) -> int:
        """Return by how many pods in all the domains are above the minimum plus maxSkew."""
        line = self.smallest() + self.constraint.max_skew
        return sum(count - line for count in self.counts.values() if count > line)

    def left(self, node: str) -> None:
        """Take one counted pod off a node."""
        domain = self.domain_of.get(node)
        if domain is not None:
            self.counts[domain] -= 1

    def joined(self, node: str) -> None:
        """Put one counted pod on a node."""
        domain = self.domain_of.get(node)
        if domain is not None:
            self.counts[domain] += 1


class Outlook:
    """What a group's violation would be if one counted pod went from one node to another; constant time per landing."""

    def __init__(self, group: Group, source: str) -> None:
        self._group = group
        self._source = group.domain_of.get(source)
        self.now = group.violation()
        counts = dict(group.counts)
        if self._source is not None:
            counts[self._source] -= 1
        self._counts = counts
        wanted = group.constraint.min_domains
        self._floored = wanted is not None and len(counts) < wanted
        ordered = sorted(counts.values())
        self._smallest = 0 if self._floored else (ordered[0] if ordered else 0)
        self._only_one_smallest = not self._floored and ordered.count(self._smallest) == 1
        self._excess = {line: self._sum_above(line + group.constraint.max_skew) for line in (self._smallest, self._smallest + 1)}

    def _sum_above(self, line: int) -> int:
        return sum(count - line for count in self._counts.values() if count > line)

    def permits(self, landing: str) -> bool:
        """Tell whether the scheduler would let a replacement in there, as far as a hard constraint goes."""
        domain = self._group.domain_of.get(landing)
        if domain is None:
            return False
        return self._counts[domain] + 1 - self._smallest <= self._group.constraint.max_skew

    def after(self, landing: str) -> int:
        """Return the violation once the replacement is there."""
        domain = self._group.domain_of.get(landing)
        if domain is None:
            return self._excess[self._smallest]
        count = self._counts[domain]
        smallest = self._smallest + (1 if self._only_one_smallest and count == self._smallest else 0)
        line = smallest + self._group.constraint.max_skew
        return self._excess[smallest] - max(0, count - line) + max(0, count + 1 - line)


class Domains:
    """The eligible nodes and their domains, worked out once for all constraints that let the same nodes in."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._known: dict[tuple[object, ...], Mapping[str, str]] = {}

    def of(self, shape: PodShape, constraint: SpreadConstraint) -> Mapping[str, str]:
        """Return the domain of each node that counts."""
        key = (constraint.topology_key, *identity(shape, constraint)[2:])
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = eligible_nodes(self._nodes, shape, constraint)
        return known


def groups_of(
    view: View,
    namespace: str,
    upholds: Callable[[SpreadConstraint], bool],
    looks_at: Callable[[PodShape], bool],
    known: Domains,
) -> list[Group]:
    """Return the constraints of the namespace's pods with all matching live pods counted (F2), in a fixed order.

    known: domains worked out so far; they hold as long as the nodes do.
    """
    shapes = view.shapes(namespace)
    found: dict[tuple[object, ...], Group] = {}
    for shape in shapes:
        if not shape.spread or not looks_at(shape):
            continue
        for constraint in shape.spread:
            key = identity(shape, constraint)
            group = found.get(key)
            if group is None:
                domains = known.of(shape, constraint)
                counted = frozenset(each for each in shapes if constraint.selector.matches(each.labels))
                counts = dict.fromkeys(sorted(set(domains.values())), 0)
                for each in counted:
                    for name, pods in view.where(each).items():
                        if name in domains:
                            counts[domains[name]] += len(pods)
                group = found[key] = Group(constraint, upholds(constraint), {}, counted, domains, counts)
            group.members[shape] = None
    return sorted(found.values(), key=lambda group: _order(group.constraint))


def _order(constraint: SpreadConstraint) -> tuple[str, int, bool, str]:
    return (constraint.topology_key, constraint.max_skew, not constraint.hard, str(constraint.selector))
