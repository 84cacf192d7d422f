"""One pod's bytes to a Pod record, its shape interned."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from sys import intern
from typing import TypeVar

import msgspec

from rebalancer.errors import ParseError
from rebalancer.model.node import TaintEffect, Toleration
from rebalancer.model.pod import (
    NO_STATES,
    AffinityTerm,
    ContainerStates,
    HostPort,
    Phase,
    Pod,
    PodShape,
    PreferredAffinityTerm,
    QosClass,
    SpreadConstraint,
    Termination,
    VolumeUse,
)
from rebalancer.model.selector import PreferredNodeTerm, Requirement
from rebalancer.parse import wire
from rebalancer.parse.decoding import (
    NO_ENTRIES,
    decode,
    decode_part,
    kept_annotations,
    labels,
    owners,
    present,
    require_name,
    seconds,
)
from rebalancer.parse.interning import Interner
from rebalancer.parse.requests import (
    DEFAULT_CPU_MILLICORES,
    DEFAULT_MEMORY_BYTES,
    ContainerRequests,
    amounts,
    at_least,
    capped,
    defaulted,
    effective,
    resources,
)
from rebalancer.parse.selector import from_wire, node_selector, node_term, requirement

T = TypeVar("T")

_POD = msgspec.json.Decoder(wire.PodWire)
_REQUIREMENTS = msgspec.json.Decoder(wire.Requirements)
_AMOUNTS = msgspec.json.Decoder(wire.Amounts)
_AFFINITY = msgspec.json.Decoder(wire.Affinity)
_TOLERATIONS = msgspec.json.Decoder(list[wire.TolerationWire])
_SPREAD = msgspec.json.Decoder(list[wire.Spread])
_PORTS = msgspec.json.Decoder(list[wire.Port])
_STRINGS = msgspec.json.Decoder(dict[str, str])
_ANYTHING = msgspec.json.Decoder(list[wire.Present])

_MIRROR = "kubernetes.io/config.mirror"
_SOURCE = "kubernetes.io/config.source"
_DISKS = ("gcePersistentDisk", "awsElasticBlockStore", "rbd", "iscsi")


def parse_pod(raw: bytes | msgspec.Raw, interner: Interner) -> Pod:
    """Parse one pod. Raises ParseError where the API server could not have said this."""
    pod = decode(raw, _POD, "Pod")
    try:
        return _pod(pod, interner)
    except ParseError as error:
        metadata = pod.metadata
        raise ParseError(f"Pod {metadata.namespace}/{metadata.name}: {error}") from error
    except (ValueError, OverflowError, struct.error) as error:
        raise ParseError(f"Pod {pod.metadata.namespace}/{pod.metadata.name}: {error}") from error


def _pod(pod: wire.PodWire, interner: Interner) -> Pod:
    metadata, spec, status = pod.metadata, pod.spec, pod.status
    require_name(metadata.name)
    ready = False
    infeasible = b""
    kinds = []
    times = []
    for condition in status.conditions or ():
        if condition.type == "Ready":
            ready = condition.status == "True"
        elif condition.type == "PodResizePending" and condition.reason == "Infeasible":
            infeasible = b"infeasible"
        kinds.append((condition.type, condition.status, condition.reason))
        times.append(min(max(int(seconds(condition.lastTransitionTime) or 0), 0), 2**32 - 1))
    parts = _fingerprint(pod, infeasible)
    created = seconds(metadata.creationTimestamp)
    return Pod(
        name=metadata.name,
        uid=metadata.uid or f"{metadata.namespace}/{metadata.name}",
        shape=interner.shape(parts, lambda: _shape(pod, bool(infeasible))),
        node=interner.text(spec.nodeName) if spec.nodeName else None,
        nominated_node=interner.text(status.nominatedNodeName) if status.nominatedNodeName else None,
        phase=_enum(Phase, status.phase, "status.phase") if status.phase else Phase.PENDING,
        ready=ready,
        reason=interner.text(status.reason),
        deleted_at=seconds(metadata.deletionTimestamp),
        created_at=0.0 if created is None else created,
        started_at=seconds(status.startTime),
        main=_states(status.containerStatuses, interner),
        init=_states(status.initContainerStatuses, interner),
        ephemeral=_states(status.ephemeralContainerStatuses, interner),
        gated=bool(spec.schedulingGates),
        condition_kinds=interner.kinds(tuple(kinds)),
        condition_times=struct.pack(f"<{len(times)}I", *times),
    )


_Enum = TypeVar("_Enum", Phase, QosClass, TaintEffect)


def _enum(kind: type[_Enum], value: str, field: str) -> _Enum:
    try:
        return kind(value)
    except ValueError:
        raise ParseError(f"{field} is {value!r}, expected one of {', '.join(kind)}") from None


def _states(statuses: list[wire.ContainerStatus] | None, interner: Interner) -> ContainerStates:
    if not statuses:
        return NO_STATES
    restarts = 0
    waiting: list[str] = []
    terminated: list[Termination] = []
    last: list[Termination] = []
    for status in statuses:
        restarts += status.restartCount
        state, previous = status.state, status.lastState
        if state is not None:
            if state.waiting is not None:
                waiting.append(state.waiting.reason)
            if state.terminated is not None:
                terminated.append(Termination(state.terminated.reason, state.terminated.exitCode))
        if previous is not None and previous.terminated is not None:
            last.append(Termination(previous.terminated.reason, previous.terminated.exitCode))
    if not (restarts or waiting or terminated or last):
        return NO_STATES
    return interner.states(ContainerStates(restarts, tuple(waiting), tuple(terminated), tuple(last)))


def _fingerprint(pod: wire.PodWire, infeasible: bytes) -> list[bytes]:
    """Return the bytes that decide the pod's shape; equal bytes give an equal shape."""
    metadata, spec = pod.metadata, pod.spec
    parts = [
        metadata.namespace.encode(),
        bytes(metadata.labels),
        bytes(metadata.ownerReferences),
        repr(kept_annotations(metadata.annotations)).encode(),
        f"{spec.priority} {spec.preemptionPolicy} {spec.schedulerName} {pod.status.qosClass} {spec.hostNetwork}".encode(),
        str(spec.terminationGracePeriodSeconds).encode(),
        bytes(spec.nodeSelector),
        bytes(spec.affinity),
        bytes(spec.tolerations),
        bytes(spec.topologySpreadConstraints),
        bytes(spec.overhead),
        bytes(spec.resources),
        bytes(spec.resourceClaims),
        infeasible,
    ]
    for containers in (spec.containers, spec.initContainers):
        parts.append(b"|")
        for container in containers or ():
            parts += (container.image.encode(), bytes(container.resources), bytes(container.ports))
            parts.append((container.restartPolicy or "").encode())
    for volume in spec.volumes or ():
        if use := _volume(volume):
            parts.append(repr(use).encode())
    # A resized pod's status differs from its spec; everybody else's adds nothing new to the fingerprint.
    for containers, statuses in (
        (spec.containers, pod.status.containerStatuses),
        (spec.initContainers, pod.status.initContainerStatuses),
    ):
        wanted = {container.name: bytes(container.resources) for container in containers or ()}
        for status in statuses or ():
            actual = bytes(status.resources)
            if actual and actual != wanted.get(status.name):
                parts += (status.name.encode(), actual)
            if allocated := bytes(status.allocatedResources):
                parts += (status.name.encode(), allocated)
    return parts


