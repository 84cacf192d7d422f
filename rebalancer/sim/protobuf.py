"""Bodies in Kubernetes' protobuf encoding, which kubectl uses for some of its requests, as JSON values.

Only decoding, and only types that kubectl sends so; answers are always JSON, which such clients accept too. A status is
passed over: on the requests concerned the server disregards it.
Source of the field numbers: the generated.proto files of k8s.io/api and k8s.io/apimachinery.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from rebalancer.sim.moments import stamp
from rebalancer.sim.problems import ApiProblem, bad_request
from rebalancer.sim.schema import Field, fields_of

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\0"
_OBJECT = "metadata spec status"
_NUMBERED: dict[str, str] = {
    "meta.v1.ObjectMeta": (
        "name generateName namespace selfLink uid resourceVersion generation creationTimestamp deletionTimestamp "
        "deletionGracePeriodSeconds labels annotations ownerReferences finalizers - - managedFields"
    ),
    "meta.v1.OwnerReference": "kind - name uid apiVersion controller blockOwnerDeletion",
    "meta.v1.LabelSelector": "matchLabels matchExpressions",
    "meta.v1.LabelSelectorRequirement": "key operator values",
    "meta.v1.DeleteOptions": "gracePeriodSeconds preconditions orphanDependents propagationPolicy dryRun",
    "meta.v1.Preconditions": "uid resourceVersion",
    "core.v1.ConfigMap": "metadata data binaryData immutable",
    "core.v1.Secret": "metadata data type stringData immutable",
    "core.v1.Namespace": _OBJECT,
    "core.v1.NamespaceSpec": "finalizers",
    "core.v1.NamespaceStatus": "phase conditions",
    "core.v1.ServiceAccount": "metadata secrets imagePullSecrets automountServiceAccountToken",
    "core.v1.LocalObjectReference": "name",
    "core.v1.ResourceQuota": _OBJECT,
    "core.v1.ResourceQuotaSpec": "hard scopes scopeSelector",
    "core.v1.Service": _OBJECT,
    "core.v1.ServiceSpec": (
        "ports selector clusterIP type externalIPs - sessionAffinity loadBalancerIP loadBalancerSourceRanges externalName"
    ),
    "core.v1.ServicePort": "name protocol port targetPort nodePort appProtocol",
    "core.v1.PodTemplateSpec": "metadata spec",
    "core.v1.PodSpec": (
        "volumes containers restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy nodeSelector "
        "serviceAccountName serviceAccount nodeName hostNetwork hostPID hostIPC securityContext imagePullSecrets hostname "
        "subdomain affinity schedulerName initContainers automountServiceAccountToken tolerations hostAliases "
        "priorityClassName priority"
    ),
    "core.v1.Container": (
        "name image command args workingDir ports env resources volumeMounts livenessProbe readinessProbe lifecycle "
        "terminationMessagePath imagePullPolicy securityContext stdin stdinOnce tty envFrom terminationMessagePolicy"
    ),
    "core.v1.ContainerPort": "name hostPort containerPort protocol hostIP",
    "core.v1.EnvVar": "name value valueFrom",
    "core.v1.ResourceRequirements": "limits requests claims",
    "core.v1.Toleration": "key operator value effect tolerationSeconds",
    "apps.v1.Deployment": _OBJECT,
    "apps.v1.DeploymentSpec": (
        "replicas selector template strategy minReadySeconds revisionHistoryLimit paused - progressDeadlineSeconds"
    ),
    "apps.v1.DeploymentStrategy": "type rollingUpdate",
    "apps.v1.RollingUpdateDeployment": "maxUnavailable maxSurge",
    "batch.v1.Job": _OBJECT,
    "batch.v1.JobSpec": (
        "parallelism completions activeDeadlineSeconds selector manualSelector template backoffLimit ttlSecondsAfterFinished"
    ),
    "batch.v1.CronJob": _OBJECT,
    "batch.v1.CronJobSpec": (
        "schedule startingDeadlineSeconds concurrencyPolicy suspend jobTemplate successfulJobsHistoryLimit "
        "failedJobsHistoryLimit timeZone"
    ),
    "batch.v1.JobTemplateSpec": "metadata spec",
    "policy.v1.PodDisruptionBudget": _OBJECT,
    "policy.v1.PodDisruptionBudgetSpec": "minAvailable selector maxUnavailable unhealthyPodEvictionPolicy",
    "policy.v1.Eviction": "metadata deleteOptions",
    "scheduling.v1.PriorityClass": "metadata value globalDefault description preemptionPolicy",
    "rbac.v1.Role": "metadata rules",
    "rbac.v1.ClusterRole": "metadata rules aggregationRule",
    "rbac.v1.PolicyRule": "verbs apiGroups resources resourceNames nonResourceURLs",
    "rbac.v1.RoleBinding": "metadata subjects roleRef",
    "rbac.v1.ClusterRoleBinding": "metadata subjects roleRef",
    "rbac.v1.Subject": "kind apiGroup name namespace",
    "rbac.v1.RoleRef": "apiGroup kind name",
    "authorization.v1.SelfSubjectAccessReview": _OBJECT,
    "authorization.v1.SelfSubjectAccessReviewSpec": "resourceAttributes nonResourceAttributes",
    "authorization.v1.SubjectAccessReview": _OBJECT,
    "authorization.v1.SubjectAccessReviewSpec": "resourceAttributes nonResourceAttributes user groups extra uid",
    "authorization.v1.LocalSubjectAccessReview": _OBJECT,
    "authorization.v1.ResourceAttributes": "namespace verb group version resource subresource name",
    "authorization.v1.NonResourceAttributes": "path verb",
    "authorization.v1.SelfSubjectRulesReview": _OBJECT,
    "authorization.v1.SelfSubjectRulesReviewSpec": "namespace",
    "authentication.v1.SelfSubjectReview": "metadata status",
    "authentication.v1.TokenReview": _OBJECT,
    "authentication.v1.TokenReviewSpec": "token audiences",
    "authentication.v1.TokenRequest": _OBJECT,
    "authentication.v1.TokenRequestSpec": "audiences - boundObjectRef expirationSeconds",
    "authentication.v1.BoundObjectReference": "kind apiVersion name uid",
}


def decode(body: bytes) -> Any:
    """Return the JSON value of a protobuf body. Raises ApiProblem for what is not understood."""
    if not body.startswith(_MAGIC):
        raise bad_request("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    envelope = dict(_fields(body[len(_MAGIC) :]))
    names = {number: bytes(text).decode() for number, text in _fields(envelope.get(1, b""))}
    api_version, kind = names.get(1, ""), names.get(2, "")
    group, _, version = api_version.rpartition("/")
    type_name = f"{group.split('.')[0] if group else 'core'}.{version}.{kind}"
    if kind == "DeleteOptions":
        type_name = "meta.v1.DeleteOptions"
    value = _message(type_name, bytes(envelope.get(2, b"")))
    return {"apiVersion": api_version, "kind": kind, **value}


def _message(type_name: str, data: bytes) -> dict[str, Any]:
    numbered = _NUMBERED.get(type_name)
    known = fields_of(type_name) or {}
    if numbered is None:
        if data and not type_name.endswith("Status"):
            raise _not_understood(type_name, 0)
        return {}
    names = numbered.split()
    result: dict[str, Any] = {}
    for number, raw in _fields(data):
        name = names[number - 1] if number <= len(names) else "-"
        described = known.get(name)
        if described is None:
            if raw:
                raise _not_understood(type_name, number)
            continue
        _put(result, name, described, raw)
    return result


def _put(result: dict[str, Any], name: str, described: Field, raw: Any) -> None:
    kind = described.type
    if kind[0] == "[":
        result.setdefault(name, []).append(_scalar_or_message(kind[1:], raw))
    elif kind[0] == "{":
        entry = dict(_fields(raw))
        value = _scalar_or_message(kind[1:], entry.get(2, b""))
        result.setdefault(name, {})[bytes(entry.get(1, b"")).decode()] = value
    else:
        value = _scalar_or_message(kind, raw)
        if value is not None:
            result[name] = value


def _scalar_or_message(kind: str, raw: Any) -> Any:
    if kind == "boolean":
        return bool(raw)
    if kind in {"int32", "int64", "integer"}:
        return raw - (1 << 64) if raw >= 1 << 63 else raw
    if kind == "string":
        return bytes(raw).decode()
    if kind == "bytes":
        return base64.b64encode(raw).decode()
    if kind == "Quantity":
        return bytes(dict(_fields(raw)).get(1, b"")).decode()
    if kind == "IntOrString":
        parts = dict(_fields(raw))
        if parts.get(1):
            return bytes(parts.get(3, b"")).decode()
        number = parts.get(2, 0)
        return number - (1 << 64) if number >= 1 << 63 else number
    if kind in {"Time", "MicroTime"}:
        seconds = dict(_fields(raw)).get(1, 0)
        return stamp(datetime.fromtimestamp(seconds, UTC)) if 0 < seconds < 1 << 62 else None
    return _message(kind, raw)


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
        elif wire == 2:
            length, at = _varint(data, at)
            yield number, data[at : at + length]
            at += length
        elif wire in {1, 5}:
            length = 8 if wire == 1 else 4
            yield number, data[at : at + length]
            at += length
        else:
            raise bad_request("proto: illegal wireType")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if at >= len(data):
            raise bad_request("unexpected EOF")
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7


def _not_understood(type_name: str, number: int) -> ApiProblem:
    what = f"field {number} of {type_name}" if number else type_name
    return ApiProblem(415, f"protobuf {what} is not understood here; send JSON", "UnsupportedMediaType", {})
