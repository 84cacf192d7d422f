"""Budgets, namespaces, priority classes, services, workloads, volumes, claims and storage classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeVar

import msgspec

from rebalancer.errors import ParseError
from rebalancer.model.budget import Budget
from rebalancer.model.selector import NOTHING, LabelSelector, NodeSelector, NodeSelectorTerm
from rebalancer.model.volume import PersistentVolume, PersistentVolumeClaim, StorageClass
from rebalancer.model.workload import Namespace, PriorityClass, Service, Workload
from rebalancer.parse import wire
from rebalancer.parse.decoding import decode, decode_part, labels, owners, present, require_name, seconds
from rebalancer.parse.interning import Interner
from rebalancer.parse.requests import amounts
from rebalancer.parse.selector import from_labels, from_wire, node_selector, requirement

T = TypeVar("T")
W = TypeVar("W", bound=wire.Wire)

_BUDGET = msgspec.json.Decoder(wire.BudgetWire)
_NAMED = msgspec.json.Decoder(wire.NamedWire)
_PRIORITY_CLASS = msgspec.json.Decoder(wire.PriorityClassWire)
_SERVICE = msgspec.json.Decoder(wire.ServiceWire)
_WORKLOAD = msgspec.json.Decoder(wire.WorkloadWire)
_VOLUME = msgspec.json.Decoder(wire.PersistentVolumeWire)
_CLAIM = msgspec.json.Decoder(wire.ClaimWire)
_STORAGE_CLASS = msgspec.json.Decoder(wire.StorageClassWire)
_SELECTOR = msgspec.json.Decoder(wire.Selector)
_STRINGS = msgspec.json.Decoder(dict[str, str])

_NO_TIMES: Mapping[str, float] = MappingProxyType({})


def _named(kind: str, metadata: wire.Metadata, build: Callable[[], T]) -> T:
    """Run a builder; whatever is wrong is reported with the object's name."""
    where = f"{kind} {metadata.namespace}/{metadata.name}" if metadata.namespace else f"{kind} {metadata.name}"
    try:
        require_name(metadata.name)
        return build()
    except (ParseError, ValueError, OverflowError) as error:
        raise ParseError(f"{where}: {error}") from error


def parse_budget(raw: bytes | msgspec.Raw, interner: Interner) -> Budget:
    """Parse one PodDisruptionBudget. Raises ParseError."""
    budget = decode(raw, _BUDGET, "PodDisruptionBudget")
    metadata, spec, status = budget.metadata, budget.spec, budget.status

    def build() -> Budget:
        times = {name: seconds(moment) or 0.0 for name, moment in sorted((status.disruptedPods or {}).items())}
        return Budget(
            namespace=interner.text(metadata.namespace),
            name=metadata.name,
            uid=metadata.uid or f"{metadata.namespace}/{metadata.name}",
            selector=from_wire(spec.selector),
            generation=metadata.generation,
            observed_generation=status.observedGeneration,
            disruptions_allowed=status.disruptionsAllowed,
            current_healthy=status.currentHealthy,
            desired_healthy=status.desiredHealthy,
            expected_pods=status.expectedPods,
            disrupted=times or _NO_TIMES,
            always_allow_unhealthy=spec.unhealthyPodEvictionPolicy == "AlwaysAllow",
            min_available=spec.minAvailable,
            max_unavailable=spec.maxUnavailable,
            resource_version=metadata.resourceVersion,
        )

    return _named("PodDisruptionBudget", metadata, build)


def parse_namespace(raw: bytes | msgspec.Raw, interner: Interner) -> Namespace:
    """Parse one namespace. Raises ParseError."""
    metadata = decode(raw, _NAMED, "Namespace").metadata
    return _named("Namespace", metadata, lambda: Namespace(interner.text(metadata.name), labels(metadata.labels)))


def parse_priority_class(raw: bytes | msgspec.Raw, interner: Interner) -> PriorityClass:
    """Parse one priority class. Raises ParseError."""
    found = decode(raw, _PRIORITY_CLASS, "PriorityClass")
    return _named("PriorityClass", found.metadata, lambda: PriorityClass(found.metadata.name, found.value, found.globalDefault))


def parse_service(raw: bytes | msgspec.Raw, interner: Interner) -> Service:
    """Parse one service. Raises ParseError."""
    found = decode(raw, _SERVICE, "Service")
    metadata = found.metadata
    return _named(
        "Service",
        metadata,
        lambda: Service(interner.text(metadata.namespace), metadata.name, dict(sorted((found.spec.selector or {}).items()))),
    )


