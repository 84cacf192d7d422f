"""Nodes and CSI nodes."""

from __future__ import annotations

import msgspec

from rebalancer.errors import ParseError
from rebalancer.model.node import Node, NodeDrivers, Taint, TaintEffect
from rebalancer.parse import wire
from rebalancer.parse.decoding import decode, kept_annotations, labels, require_name, seconds
from rebalancer.parse.interning import Interner
from rebalancer.parse.requests import amounts, capped, resources

_NODE = msgspec.json.Decoder(wire.NodeWire)
_CSI_NODE = msgspec.json.Decoder(wire.CsiNodeWire)


def parse_node(raw: bytes | msgspec.Raw, interner: Interner) -> Node:
    """Parse one node. Raises ParseError."""
    node = decode(raw, _NODE, "Node")
    try:
        return _node(node, interner)
    except (ParseError, ValueError, OverflowError) as error:
        raise ParseError(f"Node {node.metadata.name}: {error}") from error


def _node(node: wire.NodeWire, interner: Interner) -> Node:
    metadata, spec, status = node.metadata, node.spec, node.status
    require_name(metadata.name)
    ready, since = True, None
    for condition in status.conditions or ():
        if condition.type == "Ready":
            ready, since = condition.status == "True", seconds(condition.lastTransitionTime)
    capacity = amounts(status.capacity)
    allocatable = amounts(status.allocatable) or capacity
    images: dict[str, int] = {}
    for image in status.images or ():
        for name in image.names or ():
            images[interner.text(name)] = capped(max(image.sizeBytes, 0))
    taints = []
    for taint in spec.taints or ():
        try:
            taints.append(Taint(taint.key, taint.value, TaintEffect(taint.effect)))
        except ValueError:
            raise ParseError(f"taint {taint.key} has effect {taint.effect!r}, expected {', '.join(TaintEffect)}") from None
    created = seconds(metadata.creationTimestamp)
    return Node(
        name=interner.text(metadata.name),
        uid=metadata.uid or metadata.name,
        labels=labels(metadata.labels),
        taints=tuple(taints),
        unschedulable=spec.unschedulable,
        ready=ready,
        ready_since=since,
        allocatable=resources(allocatable),
        capacity=resources(capacity or allocatable),
        resource_names=frozenset(allocatable) | frozenset(capacity),
        images=images,
        created_at=0.0 if created is None else created,
        annotations=kept_annotations(metadata.annotations),
    )


def parse_csi_node(raw: bytes | msgspec.Raw, interner: Interner) -> NodeDrivers:
    """Parse one CSINode. Raises ParseError."""
    node = decode(raw, _CSI_NODE, "CSINode")
    limits = {driver.name: None if driver.allocatable is None else driver.allocatable.count for driver in node.spec.drivers or ()}
    return NodeDrivers(interner.text(node.metadata.name), limits)