def _shape(pod: wire.PodWire, infeasible: bool) -> PodShape:
    metadata, spec = pod.metadata, pod.spec
    own = labels(metadata.labels)
    kept = kept_annotations(metadata.annotations)
    references = owners(metadata.ownerReferences, metadata.namespace)
    main = _requests(spec.containers, pod.status.containerStatuses, infeasible)
    init = _requests(spec.initContainers, pod.status.initContainerStatuses, infeasible)
    whole = present(spec.resources)
    pod_level = defaulted(decode_part(whole, _REQUIREMENTS, "spec.resources")) if whole else {}
    extra = present(spec.overhead)
    overhead = amounts(decode_part(extra, _AMOUNTS, "spec.overhead")) if extra else {}
    floor = {"cpu": DEFAULT_CPU_MILLICORES, "memory": DEFAULT_MEMORY_BYTES}
    nonzero = effective(main, init, pod_level, overhead, floor)
    affinity = decode_part(raw, _AFFINITY, "spec.affinity") if (raw := present(spec.affinity)) else wire.Affinity()
    node = affinity.nodeAffinity or wire.NodeAffinity()
    required = node.requiredDuringSchedulingIgnoredDuringExecution
    near = affinity.podAffinity or wire.PodAffinity()
    apart = affinity.podAntiAffinity or wire.PodAffinity()
    namespace = metadata.namespace
    selector = present(spec.nodeSelector)
    source = kept.get(_SOURCE)
    return PodShape(
        namespace=intern(namespace),
        labels=own,
        owners=references,
        annotations=kept,
        priority=spec.priority,
        preempts=spec.preemptionPolicy != "Never",
        scheduler_name=intern(spec.schedulerName or "default-scheduler"),
        qos=_enum(QosClass, pod.status.qosClass, "status.qosClass") if pod.status.qosClass else _qos(spec),
        grace_seconds=30 if spec.terminationGracePeriodSeconds is None else spec.terminationGracePeriodSeconds,
        requests=resources(effective(main, init, pod_level, overhead), pods=1),
        nonzero_cpu_millicores=capped(nonzero.get("cpu", 0)),
        nonzero_memory_bytes=capped(nonzero.get("memory", 0)),
        tolerations=_tolerations(tolerated) if (tolerated := present(spec.tolerations)) else (),
        node_selector=dict(sorted(decode_part(selector, _STRINGS, "spec.nodeSelector").items())) if selector else NO_ENTRIES,
        required_node=None if required is None else node_selector(required),
        preferred_node=tuple(
            PreferredNodeTerm(each.weight, node_term(each.preference))
            for each in node.preferredDuringSchedulingIgnoredDuringExecution or ()
        ),
        affinity=_terms(near.requiredDuringSchedulingIgnoredDuringExecution, namespace, own),
        anti_affinity=_terms(apart.requiredDuringSchedulingIgnoredDuringExecution, namespace, own),
        preferred_affinity=_weighted(near, namespace, own),
        preferred_anti_affinity=_weighted(apart, namespace, own),
        spread=_spread(spec, own),
        host_ports=_host_ports(spec),
        volumes=tuple(use for volume in spec.volumes or () if (use := _volume(volume))),
        resource_claims=bool((claims := present(spec.resourceClaims)) and decode_part(claims, _ANYTHING, "spec.resourceClaims")),
        images=tuple(intern(container.image) for container in spec.containers or ()),
        init_images=tuple(container.image for container in spec.initContainers or ()),
        static=_MIRROR in kept or (source is not None and source != "api") or any(owner.kind == "Node" for owner in references),
    )


