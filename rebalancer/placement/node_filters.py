"""Filters that look at the node alone: cordon, taints, affinity to nodes. Their answers hold as long as the nodes do.

Source: https://github.com/kubernetes/kubernetes/tree/v1.36.2/pkg/scheduler/framework/plugins (nodeunschedulable, tainttoleration,
nodeaffinity)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rebalancer.model.node import Taint, TaintEffect, Toleration
from rebalancer.model.pod import PodShape
from rebalancer.model.selector import Operator
from rebalancer.placement.arrays import Bools, Codes, Ints
from rebalancer.placement.node_table import UNSCHEDULABLE_TAINT, NodeTable
from rebalancer.placement.profile import Plugin, SchedulerProfile
from rebalancer.placement.reasons import Reason

_CORDON = Taint(UNSCHEDULABLE_TAINT, "", TaintEffect.NO_SCHEDULE)


def tolerated(taint: Taint, tolerations: Sequence[Toleration]) -> bool:
    """Say whether one of the tolerations covers the taint."""
    return any(toleration.tolerates(taint) for toleration in tolerations)


def admits(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> bool:
    """Say whether every taint that keeps new pods away is tolerated."""
    return all(taint.effect is TaintEffect.PREFER_NO_SCHEDULE or tolerated(taint, tolerations) for taint in taints)


def taints_admit(table: NodeTable, shape: PodShape) -> Bools:
    """Return which nodes have no taint that keeps this shape away."""
    return table.by_taints([admits(each.taints, shape.tolerations) for each in table.taint_classes])


def cordon_admits(table: NodeTable, shape: PodShape) -> Bools:
    """Return which nodes are not cordoned, or whose cordon this shape tolerates."""
    bold = tolerated(_CORDON, shape.tolerations)
    return table.by_taints([bold or not each.unschedulable for each in table.taint_classes])


def unwelcome_taints(table: NodeTable, shape: PodShape) -> Ints:
    """Return how many soft taints of each node are not tolerated (the raw score of TaintToleration)."""
    soft = [each for each in shape.tolerations if each.effect in (None, TaintEffect.PREFER_NO_SCHEDULE)]
    counts = [
        sum(taint.effect is TaintEffect.PREFER_NO_SCHEDULE and not tolerated(taint, soft) for taint in each.taints)
        for each in table.taint_classes
    ]
    return np.array(counts, dtype=np.int64)[table.taint_codes] if any(counts) else table.nothing


def affinity_admits(table: NodeTable, shape: PodShape) -> Bools:
    """Return which nodes meet nodeSelector and required node affinity."""
    if not shape.node_selector and shape.required_node is None:
        return table.everywhere
    mask = table.labelled(shape.node_selector)
    if shape.required_node is not None:
        mask &= table.selected(shape.required_node)
    return mask


def named_nodes(shape: PodShape) -> frozenset[str] | None:
    """Return the nodes that the pod's affinity names outright; None where some alternative names none.

    kube-scheduler looks at no other node in that case, and its sample is taken of these only.
    """
    if shape.required_node is None or not shape.required_node.terms:
        return None
    names: set[str] = set()
    for term in shape.required_node.terms:
        here: set[str] | None = None
        for requirement in term.fields:
            if requirement.key == "metadata.name" and requirement.operator is Operator.IN:
                values = set(requirement.values)
                here = values if here is None else here & values
        if here is None:
            return None
        names |= here
    return frozenset(names)


def static_reasons(table: NodeTable, shape: PodShape, profile: SchedulerProfile) -> Codes:
    """Return each node's first objection that follows from the node alone."""
    codes: Codes = np.zeros(table.size, dtype=np.uint8)
    filters = profile.filters
    if Plugin.NODE_AFFINITY in filters:
        names = named_nodes(shape)
        if names is not None:
            outside = np.ones(table.size, dtype=np.bool_)
            for name in names:
                if name in table.index:
                    outside[table.index[name]] = False
            codes[outside] = Reason.NOT_NAMED
    if Plugin.NODE_UNSCHEDULABLE in filters:
        object_to(codes, ~cordon_admits(table, shape), Reason.UNSCHEDULABLE)
    if Plugin.TAINT_TOLERATION in filters:
        object_to(codes, ~taints_admit(table, shape), Reason.TAINT)
    if Plugin.NODE_AFFINITY in filters:
        if profile.added_affinity is not None:
            object_to(codes, ~table.selected(profile.added_affinity), Reason.ENFORCED_AFFINITY)
        object_to(codes, ~affinity_admits(table, shape), Reason.NODE_AFFINITY)
    return codes


def object_to(codes: Codes, refused: Bools, reason: Reason) -> None:
    """Write a reason on the refused nodes that have none yet."""
    codes[refused & (codes == Reason.FITS)] = reason


def preferred_weights(table: NodeTable, shape: PodShape, profile: SchedulerProfile) -> Ints | None:
    """Return the weight of the preferred terms that each node meets (NodeAffinity's raw score); None where there are none."""
    terms = (*shape.preferred_node, *profile.added_preferred)
    if not terms:
        return None
    weights: Ints = np.zeros(table.size, dtype=np.int64)
    for preferred in terms:
        weights += preferred.weight * table.meeting(preferred.term)
    return weights
