"""The metrics API as metrics-server would serve it: what running pods use, here a share of what they request.

``sim.rebalancer.io/cpu-usage`` and ``sim.rebalancer.io/memory-usage`` on a pod say otherwise.
Source: https://github.com/kubernetes/metrics
"""

from __future__ import annotations

from typing import Any

from rebalancer.model.quantity import millis, units
from rebalancer.sim.history import Object
from rebalancer.sim.kinds import NODE, POD
from rebalancer.sim.problems import method_not_allowed, no_such_resource, not_found
from rebalancer.sim.registry import Registry
from rebalancer.sim.requests import Answer, json_answer
from rebalancer.sim.routing import Route
from rebalancer.sim.scheduler_cache import requests_of

GROUP = "metrics.k8s.io"
VERSION = "v1beta1"
_SERVED = {"groupVersion": f"{GROUP}/{VERSION}", "version": VERSION}
API_GROUP: dict[str, Any] = {"name": GROUP, "versions": [_SERVED], "preferredVersion": _SERVED}
_KINDS = (("nodes", "NodeMetrics", False), ("pods", "PodMetrics", True))
RESOURCES: dict[str, Any] = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": f"{GROUP}/{VERSION}",
    "resources": [
        {"name": name, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": ["get", "list"]}
        for name, kind, namespaced in _KINDS
    ],
}
AGGREGATED: dict[str, Any] = {
    "metadata": {"name": GROUP},
    "versions": [
        {
            "version": VERSION,
            "resources": [
                {
                    "resource": name,
                    "responseKind": {"group": "", "version": "", "kind": kind},
                    "scope": "Namespaced" if namespaced else "Cluster",
                    "singularResource": "",
                    "verbs": ["get", "list"],
                }
                for name, kind, namespaced in _KINDS
            ],
            "freshness": "Current",
        }
    ],
}
_USED_PERCENT = 60
_PREFIX = "sim.rebalancer.io/"
_WINDOW = "15s"


def answer(registry: Registry, asked: Route) -> Answer:
    """Answer a request for metrics. Raises ApiProblem."""
    if asked.plural not in {"nodes", "pods"}:
        raise no_such_resource()
    if asked.verb not in {"get", "list"}:
        raise method_not_allowed(asked.verb, asked.plural)
    if asked.plural == "nodes":
        nodes = {obj["metadata"]["name"]: (0, 0) for obj in registry.store.objects("nodes")}
        for pod in _running(registry, None):
            used, name = usage(pod), pod["spec"]["nodeName"]
            if name in nodes:
                nodes[name] = (nodes[name][0] + used[0], nodes[name][1] + used[1])
        items = [_node(registry, name, *used) for name, used in sorted(nodes.items())]
        kind, missing = "NodeMetrics", NODE
    else:
        items = [_pod(registry, pod) for pod in _running(registry, asked.namespace)]
        kind, missing = "PodMetrics", POD
    if asked.verb == "list":
        return json_answer({"kind": f"{kind}List", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}, "items": items})
    found = next((item for item in items if item["metadata"]["name"] == asked.name), None)
    if found is None:
        raise not_found(missing, asked.name)
    return json_answer({"kind": kind, "apiVersion": f"{GROUP}/{VERSION}", **found})


def _running(registry: Registry, namespace: str | None) -> list[Object]:
    pods = registry.store.objects("pods", namespace)
    return [pod for pod in pods if pod.get("status", {}).get("phase") == "Running"]


def usage(pod: Object) -> tuple[int, int]:
    """Return what a pod uses: milli-CPUs and bytes."""
    requested, _ = requests_of(pod["spec"])
    notes = pod["metadata"].get("annotations") or {}
    cpu, memory = notes.get(_PREFIX + "cpu-usage"), notes.get(_PREFIX + "memory-usage")
    return (
        millis(cpu) if cpu else requested.get("cpu", 0) * _USED_PERCENT // 100,
        units(memory) if memory else requested.get("memory", 0) * _USED_PERCENT // 100,
    )


def _usage(cpu_milli: int, memory_bytes: int) -> dict[str, str]:
    return {"cpu": f"{cpu_milli}m", "memory": f"{memory_bytes // 1024}Ki"}


def _node(registry: Registry, name: str, cpu_milli: int, memory_bytes: int) -> Object:
    head = {"metadata": {"name": name, "creationTimestamp": registry.now()}, "timestamp": registry.now(), "window": _WINDOW}
    return {**head, "usage": _usage(cpu_milli, memory_bytes)}


def _pod(registry: Registry, pod: Object) -> Object:
    metadata = pod["metadata"]
    cpu, memory = usage(pod)
    containers = pod["spec"]["containers"]
    return {
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": metadata.get("labels") or {},
            "creationTimestamp": registry.now(),
        },
        "timestamp": registry.now(),
        "window": _WINDOW,
        "containers": [
            {"name": container["name"], "usage": _usage(cpu // len(containers), memory // len(containers))}
            for container in containers
        ],
    }
