"""The little world of the demo: its workloads, its policy, its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rebalancer.sim.cluster import EmbeddedCluster

NAMESPACE = "shop"
FIRST_NODES = 17
JOINING_NODES = 3
DEPLOYMENTS = 60

_PARTS = ("cart", "search", "login", "mail", "stock", "price", "media", "order", "price-feed", "report")
_CPU_MILLICORES = (100, 150, 200, 250, 300, 400)

POLICY: Mapping[str, Any] = {
    "apiVersion": "descheduler/v1alpha2",
    "kind": "DeschedulerPolicy",
    "profiles": [
        {
            "name": "demo",
            "pluginConfig": [
                {"name": "RemoveDuplicates"},
                {"name": "LowNodeUtilization", "args": {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}},
            ],
            "plugins": {"balance": {"enabled": ["RemoveDuplicates", "LowNodeUtilization"]}},
        }
    ],
}

SETTINGS: Mapping[str, str] = {
    "REBALANCER_DEBOUNCE_QUIET_SECONDS": "2",
    "REBALANCER_DEBOUNCE_MAXIMUM_SECONDS": "10",
    "REBALANCER_NODE_SETTLE_SECONDS": "2",
    "REBALANCER_CAP_NODE": "none",
    "REBALANCER_CAP_TOTAL": "60",
    "REBALANCER_EVICTIONS_PER_MINUTE": "120",
    "REBALANCER_MAX_IN_FLIGHT": "4",
}


def deployments(random: Random) -> Iterator[dict[str, Any]]:
    """Yield the Deployments, with two to four replicas and unequal requests."""
    for number in range(DEPLOYMENTS):
        name = f"{_PARTS[number % len(_PARTS)]}-{number // len(_PARTS) + 1}"
        container = {
            "name": "main",
            "image": "registry.example/shop:1",
            "resources": {"requests": {"cpu": f"{random.choice(_CPU_MILLICORES)}m", "memory": "128Mi"}},
        }
        yield {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "replicas": random.choice((2, 3, 3, 4)),
                "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
            },
        }


def requested(cluster: EmbeddedCluster) -> dict[str, float]:
    """Return the share of its allocatable cpu that is requested on each node, in percent, as the demo's cluster has it now."""
    from rebalancer.model.quantity import millis

    room = {node["metadata"]["name"]: millis(node["status"]["allocatable"]["cpu"]) for node in cluster.store.objects("nodes")}
    used = dict.fromkeys(room, 0)
    for pod in cluster.store.objects("pods"):
        node = pod["spec"].get("nodeName", "")
        if node in used and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            for container in pod["spec"]["containers"]:
                used[node] += millis(container.get("resources", {}).get("requests", {}).get("cpu", "0"))
    return {name: 100.0 * used[name] / room[name] for name in sorted(room)}


def all_ready(cluster: EmbeddedCluster) -> bool:
    """Say whether every pod of the demo runs and is Ready, and as many are there as the Deployments want."""
    wanted = sum(each["spec"]["replicas"] for each in cluster.store.objects("deployments.apps", NAMESPACE))
    pods = cluster.store.objects("pods", NAMESPACE)
    ready = 0
    for pod in pods:
        conditions = pod.get("status", {}).get("conditions", ())
        ready += any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return bool(ready == wanted > 0)
