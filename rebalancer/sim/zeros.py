"""Fields that Go's encoder always writes, and fields that it leaves out when they are empty.

The published schema does not tell a pointer from a value, so what is always written is listed here by type.
Source: the ``json`` tags in k8s.io/api.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rebalancer.sim.schema import Field

_NODE_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)

ALWAYS: dict[str, dict[str, Any]] = {
    "core.v1.Pod": {"metadata": {}, "spec": "core.v1.PodSpec", "status": {}},
    "core.v1.PodSpec": {"containers": None},
    "core.v1.PodTemplateSpec": {"metadata": {}, "spec": "core.v1.PodSpec"},
    "core.v1.Container": {"name": "", "resources": {}},
    "core.v1.EphemeralContainer": {"name": "", "resources": {}},
    "core.v1.ContainerPort": {"containerPort": 0},
    "core.v1.ContainerStatus": {
        "name": "",
        "state": {},
        "lastState": {},
        "ready": False,
        "restartCount": 0,
        "image": "",
        "imageID": "",
    },
    "core.v1.PodCondition": {"lastProbeTime": None, "lastTransitionTime": None},
    "core.v1.ContainerStateRunning": {"startedAt": None},
    "core.v1.ContainerStateTerminated": {"exitCode": 0, "startedAt": None, "finishedAt": None},
    "core.v1.Node": {"metadata": {}, "spec": {}, "status": "core.v1.NodeStatus"},
    "core.v1.NodeStatus": {"daemonEndpoints": "core.v1.NodeDaemonEndpoints", "nodeInfo": "core.v1.NodeSystemInfo"},
    "core.v1.NodeDaemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
    "core.v1.NodeSystemInfo": dict.fromkeys(_NODE_INFO, ""),
    "core.v1.NodeCondition": {"lastHeartbeatTime": None, "lastTransitionTime": None},
    "core.v1.Namespace": {"metadata": {}, "spec": {}, "status": {}},
    "core.v1.Service": {"metadata": {}, "spec": {}, "status": {"loadBalancer": {}}},
    "core.v1.ServiceStatus": {"loadBalancer": {}},
    "core.v1.ServicePort": {"port": 0, "targetPort": 0},
    "core.v1.PersistentVolume": {"metadata": {}, "spec": {}, "status": {}},
    "core.v1.PersistentVolumeClaim": {"metadata": {}, "spec": {"resources": {}}, "status": {}},
    "core.v1.PersistentVolumeClaimSpec": {"resources": {}},
    "core.v1.Event": {
        "metadata": {},
        "involvedObject": {},
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "eventTime": None,
        "reportingComponent": "",
        "reportingInstance": "",
    },
    "core.v1.ReplicationController": {"metadata": {}, "spec": {}, "status": {"replicas": 0}},
    "core.v1.ReplicationControllerStatus": {"replicas": 0},
    "apps.v1.Deployment": {"metadata": {}, "spec": "apps.v1.DeploymentSpec", "status": {}},
    "apps.v1.DeploymentSpec": {"selector": None, "template": "core.v1.PodTemplateSpec", "strategy": {}},
    "apps.v1.DeploymentCondition": {"lastUpdateTime": None, "lastTransitionTime": None},
    "apps.v1.ReplicaSet": {"metadata": {}, "spec": "apps.v1.ReplicaSetSpec", "status": {"replicas": 0}},
    "apps.v1.ReplicaSetSpec": {"selector": None, "template": "core.v1.PodTemplateSpec"},
    "apps.v1.ReplicaSetStatus": {"replicas": 0},
    "apps.v1.StatefulSet": {"metadata": {}, "spec": "apps.v1.StatefulSetSpec", "status": "apps.v1.StatefulSetStatus"},
    "apps.v1.StatefulSetSpec": {
        "selector": None,
        "template": "core.v1.PodTemplateSpec",
        "serviceName": "",
        "updateStrategy": {},
    },
    "apps.v1.StatefulSetStatus": {"replicas": 0, "availableReplicas": 0},
    "apps.v1.DaemonSet": {"metadata": {}, "spec": "apps.v1.DaemonSetSpec", "status": "apps.v1.DaemonSetStatus"},
    "apps.v1.DaemonSetSpec": {"selector": None, "template": "core.v1.PodTemplateSpec", "updateStrategy": {}},
    "apps.v1.DaemonSetStatus": {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    },
    "apps.v1.ControllerRevision": {"metadata": {}, "revision": 0},
    "batch.v1.Job": {"metadata": {}, "spec": {"template": {"metadata": {}, "spec": {"containers": None}}}, "status": {}},
    "batch.v1.JobSpec": {"template": "core.v1.PodTemplateSpec"},
    "batch.v1.CronJob": {"metadata": {}, "spec": {}, "status": {}},
    "batch.v1.JobTemplateSpec": {"metadata": {}, "spec": "batch.v1.JobSpec"},
    "policy.v1.PodDisruptionBudget": {"metadata": {}, "spec": {}, "status": "policy.v1.PodDisruptionBudgetStatus"},
    "policy.v1.PodDisruptionBudgetStatus": {
        "disruptionsAllowed": 0,
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "expectedPods": 0,
    },
    "coordination.v1.Lease": {"metadata": {}, "spec": {}},
    "scheduling.v1.PriorityClass": {"metadata": {}, "value": 0},
    "storage.v1.StorageClass": {"metadata": {}, "provisioner": ""},
    "rbac.v1.Role": {"metadata": {}, "rules": None},
    "rbac.v1.ClusterRole": {"metadata": {}, "rules": None},
    "rbac.v1.RoleBinding": {"metadata": {}, "roleRef": {}},
    "rbac.v1.ClusterRoleBinding": {"metadata": {}, "roleRef": {}},
    "rbac.v1.PolicyRule": {"verbs": None},
    "meta.v1.Condition": {"lastTransitionTime": None, "reason": "", "message": ""},
}

_VALUES_NOT_POINTERS = frozenset(
    {
        "hostNetwork",
        "hostPID",
        "hostIPC",
        "unschedulable",
        "paused",
        "readOnly",
        "tty",
        "stdin",
        "stdinOnce",
        "publishNotReadyAddresses",
        "globalDefault",
        "minReadySeconds",
        "hostPort",
        "nodePort",
        "initialDelaySeconds",
        "deprecatedCount",
        "count",
    }
)
_POINTERS_IN_STATUS = frozenset({"collisionCount", "terminating", "ready", "started", "terminatingReplicas"})
_TEXT_POINTERS = frozenset({"storageClassName", "preemptionPolicy", "ingressClassName", "resourceClaimName"})


def omitted(type_name: str, name: str, described: Field, value: Any) -> bool:
    """Say whether the encoder leaves the field out because it is empty."""
    kind = described.type
    if kind[0] in "[{":
        return not value and not described.required
    if kind == "string":
        return value == "" and not described.required and name not in _TEXT_POINTERS
    if value is False or (value == 0 and kind in {"int32", "int64", "integer"}):
        if described.required:
            return False
        if type_name.endswith("Status"):
            return name not in _POINTERS_IN_STATUS
        return name in _VALUES_NOT_POINTERS
    return False


def fill(type_name: str, value: dict[str, Any]) -> None:
    """Add the fields that the encoder always writes."""
    for name, zero in ALWAYS.get(type_name, {}).items():
        if name not in value:
            value[name] = zero_of(zero)


def zero_of(zero: Any) -> Any:
    """Return a fresh zero value: a type's own zero for its name, a copy for the rest."""
    if isinstance(zero, str) and zero in ALWAYS:
        built: dict[str, Any] = {}
        fill(zero, built)
        return built
    if isinstance(zero, dict):
        return {name: zero_of(item) for name, item in zero.items()}
    return zero


def zero_object(type_name: str) -> dict[str, Any]:
    """Return the zero value of a type, as a bookmark carries it."""
    built: dict[str, Any] = {}
    fill(type_name, built)
    return built
