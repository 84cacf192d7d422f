"""Small objects, as the API server would send them, and a cache that takes them in."""

from __future__ import annotations

import json
from typing import Any

from rebalancer.cache.store import Cache
from rebalancer.model.change import Changed, Removed
from rebalancer.model.trigger import Fact


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self, now: float = 1000.0) -> None:
        """Start at a moment."""
        self.now = now

    def __call__(self) -> float:
        """Return the moment."""
        return self.now


def a_pod(name: str, *, node: str = "", uid: str = "", namespace: str = "s", owner: str = "rs", **more: Any) -> dict[str, Any]:
    """A pod. more: ``phase``, ``ready``, ``deleted``, ``restarts``, ``app``."""
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}"}
    if namespace != "s":
        metadata["uid"] += f"-{namespace}"
    metadata["labels"] = {"app": more.get("app", "web")}
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": f"uid-{owner}", "controller": True}
        ]
    if more.get("deleted"):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": "c", "image": "i"}]} | ({"nodeName": node} if node else {}),
        "status": {
            "phase": more.get("phase", "Running"),
            "conditions": [{"type": "Ready", "status": "True" if more.get("ready") else "False"}],
            "containerStatuses": [{"name": "c", "restartCount": more.get("restarts", 0)}],
        },
    }


def a_node(name: str, *, ready: bool = True, cordoned: bool = False, taints: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    """A node. taints: keys, with effect NoSchedule. more: ``labels``, ``cpu``, ``uid``."""
    return {
        "kind": "Node",
        "metadata": {"name": name, "uid": more.get("uid", f"uid-{name}"), "labels": more.get("labels", {})},
        "spec": {"taints": [{"key": key, "effect": "NoSchedule"} for key in taints]}
        | ({"unschedulable": True} if cordoned else {}),
        "status": {
            "allocatable": {"cpu": more.get("cpu", "4"), "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def an_object(kind: str, name: str, namespace: str = "", **more: Any) -> dict[str, Any]:
    """Any other object. more: top-level fields."""
    metadata = {"name": name, "uid": f"uid-{kind}-{namespace}-{name}"} | ({"namespace": namespace} if namespace else {})
    return {"kind": kind, "metadata": metadata} | more


class Filled:
    """A cache with its clock, and short ways to put things in."""

    def __init__(self) -> None:
        """Start with an empty cache."""
        self.clock = Clock()
        self.wall_clock = Clock(2_000_000_000.0)
        self.cache = Cache(clock=self.clock, wall_clock=self.wall_clock)

    def parsed(self, body: dict[str, Any]) -> Any:
        """Parse an object as a watch would."""
        return self.cache.parser(body["kind"])(json.dumps(body).encode())

    def put(self, *bodies: dict[str, Any]) -> tuple[Fact, ...]:
        """Report objects as changed; return the facts."""
        return tuple(fact for body in bodies for fact in self.cache.apply(Changed(body["kind"], self.parsed(body))))

    def remove(self, body: dict[str, Any]) -> tuple[Fact, ...]:
        """Report an object as gone."""
        metadata = body["metadata"]
        return self.cache.apply(Removed(body["kind"], metadata.get("namespace", ""), metadata["name"], metadata["uid"]))

    async def list(self, kind: str, *bodies: dict[str, Any], version: str = "1") -> tuple[Fact, ...]:
        """Report a whole list."""
        return await self.cache.replace(kind, [self.parsed(body) for body in bodies], version)

    async def sync(self, *bodies: dict[str, Any]) -> Filled:
        """List every kind, with these objects in it, and connect."""
        for kind in self.cache.kinds:
            await self.list(kind, *(body for body in bodies if body["kind"] == kind))
            self.cache.freshness.connected(kind)
        return self
