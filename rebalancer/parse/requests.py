"""Effective requests of a pod, as kube-scheduler sums them.

Rules: https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/#resource-sharing-within-containers,
https://kubernetes.io/docs/concepts/scheduling-eviction/pod-overhead/,
https://kubernetes.io/docs/tasks/configure-pod-container/assign-pod-level-resources/ and, for resized pods,
https://kubernetes.io/docs/tasks/configure-pod-container/resize-container-resources/
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rebalancer.errors import QuantityError
from rebalancer.model.quantity import millis, parse_quantity, units
from rebalancer.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resources
from rebalancer.parse import wire

# What kube-scheduler's scores assume of a container that requests nothing (pkg/scheduler/util/pod_resources.go).
DEFAULT_CPU_MILLICORES = 100
DEFAULT_MEMORY_BYTES = 200 * 1024 * 1024

# No node is as large, and sums of thousands of such amounts still fit 64 bits: whoever asks for 9E cpu breaks nothing.
LARGEST_AMOUNT = 2**52

Sums = dict[str, int]


@dataclass(frozen=True, slots=True)
class ContainerRequests:
    """What one container asks for.

    requests: by resource, cpu in millicores. sidecar: an init container that is restarted always.
    """

    requests: Mapping[str, int]
    sidecar: bool = False


def amounts(values: wire.Amounts | None) -> Sums:
    """Convert quantities: cpu to millicores, everything else to whole units; both rounded up.

    Raises QuantityError; negative amounts are refused, as the API server refuses them.
    """
    result = {}
    for name, value in (values or {}).items():
        try:
            amount = millis(value) if name == CPU else units(value)
        except QuantityError as error:
            raise QuantityError(f"{name}: {error}") from error
        if str(value).startswith("-") and parse_quantity(str(value)) < 0:
            raise QuantityError(f"{name}: {value!r} is negative")
        result[name] = amount
    return result


_NO_SCALARS: Mapping[str, int] = {}


def resources(sums: Mapping[str, int], pods: int | None = None) -> Resources:
    """Pack sums by name into Resources, none above LARGEST_AMOUNT. pods: overrides the ``pods`` entry."""
    known = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)
    return Resources(
        cpu_millicores=capped(sums.get(CPU, 0)),
        memory_bytes=capped(sums.get(MEMORY, 0)),
        ephemeral_storage_bytes=capped(sums.get(EPHEMERAL_STORAGE, 0)),
        pods=capped(sums.get(PODS, 0)) if pods is None else pods,
        scalars={name: capped(amount) for name, amount in sorted(sums.items()) if name not in known} or _NO_SCALARS,
    )


def capped(amount: int) -> int:
    """Return an amount, or the largest that is reckoned with."""
    return min(amount, LARGEST_AMOUNT)


def defaulted(required: wire.Requirements | None) -> Sums:
    """Return a container's requests; a limit without a request counts as one, as the API server defaults it."""
    if required is None:
        return {}
    requests = amounts(required.requests)
    for name, amount in amounts(required.limits).items():
        requests.setdefault(name, amount)
    return requests


def at_least(first: Mapping[str, int], second: Mapping[str, int]) -> Sums:
    """Return the larger amount of each resource."""
    result = dict(first)
    for name, amount in second.items():
        if amount > result.get(name, 0) or name not in result:
            result[name] = amount
    return result


def _add(into: Sums, other: Mapping[str, int]) -> None:
    for name, amount in other.items():
        into[name] = into.get(name, 0) + amount


def effective(
    main: Sequence[ContainerRequests],
    init: Sequence[ContainerRequests],
    pod_level: Mapping[str, int],
    overhead: Mapping[str, int],
    floor: Mapping[str, int] | None = None,
) -> Sums:
    """Sum what a pod needs: the larger of its running containers with sidecars and of each init step, plus overhead.

    pod_level: requests of the pod itself; they replace the sum for cpu, memory and huge pages.
    floor: what a container that names no request is taken to ask for (used for scoring only).
    """

    def of(container: ContainerRequests) -> Mapping[str, int]:
        if not floor:
            return container.requests
        return {**floor, **container.requests}

    total: Sums = {}
    for container in main:
        _add(total, of(container))
    sidecars: Sums = {}
    start: Sums = {}
    for container in init:
        if container.sidecar:
            _add(total, of(container))
            _add(sidecars, of(container))
            start = at_least(start, sidecars)
        else:
            step = dict(of(container))
            _add(step, sidecars)
            start = at_least(start, step)
    total = at_least(total, start)
    for name, amount in pod_level.items():
        if name in (CPU, MEMORY) or name.startswith("hugepages-"):
            total[name] = amount
    _add(total, overhead)
    return total