def _workload(kind: str) -> Callable[[bytes | msgspec.Raw, Interner], Workload]:
    def parse(raw: bytes | msgspec.Raw, interner: Interner) -> Workload:
        found = decode(raw, _WORKLOAD, kind)
        metadata, spec, status = found.metadata, found.spec, found.status
        wanted = spec.parallelism if kind == "Job" else status.desiredNumberScheduled if kind == "DaemonSet" else spec.replicas

        def selector() -> LabelSelector:
            text = present(spec.selector)
            if not text:
                return NOTHING
            # A ReplicationController's selector is a plain map of labels.
            if kind == "ReplicationController":
                plain: dict[str, str] = decode_part(text, _STRINGS, "spec.selector")
                return from_labels(plain)
            return from_wire(decode_part(text, _SELECTOR, "spec.selector"))

        def build() -> Workload:
            references = owners(metadata.ownerReferences, metadata.namespace)
            rolling = spec.strategy.rollingUpdate if spec.strategy else None
            daemons = kind == "DaemonSet"
            return Workload(
                kind=kind,
                namespace=interner.text(metadata.namespace),
                name=metadata.name,
                uid=metadata.uid or f"{kind}/{metadata.namespace}/{metadata.name}",
                selector=selector(),
                replicas=1 if wanted is None else wanted,
                status_replicas=status.replicas,
                ready_replicas=(status.numberReady or 0) if daemons else status.readyReplicas or status.ready or 0,
                updated_replicas=(status.updatedNumberScheduled or 0) if daemons else status.updatedReplicas,
                available_replicas=(status.numberAvailable or 0) if daemons else status.availableReplicas,
                generation=metadata.generation,
                observed_generation=status.observedGeneration,
                owner=next((owner for owner in references if owner.controller), None),
                current_revision=status.currentRevision,
                update_revision=status.updateRevision,
                strategy=spec.strategy.type if spec.strategy else "",
                max_surge=rolling.maxSurge if rolling else None,
                max_unavailable=rolling.maxUnavailable if rolling else None,
                paused=spec.paused,
            )

        return _named(kind, metadata, build)

    parse.__doc__ = f"Parse one {kind}. Raises ParseError."
    return parse


parse_deployment = _workload("Deployment")
parse_replica_set = _workload("ReplicaSet")
parse_replication_controller = _workload("ReplicationController")
parse_stateful_set = _workload("StatefulSet")
parse_daemon_set = _workload("DaemonSet")
parse_job = _workload("Job")


def parse_volume(raw: bytes | msgspec.Raw, interner: Interner) -> PersistentVolume:
    """Parse one persistent volume. Raises ParseError."""
    found = decode(raw, _VOLUME, "PersistentVolume")
    metadata, spec = found.metadata, found.spec

    def build() -> PersistentVolume:
        required = spec.nodeAffinity.required if spec.nodeAffinity else None
        driver, handle = "", ""
        if spec.csi:
            driver, handle = spec.csi.driver, spec.csi.volumeHandle
        elif spec.gcePersistentDisk:
            driver, handle = "kubernetes.io/gce-pd", spec.gcePersistentDisk.pdName
        elif spec.awsElasticBlockStore:
            driver, handle = "kubernetes.io/aws-ebs", spec.awsElasticBlockStore.volumeID
        elif spec.azureDisk:
            driver, handle = "kubernetes.io/azure-disk", spec.azureDisk.diskName
        return PersistentVolume(
            name=metadata.name,
            node_affinity=None if required is None else node_selector(required),
            labels=labels(metadata.labels),
            driver=driver,
            handle=handle,
            storage_class=spec.storageClassName,
            access_modes=tuple(spec.accessModes or ()),
            capacity_bytes=amounts(spec.capacity).get("storage", 0),
            claim=f"{spec.claimRef.namespace}/{spec.claimRef.name}" if spec.claimRef else "",
        )

    return _named("PersistentVolume", metadata, build)


def parse_claim(raw: bytes | msgspec.Raw, interner: Interner) -> PersistentVolumeClaim:
    """Parse one persistent volume claim. Raises ParseError."""
    found = decode(raw, _CLAIM, "PersistentVolumeClaim")
    metadata, spec = found.metadata, found.spec

    def build() -> PersistentVolumeClaim:
        notes = present(metadata.annotations)
        selected = (
            decode_part(notes, _STRINGS, "metadata.annotations").get("volume.kubernetes.io/selected-node", "") if notes else ""
        )
        return PersistentVolumeClaim(
            namespace=interner.text(metadata.namespace),
            name=metadata.name,
            volume=spec.volumeName,
            storage_class=spec.storageClassName,
            access_modes=tuple(spec.accessModes or ()),
            request_bytes=amounts(spec.resources.requests).get("storage", 0) if spec.resources else 0,
            selected_node=selected,
        )

    return _named("PersistentVolumeClaim", metadata, build)


def parse_storage_class(raw: bytes | msgspec.Raw, interner: Interner) -> StorageClass:
    """Parse one storage class. Raises ParseError."""
    found = decode(raw, _STORAGE_CLASS, "StorageClass")

    def build() -> StorageClass:
        allowed = None
        if found.allowedTopologies:
            allowed = NodeSelector(
                tuple(
                    NodeSelectorTerm(
                        tuple(requirement(each.key, "In", each.values or ()) for each in term.matchLabelExpressions or ())
                    )
                    for term in found.allowedTopologies
                )
            )
        return StorageClass(
            name=found.metadata.name,
            provisioner=found.provisioner,
            delayed=found.volumeBindingMode == "WaitForFirstConsumer",
            allowed_topologies=allowed,
        )

    return _named("StorageClass", found.metadata, build)