def _requests(
    containers: list[wire.Container] | None, statuses: list[wire.ContainerStatus] | None, infeasible: bool
) -> list[ContainerRequests]:
    known = {status.name: status for status in statuses or ()}
    result = []
    for container in containers or ():
        raw = present(container.resources)
        wanted = defaulted(decode_part(raw, _REQUIREMENTS, f"resources of container {container.name}")) if raw else {}
        status = known.get(container.name)
        if status is not None:
            actual_raw, allocated_raw = present(status.resources), present(status.allocatedResources)
            actual = (
                amounts(decode_part(actual_raw, _REQUIREMENTS, f"status of container {container.name}").requests)
                if actual_raw
                else {}
            )
            allocated = (
                amounts(decode_part(allocated_raw, _AMOUNTS, f"status of container {container.name}")) if allocated_raw else {}
            )
            given = at_least(actual, allocated)
            # A resize that the node cannot grant does not count; otherwise the larger of wanted and given does.
            wanted = given if infeasible and given else at_least(wanted, given)
        result.append(ContainerRequests(wanted, sidecar=container.restartPolicy == "Always"))
    return result


@lru_cache(maxsize=1_024)
def _tolerations(raw: bytes) -> tuple[Toleration, ...]:
    """Read tolerations. Most pods of a cluster have the same ones, whoever owns them, so equal bytes give the same tuple."""
    return tuple(
        Toleration(
            each.key, each.operator or "Equal", each.value, _enum(TaintEffect, each.effect, "effect") if each.effect else None
        )
        for each in decode_part(raw, _TOLERATIONS, "spec.tolerations")
    )


def _term(term: wire.PodTerm, namespace: str, own: dict[str, str]) -> AffinityTerm:
    extra = [requirement(key, "In", (own[key],)) for key in term.matchLabelKeys or () if key in own]
    extra += [requirement(key, "NotIn", (own[key],)) for key in term.mismatchLabelKeys or () if key in own]
    names = frozenset(term.namespaces or ())
    selector = None if term.namespaceSelector is None else from_wire(term.namespaceSelector)
    if not names and selector is None:
        names = frozenset((namespace,))
    return AffinityTerm(from_wire(term.labelSelector, extra), term.topologyKey, names, selector)


