"""VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone: what a pod's volumes allow.

Source: https://github.com/kubernetes/kubernetes/tree/v1.36.2/pkg/scheduler/framework/plugins (volumerestrictions,
nodevolumelimits, volumebinding, volumezone). Generic ephemeral volumes are passed over: their claims come to be with the pod.
Free storage capacity is not looked at; nobody publishes it in a snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from rebalancer.model.pod import PodShape, VolumeUse
from rebalancer.model.snapshot import Snapshot
from rebalancer.model.volume import PersistentVolume, PersistentVolumeClaim
from rebalancer.placement.arrays import Bools
from rebalancer.placement.node_table import NodeTable
from rebalancer.placement.profile import Plugin, SchedulerProfile
from rebalancer.placement.reasons import Reason
from rebalancer.placement.state import ClusterState, PodCount

_SINGLE_POD = "ReadWriteOncePod"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"
# Zone labels in both spellings; a volume in the old one is held against a node in the new one.
_ZONE_LABELS: Mapping[str, str] = {
    "topology.kubernetes.io/zone": "failure-domain.beta.kubernetes.io/zone",
    "topology.kubernetes.io/region": "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
_SHARED_IF_READ_ONLY = frozenset({"gcePersistentDisk", "iscsi", "rbd"})
_NEVER_SHARED = frozenset({"awsElasticBlockStore"})


@dataclass(frozen=True, slots=True)
class Objection:
    """Nodes that a volume rules out. text: where it differs from the reason's usual one."""

    reason: Reason
    nodes: Bools
    text: str | None = None


