"""Which nodes can take pods now."""

from __future__ import annotations

from rebalancer.model.node import Node, TaintEffect

# Taints that a node carries while it starts or while it is being taken away; other taints are there to stay.
# https://kubernetes.io/docs/reference/labels-annotations-taints/ and the documentation of common add-ons.
_PASSING_PREFIXES = (
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/unschedulable",
    "node.cloudprovider.kubernetes.io/",
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
    "karpenter.sh/unregistered",
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
    "ToBeDeletedByClusterAutoscaler",
)
_PASSING_SUFFIX = "/agent-not-ready"


def is_passing(key: str) -> bool:
    """Say whether a taint of this key belongs to a node that starts or leaves."""
    return key.startswith(_PASSING_PREFIXES) or key.endswith(_PASSING_SUFFIX)


def usable(node: Node) -> bool:
    """Say whether a node is Ready, not cordoned, and without a repelling taint of its start or its end."""
    if not node.ready or node.unschedulable:
        return False
    return not any(taint.effect is not TaintEffect.PREFER_NO_SCHEDULE and is_passing(taint.key) for taint in node.taints)