def _terms(terms: list[wire.PodTerm] | None, namespace: str, own: dict[str, str]) -> tuple[AffinityTerm, ...]:
    return tuple(_term(term, namespace, own) for term in terms or ())


def _weighted(affinity: wire.PodAffinity, namespace: str, own: dict[str, str]) -> tuple[PreferredAffinityTerm, ...]:
    return tuple(
        PreferredAffinityTerm(each.weight, _term(each.podAffinityTerm, namespace, own))
        for each in affinity.preferredDuringSchedulingIgnoredDuringExecution or ()
    )


def _spread(spec: wire.PodSpec, own: dict[str, str]) -> tuple[SpreadConstraint, ...]:
    raw = present(spec.topologySpreadConstraints)
    if not raw:
        return ()
    result = []
    for each in decode_part(raw, _SPREAD, "spec.topologySpreadConstraints"):
        extra: list[Requirement] = [requirement(key, "In", (own[key],)) for key in each.matchLabelKeys or () if key in own]
        if each.whenUnsatisfiable not in ("DoNotSchedule", "ScheduleAnyway"):
            raise ParseError(f"whenUnsatisfiable is {each.whenUnsatisfiable!r}, expected DoNotSchedule or ScheduleAnyway")
        result.append(
            SpreadConstraint(
                max_skew=each.maxSkew,
                topology_key=intern(each.topologyKey),
                hard=each.whenUnsatisfiable == "DoNotSchedule",
                selector=from_wire(each.labelSelector, extra),
                min_domains=each.minDomains,
                honor_affinity=each.nodeAffinityPolicy != "Ignore",
                honor_taints=each.nodeTaintsPolicy == "Honor",
            )
        )
    return tuple(result)


def _host_ports(spec: wire.PodSpec) -> tuple[HostPort, ...]:
    found = []
    containers = list(spec.containers or ())
    # Sidecars hold their ports as long as the containers do.
    containers += [container for container in spec.initContainers or () if container.restartPolicy == "Always"]
    for container in containers:
        raw = present(container.ports)
        if not raw:
            continue
        for port in decode_part(raw, _PORTS, f"ports of container {container.name}"):
            number = port.hostPort or (port.containerPort if spec.hostNetwork else 0)
            if number:
                found.append(HostPort(port.hostIP or "0.0.0.0", port.protocol or "TCP", number))
    return tuple(dict.fromkeys(found))


def _volume(volume: wire.Volume) -> VolumeUse | None:
    if volume.emptyDir is not None:
        return VolumeUse("emptyDir")
    if volume.hostPath is not None:
        return VolumeUse("hostPath")
    if volume.persistentVolumeClaim is not None:
        return VolumeUse("persistentVolumeClaim", volume.persistentVolumeClaim.claimName, volume.persistentVolumeClaim.readOnly)
    if volume.ephemeral is not None:
        # The claim is named after the pod and the volume, so it dies with the pod and binds its replacement to nothing.
        return VolumeUse("ephemeral", volume.name)
    for kind in _DISKS:
        disk: wire.DiskVolume | None = getattr(volume, kind)
        if disk is not None:
            parts: Sequence[str] = (disk.pdName, disk.volumeID, disk.iqn, disk.pool, disk.image, ",".join(disk.monitors or ()))
            return VolumeUse(kind, "/".join(part for part in parts if part), disk.readOnly)
    return None


def _qos(spec: wire.PodSpec) -> QosClass:
    """Derive the class where the status does not say: https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/."""
    guaranteed, anything = True, False
    for container in [*(spec.containers or ()), *(spec.initContainers or ())]:
        raw = present(container.resources)
        required = decode_part(raw, _REQUIREMENTS, f"resources of container {container.name}") if raw else wire.Requirements()
        requests, limits = amounts(required.requests), amounts(required.limits)
        for name in ("cpu", "memory"):
            if requests.get(name) or limits.get(name):
                anything = True
            if not limits.get(name) or requests.get(name, limits[name]) != limits[name]:
                guaranteed = False
    if not anything:
        return QosClass.BEST_EFFORT
    return QosClass.GUARANTEED if guaranteed else QosClass.BURSTABLE
