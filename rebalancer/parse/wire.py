"""The fields of Kubernetes objects that are read, as they stand in JSON. Everything else is skipped while decoding.

A ``Raw`` field stays undecoded bytes: it is compared before it is decoded, because siblings share it (``interning``).
Field names are those of the API: https://kubernetes.io/docs/reference/kubernetes-api/
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Raw, Struct

# Ranges that the API server enforces.
Weight = Annotated[int, Meta(ge=1, le=100)]
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Positive32 = Annotated[int, Meta(ge=1, le=2**31 - 1)]
PortNumber = Annotated[int, Meta(ge=0, le=65535)]

Quantity = str | int | float
Amounts = dict[str, Quantity]


class Wire(Struct, frozen=True, gc=False):
    """The base: immutable, and invisible to the garbage collector since it cannot form cycles."""


class Metadata(Wire, frozen=True):
    """An object's ``metadata``."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: Raw = Raw()
    annotations: Raw = Raw()
    creationTimestamp: datetime | None = None
    deletionTimestamp: datetime | None = None
    ownerReferences: Raw = Raw()
    resourceVersion: str = ""
    generation: int = 0


class OwnerReference(Wire, frozen=True):
    """One of ``metadata.ownerReferences``."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    apiVersion: str = ""
    controller: bool | None = None


class Expression(Wire, frozen=True):
    """One of ``matchExpressions`` or ``matchFields``."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class Selector(Wire, frozen=True):
    """A label selector."""

    matchLabels: dict[str, str] | None = None
    matchExpressions: list[Expression] | None = None


class NodeTerm(Wire, frozen=True):
    """One of ``nodeSelectorTerms``."""

    matchExpressions: list[Expression] | None = None
    matchFields: list[Expression] | None = None


class NodeTerms(Wire, frozen=True):
    """A node selector."""

    nodeSelectorTerms: list[NodeTerm] | None = None


class PreferredNode(Wire, frozen=True):
    """A preferred node term with its weight."""

    weight: Weight = 1
    preference: NodeTerm = NodeTerm()


class NodeAffinity(Wire, frozen=True):
    """``affinity.nodeAffinity``."""

    requiredDuringSchedulingIgnoredDuringExecution: NodeTerms | None = None
    preferredDuringSchedulingIgnoredDuringExecution: list[PreferredNode] | None = None


class PodTerm(Wire, frozen=True):
    """A pod affinity term."""

    labelSelector: Selector | None = None
    topologyKey: str = ""
    namespaces: list[str] | None = None
    namespaceSelector: Selector | None = None
    matchLabelKeys: list[str] | None = None
    mismatchLabelKeys: list[str] | None = None


class WeightedPodTerm(Wire, frozen=True):
    """A preferred pod affinity term with its weight."""

    weight: Weight = 1
    podAffinityTerm: PodTerm = PodTerm()


class PodAffinity(Wire, frozen=True):
    """``affinity.podAffinity`` or ``affinity.podAntiAffinity``."""

    requiredDuringSchedulingIgnoredDuringExecution: list[PodTerm] | None = None
    preferredDuringSchedulingIgnoredDuringExecution: list[WeightedPodTerm] | None = None


class Affinity(Wire, frozen=True):
    """``spec.affinity``."""

    nodeAffinity: NodeAffinity | None = None
    podAffinity: PodAffinity | None = None
    podAntiAffinity: PodAffinity | None = None


class TolerationWire(Wire, frozen=True):
    """One of ``spec.tolerations``."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class Spread(Wire, frozen=True):
    """One of ``spec.topologySpreadConstraints``."""

    maxSkew: Positive32 = 1
    topologyKey: str = ""
    whenUnsatisfiable: str = "DoNotSchedule"
    labelSelector: Selector | None = None
    minDomains: Positive32 | None = None
    nodeAffinityPolicy: str | None = None
    nodeTaintsPolicy: str | None = None
    matchLabelKeys: list[str] | None = None


class Requirements(Wire, frozen=True):
    """``resources`` of a container, a pod or a claim."""

    requests: Amounts | None = None
    limits: Amounts | None = None


class Container(Wire, frozen=True):
    """One of ``spec.containers`` or ``spec.initContainers``."""

    name: str = ""
    image: str = ""
    restartPolicy: str | None = None
    resources: Raw = Raw()
    ports: Raw = Raw()


class Port(Wire, frozen=True):
    """One of a container's ``ports``."""

    containerPort: PortNumber = 0
    hostPort: PortNumber = 0
    hostIP: str = ""
    protocol: str = "TCP"


