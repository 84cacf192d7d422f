"""A dump of a real cluster into the store, with uids, owners and versions as they were.

Owners that are missing from the dump are made in the shape that their pods imply, so that evicted pods come back.
"""

from __future__ import annotations

import copy
import gc
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from rebalancer.sim.controllers.deployments import HASH
from rebalancer.sim.controllers.indexes import controller_of
from rebalancer.sim.defaulting import apply_defaults
from rebalancer.sim.dump_revisions import make_revisions
from rebalancer.sim.history import Object
from rebalancer.sim.kinds import NAMESPACE, Kind, kind_of
from rebalancer.sim.registry import Registry, ordered
from rebalancer.sim.schema import type_of
from rebalancer.sim.sharing import Sharing, without_collector
from rebalancer.sim.zeros import fill

_OF_ONE_POD = frozenset(
    {"controller-revision-hash", "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", "pod-template-generation"}
)
_ADMITTED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_MANY = 10_000
"""Objects from which the garbage collector is told to leave them alone: they stay, and looking at them takes seconds."""
_OWNERS = frozenset({"ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Job"})


def load_dump(registry: Registry, objects: Iterable[Object]) -> int:
    """Load objects and make what they need; return how many were taken from the dump. Unknown kinds are left out."""
    with without_collector():
        by_kind = _read(registry, objects)
    for kind, loaded in by_kind.items():
        registry.store.load(kind.storage, loaded)
    if by_kind:
        _make_namespaces(registry, by_kind)
        _make_owners(registry)
        make_revisions(registry)
    count = sum(map(len, by_kind.values()))
    if count > _MANY:
        gc.collect()
        gc.freeze()
    return count


def _read(registry: Registry, objects: Iterable[Object]) -> dict[Kind, list[Object]]:
    by_kind: dict[Kind, list[Object]] = defaultdict(list)
    sharing = Sharing()
    for obj in objects:
        kind = kind_of(str(obj.get("apiVersion", "")), str(obj.get("kind", "")))
        if kind is None or kind.asked_only or kind.stored_as:
            continue
        by_kind[kind].append(_complete(registry, kind, obj, sharing))
    return by_kind


