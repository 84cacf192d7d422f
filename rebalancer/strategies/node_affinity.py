"""How well a node suits what a shape asks of nodes: nodeSelector, required and preferred node affinity.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#node-affinity
"""

from __future__ import annotations

from rebalancer.model.node import Node
from rebalancer.model.pod import PodShape


def is_required_match(shape: PodShape, node: Node) -> bool:
    """Tell whether the node has what nodeSelector and required node affinity ask for."""
    if not shape.node_selector and shape.required_node is None:
        return True
    labels = node.labels
    if any(labels.get(key) != value for key, value in shape.node_selector.items()):
        return False
    return shape.required_node is None or shape.required_node.matches(node.name, labels)


def preferred_weight(shape: PodShape, node: Node) -> int:
    """Return the sum of the weights of the preferred terms that the node matches."""
    return sum(each.weight for each in shape.preferred_node if each.term.matches(node.name, node.labels))
