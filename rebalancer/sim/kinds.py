"""The kinds that the embedded cluster serves: names, scope, subresources, verbs.

Names and verbs are those of Kubernetes 1.36: https://kubernetes.io/docs/reference/kubernetes-api/
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
STATUS_VERBS = ("get", "patch", "update")


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One kind of object and how it is served.

    group, version, kind, plural, singular: its names.
    namespaced: whether objects live in a namespace.
    short_names, categories: what kubectl may type instead.
    subresources: served below the object, in discovery order.
    verbs: what may be done; only ``create`` for kinds that are questions rather than objects.
    stored_as: the resource whose objects these are, seen through another version; empty for itself.
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    stored_as: str = ""

    @property
    def resource(self) -> str:
        """The resource with its group, as messages name it: ``pods``, ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """Group and version as in ``apiVersion``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def storage(self) -> str:
        """The name under which the store keeps the objects."""
        return self.stored_as or self.resource

    @property
    def asked_only(self) -> bool:
        """Whether this is a question that is answered and not stored."""
        return self.verbs == ("create",)


@dataclass(frozen=True, slots=True)
class Subresource:
    """What a subresource takes and gives: group, version and kind (empty: those of the parent), and its verbs."""

    group: str
    version: str
    kind: str
    verbs: tuple[str, ...]


SCALE = Subresource("autoscaling", "v1", "Scale", STATUS_VERBS)
SUBRESOURCES: Mapping[str, Subresource] = MappingProxyType(
    {
        "status": Subresource("", "", "", STATUS_VERBS),
        "ephemeralcontainers": Subresource("", "", "", STATUS_VERBS),
        "resize": Subresource("", "", "", STATUS_VERBS),
        "scale": SCALE,
        "binding": Subresource("", "", "Binding", ("create",)),
        "eviction": Subresource("policy", "v1", "Eviction", ("create",)),
        "log": Subresource("", "", "", ("get",)),
        "token": Subresource("authentication.k8s.io", "v1", "TokenRequest", ("create",)),
        "finalize": Subresource("", "", "", ("update",)),
    }
)

_ALL = ("all",)
_READ = ("get", "list")
_CREATE = ("create",)


def _core(kind: str, plural: str, **more: object) -> Kind:
    return _kind("", "v1", kind, plural, **more)


def _kind(group: str, version: str, kind: str, plural: str, **more: object) -> Kind:
    return Kind(group, version, kind, plural, kind.lower(), **more)  # type: ignore[arg-type]


KINDS: tuple[Kind, ...] = (
    _core("Binding", "bindings", verbs=_CREATE),
    _core("ComponentStatus", "componentstatuses", namespaced=False, short_names=("cs",), verbs=_READ),
    _core("ConfigMap", "configmaps", short_names=("cm",)),
    _core("Endpoints", "endpoints", short_names=("ep",)),
    _core("Event", "events", short_names=("ev",)),
    _core("LimitRange", "limitranges", short_names=("limits",)),
    _core(
        "Namespace",
        "namespaces",
        namespaced=False,
        short_names=("ns",),
        subresources=("finalize", "status"),
        verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    ),
    _core("Node", "nodes", namespaced=False, short_names=("no",), subresources=("status",)),
    _core("PersistentVolumeClaim", "persistentvolumeclaims", short_names=("pvc",), subresources=("status",)),
    _core("PersistentVolume", "persistentvolumes", namespaced=False, short_names=("pv",), subresources=("status",)),
    _core(
        "Pod",
        "pods",
        short_names=("po",),
        categories=_ALL,
        subresources=("binding", "ephemeralcontainers", "eviction", "log", "resize", "status"),
    ),
    _core("PodTemplate", "podtemplates"),
    _core(
        "ReplicationController",
        "replicationcontrollers",
        short_names=("rc",),
        categories=_ALL,
        subresources=("scale", "status"),
    ),
    _core("ResourceQuota", "resourcequotas", short_names=("quota",), subresources=("status",)),
    _core("Secret", "secrets"),
    _core("ServiceAccount", "serviceaccounts", short_names=("sa",), subresources=("token",)),
    _core("Service", "services", short_names=("svc",), categories=_ALL, subresources=("status",)),
    _kind("apps", "v1", "ControllerRevision", "controllerrevisions"),
    _kind("apps", "v1", "DaemonSet", "daemonsets", short_names=("ds",), categories=_ALL, subresources=("status",)),
    _kind(
        "apps",
        "v1",
        "Deployment",
        "deployments",
        short_names=("deploy",),
        categories=_ALL,
        subresources=("scale", "status"),
    ),
    _kind("apps", "v1", "ReplicaSet", "replicasets", short_names=("rs",), categories=_ALL, subresources=("scale", "status")),
    _kind(
        "apps",
        "v1",
        "StatefulSet",
        "statefulsets",
        short_names=("sts",),
        categories=_ALL,
        subresources=("scale", "status"),
    ),
    _kind("events.k8s.io", "v1", "Event", "events", short_names=("ev",), stored_as="events"),
    _kind("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False, verbs=_CREATE),
    _kind("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False, verbs=_CREATE),
    _kind("authorization.k8s.io", "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews", verbs=_CREATE),
    _kind(
        "authorization.k8s.io",
        "v1",
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        namespaced=False,
        verbs=_CREATE,
    ),
    _kind("authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", namespaced=False, verbs=_CREATE),
    _kind("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False, verbs=_CREATE),
    _kind("batch", "v1", "CronJob", "cronjobs", short_names=("cj",), categories=_ALL, subresources=("status",)),
    _kind("batch", "v1", "Job", "jobs", categories=_ALL, subresources=("status",)),
    _kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", short_names=("pdb",), subresources=("status",)),
    _kind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False),
    _kind("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False),
    _kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings"),
    _kind("rbac.authorization.k8s.io", "v1", "Role", "roles"),
    _kind("storage.k8s.io", "v1", "CSIDriver", "csidrivers", namespaced=False),
    _kind("storage.k8s.io", "v1", "CSINode", "csinodes", namespaced=False),
    _kind("storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities"),
    _kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False, short_names=("sc",)),
    _kind("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", namespaced=False, subresources=("status",)),
    _kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False, short_names=("pc",)),
    _kind("coordination.k8s.io", "v1", "Lease", "leases"),
    _kind("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", namespaced=False),
    _kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"),
)

BY_PATH: Mapping[tuple[str, str, str], Kind] = MappingProxyType({(k.group, k.version, k.plural): k for k in KINDS})
BY_KIND: Mapping[tuple[str, str], Kind] = MappingProxyType({(k.api_version, k.kind): k for k in KINDS})
GROUP_VERSIONS: tuple[tuple[str, str], ...] = tuple(dict.fromkeys((k.group, k.version) for k in KINDS))
"""Groups in the order in which discovery lists them."""


def kind_of(api_version: str, kind: str) -> Kind | None:
    """Return the served kind with these names, or None."""
    return BY_KIND.get((api_version, kind))


def kind_named(plural: str, group: str = "") -> Kind:
    """Return the served kind of a resource. Raises KeyError."""
    for kind in KINDS:
        if kind.plural == plural and kind.group == group:
            return kind
    raise KeyError(plural)


POD = kind_named("pods")
NODE = kind_named("nodes")
NAMESPACE = kind_named("namespaces")
EVENT = kind_named("events")
CLAIM = kind_named("persistentvolumeclaims")
SERVICE_ACCOUNT = kind_named("serviceaccounts")
REPLICATION_CONTROLLER = kind_named("replicationcontrollers")
DEPLOYMENT = kind_named("deployments", "apps")
REPLICA_SET = kind_named("replicasets", "apps")
STATEFUL_SET = kind_named("statefulsets", "apps")
DAEMON_SET = kind_named("daemonsets", "apps")
REVISION = kind_named("controllerrevisions", "apps")
JOB = kind_named("jobs", "batch")
CRON_JOB = kind_named("cronjobs", "batch")
BUDGET = kind_named("poddisruptionbudgets", "policy")
PRIORITY_CLASS = kind_named("priorityclasses", "scheduling.k8s.io")
LEASE = kind_named("leases", "coordination.k8s.io")