def _complete(registry: Registry, kind: Kind, obj: Object, sharing: Sharing) -> Object:
    metadata = {name: value for name, value in obj["metadata"].items() if name not in {"managedFields", "selfLink"}}
    if not kind.namespaced:
        metadata.pop("namespace", None)
    else:
        metadata.setdefault("namespace", "default")
    metadata.setdefault("uid", registry.identities.uid())
    metadata.setdefault("resourceVersion", "1")
    metadata.setdefault("creationTimestamp", registry.now())
    for name in ("labels", "annotations", "ownerReferences"):
        if name in metadata:
            metadata[name] = sharing.part(metadata[name])
    if kind.storage != "pods" or "schedulerName" not in obj.get("spec", {}):
        # What was written by hand, or never went through a server, gets the server's defaults.
        obj = {**copy.deepcopy({name: value for name, value in obj.items() if name != "metadata"}), "metadata": metadata}
        apply_defaults(kind.storage, obj)
    whole = {**obj, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
    if kind.storage == "pods":
        whole["spec"] = {name: sharing.part(value) for name, value in obj.get("spec", {}).items()}
        whole["status"] = sharing.leaves(obj.get("status", {}))
    fill(type_of(kind), whole)
    return ordered(whole)


def _make_namespaces(registry: Registry, by_kind: dict[Kind, list[Object]]) -> None:
    needed = {obj["metadata"]["namespace"] for kind, objs in by_kind.items() if kind.namespaced for obj in objs}
    for name in sorted(needed):
        if registry.store.get(NAMESPACE.storage, "", name) is None:
            registry.create(NAMESPACE, "", {"metadata": {"name": name}})


def _make_owners(registry: Registry) -> None:
    """Make the missing controllers of pods."""
    pods: dict[tuple[str, str, str, str], list[Object]] = defaultdict(list)
    for pod in registry.store.objects("pods"):
        owner = controller_of(pod)
        if owner is not None and owner[0] in _OWNERS:
            pods[pod["metadata"]["namespace"], *owner].append(pod)
    for (namespace, kind_name, name, uid), owned in sorted(pods.items(), key=lambda item: item[0]):
        kind = _kind_of_owner(kind_name)
        found = registry.store.get(kind.storage, namespace, name)
        if found is None:
            made = _workload(registry, kind, namespace, name, uid, owned)
            registry.store.put(kind.storage, made)


def _kind_of_owner(name: str) -> Kind:
    version = {"ReplicationController": "v1", "Job": "batch/v1"}.get(name, "apps/v1")
    kind = kind_of(version, name)
    assert kind is not None
    return kind


def _workload(registry: Registry, kind: Kind, namespace: str, name: str, uid: str, pods: list[Object]) -> Object:
    live = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    counted = [pod for pod in live if pod.get("status", {}).get("phase") not in {"Succeeded", "Failed"}]
    example = (counted or live or pods)[0]
    labels = _common_labels(pods)
    template = _template(kind, example, labels)
    spec: dict[str, Any] = {"template": template}
    replicas = len(counted)
    selector_labels = dict(template["metadata"].get("labels") or {})
    if kind.kind == "ReplicationController":
        spec["selector"] = selector_labels
    else:
        spec["selector"] = {"matchLabels": selector_labels}
    if kind.kind == "StatefulSet":
        numbers = [
            int(pod["metadata"]["name"].rpartition("-")[2])
            for pod in pods
            if pod["metadata"]["name"].rpartition("-")[2].isdigit()
        ]
        replicas = max(numbers, default=-1) + 1
        spec |= {"serviceName": name, "podManagementPolicy": "Parallel", "updateStrategy": {"type": "OnDelete"}}
    if kind.kind == "DaemonSet":
        spec |= {"updateStrategy": {"type": "OnDelete"}, "revisionHistoryLimit": 10}
        template["spec"].pop("nodeName", None)
    elif kind.kind == "Job":
        done = sum(pod.get("status", {}).get("phase") == "Succeeded" for pod in pods)
        spec |= {"parallelism": max(1, replicas), "completions": max(1, replicas + done), "backoffLimit": 6}
    else:
        spec["replicas"] = replicas
    notes = {"sim.rebalancer.io/made-from": "the pods of the dump"}
    metadata = {"name": name, "namespace": namespace, "uid": uid, "generation": 1, "annotations": notes}
    metadata |= {"creationTimestamp": min(pod["metadata"]["creationTimestamp"] for pod in pods), "labels": selector_labels}
    obj: Object = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata, "spec": spec}
    fill(type_of(kind), obj)
    return ordered(obj)


def _common_labels(pods: list[Object]) -> dict[str, str]:
    sets = [set((pod["metadata"].get("labels") or {}).items()) for pod in pods]
    common = set.intersection(*sets) if sets else set()
    return {key: value for key, value in sorted(common) if key not in _OF_ONE_POD}


def _template(kind: Kind, pod: Object, labels: dict[str, str]) -> Object:
    spec = copy.deepcopy(pod["spec"])
    for name in ("nodeName", "priority", "preemptionPolicy", "hostname", "subdomain", "ephemeralContainers"):
        if kind.kind == "StatefulSet" or name not in {"hostname", "subdomain"}:
            spec.pop(name, None)
    if not labels.get(HASH) and kind.kind == "ReplicaSet":
        labels = dict(labels)
    kept = [one for one in spec.get("tolerations", ()) if one.get("key") not in _ADMITTED]
    spec.pop("tolerations", None)
    if kept:
        spec["tolerations"] = kept
    if kind.kind == "DaemonSet":
        affinity = spec.get("affinity", {}).get("nodeAffinity", {})
        affinity.pop("requiredDuringSchedulingIgnoredDuringExecution", None)
    if kind.kind == "StatefulSet":
        for volume in spec.get("volumes", ()):
            claim = volume.get("persistentVolumeClaim")
            if claim and claim["claimName"].endswith("-" + pod["metadata"]["name"]):
                volume["persistentVolumeClaim"] = {"claimName": claim["claimName"]}
    annotations = pod["metadata"].get("annotations") or {}
    metadata: dict[str, Any] = {"labels": labels}
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {"metadata": metadata, "spec": spec}
