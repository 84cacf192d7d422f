"""Objects as the rows that ``kubectl get`` prints.

Source: the columns of kubernetes/kubernetes pkg/printers/internalversion/printers.go; the descriptions are our own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, NamedTuple

from rebalancer.sim import table_cells as cells
from rebalancer.sim.history import Object
from rebalancer.sim.kinds import Kind
from rebalancer.sim.moments import moment_of, short_age

Row = Callable[[Object, datetime], list[Any]]


class Column(NamedTuple):
    """One column. wide: shown with ``-o wide`` only."""

    name: str
    type: str = "string"
    wide: bool = False


def table(kind: Kind, items: Iterable[Object], metadata: dict[str, Any], now: datetime, include: str) -> Object:
    """Return a Table of objects.

    include: what each row carries: ``Metadata`` (default), ``Object`` or ``None``.
    """
    columns, row = _layout(kind)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [_definition(column) for column in columns],
        "rows": [_row(obj, row(obj, now), include) for obj in items],
    }


def _row(obj: Object, values: list[Any], include: str) -> Object:
    if include == "None":
        return {"cells": values}
    return {"cells": values, "object": obj if include == "Object" else partial(obj)}


def partial(obj: Object) -> Object:
    """Return the metadata of an object alone."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def _definition(column: Column) -> Object:
    return {
        "name": column.name,
        "type": column.type,
        "format": "name" if column.name == "Name" else "",
        "description": f"{column.name} of the object, as kubectl shows it.",
        "priority": 1 if column.wide else 0,
    }


def age(obj: Object, now: datetime) -> str:
    """Return the age of an object as a table shows it."""
    return since(obj["metadata"].get("creationTimestamp"), now)


def since(text: str | None, now: datetime) -> str:
    """Return how long ago a time was as a table shows it."""
    return short_age((now - moment_of(text)).total_seconds()) if text else "<unknown>"


def _layout(kind: Kind) -> tuple[list[Column], Row]:
    found = _LAYOUTS.get(kind.storage)
    if found is not None:
        return found
    return [Column("Name"), Column("Age")], lambda obj, now: [obj["metadata"]["name"], age(obj, now)]


def _columns(text: str) -> list[Column]:
    columns = []
    for word in text.split(","):
        name, _, kind = word.strip().strip("+").partition(":")
        columns.append(Column(name, kind or "string", word.strip().startswith("+")))
    return columns


def _pods(obj: Object, now: datetime) -> list[Any]:
    spec, status = obj["spec"], obj.get("status", {})
    ready, restarts, reason = cells.pod_state(obj, now)
    gates = spec.get("readinessGates") or ()
    met = {c["type"] for c in status.get("conditions", ()) if c.get("status") == "True"}
    passed = sum(gate["conditionType"] in met for gate in gates)
    return [
        obj["metadata"]["name"],
        ready,
        reason,
        restarts,
        age(obj, now),
        status.get("podIP") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        f"{passed}/{len(gates)}" if gates else "<none>",
    ]


