"""What a pod's volumes allow: claims that are bound, will be, or cannot be; zones, single-pod claims, disks and limits."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.placement.profile import FILTERS, Plugin, SchedulerConfig, SchedulerProfile
from tests.placement.builders import Document, a_node, a_pod, placed

ZONE = "topology.kubernetes.io/zone"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"


def a_claim(
    name: str = "data", *, volume: str = "", storage: str = "fast", mode: str = "ReadWriteOnce", selected: str = ""
) -> Document:
    """Return a claim."""
    annotations = {"volume.kubernetes.io/selected-node": selected} if selected else {}
    spec: Document = {
        "accessModes": [mode],
        "storageClassName": storage,
        "resources": {"requests": {"storage": "5Gi"}},
        **({"volumeName": volume} if volume else {}),
    }
    status = {"phase": "Bound" if volume else "Pending"}
    metadata = {"name": name, "namespace": "default", "annotations": annotations}
    return {"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec, "status": status}


def a_volume(
    name: str = "pv",
    *,
    zone: str | None = None,
    labels: dict[str, str] | None = None,
    storage: str = "fast",
    size: str = "5Gi",
    claim: str | None = None,
    handle: str = "",
) -> Document:
    """Return a CSI volume. zone: by node affinity."""
    spec: Document = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "storageClassName": storage,
        "csi": {"driver": "disk.csi", "volumeHandle": handle or name},
    }
    if zone:
        expression = {"key": ZONE, "operator": "In", "values": [zone]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    if claim:
        spec["claimRef"] = {"namespace": "default", "name": claim}
    return {"kind": "PersistentVolume", "metadata": {"name": name, "labels": labels or {}}, "spec": spec}


def a_class(
    name: str = "fast", *, delayed: bool = True, provisioner: str = "disk.csi", zones: list[str] | None = None
) -> Document:
    """Return a storage class."""
    document: Document = {
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer" if delayed else "Immediate",
    }
    if zones:
        document["allowedTopologies"] = [{"matchLabelExpressions": [{"key": ZONE, "values": zones}]}]
    return document


def using(*claims: str, **more: Any) -> Document:
    """Return a pod that uses claims."""
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    return a_pod(more.pop("name", "p"), volumes=volumes, **more)


NODES = [a_node("n1", labels={ZONE: "a"}), a_node("n2", labels={ZONE: "b"})]


def test_bound_volume_ties_to_its_nodes() -> None:
    """A bound volume's node affinity rules nodes out."""
    placement = placed([*NODES, a_claim(volume="pv"), a_volume(zone="a")], using("data"))
    assert placement.filtered == {"n2": "node(s) didn't match PersistentVolume's node affinity"}


@pytest.mark.parametrize("key", [ZONE, OLD_ZONE])
def test_zone_labels_of_a_volume_tie_it_too(key: str) -> None:
    """Zone labels in either spelling, several zones joined by two underscores; nodes without any zone label are not judged."""
    objects = [*NODES, a_node("n3", labels={ZONE: "c"}), a_node("bare"), a_claim(volume="pv"), a_volume(labels={key: "a__c"})]
    assert placed(objects, using("data")).filtered == {"n2": "node(s) had no available volume zone"}


def test_missing_claim() -> None:
    """A claim that does not exist keeps the pod away from every node."""
    placement = placed([*NODES, a_claim("other")], using("data"))
    assert set(placement.filtered.values()) == {'persistentvolumeclaim "data" not found'}
    assert placement.node is None


@pytest.mark.parametrize("storage", [[a_class(delayed=False)], [a_class("other")]], ids=["immediate", "unknown class"])
def test_unbound_immediate_claim(storage: list[Document]) -> None:
    """A claim that is bound without waiting for a pod must be bound first."""
    placement = placed([*NODES, a_claim(), *storage], using("data"))
    assert set(placement.filtered.values()) == {"pod has unbound immediate PersistentVolumeClaims"}
    assert placement.message == "0/2 nodes are available: 2 pod has unbound immediate PersistentVolumeClaims."


@pytest.mark.parametrize(
    ("objects", "fits"),
    [
        pytest.param([a_class()], ("n1", "n2"), id="provisioned anywhere"),
        pytest.param([a_class(zones=["b"])], ("n2",), id="allowed topologies"),
        pytest.param([a_class(provisioner="kubernetes.io/no-provisioner")], (), id="nothing to provision"),
        pytest.param(
            [a_class(provisioner="kubernetes.io/no-provisioner"), a_volume(zone="a")], ("n1",), id="a volume waits there"
        ),
        pytest.param(
            [a_class(provisioner="kubernetes.io/no-provisioner"), a_volume(zone="a", size="1Gi")], (), id="it is too small"
        ),
        pytest.param(
            [a_class(provisioner="kubernetes.io/no-provisioner"), a_volume(zone="a", claim="x")], (), id="it is another's"
        ),
        pytest.param(
            [a_class(provisioner="kubernetes.io/no-provisioner"), a_volume(zone="a", storage="slow")], (), id="other class"
        ),
    ],
)
def test_delayed_claim(objects: list[Document], fits: tuple[str, ...]) -> None:
    """A claim that waits for its pod goes where a volume waits or can be made."""
    placement = placed([*NODES, a_claim(), *objects], using("data"))
    assert placement.tied == fits
    assert set(placement.filtered.values()) <= {"node(s) didn't find available persistent volumes to bind"}


