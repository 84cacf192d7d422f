"""Topology spread constraints as kube-scheduler counts them: which nodes and pods belong to one, and how far off it is.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rebalancer.model.node import Node
from rebalancer.model.pod import PodShape, SpreadConstraint
from rebalancer.strategies.label_index import LabelIndex
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


@dataclass(frozen=True, slots=True)
class Domains:
    """The nodes that count for a constraint. of: node to domain. names: all domains, the empty ones included."""

    of: Mapping[str, str]
    names: frozenset[str]


class KnownDomains:
    """Domains worked out once for all constraints that let the same nodes in; they hold as long as the nodes do."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._known: dict[tuple[object, ...], Domains] = {}

    def get(self, shape: PodShape, constraint: SpreadConstraint, keys: tuple[object, ...]) -> Domains:
        """Return the domains of a constraint. keys: what ``identity`` says of the nodes let in."""
        key = (constraint.topology_key, *keys)
        known = self._known.get(key)
        if known is None:
            of = eligible_nodes(self._nodes, shape, constraint)
            known = self._known[key] = Domains(of, frozenset(of.values()))
        return known


@dataclass(slots=True)
class Group:
    """One constraint with its members and its counts at this point of the run.

    constraint: as written. upheld: the strategy acts on it; the others only bound where a pod may land.
    members: shapes that carry it. counted: shapes that it counts. counts: pods by domain, empty domains left out.
    """

    constraint: SpreadConstraint
    upheld: bool
    members: dict[PodShape, None]
    counted: frozenset[PodShape]
    domains: Domains
    counts: dict[str, int]

    @property
    def is_short_of_domains(self) -> bool:
        """There are fewer domains than minDomains, so the scheduler compares with 0."""
        wanted = self.constraint.min_domains
        return wanted is not None and len(self.domains.names) < wanted

    def count(self, domain: str) -> int:
        """Return how many pods a domain has."""
        return self.counts.get(domain, 0)

    def average(self) -> float:
        """Return the mean over all domains."""
        return sum(self.counts.values()) / len(self.domains.names) if self.domains.names else 0.0

    def smallest(self) -> int:
        """Return the global minimum that the scheduler compares with."""
        if self.is_short_of_domains or len(self.counts) < len(self.domains.names):
            return 0
        return min(self.counts.values(), default=0)

    def is_even(self) -> bool:
        """Tell whether no domain is above the minimum by more than maxSkew."""
        return max(self.counts.values(), default=0) - self.smallest() <= self.constraint.max_skew

    def violation(self) -> int:
        """Return by how many pods in all the domains are above the minimum plus maxSkew."""
        line = self.smallest() + self.constraint.max_skew
        return sum(count - line for count in self.counts.values() if count > line)

    def left(self, node: str) -> None:
        """Take one counted pod off a node."""
        domain = self.domains.of.get(node)
        if domain is not None:
            self._add(domain, -1)

    def joined(self, node: str) -> None:
        """Put one counted pod on a node."""
        domain = self.domains.of.get(node)
        if domain is not None:
            self._add(domain, 1)

    def joined_smallest(self) -> None:
        """Put one counted pod into the smallest domain, the first by name where several are."""
        if self.domains.names:
            self._add(min(self.domains.names, key=lambda name: (self.count(name), name)), 1)

    def _add(self, domain: str, number: int) -> None:
        count = self.counts.get(domain, 0) + number
        if count:
            self.counts[domain] = count
        else:
            self.counts.pop(domain, None)


class Outlook:
    """What a group's violation would be if one counted pod went from one node to another; constant time per landing."""

    def __init__(self, group: Group, source: str) -> None:
        self._group = group
        self.now = group.violation()
        counts = dict(group.counts)
        home = group.domains.of.get(source)
        if home is not None:
            counts[home] -= 1
        self._counts = counts
        empty = len(group.domains.names) - sum(1 for count in counts.values() if count)
        floored = group.is_short_of_domains
        self._smallest = 0 if floored or empty else min(counts.values(), default=0)
        at_smallest = empty if self._smallest == 0 else sum(1 for count in counts.values() if count == self._smallest)
        self._only_one_smallest = not floored and at_smallest == 1
        self._excess = {line: self._sum_above(line + group.constraint.max_skew) for line in (self._smallest, self._smallest + 1)}

    def _sum_above(self, line: int) -> int:
        return sum(count - line for count in self._counts.values() if count > line)

    def permits(self, landing: str) -> bool:
        """Tell whether the scheduler would let a replacement in there, as far as a hard constraint goes."""
        domain = self._group.domains.of.get(landing)
        if domain is None:
            return False
        return self._counts.get(domain, 0) + 1 - self._smallest <= self._group.constraint.max_skew

    def after(self, landing: str) -> int:
        """Return the violation once the replacement is there."""
        domain = self._group.domains.of.get(landing)
        if domain is None:
            return self._excess[self._smallest]
        count = self._counts.get(domain, 0)
        smallest = self._smallest + (1 if self._only_one_smallest and count == self._smallest else 0)
        line = smallest + self._group.constraint.max_skew
        return self._excess[smallest] - max(0, count - line) + max(0, count + 1 - line)


def groups_of(
    view: View,
    namespace: str,
    upholds: Callable[[SpreadConstraint], bool],
    looks_at: Callable[[PodShape], bool],
    known: KnownDomains,
    index: LabelIndex,
) -> list[Group]:
    """Return the constraints of the namespace's pods with all matching live pods counted (F2), in a fixed order.

    Soft constraints that are not upheld decide nothing and are left out. known, index: what was worked out so far.
    """
    found: dict[tuple[object, ...], Group] = {}
    for shape in view.shapes(namespace):
        if not shape.spread or not looks_at(shape):
            continue
        for constraint in shape.spread:
            if not constraint.hard and not upholds(constraint):
                continue
            key = identity(shape, constraint)
            group = found.get(key)
            if group is None:
                domains = known.get(shape, constraint, key[2:])
                counted = index.selected(namespace, constraint.selector)
                group = found[key] = _counted(view, constraint, upholds(constraint), counted, domains)
            group.members[shape] = None
    return sorted(found.values(), key=lambda group: _order(group.constraint))


def group_for(view: View, shape: PodShape, constraint: SpreadConstraint, known: KnownDomains, index: LabelIndex) -> Group:
    """Return one constraint of one shape as it is counted now."""
    domains = known.get(shape, constraint, identity(shape, constraint)[2:])
    return _counted(view, constraint, True, index.selected(shape.namespace, constraint.selector), domains)


def _counted(view: View, constraint: SpreadConstraint, upheld: bool, counted: Sequence[PodShape], domains: Domains) -> Group:
    counts: dict[str, int] = {}
    for each in counted:
        for name, pods in view.where(each).items():
            domain = domains.of.get(name)
            if domain is not None:
                counts[domain] = counts.get(domain, 0) + len(pods)
    return Group(constraint, upheld, {}, frozenset(counted), domains, counts)


def _order(constraint: SpreadConstraint) -> tuple[str, int, bool, str]:
    return (constraint.topology_key, constraint.max_skew, not constraint.hard, str(constraint.selector))