class VolumeRules:
    """The rules that the volumes of one shape bring with them, on one state."""

    def __init__(self, state: ClusterState, shape: PodShape, profile: SchedulerProfile) -> None:
        """Look the claims and volumes up; none of them changes within a run."""
        self._state = state
        self._snapshot: Snapshot = state.snapshot
        self._table: NodeTable = state.table
        self._filters = profile.filters
        self._shape = shape
        self._claims = [(name, self._snapshot.claims.get((shape.namespace, name))) for name in dict.fromkeys(shape.claims)]
        self._bound = [
            volume
            for _, claim in self._claims
            if claim is not None and claim.volume and (volume := self._snapshot.volumes.get(claim.volume)) is not None
        ]
        self._single = self._shared_claims()
        self._disks = self._clashing_disks()
        self._refusal = self._claim_refusal()
        self._static = () if self._refusal is not None else tuple(self._fixed())

    def _everywhere(self) -> Bools:
        return np.ones(self._state.size, dtype=np.bool_)

    def _claim_refusal(self) -> str | None:
        """Return why no node at all will do for the claims as they are; None where one may."""
        if "PersistentVolumeClaim" in self._snapshot.missing and not self._snapshot.claims:
            return None  # A dump without claims says nothing about them.
        for name, claim in self._claims:
            if claim is None:
                return f'persistentvolumeclaim "{name}" not found'
            if not claim.volume and not self._delayed(claim) and not self._knows_no_classes():
                return "pod has unbound immediate PersistentVolumeClaims"
            if claim.volume and claim.volume not in self._snapshot.volumes and self._snapshot.volumes:
                return f'persistentvolume "{claim.volume}" not found'
        return None

    def _knows_no_classes(self) -> bool:
        """Say whether the source of the snapshot has no storage classes: then nothing tells where unbound claims can be bound."""
        return "StorageClass" in self._snapshot.missing and not self._snapshot.storage_classes

    def _delayed(self, claim: PersistentVolumeClaim) -> bool:
        known = self._snapshot.storage_classes.get(claim.storage_class or "")
        return known is not None and known.delayed

    def _fixed(self) -> Iterator[Objection]:
        """Yield what follows from claims, volumes and nodes alone, in the filters' order."""
        if Plugin.VOLUME_BINDING in self._filters:
            reachable = self._everywhere()
            for volume in self._bound:
                if volume.node_affinity is not None:
                    reachable &= self._table.selected(volume.node_affinity)
            yield Objection(Reason.VOLUME_AFFINITY, ~reachable)
            bindable = self._everywhere()
            for _, claim in self._claims:
                if claim is not None and not claim.volume and not (self._knows_no_classes() and not claim.selected_node):
                    bindable &= self._bindable(claim)
            yield Objection(Reason.VOLUME_BINDING, ~bindable)
        if Plugin.VOLUME_ZONE in self._filters:
            for volume in self._bound:
                yield Objection(Reason.VOLUME_ZONE, ~self._zone_admits(volume))

    def _bindable(self, claim: PersistentVolumeClaim) -> Bools:
        """Return where a claim with delayed binding can get a volume: one that waits there, or a new one."""
        mask = np.zeros(self._state.size, dtype=np.bool_)
        if claim.selected_node:
            if claim.selected_node in self._table.index:
                mask[self._table.index[claim.selected_node]] = True
            return mask
        own = f"{claim.namespace}/{claim.name}"
        for volume in self._snapshot.volumes.values():
            fits = volume.storage_class == (claim.storage_class or "") and volume.capacity_bytes >= claim.request_bytes
            if volume.claim == own or (not volume.claim and fits and set(claim.access_modes) <= set(volume.access_modes)):
                mask |= self._everywhere() if volume.node_affinity is None else self._table.selected(volume.node_affinity)
        storage = self._snapshot.storage_classes.get(claim.storage_class or "")
        if storage is not None and storage.provisioner not in ("", _NO_PROVISIONER):
            topologies = storage.allowed_topologies
            mask |= self._everywhere() if topologies is None else self._table.selected(topologies)
        return mask

    def _zone_admits(self, volume: PersistentVolume) -> Bools:
        """Return which nodes are in the zones and regions that a volume names; nodes without any such label are not judged."""
        placed = np.zeros(self._state.size, dtype=np.bool_)
        for key in _ZONE_LABELS:
            placed |= self._table.has(key)
        mask = self._everywhere()
        for key, other_spelling in _ZONE_LABELS.items():
            wanted = volume.labels.get(key)
            if wanted is None:
                continue
            zones = set(wanted.split("__"))
            here = np.zeros(self._state.size, dtype=np.bool_)
            for spelling in (key, other_spelling):
                column = self._table.column(spelling)
                answers = np.array([value in zones for value in column.values] + [False], dtype=np.bool_)
                here |= answers[column.codes]
            mask &= here
        return mask | ~placed

    def _shared_claims(self) -> PodCount | None:
        """Count the pods that hold a claim which only one pod may have; None without such claims."""
        names = {name for name, claim in self._claims if claim is not None and _SINGLE_POD in claim.access_modes}
        if not names:
            return None
        namespace = self._shape.namespace
        return self._count(lambda other: other.namespace == namespace and not names.isdisjoint(other.claims))

    def _clashing_disks(self) -> PodCount | None:
        disks = [volume for volume in self._shape.volumes if volume.kind in _SHARED_IF_READ_ONLY | _NEVER_SHARED]
        if not disks:
            return None
        return self._count(lambda other: any(_clash(mine, theirs) for mine in disks for theirs in other.volumes))

    def _count(self, matches: Callable[[PodShape], bool]) -> PodCount:
        count = PodCount(matches, True, self._state.size)
        for other in self._state.shapes_with_disks():
            if count.concerns(other):
                for node, live, dying in self._state.placed(other):
                    count.change(other, node, live, dying)
        self._state.follow_pods(count, None)
        return count

    @property
    def refusal(self) -> str | None:
        """Why no node at all will do, as kube-scheduler puts it; None where that is not so."""
        return self._refusal if Plugin.VOLUME_BINDING in self._filters else None

    def objections(self) -> Iterator[Objection]:
        """Yield which nodes are out, in the order in which the filters ask."""
        if Plugin.VOLUME_RESTRICTIONS in self._filters:
            if self._disks is not None:
                yield Objection(Reason.DISK, np.greater(self._disks.per_node, 0))
            if self._single is not None and self._single.per_node.any():
                yield Objection(Reason.SINGLE_POD_CLAIM, self._everywhere())
        if Plugin.VOLUME_LIMITS in self._filters and self._snapshot.drivers:
            yield Objection(Reason.VOLUME_COUNT, self._over_limits())
        yield from self._static

    def _over_limits(self) -> Bools:
        """Return which nodes could not attach the pod's volumes besides those that they have (CSINode)."""
        over = np.zeros(self._state.size, dtype=np.bool_)
        mine = set(self._attachments(self._shape.namespace, self._shape.claims))
        if not mine:
            return over
        wanted = {driver for driver, _ in mine}
        attached: dict[int, dict[PodShape, int]] = {}
        for other in self._state.shapes_with_disks():
            for node, live, dying in self._state.placed(other):
                shapes = attached.setdefault(node, {})
                shapes[other] = shapes.get(other, 0) + live + dying
        for name, drivers in self._snapshot.drivers.items():
            position = self._table.index.get(name)
            if position is None:
                continue
            limits = {driver: limit for driver in wanted if (limit := drivers.limits.get(driver)) is not None}
            if not limits:
                continue
            there = {
                attachment
                for other, pods in attached.get(position, {}).items()
                if pods > 0
                for attachment in self._attachments(other.namespace, other.claims)
            }
            for driver, limit in limits.items():
                used = {handle for its, handle in there if its == driver}
                new = {handle for its, handle in mine if its == driver} - used
                if new and len(used) + len(new) > limit:
                    over[position] = True
        return over

    def _attachments(self, namespace: str, claims: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield driver and identity of each volume behind the claims; an unbound claim stands for a volume to come."""
        for name in claims:
            claim = self._snapshot.claims.get((namespace, name))
            if claim is None:
                continue
            volume = self._snapshot.volumes.get(claim.volume) if claim.volume else None
            if volume is not None:
                yield volume.driver, volume.handle or volume.name
            else:
                storage = self._snapshot.storage_classes.get(claim.storage_class or "")
                if storage is not None:
                    yield storage.provisioner, f"{namespace}/{name}"


def _clash(mine: VolumeUse, theirs: VolumeUse) -> bool:
    if mine.kind != theirs.kind or mine.name != theirs.name:
        return False
    if mine.kind in _SHARED_IF_READ_ONLY:
        return not (mine.read_only and theirs.read_only)
    return mine.kind in _NEVER_SHARED
