"""Simulated kubelets: pods start after a delay, become ready, run, and stop within their grace period.

What a pod does can be said in its annotations (all optional):
``sim.rebalancer.io/start-seconds``, ``sim.rebalancer.io/stop-seconds``, ``sim.rebalancer.io/run-seconds`` (for pods that
end by themselves), ``sim.rebalancer.io/never-ready: "true"``, ``sim.rebalancer.io/exit-code``.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from rebalancer.sim.controllers.loop import GRAIN_SECONDS, Loop
from rebalancer.sim.deletion import DeleteOptions, delete
from rebalancer.sim.events import EventWriter
from rebalancer.sim.history import Event, Key, Object
from rebalancer.sim.kinds import NODE, POD
from rebalancer.sim.moments import moment_of
from rebalancer.sim.registry import Registry

_PREFIX = "sim.rebalancer.io/"


@dataclass(frozen=True, slots=True)
class KubeletTimes:
    """How long things take, each in seconds, drawn evenly between two bounds.

    start: from binding to Running. ready: from Running to Ready. stop: from deletion to gone, at most the grace period.
    run: how long a pod runs that ends by itself. node_ready: from joining to Ready.
    """

    start: tuple[float, float] = (0.2, 0.8)
    ready: tuple[float, float] = (0.1, 0.4)
    stop: tuple[float, float] = (0.2, 1.0)
    run: tuple[float, float] = (3.0, 6.0)
    node_ready: tuple[float, float] = (0.3, 1.0)


class Kubelets:
    """The kubelets of all nodes that have one.

    nodes: the nodes with a kubelet; pods elsewhere stay as they are.
    """

    def __init__(self, registry: Registry, events: EventWriter, source: random.Random, times: KubeletTimes) -> None:
        self._registry = registry
        self._events = events
        self._source = source
        self._times = times
        self._loop = Loop(self.reconcile, latency_seconds=0.005)
        self._begun: dict[Key, dict[str, datetime]] = {}
        self._addresses = 0
        self.nodes: set[str] = set()
        registry.store.listen("pods", self._on_pod)

    async def run(self) -> None:
        """Work until cancelled."""
        await self._loop.run()

    def manage(self, node: str) -> None:
        """Put a kubelet on a node; it reports Ready after a while, unless it is Ready already."""
        self.nodes.add(node)
        found = self._registry.store.get(NODE.storage, "", node)
        if found is not None and not _is_true(found, "Ready"):
            self._loop.add(("", node), self._draw(self._times.node_ready))

    def lose(self, node: str) -> None:
        """Take the kubelet off a node: nothing there starts or stops any more, and Ready becomes Unknown."""
        self.nodes.discard(node)
        if self._registry.store.get(NODE.storage, "", node) is not None:
            set_node_ready(self._registry, node, "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")

    def look_at(self, node_pods: list[Object]) -> None:
        """Have pods looked at that were there before the kubelet."""
        for pod in node_pods:
            self._loop.add((pod["metadata"]["namespace"], pod["metadata"]["name"]))

    def _draw(self, bounds: tuple[float, float]) -> float:
        return self._source.uniform(*bounds)

    def _on_pod(self, event: Event) -> None:
        pod = event.after
        if pod is None:
            self._begun.pop(event.key, None)
            return
        if pod["spec"].get("nodeName") in self.nodes:
            before = event.before
            bound = before is None or not before["spec"].get("nodeName")
            leaving = "deletionTimestamp" in pod["metadata"]
            if bound or leaving:
                self._loop.add(event.key)

    def reconcile(self, key: Key) -> float | None:
        """Do the next thing that is due for one pod, or report a node Ready."""
        if not key[0]:
            if key[1] in self.nodes:
                set_node_ready(self._registry, key[1], "True", "KubeletReady", "kubelet is posting ready status")
            return None
        pod = self._registry.store.get(POD.storage, *key)
        if pod is None or pod["spec"].get("nodeName") not in self.nodes:
            self._begun.pop(key, None)
            return None
        if "deletionTimestamp" in pod["metadata"]:
            return self._stop(pod)
        phase = pod.get("status", {}).get("phase")
        if phase in {"Succeeded", "Failed"}:
            return None
        if phase != "Running":
            return self._start(pod)
        if _ends(pod) and (left := self._left(pod, "run", self._times.run)) is not None:
            if left > 0:
                return left
            self._finish(pod)
            return None
        if not _is_true(pod, "Ready") and _note(pod, "never-ready") != "true":
            left = self._left(pod, "ready", self._times.ready)
            if left is not None and left > 0:
                return left
            self._set_ready(pod)
            return self._left(pod, "run", self._times.run) if _ends(pod) else None
        return None

    def _left(self, pod: Object, what: str, bounds: tuple[float, float]) -> float | None:
        """Return the seconds until something of a pod is due; the first call begins the wait."""
        begun, mark = self._marks(pod), f"{pod['metadata']['uid']}/{what}"
        due = begun.get(mark)
        if due is None:
            said = _note(pod, f"{what}-seconds")
            seconds = float(said) if said else self._draw(bounds)
            due = begun[mark] = self._registry.clock() + timedelta(seconds=seconds)
        left = (due - self._registry.clock()).total_seconds()
        return left if left > GRAIN_SECONDS else 0.0

    def _marks(self, pod: Object) -> dict[str, datetime]:
        """Return what has begun for a pod of this name, and when it is due; forgotten when the pod is gone."""
        return self._begun.setdefault((pod["metadata"]["namespace"], pod["metadata"]["name"]), {})

    def _start(self, pod: Object) -> float | None:
        left = self._left(pod, "start", self._times.start)
        if left is not None and left > 0:
            return left
        self._marks(pod).pop(f"{pod['metadata']['uid']}/start", None)
        now = self._registry.now()
        self._addresses += 1
        address = f"10.{64 + (self._addresses >> 16) % 64}.{(self._addresses >> 8) % 256}.{self._addresses % 256}"
        self._write(pod, "Running", ready=False, podIP=address, podIPs=[{"ip": address}], startTime=now)
        for container in pod["spec"]["containers"]:
            self._events.normal(pod, "Started", f"Started container {container['name']}")
        return 0.0

    def _set_ready(self, pod: Object) -> None:
        self._write(pod, "Running", ready=True)

    def _finish(self, pod: Object) -> None:
        self._marks(pod).pop(f"{pod['metadata']['uid']}/run", None)
        code = int(_note(pod, "exit-code") or 0)
        self._write(pod, "Failed" if code else "Succeeded", ready=False, exit_code=code)

    def _stop(self, pod: Object) -> float | None:
        metadata = pod["metadata"]
        grace = metadata.get("deletionGracePeriodSeconds", 0)
        mark = f"{metadata['uid']}/stop"
        begun = mark in self._marks(pod)
        left = self._left(pod, "stop", (min(self._times.stop[0], grace), min(self._times.stop[1], grace)))
        deadline = (moment_of(metadata["deletionTimestamp"]) - self._registry.clock()).total_seconds()
        left = min(left or 0.0, max(0.0, deadline + 1.0 if grace else 0.0))
        if left > 0:
            if not begun:
                for container in pod["spec"]["containers"]:
                    self._events.normal(pod, "Killing", f"Stopping container {container['name']}")
            return left
        self._marks(pod).pop(mark, None)
        if metadata.get("finalizers") and _ended(pod):
            return None
        if metadata.get("finalizers"):
            self._write(pod, "Succeeded", ready=False, exit_code=0)
        options = DeleteOptions(grace_seconds=0, uid=metadata["uid"])
        delete(self._registry, POD, metadata["namespace"], metadata["name"], options)
        return None

    def _write(self, pod: Object, phase: str, *, ready: bool, exit_code: int | None = None, **more: Any) -> None:
        now = self._registry.now()
        status = {**pod.get("status", {}), **more, "phase": phase}
        status["observedGeneration"] = pod["metadata"].get("generation", 1)
        node = self._registry.store.get(NODE.storage, "", pod["spec"]["nodeName"])
        addresses = (node or {}).get("status", {}).get("addresses", ())
        host = next((item["address"] for item in addresses if item["type"] == "InternalIP"), None)
        if host:
            status["hostIP"] = host
            status["hostIPs"] = [{"ip": host}]
        reason = "PodCompleted" if exit_code is not None else None if ready else "ContainersNotReady"
        held = {
            "PodReadyToStartContainers": (exit_code is None, None),
            "Initialized": (True, "PodCompleted" if exit_code is not None else None),
            "Ready": (ready, reason),
            "ContainersReady": (ready, reason),
            "PodScheduled": (True, None),
        }
        status["conditions"] = _conditions(pod, held, now)
        status["containerStatuses"] = [
            _container_status(pod, index, container, ready, exit_code, now)
            for index, container in enumerate(pod["spec"]["containers"])
        ]
        self._registry.store.put(POD.storage, {**pod, "metadata": dict(pod["metadata"]), "status": status})


def _conditions(pod: Object, held: dict[str, tuple[bool, str | None]], now: str) -> list[dict[str, Any]]:
    old = {item["type"]: item for item in pod.get("status", {}).get("conditions", ())}
    result = []
    for kind, (holds, reason) in held.items():
        known = old.pop(kind, {})
        state = "True" if holds else "False"
        since = known.get("lastTransitionTime") if known.get("status") == state else now
        made = {"type": kind, "status": state, "lastProbeTime": None, "lastTransitionTime": since or now}
        result.append(made | ({"reason": reason} if reason else {}))
    return [*result, *old.values()]


def _container_status(pod: Object, index: int, container: Object, ready: bool, exit_code: int | None, now: str) -> dict[str, Any]:
    known = pod.get("status", {}).get("containerStatuses", ())
    old: dict[str, Any] = known[index] if index < len(known) else {}
    started = (old.get("state", {}).get("running") or {}).get("startedAt", now)
    identity = f"containerd://{pod['metadata']['uid'].replace('-', '')}{index:032x}"
    state: dict[str, Any] = {"running": {"startedAt": started}}
    if exit_code is not None:
        reason = "Completed" if exit_code == 0 else "Error"
        ended = {"exitCode": exit_code, "reason": reason, "startedAt": started, "finishedAt": now, "containerID": identity}
        state = {"terminated": ended}
    return {
        "name": container["name"],
        "state": state,
        "lastState": old.get("lastState", {}),
        "ready": ready,
        "restartCount": old.get("restartCount", 0),
        "image": container.get("image", ""),
        "imageID": f"sim://{container.get('image', '')}",
        "containerID": identity,
        "started": exit_code is None,
    }


def _is_true(obj: Object, kind: str) -> bool:
    conditions = obj.get("status", {}).get("conditions", ())
    return any(item["type"] == kind and item.get("status") == "True" for item in conditions)


def _note(pod: Object, name: str) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(_PREFIX + name, ""))


def _ends(pod: Object) -> bool:
    return bool(pod["spec"].get("restartPolicy") != "Always")


def _ended(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}


def set_node_ready(registry: Registry, name: str, state: str, reason: str, message: str) -> None:
    """Set the Ready condition of a node as its kubelet, or the lack of one, would."""
    node = registry.store.get(NODE.storage, "", name)
    if node is None:
        return
    now = registry.now()
    conditions = []
    others = {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": state}
    old = {item["type"]: item for item in node.get("status", {}).get("conditions", ())}
    for kind, value in others.items():
        if state == "Unknown":
            value = "Unknown"
        known = old.pop(kind, {})
        since = known.get("lastTransitionTime") if known.get("status") == value else now
        condition = {"type": kind, "status": value, "lastHeartbeatTime": now, "lastTransitionTime": since or now}
        words = (reason, message) if kind == "Ready" or state == "Unknown" else (f"KubeletHasNo{kind}", f"kubelet has no {kind}")
        conditions.append({**condition, "reason": words[0], "message": words[1]})
    status = {**node.get("status", {}), "conditions": [*conditions, *old.values()]}
    registry.store.put(NODE.storage, {**node, "metadata": dict(node["metadata"]), "status": status})