def test_delayed_claim_that_has_settled() -> None:
    """Once provisioning for a node has begun, the claim goes nowhere else."""
    assert placed([*NODES, a_claim(selected="n2"), a_class()], using("data")).tied == ("n2",)


@pytest.mark.parametrize(("mode", "fits"), [("ReadWriteOncePod", False), ("ReadWriteOnce", True)])
def test_claim_for_a_single_pod(mode: str, fits: bool) -> None:
    """A ReadWriteOncePod claim that a pod uses keeps others away from every node, terminating or not."""
    objects = [*NODES, a_claim(volume="pv", mode=mode), a_volume(), using("data", name="x", on="n1", deleted=True)]
    reasons = set(placed(objects, using("data")).filtered.values())
    text = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
    assert reasons == (set() if fits else {text})


@pytest.mark.parametrize(
    ("kind", "read_only", "fits"),
    [("gcePersistentDisk", True, True), ("gcePersistentDisk", False, False), ("awsElasticBlockStore", True, False)],
)
def test_in_tree_disks(kind: str, read_only: bool, fits: bool) -> None:
    """A disk is shared on a node only where its kind allows it and all only read."""
    identity = "pdName" if kind == "gcePersistentDisk" else "volumeID"
    volumes = [{"name": "v", kind: {identity: "d", "readOnly": read_only}}]
    placement = placed([*NODES, a_pod("x", on="n1", volumes=volumes)], a_pod("p", volumes=volumes))
    assert placement.filtered == ({} if fits else {"n1": "node(s) had no available disk"})


@pytest.mark.parametrize(("limit", "fits"), [(1, False), (2, True), (None, True)])
def test_volume_limits(limit: int | None, fits: bool) -> None:
    """A node attaches no more volumes of a driver than its CSINode says."""
    driver: Document = {"name": "disk.csi", "nodeID": "n1"}
    if limit is not None:
        driver["allocatable"] = {"count": limit}
    objects = [
        *NODES,
        {"kind": "CSINode", "metadata": {"name": "n1"}, "spec": {"drivers": [driver]}},
        a_claim("one", volume="pv1"),
        a_volume("pv1"),
        a_claim("two", volume="pv2"),
        a_volume("pv2"),
        using("one", name="x", on="n1"),
    ]
    assert placed(objects, using("two")).filtered == ({} if fits else {"n1": "node(s) exceed max volume count"})


def test_volume_that_is_attached_already_counts_once() -> None:
    """A second pod with the same volume attaches nothing new."""
    driver = {"name": "disk.csi", "nodeID": "n1", "allocatable": {"count": 1}}
    csi = {"kind": "CSINode", "metadata": {"name": "n1"}, "spec": {"drivers": [driver]}}
    objects = [*NODES, csi, a_claim("one", volume="pv1"), a_volume("pv1"), using("one", name="x", on="n1")]
    assert placed(objects, using("one")).filtered == {}


def test_dump_without_claims_says_nothing_about_them() -> None:
    """Where the source gave no claims at all, a pod is not refused for them."""
    assert placed(NODES, using("data")).tied == ("n1", "n2")


@pytest.mark.parametrize(("selected", "fits"), [("", ("n1", "n2")), ("n2", ("n2",))])
def test_dump_without_storage_classes_says_nothing_about_unbound_claims(selected: str, fits: tuple[str, ...]) -> None:
    """Where the source gave no storage classes, an unbound claim refuses only what its own selected node rules out."""
    assert placed([*NODES, a_claim(selected=selected)], using("data")).tied == fits


def test_volume_that_is_gone() -> None:
    """A claim bound to a volume that does not exist keeps the pod away from every node."""
    placement = placed([*NODES, a_claim(volume="lost"), a_volume("other")], using("data"))
    assert set(placement.filtered.values()) == {'persistentvolume "lost" not found'}


def test_claims_to_come_count_against_the_limit() -> None:
    """A claim that will be provisioned needs a place at the node like a volume that exists."""
    driver = {"name": "disk.csi", "nodeID": "n1", "allocatable": {"count": 1}}
    csi = {"kind": "CSINode", "metadata": {"name": "n1"}, "spec": {"drivers": [driver]}}
    gone = {"kind": "CSINode", "metadata": {"name": "n9"}, "spec": {"drivers": [driver]}}
    objects = [
        *NODES,
        csi,
        gone,
        a_class(),
        a_claim("one", volume="pv1"),
        a_volume("pv1"),
        a_claim("two"),
        using("one", name="x", on="n1"),
    ]
    assert placed(objects, using("two")).filtered == {"n1": "node(s) exceed max volume count"}
    assert placed(objects, using()).filtered == {}


def test_profile_without_volume_plugins_does_not_look_at_volumes() -> None:
    """Disabled volume plugins object to nothing."""
    volume_plugins = {Plugin.VOLUME_BINDING, Plugin.VOLUME_LIMITS, Plugin.VOLUME_RESTRICTIONS, Plugin.VOLUME_ZONE}
    config = SchedulerConfig((SchedulerProfile(filters=FILTERS - volume_plugins),))
    assert placed([*NODES, a_claim(volume="pv"), a_volume(zone="a")], using("data"), config).tied == ("n1", "n2")