class ClaimVolume(Wire, frozen=True):
    """A volume's ``persistentVolumeClaim``."""

    claimName: str = ""
    readOnly: bool = False


class DiskVolume(Wire, frozen=True):
    """A volume's in-tree disk, of whatever kind."""

    pdName: str = ""
    volumeID: str = ""
    diskName: str = ""
    iqn: str = ""
    lun: int = 0
    targetPortal: str = ""
    image: str = ""
    pool: str = ""
    monitors: list[str] | None = None
    readOnly: bool = False


class Present(Wire, frozen=True):
    """An object whose presence is all that counts."""


class Volume(Wire, frozen=True):
    """One of ``spec.volumes``."""

    name: str = ""
    emptyDir: Present | None = None
    hostPath: Present | None = None
    ephemeral: Present | None = None
    persistentVolumeClaim: ClaimVolume | None = None
    gcePersistentDisk: DiskVolume | None = None
    awsElasticBlockStore: DiskVolume | None = None
    rbd: DiskVolume | None = None
    iscsi: DiskVolume | None = None


class PodSpec(Wire, frozen=True):
    """A pod's ``spec``."""

    nodeName: str = ""
    schedulerName: str = "default-scheduler"
    priority: Int32 | None = None
    preemptionPolicy: str | None = None
    terminationGracePeriodSeconds: int | None = None
    hostNetwork: bool | None = None
    nodeSelector: Raw = Raw()
    affinity: Raw = Raw()
    tolerations: Raw = Raw()
    topologySpreadConstraints: Raw = Raw()
    overhead: Raw = Raw()
    resources: Raw = Raw()
    resourceClaims: Raw = Raw()
    schedulingGates: list[Present] | None = None
    containers: list[Container] | None = None
    initContainers: list[Container] | None = None
    volumes: list[Volume] | None = None


class Waiting(Wire, frozen=True):
    """A container that waits."""

    reason: str = ""


class Terminated(Wire, frozen=True):
    """A container that has ended."""

    reason: str = ""
    exitCode: Int32 = 0


class State(Wire, frozen=True):
    """``state`` or ``lastState`` of a container."""

    waiting: Waiting | None = None
    terminated: Terminated | None = None


class ContainerStatus(Wire, frozen=True):
    """One of ``containerStatuses``."""

    name: str = ""
    restartCount: Int32 = 0
    state: State | None = None
    lastState: State | None = None
    resources: Raw = Raw()
    allocatedResources: Raw = Raw()


class ConditionWire(Wire, frozen=True):
    """One of ``status.conditions``."""

    type: str = ""
    status: str = ""
    reason: str = ""
    lastTransitionTime: datetime | None = None


class PodStatus(Wire, frozen=True):
    """A pod's ``status``."""

    phase: str = "Pending"
    reason: str = ""
    qosClass: str = ""
    nominatedNodeName: str = ""
    startTime: datetime | None = None
    conditions: list[ConditionWire] | None = None
    containerStatuses: list[ContainerStatus] | None = None
    initContainerStatuses: list[ContainerStatus] | None = None
    ephemeralContainerStatuses: list[ContainerStatus] | None = None


class PodWire(Wire, frozen=True):
    """A pod."""

    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class TaintWire(Wire, frozen=True):
    """One of a node's ``spec.taints``."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Wire, frozen=True):
    """A node's ``spec``."""

    taints: list[TaintWire] | None = None
    unschedulable: bool = False


class Image(Wire, frozen=True):
    """One of a node's ``status.images``."""

    names: list[str] | None = None
    sizeBytes: int = 0


class NodeStatus(Wire, frozen=True):
    """A node's ``status``."""

    allocatable: Amounts | None = None
    capacity: Amounts | None = None
    conditions: list[ConditionWire] | None = None
    images: list[Image] | None = None


class NodeWire(Wire, frozen=True):
    """A node."""

    metadata: Metadata = Metadata()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class BudgetSpec(Wire, frozen=True):
    """A budget's ``spec``."""

    selector: Selector | None = None
    minAvailable: int | str | None = None
    maxUnavailable: int | str | None = None
    unhealthyPodEvictionPolicy: str | None = None


class BudgetStatus(Wire, frozen=True):
    """A budget's ``status``."""

    observedGeneration: int = 0
    disruptionsAllowed: int = 0
    currentHealthy: int = 0
    desiredHealthy: int = 0
    expectedPods: int = 0
    disruptedPods: dict[str, datetime] | None = None


