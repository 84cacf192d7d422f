"""Why a node is not for a pod: a small number for the arrays, a stable code for counting, kube-scheduler's own text for people.

Source of the texts: https://github.com/kubernetes/kubernetes/tree/v1.36.2/pkg/scheduler/framework/plugins
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum


class Reason(IntEnum):
    """The filters' answers. Their order is the order in which the default profile asks."""

    FITS = 0
    LEAVING = 1
    NOT_NAMED = 2
    CLAIM = 3
    UNSCHEDULABLE = 4
    OTHER_NODE = 5
    TAINT = 6
    ENFORCED_AFFINITY = 7
    NODE_AFFINITY = 8
    PORTS = 9
    RESOURCES = 10
    DISK = 11
    SINGLE_POD_CLAIM = 12
    VOLUME_COUNT = 13
    VOLUME_AFFINITY = 14
    VOLUME_BINDING = 15
    VOLUME_ZONE = 16
    SPREAD = 17
    SPREAD_LABEL = 18
    POD_AFFINITY = 19
    POD_ANTI_AFFINITY = 20
    EXISTING_ANTI_AFFINITY = 21

    @property
    def code(self) -> str:
        """The stable name, as it stands in metrics and plans."""
        return self.name.lower().replace("_", "-")


TEXTS: dict[Reason, str] = {
    Reason.LEAVING: "node(s) are about to be removed",
    Reason.NOT_NAMED: "node(s) didn't satisfy plugin(s) [NodeAffinity]",
    Reason.CLAIM: "pod has unbound immediate PersistentVolumeClaims",
    Reason.UNSCHEDULABLE: "node(s) were unschedulable",
    Reason.OTHER_NODE: "node(s) didn't match the requested node name",
    Reason.TAINT: "node(s) had untolerated taint(s)",
    Reason.ENFORCED_AFFINITY: "node(s) didn't match scheduler-enforced node affinity",
    Reason.NODE_AFFINITY: "node(s) didn't match Pod's node affinity/selector",
    Reason.PORTS: "node(s) didn't have free ports for the requested pod ports",
    Reason.RESOURCES: "Insufficient resources",
    Reason.DISK: "node(s) had no available disk",
    Reason.SINGLE_POD_CLAIM: "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",
    Reason.VOLUME_COUNT: "node(s) exceed max volume count",
    Reason.VOLUME_AFFINITY: "node(s) didn't match PersistentVolume's node affinity",
    Reason.VOLUME_BINDING: "node(s) didn't find available persistent volumes to bind",
    Reason.VOLUME_ZONE: "node(s) had no available volume zone",
    Reason.SPREAD: "node(s) didn't match pod topology spread constraints",
    Reason.SPREAD_LABEL: "node(s) didn't match pod topology spread constraints (missing required label)",
    Reason.POD_AFFINITY: "node(s) didn't match pod affinity rules",
    Reason.POD_ANTI_AFFINITY: "node(s) didn't match pod anti-affinity rules",
    Reason.EXISTING_ANTI_AFFINITY: "node(s) didn't satisfy existing pods anti-affinity rules",
}


def message(nodes: int, complaints: Mapping[str, int]) -> str:
    """Return the sentence that kube-scheduler writes where no node fits.

    nodes: how many there are. complaints: what is said of how many of them.
    Source: https://github.com/kubernetes/kubernetes/blob/v1.36.2/pkg/scheduler/framework/types.go (FitError)
    """
    parts = sorted(f"{count} {text}" for text, count in complaints.items())
    return f"0/{nodes} nodes are available: {', '.join(parts)}." if parts else f"0/{nodes} nodes are available"
