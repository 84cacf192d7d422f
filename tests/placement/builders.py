"""Small clusters in dict form, read by the real parser; each builder states only what a test is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rebalancer.model.pod import Pod
from rebalancer.model.snapshot import Snapshot
from rebalancer.parse.interning import Interner
from rebalancer.parse.objects import parse_objects
from rebalancer.placement.api import Placement, place
from rebalancer.placement.profile import DEFAULT, SchedulerConfig
from rebalancer.placement.view import PlacementView

Document = dict[str, Any]

NOW = 1_800_000_000.0
_INTERNER = Interner()


def a_node(
    name: str,
    cpu: str = "4",
    memory: str = "8Gi",
    *,
    pods: str = "110",
    labels: Mapping[str, str] | None = None,
    taints: list[Document] | None = None,
    cordoned: bool = False,
    extra: Mapping[str, str] | None = None,
    images: list[Document] | None = None,
    created: str = "2027-01-15T07:59:00Z",
) -> Document:
    """Return a node with its hostname label that joined a minute ago."""
    room = {"cpu": cpu, "memory": memory, "pods": pods, **(extra or {})}
    return {
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, **(labels or {})},
            "creationTimestamp": created,
        },
        "spec": {"taints": taints or [], "unschedulable": cordoned},
        "status": {"allocatable": room, "images": images or []},
    }


def a_taint(key: str, effect: str = "NoSchedule", value: str = "") -> Document:
    """Return a taint."""
    return {"key": key, "effect": effect, "value": value}


def a_pod(
    name: str,
    cpu: str | None = None,
    memory: str | None = None,
    *,
    on: str | None = None,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    owner: str | None = None,
    requests: Mapping[str, str] | None = None,
    ports: list[Document] | None = None,
    phase: str = "Running",
    deleted: bool = False,
    nominated: str | None = None,
    priority: int | None = None,
    created: str = "2026-01-01T00:00:00Z",
    **spec: Any,
) -> Document:
    """Return a pod with one container. owner: ``Kind/name``, its managing controller. spec: further fields of the pod's spec."""
    amounts = {**({"cpu": cpu} if cpu else {}), **({"memory": memory} if memory else {}), **(requests or {})}
    metadata: Document = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{namespace}-{name}",
        "labels": dict(labels or {}),
        "creationTimestamp": created,
    }
    if owner:
        kind, _, its_name = owner.partition("/")
        version = "v1" if kind == "ReplicationController" else "apps/v1"
        metadata["ownerReferences"] = [
            {"apiVersion": version, "kind": kind, "name": its_name, "uid": f"uid-{its_name}", "controller": True}
        ]
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:30Z"
    container = {"name": "main", "image": "img", "resources": {"requests": amounts}, "ports": ports or []}
    body: Document = {"containers": [container], **spec}
    if on:
        body["nodeName"] = on
    if priority is not None:
        body["priority"] = priority
    status = {"phase": phase if on else "Pending", **({"nominatedNodeName": nominated} if nominated else {})}
    return {"kind": "Pod", "metadata": metadata, "spec": body, "status": status}


def a_term(app: str, key: str = "kubernetes.io/hostname", **more: Any) -> Document:
    """Return a pod affinity term for pods labelled ``app``."""
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **more}


def apart(*terms: Document) -> Document:
    """Return an affinity with required anti-affinity."""
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def near(*terms: Document) -> Document:
    """Return an affinity with required pod affinity."""
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def on_nodes(*expressions: Document, preferred: int = 0) -> Document:
    """Return a node affinity: required, or preferred with a weight. Each expression is a term of its own."""
    terms = [{"matchExpressions": [each]} for each in expressions]
    if preferred:
        weighted = [{"weight": preferred, "preference": term} for term in terms]
        return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def a_spread(app: str, key: str, skew: int = 1, *, hard: bool = True, **more: Any) -> Document:
    """Return a topology spread constraint over pods labelled ``app``."""
    action = "DoNotSchedule" if hard else "ScheduleAnyway"
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": action,
        "labelSelector": {"matchLabels": {"app": app}},
        **more,
    }


def a_snapshot(*objects: Document) -> Snapshot:
    """Return the snapshot of these objects."""
    parsed = parse_objects(objects, _INTERNER)
    assert not parsed.problems
    return parsed.snapshot(now=NOW)


def parsed(document: Document) -> Pod:
    """Return one pod."""
    (pod,) = parse_objects([document], _INTERNER).of("Pod")
    assert isinstance(pod, Pod)
    return pod


def placed(objects: list[Document], pod: Document, config: SchedulerConfig = DEFAULT) -> Placement:
    """Say where the pod would go in the cluster of these objects."""
    return place(a_snapshot(*objects), parsed(pod), config)


def a_view(*objects: Document, reserve: bool = True) -> PlacementView:
    """Return a view of the cluster of these objects."""
    return PlacementView(a_snapshot(*objects), reserve=reserve)


def pod_of(view: PlacementView, name: str) -> Pod:
    """Return a pod of the view's snapshot by its name."""
    return next(pod for pod in view.snapshot.all_pods() if pod.name == name)
