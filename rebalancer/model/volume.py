"""Persistent volumes, claims and storage classes, as far as they tie a pod to nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rebalancer.model.selector import NodeSelector


@dataclass(frozen=True, slots=True)
class PersistentVolume:
    """A persistent volume.

    node_affinity: the nodes that can reach it; None means all.
    labels: zone and region labels also tie it to nodes.
    driver: its CSI driver, or the in-tree plugin's name; handle: the volume's identity there.
    claim: ``namespace/name`` of the claim bound to it, empty where there is none.
    """

    name: str
    node_affinity: NodeSelector | None
    labels: Mapping[str, str]
    driver: str
    handle: str
    storage_class: str
    access_modes: tuple[str, ...]
    capacity_bytes: int
    claim: str


@dataclass(frozen=True, slots=True)
class PersistentVolumeClaim:
    """A persistent volume claim.

    volume: the bound volume's name, empty while unbound.
    storage_class: None where the claim names none.
    selected_node: the node a delayed binding has settled on, empty where there is none.
    """

    namespace: str
    name: str
    volume: str
    storage_class: str | None
    access_modes: tuple[str, ...]
    request_bytes: int
    selected_node: str


@dataclass(frozen=True, slots=True)
class StorageClass:
    """A storage class.

    delayed: volumeBindingMode is WaitForFirstConsumer.
    allowed_topologies: None means everywhere.
    """

    name: str
    provisioner: str
    delayed: bool
    allowed_topologies: NodeSelector | None