class BudgetWire(Wire, frozen=True):
    """A PodDisruptionBudget."""

    metadata: Metadata = Metadata()
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()


class NamedWire(Wire, frozen=True):
    """Any object of which only the metadata counts."""

    metadata: Metadata = Metadata()


class PriorityClassWire(Wire, frozen=True):
    """A priority class."""

    metadata: Metadata = Metadata()
    value: Int32 = 0
    globalDefault: bool = False


class ServiceSpec(Wire, frozen=True):
    """A service's ``spec``."""

    selector: dict[str, str] | None = None


class ServiceWire(Wire, frozen=True):
    """A service."""

    metadata: Metadata = Metadata()
    spec: ServiceSpec = ServiceSpec()


class RollingUpdate(Wire, frozen=True):
    """``spec.strategy.rollingUpdate`` of a Deployment."""

    maxSurge: int | str | None = None
    maxUnavailable: int | str | None = None


class Strategy(Wire, frozen=True):
    """``spec.strategy`` of a Deployment."""

    type: str = ""
    rollingUpdate: RollingUpdate | None = None


class WorkloadSpec(Wire, frozen=True):
    """``spec`` of whatever workload."""

    replicas: int | None = None
    parallelism: int | None = None
    selector: Raw = Raw()
    strategy: Strategy | None = None
    paused: bool = False


class WorkloadStatus(Wire, frozen=True):
    """``status`` of whatever workload."""

    replicas: int = 0
    readyReplicas: int = 0
    updatedReplicas: int = 0
    availableReplicas: int = 0
    observedGeneration: int = 0
    currentRevision: str = ""
    updateRevision: str = ""
    ready: int | None = None
    desiredNumberScheduled: int | None = None
    numberReady: int | None = None
    updatedNumberScheduled: int | None = None
    numberAvailable: int | None = None


class WorkloadWire(Wire, frozen=True):
    """A workload of whatever kind."""

    metadata: Metadata = Metadata()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class VolumeNodeAffinity(Wire, frozen=True):
    """``spec.nodeAffinity`` of a volume."""

    required: NodeTerms | None = None


class CsiSource(Wire, frozen=True):
    """``spec.csi`` of a volume."""

    driver: str = ""
    volumeHandle: str = ""


class ClaimReference(Wire, frozen=True):
    """``spec.claimRef`` of a volume."""

    namespace: str = ""
    name: str = ""


class PersistentVolumeSpec(Wire, frozen=True):
    """A volume's ``spec``."""

    nodeAffinity: VolumeNodeAffinity | None = None
    csi: CsiSource | None = None
    gcePersistentDisk: DiskVolume | None = None
    awsElasticBlockStore: DiskVolume | None = None
    azureDisk: DiskVolume | None = None
    storageClassName: str = ""
    accessModes: list[str] | None = None
    capacity: Amounts | None = None
    claimRef: ClaimReference | None = None


class PersistentVolumeWire(Wire, frozen=True):
    """A persistent volume."""

    metadata: Metadata = Metadata()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()


class ClaimSpec(Wire, frozen=True):
    """A claim's ``spec``."""

    volumeName: str = ""
    storageClassName: str | None = None
    accessModes: list[str] | None = None
    resources: Requirements | None = None


class ClaimWire(Wire, frozen=True):
    """A persistent volume claim."""

    metadata: Metadata = Metadata()
    spec: ClaimSpec = ClaimSpec()


class TopologyExpression(Wire, frozen=True):
    """One of ``matchLabelExpressions``."""

    key: str = ""
    values: list[str] | None = None


class TopologyTerm(Wire, frozen=True):
    """One of ``allowedTopologies``."""

    matchLabelExpressions: list[TopologyExpression] | None = None


class StorageClassWire(Wire, frozen=True):
    """A storage class."""

    metadata: Metadata = Metadata()
    provisioner: str = ""
    volumeBindingMode: str | None = None
    allowedTopologies: list[TopologyTerm] | None = None


class Allocatable(Wire, frozen=True):
    """``allocatable`` of a CSI driver."""

    count: Int32 | None = None


class CsiDriver(Wire, frozen=True):
    """One of a CSI node's ``spec.drivers``."""

    name: str = ""
    allocatable: Allocatable | None = None


class CsiNodeSpec(Wire, frozen=True):
    """A CSI node's ``spec``."""

    drivers: list[CsiDriver] | None = None


class CsiNodeWire(Wire, frozen=True):
    """A CSI node."""

    metadata: Metadata = Metadata()
    spec: CsiNodeSpec = CsiNodeSpec()
