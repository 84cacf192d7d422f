"""What the server itself decides about an object before it is validated: status, generation, names, service class.

Source: PrepareForCreate and PrepareForUpdate in kubernetes/kubernetes pkg/registry/*/strategy.go.
"""

from __future__ import annotations

import base64
from typing import Any

from rebalancer.sim.history import Object
from rebalancer.sim.kinds import Kind
from rebalancer.sim.schema import type_of
from rebalancer.sim.zeros import fill, zero_object

WITH_GENERATION = frozenset(
    {
        "pods",
        "replicationcontrollers",
        "deployments.apps",
        "replicasets.apps",
        "statefulsets.apps",
        "daemonsets.apps",
        "jobs.batch",
        "cronjobs.batch",
        "poddisruptionbudgets.policy",
        "priorityclasses.scheduling.k8s.io",
        "endpointslices.discovery.k8s.io",
    }
)
_STATUS_KEPT_ON_CREATE = frozenset({"nodes"})


def for_create(kind: Kind, obj: Object) -> None:
    """Reset what a creator may not decide."""
    if kind.storage in WITH_GENERATION:
        obj["metadata"]["generation"] = 1
    if "status" in kind.subresources and kind.storage not in _STATUS_KEPT_ON_CREATE:
        obj["status"] = zero_object(type_of(kind)).get("status", {})
    if kind.storage == "pods":
        obj["status"] = {"phase": "Pending", "qosClass": quality_of_service(obj["spec"])}
    elif kind.storage == "namespaces":
        obj["status"] = {"phase": "Active"}
        obj["spec"]["finalizers"] = sorted({*obj["spec"].get("finalizers", ()), "kubernetes"})
    elif kind.storage in {"persistentvolumeclaims", "persistentvolumes"}:
        obj["status"] = {"phase": "Pending"}
    elif kind.storage == "daemonsets.apps":
        notes = obj["metadata"].setdefault("annotations", {})
        notes["deprecated.daemonset.template.generation"] = "1"
    elif kind.storage == "jobs.batch":
        _label_job(obj)
    elif kind.storage == "secrets":
        _encode_secret(obj)


def for_update(kind: Kind, obj: Object, old: Object) -> None:
    """Keep what a plain update may not change, and count the generation."""
    if "status" in kind.subresources:
        _keep(obj, old, "status")
    if kind.storage == "secrets":
        _encode_secret(obj)
    if kind.storage in WITH_GENERATION:
        generation = old["metadata"].get("generation", 0)
        if obj.get("spec") != old.get("spec"):
            generation += 1
        if generation:
            obj["metadata"]["generation"] = generation


def for_status_update(kind: Kind, obj: Object, old: Object) -> Object:
    """Return the old object with the new status (and, as upstream, the new metadata for nodes and namespaces)."""
    prepared = {**old, "metadata": dict(old["metadata"]), "status": obj.get("status", {})}
    for name in ("labels", "annotations", "finalizers"):
        if name in obj["metadata"]:
            prepared["metadata"][name] = obj["metadata"][name]
        else:
            prepared["metadata"].pop(name, None)
    if kind.storage == "pods":
        prepared["status"] = {**prepared["status"]}
        prepared["status"].setdefault("qosClass", quality_of_service(old["spec"]))
    full = {**prepared}
    fill(type_of(kind), full)
    return full


def quality_of_service(spec: dict[str, Any]) -> str:
    """Return the QoS class of a pod.

    Source: https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/
    """
    guaranteed = True
    named = False
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.get("resources", {})
        requests = {k: v for k, v in resources.get("requests", {}).items() if k in {"cpu", "memory"} and v not in {"0", 0}}
        limits = {k: v for k, v in resources.get("limits", {}).items() if k in {"cpu", "memory"} and v not in {"0", 0}}
        named = named or bool(requests) or bool(limits)
        if set(limits) != {"cpu", "memory"} or requests != limits:
            guaranteed = False
    if not named:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _keep(obj: Object, old: Object, name: str) -> None:
    if name in old:
        obj[name] = old[name]
    else:
        obj.pop(name, None)


def _encode_secret(obj: Object) -> None:
    plain = obj.pop("stringData", None)
    if plain:
        data = obj.setdefault("data", {})
        for name, text in plain.items():
            data[name] = base64.b64encode(text.encode()).decode()


def _label_job(obj: Object) -> None:
    uid = obj["metadata"]["uid"]
    spec = obj["spec"]
    if spec.get("manualSelector"):
        return
    labels = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": obj["metadata"]["name"],
        "controller-uid": uid,
        "job-name": obj["metadata"]["name"],
    }
    template = spec["template"]
    metadata = template.setdefault("metadata", {})
    metadata["labels"] = {**metadata.get("labels", {}), **labels}
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
