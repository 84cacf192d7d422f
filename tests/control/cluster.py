"""A cache that tests fill with objects as the API server would send them; builders that state only what matters."""

from __future__ import annotations

import json
from typing import Any

from rebalancer.cache.store import Cache
from rebalancer.model.change import Changed, Connected, Listed, Removed
from rebalancer.model.plan import Approval
from rebalancer.model.pod import Pod
from rebalancer.model.trigger import Fact
from tests.control.virtual import VirtualClock

Json = dict[str, Any]


def a_node(name: str, *, ready: bool = True, cordoned: bool = False, taints: tuple[Json, ...] = (), cpu: str = "4") -> Json:
    """Return a node that can take pods unless said otherwise."""
    return {
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": {"kubernetes.io/hostname": name}},
        "spec": {"unschedulable": cordoned, "taints": list(taints)},
        "status": {
            "allocatable": {"cpu": cpu, "memory": "16Gi", "pods": "110"},
            "capacity": {"cpu": cpu, "memory": "16Gi", "pods": "110"},
            "conditions": [
                {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}
            ],
        },
    }


def a_pod(
    name: str,
    node: str | None = "n1",
    *,
    app: str = "web",
    kind: str = "ReplicaSet",
    uid: str = "",
    phase: str = "Running",
    ready: bool = True,
    terminating: bool = False,
    created: str = "2026-01-01T00:00:00Z",
) -> Json:
    """Return a running, ready pod of a ReplicaSet called like its app; an empty app makes it bare."""
    metadata: Json = {
        "name": name,
        "namespace": "ns",
        "uid": uid or f"uid-{name}",
        "labels": {"app": app},
        "creationTimestamp": created,
    }
    if app:
        metadata["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": kind, "name": app, "uid": f"uid-{app}", "controller": True}
        ]
    if terminating:
        metadata |= {"deletionTimestamp": "2026-10-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
    status: Json = {
        "phase": phase,
        "conditions": [{"type": "Ready", "status": "True" if ready and phase == "Running" else "False"}],
    }
    spec: Json = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]}
    return {"kind": "Pod", "metadata": metadata, "spec": spec | ({"nodeName": node} if node else {}), "status": status}


def a_budget(
    name: str = "budget",
    *,
    allowed: int = 1,
    app: str = "web",
    version: str = "1",
    disrupted: tuple[str, ...] = (),
    always_allow: bool = False,
    current: int = 3,
    desired: int = 2,
) -> Json:
    """Return a budget that selects an app."""
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}", "generation": 1, "resourceVersion": version},
        "spec": {
            "minAvailable": desired,
            "selector": {"matchLabels": {"app": app}},
            "unhealthyPodEvictionPolicy": "AlwaysAllow" if always_allow else "IfHealthyBudget",
        },
        "status": {
            "observedGeneration": 1,
            "disruptionsAllowed": allowed,
            "currentHealthy": current,
            "desiredHealthy": desired,
            "expectedPods": current,
            "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
        },
    }


def a_replica_set(app: str = "web", replicas: int = 3, *, generation: int = 1) -> Json:
    """Return a ReplicaSet whose pods are all ready."""
    return {
        "kind": "ReplicaSet",
        "metadata": {"name": app, "namespace": "ns", "uid": f"uid-{app}", "generation": generation},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": app}}},
        "status": {
            "replicas": replicas,
            "readyReplicas": replicas,
            "availableReplicas": replicas,
            "observedGeneration": generation,
        },
    }


def an_approval(pod: Json, **landings: float) -> Approval:
    """Return the approval of a pod, with landings by node."""
    metadata = pod["metadata"]
    owners = metadata.get("ownerReferences") or [{"uid": ""}]
    return Approval(
        pod=f"{metadata['namespace']}/{metadata['name']}",
        uid=metadata["uid"],
        node=pod["spec"].get("nodeName", ""),
        owner_uid=owners[0]["uid"],
        profile="default",
        strategy="RemoveDuplicates",
        reason="two of its owner on this node",
        landings=landings,
    )


class World:
    """A synced cache in virtual time."""

    def __init__(self, *objects: Json) -> None:
        """Start with these objects, everything listed and connected."""
        self.clock = VirtualClock()
        self.cache = Cache(clock=self.clock.monotonic, wall_clock=self.clock.now)
        self._objects = objects

    async def sync(self) -> World:
        """List what the world starts with."""
        for kind in self.cache.kinds:
            parse = self.cache.parser(kind)
            objects = [parse(json.dumps(each).encode()) for each in self._objects if each["kind"] == kind]
            await self.cache.receive(Listed(kind, objects, "1"))
            await self.cache.receive(Connected(kind))
        return self

    async def sync_connection(self, kind: str) -> None:
        """Have the watch of a kind taken up again."""
        await self.cache.receive(Connected(kind))

    def put(self, obj: Json) -> tuple[Fact, ...]:
        """Have an object added or changed."""
        value = self.cache.parser(obj["kind"])(json.dumps(obj).encode())
        return self.cache.apply(Changed(obj["kind"], value))

    def remove(self, obj: Json) -> tuple[Fact, ...]:
        """Have an object removed."""
        metadata = obj["metadata"]
        return self.cache.apply(Removed(obj["kind"], metadata.get("namespace", ""), metadata["name"], metadata["uid"]))

    def pod(self, name: str) -> Pod:
        """Return a pod that is there."""
        found = self.cache.pod(f"ns/{name}")
        assert found is not None
        return found
