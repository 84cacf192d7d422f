"""Spread the pods of one owner over the nodes that can take them.

Source: https://github.com/kubernetes-sigs/descheduler#removeduplicates
Pods of the same owners with the same container images are duplicates. A node keeps its share, the average over the nodes that
the pods could use, rounded up (K15); the cheapest and youngest of the rest go (F20).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from rebalancer.eligibility.objection import Objection
from rebalancer.model.node import Node
from rebalancer.model.pod import Pod, PodShape
from rebalancer.model.trigger import TriggerKind
from rebalancer.strategies.arguments import RemoveDuplicatesArgs as Args
from rebalancer.strategies.node_affinity import is_required_match
from rebalancer.strategies.order import rank
from rebalancer.strategies.scope import in_scope, owner_kinds
from rebalancer.strategies.taints import untolerated
from rebalancer.strategies.view import Aim, Demand, Keeper, LandingJudge, Strategy, View


class Kin(NamedTuple):
    """What makes pods duplicates of each other: namespace, owners (kind and name) and images, each sorted."""

    namespace: str
    owners: tuple[tuple[str, str], ...]
    images: tuple[str, ...]


def kin_of(shape: PodShape) -> Kin:
    """Return the group that a shape belongs to."""
    owners, images = shape.owners, shape.images
    names = ((owners[0].kind, owners[0].name),) if len(owners) == 1 else tuple(sorted((each.kind, each.name) for each in owners))
    return Kin(shape.namespace, names, images if len(images) == 1 else tuple(sorted(images)))


class Group:
    """The pods of one kin that may be moved, by node. shapes: all of the kin."""

    def __init__(self, kin: Kin, shapes: list[PodShape]) -> None:
        self.kin = kin
        self.shapes = shapes
        self.by_node: dict[str, list[Pod]] = {}

    def size(self) -> int:
        """Return how many pods there are."""
        return sum(len(pods) for pods in self.by_node.values())

    def duplicated_shapes(self) -> list[PodShape]:
        """Return the distinct shapes of pods that share a node with another of the group."""
        found: dict[PodShape, None] = {}
        for pods in self.by_node.values():
            if len(pods) > 1:
                for pod in pods:
                    found[pod.shape] = None
        return list(found)


def movable_groups(view: View, args: Args) -> list[Group]:
    """Return the groups that have duplicates on some node, in the order of their names."""
    looks_at = in_scope(args.namespaces)
    listed = {node.name for node in view.nodes}
    groups: dict[Kin, Group] = {kin: Group(kin, []) for kin in crowded_kins(view)}
    for namespace in sorted({kin.namespace for kin in groups}):
        for shape in view.shapes(namespace):
            if not shape.owners or not looks_at(shape):
                continue
            if args.exclude_owner_kinds and any(kind in args.exclude_owner_kinds for kind in owner_kinds(shape)):
                continue
            group = groups.get(kin_of(shape))
            if group is None:
                continue
            group.shapes.append(shape)
            for name, pods in view.where(shape).items():
                if name in listed:
                    group.by_node.setdefault(name, []).extend(pods)
    crowded = [group for group in groups.values() if any(len(pods) > 1 for pods in group.by_node.values())]
    return sorted(crowded, key=lambda group: group.kin)


def crowded_kins(view: View) -> set[Kin]:
    """Return the kins of which some node has two pods."""
    known: dict[PodShape, Kin] = {}

    def on(node: Node) -> tuple[Kin, ...]:
        counts: dict[Kin, int] = {}
        for shape, pods in view.live(node.name).items():
            if shape.owners:
                kin = known.get(shape) or known.setdefault(shape, kin_of(shape))
                counts[kin] = counts.get(kin, 0) + len(pods)
        return tuple(kin for kin, count in counts.items() if count > 1)

    return {kin for node in view.nodes for kin in view.of_node(node, "duplicates", partial(on, node))}


def screened(view: View, group: Group) -> Group:
    """Return the group with only the pods that the evictor lets go."""
    kept = Group(group.kin, group.shapes)
    for name, pods in group.by_node.items():
        movable = [pod for pod in pods if view.screen(pod) is None]
        if movable:
            kept.by_node[name] = movable
    return kept


class Targets:
    """The nodes that shapes could use by taints, nodeSelector and affinity, worked out once for alike shapes."""

    def __init__(self, view: View) -> None:
        self._nodes = view.nodes
        self._known: dict[tuple[object, ...], frozenset[str]] = {}

    def of(self, shapes: Iterable[PodShape]) -> frozenset[str]:
        """Return the nodes that one of the shapes could use; a shape with a single node does not count."""
        found: frozenset[str] = frozenset()
        for shape in shapes:
            matching = self._matching(shape)
            if len(matching) > 1 and not matching <= found:
                found = matching | found
        return found

    def _matching(self, shape: PodShape) -> frozenset[str]:
        key = (shape.tolerations, tuple(sorted(shape.node_selector.items())), shape.required_node)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = frozenset(
                node.name for node in self._nodes if untolerated(shape, node.taints) is None and is_required_match(shape, node)
            )
        return known


def usable(view: View, group: Group, targets: frozenset[str]) -> frozenset[str]:
    """Return the targets that hold a pod of the group or can take one more; full ones do not count (F20)."""
    pods = [pod for pods in group.by_node.values() if len(pods) > 1 for pod in pods]
    one_of_each = {pod.shape: pod for pod in pods}.values()
    free: frozenset[str] = frozenset(group.by_node)
    for pod in one_of_each:
        free |= view.fitting(pod)
    return targets & free


def dearest_first(pods: Iterable[Pod]) -> list[Pod]:
    """Return the pods so that those to keep come first: dear, then old (F20)."""
    by_age = sorted(pods, key=lambda pod: (pod.created_at, pod.shape.namespace, pod.name, pod.uid))
    return sorted(by_age, key=lambda pod: rank(pod.shape), reverse=True)


def spread_group(view: View, group: Group, nodes: Targets) -> bool:
    """Ask for what is above the share on each node; return False once the run is over."""
    movable = screened(view, group)
    targets = nodes.of(movable.duplicated_shapes())
    if view.demand is not Demand.NOTHING:
        targets = usable(view, movable, targets)
    if len(targets) < 2:
        return True
    share = -(-movable.size() // len(targets))
    crowded = sorted(movable.by_node, key=lambda name: (-len(movable.by_node[name]), name))
    for name in crowded:
        pods = dearest_first(movable.by_node[name])
        excess = len(pods) - max(share, 1)
        for pod in reversed(pods):
            if excess <= 0:
                break
            count = count_on(view, group, name)
            if view.demand is Demand.IMPROVEMENT and count < 2:
                break
            owner = "/".join(group.kin.owners[0])
            reason = f"{count} pods of {owner} are on node {name}, its share over {len(targets)} nodes is {share}"
            verdict = view.ask(pod, reason, Aim(_judge(view, group, count)))
            if verdict.ends_run:
                return False
            if verdict.ends_node:
                break
            if verdict.approved:
                excess -= 1
    return True


def count_on(view: View, group: Group, node: str) -> int:
    """Return how many live pods of the kin are on a node, those that may not be moved included."""
    live = view.live(node)
    return sum(len(live.get(shape, ())) for shape in group.shapes)


def _judge(view: View, group: Group, here: int) -> Callable[[str], Objection | None]:
    def judge(landing: str) -> Objection | None:
        there = count_on(view, group, landing)
        return None if there + 1 < here else Objection("same-owner-there", (landing, there, here))

    return judge


def propose(view: View, args: Args) -> None:
    """Spread each group that is crowded somewhere."""
    nodes = Targets(view)
    for group in movable_groups(view, args):
        if not spread_group(view, group, nodes):
            return


def keeps(view: View, args: Args) -> Keeper:
    """Keep pods from nodes that would have more of the same owner than their own node has."""
    looks_at = in_scope(args.namespaces)
    families: dict[str, dict[Kin, list[PodShape]]] = {}
    known: dict[PodShape, Group | None] = {}

    def group_of(shape: PodShape) -> Group | None:
        if shape not in known:
            kinds = owner_kinds(shape)
            spared = not kinds or not looks_at(shape) or any(kind in args.exclude_owner_kinds for kind in kinds)
            family = families.get(shape.namespace)
            if family is None:
                family = families[shape.namespace] = {}
                for each in view.shapes(shape.namespace):
                    family.setdefault(kin_of(each), []).append(each)
            kin = kin_of(shape)
            known[shape] = None if spared else Group(kin, family.get(kin, []))
        return known[shape]

    def keeper(pod: Pod) -> LandingJudge | None:
        group = group_of(pod.shape)
        if group is None:
            return None
        here = count_on(view, group, pod.node or "")

        def judge(landing: str) -> Objection | None:
            there = count_on(view, group, landing) + 1
            return Objection("undone-duplicates", (landing, there, here)) if there > max(here, 1) else None

        return judge

    return keeper


STRATEGY = Strategy(
    "RemoveDuplicates",
    Args,
    "balance",
    frozenset({TriggerKind.TICK, TriggerKind.NODE_JOINED, TriggerKind.NODE_CHANGED}),
    propose,
    keeps,
)