def _nodes(obj: Object, now: datetime) -> list[Any]:
    info = obj.get("status", {}).get("nodeInfo", {})
    return [
        obj["metadata"]["name"],
        cells.node_status(obj),
        cells.node_roles(obj),
        age(obj, now),
        info.get("kubeletVersion", ""),
        cells.node_address(obj, "InternalIP"),
        cells.node_address(obj, "ExternalIP"),
        info.get("osImage") or "<unknown>",
        info.get("kernelVersion") or "<unknown>",
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _deployments(obj: Object, now: datetime) -> list[Any]:
    status = obj.get("status", {})
    return [
        obj["metadata"]["name"],
        f"{status.get('readyReplicas', 0)}/{obj['spec'].get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(obj, now),
        *cells.containers(obj),
        cells.selector(obj),
    ]


def _replica_sets(obj: Object, now: datetime) -> list[Any]:
    status = obj.get("status", {})
    counts = [obj["spec"].get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [obj["metadata"]["name"], *counts, age(obj, now), *cells.containers(obj), cells.selector(obj)]


def _stateful_sets(obj: Object, now: datetime) -> list[Any]:
    ready = f"{obj.get('status', {}).get('readyReplicas', 0)}/{obj['spec'].get('replicas', 0)}"
    return [obj["metadata"]["name"], ready, age(obj, now), *cells.containers(obj)]


def _daemon_sets(obj: Object, now: datetime) -> list[Any]:
    status = obj.get("status", {})
    names = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable")
    chosen = obj["spec"]["template"].get("spec", {}).get("nodeSelector")
    return [
        obj["metadata"]["name"],
        *(status.get(name, 0) for name in names),
        cells.pairs(chosen),
        age(obj, now),
        *cells.containers(obj),
        cells.selector(obj),
    ]


def _budgets(obj: Object, now: datetime) -> list[Any]:
    spec = obj["spec"]
    least, most = spec.get("minAvailable", "N/A"), spec.get("maxUnavailable", "N/A")
    return [obj["metadata"]["name"], str(least), str(most), obj["status"].get("disruptionsAllowed", 0), age(obj, now)]


def _jobs(obj: Object, now: datetime) -> list[Any]:
    status = obj.get("status", {})
    wanted = obj["spec"].get("completions", 1)
    done = f"{status.get('succeeded', 0)}/{wanted}"
    state = next((c["type"] for c in status.get("conditions", ()) if c.get("status") == "True"), "Running")
    return [
        obj["metadata"]["name"],
        state,
        done,
        cells.duration(status, now),
        age(obj, now),
        *cells.containers(obj),
        cells.selector(obj),
    ]


def _cron_jobs(obj: Object, now: datetime) -> list[Any]:
    spec, status = obj["spec"], obj.get("status", {})
    last = since(status["lastScheduleTime"], now) if "lastScheduleTime" in status else "<none>"
    active = len(status.get("active", ()))
    zone = spec.get("timeZone") or "<none>"
    return [obj["metadata"]["name"], spec.get("schedule", ""), zone, str(spec.get("suspend", False)), active, last, age(obj, now)]


def _events(obj: Object, now: datetime) -> list[Any]:
    involved = obj.get("involvedObject", {})
    source = obj.get("source") or {}
    last = obj.get("lastTimestamp") or obj.get("eventTime") or obj["metadata"].get("creationTimestamp")
    first = obj.get("firstTimestamp") or obj.get("eventTime") or last
    by = source.get("component") or obj.get("reportingComponent", "")
    return [
        since(last, now),
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{involved.get('kind', '').lower()}/{involved.get('name', '')}",
        involved.get("fieldPath", ""),
        ", ".join(filter(None, (by, source.get("host") or obj.get("reportingInstance", "")))),
        obj.get("message", "").strip(),
        since(first, now),
        obj.get("count", 1),
        obj["metadata"]["name"],
    ]


def _services(obj: Object, now: datetime) -> list[Any]:
    spec = obj["spec"]
    ports = ",".join(f"{p['port']}/{p.get('protocol', 'TCP')}" for p in spec.get("ports", ())) or "<none>"
    address = spec.get("clusterIP") or "<none>"
    return [
        obj["metadata"]["name"],
        spec.get("type", ""),
        address,
        "<none>",
        ports,
        age(obj, now),
        cells.pairs(spec.get("selector")),
    ]


def _namespaces(obj: Object, now: datetime) -> list[Any]:
    return [obj["metadata"]["name"], obj.get("status", {}).get("phase", ""), age(obj, now)]


def _leases(obj: Object, now: datetime) -> list[Any]:
    return [obj["metadata"]["name"], obj.get("spec", {}).get("holderIdentity", ""), age(obj, now)]


def _config_maps(obj: Object, now: datetime) -> list[Any]:
    return [obj["metadata"]["name"], len(obj.get("data", ())) + len(obj.get("binaryData", ())), age(obj, now)]


def _secrets(obj: Object, now: datetime) -> list[Any]:
    return [obj["metadata"]["name"], obj.get("type", ""), len(obj.get("data", ())), age(obj, now)]


def _accounts(obj: Object, now: datetime) -> list[Any]:
    return [obj["metadata"]["name"], len(obj.get("secrets", ())), age(obj, now)]


def _priority_classes(obj: Object, now: datetime) -> list[Any]:
    default = str(obj.get("globalDefault", False)).lower()
    return [obj["metadata"]["name"], obj.get("value", 0), default, age(obj, now), obj.get("preemptionPolicy", "")]


def _volumes(obj: Object, now: datetime) -> list[Any]:
    spec, claim = obj["spec"], obj["spec"].get("claimRef") or {}
    return [
        obj["metadata"]["name"],
        spec.get("capacity", {}).get("storage", ""),
        cells.access_modes(spec),
        spec.get("persistentVolumeReclaimPolicy", ""),
        obj.get("status", {}).get("phase", ""),
        f"{claim['namespace']}/{claim['name']}" if claim else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        obj.get("status", {}).get("reason", ""),
        age(obj, now),
        spec.get("volumeMode", "Filesystem"),
    ]


def _claims(obj: Object, now: datetime) -> list[Any]:
    spec, status = obj["spec"], obj.get("status", {})
    return [
        obj["metadata"]["name"],
        status.get("phase", ""),
        spec.get("volumeName", ""),
        status.get("capacity", {}).get("storage", ""),
        cells.access_modes(status),
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        age(obj, now),
        spec.get("volumeMode", "Filesystem"),
    ]


def _bindings(obj: Object, now: datetime) -> list[Any]:
    reference = obj["roleRef"]
    return [obj["metadata"]["name"], f"{reference.get('kind')}/{reference.get('name')}", age(obj, now)]


def _roles(obj: Object, now: datetime) -> list[Any]:
    del now
    return [obj["metadata"]["name"], obj["metadata"].get("creationTimestamp", "")]


_SETS = "Name,Desired:integer,Current:integer,Ready:integer,Age,+Containers,+Images,+Selector"
_LAYOUTS: dict[str, tuple[list[Column], Row]] = {
    "pods": (_columns("Name,Ready,Status,Restarts,Age,+IP,+Node,+Nominated Node,+Readiness Gates"), _pods),
    "nodes": (
        _columns("Name,Status,Roles,Age,Version,+Internal-IP,+External-IP,+OS-Image,+Kernel-Version,+Container-Runtime"),
        _nodes,
    ),
    "deployments.apps": (
        _columns("Name,Ready,Up-to-date,Available,Age,+Containers,+Images,+Selector"),
        _deployments,
    ),
    "replicasets.apps": (_columns(_SETS), _replica_sets),
    "replicationcontrollers": (_columns(_SETS), _replica_sets),
    "statefulsets.apps": (_columns("Name,Ready,Age,+Containers,+Images"), _stateful_sets),
    "daemonsets.apps": (
        _columns(
            "Name,Desired:integer,Current:integer,Ready:integer,Up-to-date:integer,Available:integer,Node Selector,Age,"
            "+Containers,+Images,+Selector"
        ),
        _daemon_sets,
    ),
    "poddisruptionbudgets.policy": (
        _columns("Name,Min Available,Max Unavailable,Allowed Disruptions:integer,Age"),
        _budgets,
    ),
    "jobs.batch": (_columns("Name,Status,Completions,Duration,Age,+Containers,+Images,+Selector"), _jobs),
    "cronjobs.batch": (_columns("Name,Schedule,Timezone,Suspend,Active:integer,Last Schedule,Age"), _cron_jobs),
    "events": (
        _columns("Last Seen,Type,Reason,Object,+Subobject,+Source,Message,+First Seen,+Count:integer,+Name"),
        _events,
    ),
    "services": (_columns("Name,Type,Cluster-IP,External-IP,Port(s),Age,+Selector"), _services),
    "namespaces": (_columns("Name,Status,Age"), _namespaces),
    "leases.coordination.k8s.io": (_columns("Name,Holder,Age"), _leases),
    "configmaps": (_columns("Name,Data,Age"), _config_maps),
    "secrets": (_columns("Name,Type,Data,Age"), _secrets),
    "serviceaccounts": (_columns("Name,Secrets,Age"), _accounts),
    "priorityclasses.scheduling.k8s.io": (
        _columns("Name,Value:integer,Global-Default,Age,PreemptionPolicy"),
        _priority_classes,
    ),
    "persistentvolumes": (
        _columns(
            "Name,Capacity,Access Modes,Reclaim Policy,Status,Claim,StorageClass,VolumeAttributesClass,Reason,Age,+VolumeMode"
        ),
        _volumes,
    ),
    "persistentvolumeclaims": (
        _columns("Name,Status,Volume,Capacity,Access Modes,StorageClass,VolumeAttributesClass,Age,+VolumeMode"),
        _claims,
    ),
    "rolebindings.rbac.authorization.k8s.io": (_columns("Name,Role,Age"), _bindings),
    "clusterrolebindings.rbac.authorization.k8s.io": (_columns("Name,Role,Age"), _bindings),
    "roles.rbac.authorization.k8s.io": (_columns("Name,Created At"), _roles),
    "clusterroles.rbac.authorization.k8s.io": (_columns("Name,Created At"), _roles),
}
