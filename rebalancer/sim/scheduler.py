"""A small kube-scheduler: one pod after another, filters and scores over a cache that lags, ties at random.

As upstream it scores only a sample of the feasible nodes in clusters of more than 100, from a rotating start, and retries
pods that fit nowhere when something changes.
Source: kubernetes/kubernetes pkg/scheduler/schedule_one.go
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, deque
from collections.abc import Mapping
from typing import Any

from rebalancer.sim.binding import bind
from rebalancer.sim.controllers.indexes import controller_of
from rebalancer.sim.controllers.loop import GRAIN_SECONDS
from rebalancer.sim.events import EventWriter
from rebalancer.sim.history import Event, Key, Object
from rebalancer.sim.kinds import NODE, POD
from rebalancer.sim.problems import ApiProblem
from rebalancer.sim.registry import Registry
from rebalancer.sim.scheduler_cache import NodeInfo, PodInfo, SchedulerCache
from rebalancer.sim.scheduler_filters import Filters, describe, pod_scheduled_false
from rebalancer.sim.scheduler_scores import scores

NAME = "default-scheduler"
_MIN_FEASIBLE = 100
_MIN_PERCENT = 5
_FIRST_BACKOFF_SECONDS = 1.0
_MAX_BACKOFF_SECONDS = 10.0
_WORKLOADS = {
    "ReplicaSet": "replicasets.apps",
    "StatefulSet": "statefulsets.apps",
    "ReplicationController": "replicationcontrollers",
}


def feasible_wanted(nodes: int) -> int:
    """Return how many feasible nodes are looked for before scoring."""
    if nodes < _MIN_FEASIBLE:
        return nodes
    percent = max(_MIN_PERCENT, 50 - nodes // 125)
    return max(_MIN_FEASIBLE, nodes * percent // 100)


class Scheduler:
    """Binds pending pods to nodes.

    lag_seconds: bounds of how far the cache is behind the store.
    """

    def __init__(
        self,
        registry: Registry,
        events: EventWriter,
        source: random.Random,
        lag_seconds: tuple[float, float] = (0.05, 0.5),
    ) -> None:
        self._registry = registry
        self._events = events
        self._source = source
        self._lag_seconds = lag_seconds
        self._cache = SchedulerCache()
        self._coming: deque[tuple[float, Event]] = deque()
        self._queue: dict[Key, None] = {}
        self._waiting: dict[Key, int] = {}
        self._not_before: dict[Key, float] = {}
        self._start = 0
        self._wake = asyncio.Event()
        self._began = False
        for node in registry.store.objects(NODE.storage):
            self._cache.set_node(node["metadata"]["name"], node)
        for pod in registry.store.objects(POD.storage):
            metadata = pod["metadata"]
            self._take_pod((metadata["namespace"], metadata["name"]), pod)
        registry.store.listen(NODE.storage, self._on_event)
        registry.store.listen(POD.storage, self._on_event)

    def _on_event(self, event: Event) -> None:
        if not self._began:
            self._apply(event)
            return
        lag = self._source.uniform(*self._lag_seconds)
        now = asyncio.get_running_loop().time()
        due = max(now + lag, self._coming[-1][0] if self._coming else 0.0)
        self._coming.append((due, event))
        self._wake.set()

    def _apply(self, event: Event) -> None:
        if event.storage == NODE.storage:
            self._cache.set_node(event.key[1], event.after)
            if event.after is not None and _freer(event):
                self._retry_all()
            return
        self._take_pod(event.key, event.after)
        leaves = event.after is None and event.before is not None and event.before["spec"].get("nodeName")
        if leaves:
            self._retry_all()

    def _take_pod(self, key: Key, pod: Object | None) -> None:
        self._cache.set_pod(key, pod)
        if pod is None or not _is_ours(pod):
            self._queue.pop(key, None)
            self._waiting.pop(key, None)
            self._not_before.pop(key, None)
        elif key not in self._waiting:
            self._queue[key] = None

    def _retry_all(self) -> None:
        for key in self._waiting:
            if key not in self._queue:
                self._queue[key] = None

    async def run(self) -> None:
        """Schedule until cancelled."""
        loop = asyncio.get_running_loop()
        self._began = True
        done = 0
        while True:
            self._wake.clear()
            while self._coming and self._coming[0][0] <= loop.time() + GRAIN_SECONDS:
                self._apply(self._coming.popleft()[1])
            key = self._next(loop.time())
            if key is not None:
                self._schedule(key, loop.time())
                done += 1
                if done % 10 == 0:
                    await asyncio.sleep(0)
                continue
            times = [self._not_before.get(key, 0.0) for key in self._queue]
            if self._coming:
                times.append(self._coming[0][0])
            try:
                async with asyncio.timeout_at(min(times) if times else None):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def _next(self, now: float) -> Key | None:
        """Return the pod that is next: higher priority first, then the longest waiting."""
        best: tuple[int, int] | None = None
        chosen: Key | None = None
        for place, key in enumerate(self._queue):
            if self._not_before.get(key, 0.0) > now + GRAIN_SECONDS:
                continue
            pod = self._registry.store.get(POD.storage, *key)
            rank = (-(pod["spec"].get("priority") or 0) if pod else 0, place)
            if best is None or rank < best:
                best, chosen = rank, key
            if place > 500:
                break
        if chosen is not None:
            del self._queue[chosen]
        return chosen

    def _schedule(self, key: Key, now: float) -> None:
        pod = self._registry.store.get(POD.storage, *key)
        if pod is None or not _is_ours(pod):
            self._waiting.pop(key, None)
            return
        node, refusals, total = self.choose(PodInfo(pod))
        if node is None:
            self._give_up(key, pod, describe(refusals, total), now)
            return
        self._waiting.pop(key, None)
        self._not_before.pop(key, None)
        self._cache.place(pod, node)
        try:
            bound = bind(
                self._registry, *key, {"target": {"kind": "Node", "name": node}, "metadata": {"uid": pod["metadata"]["uid"]}}
            )
        except ApiProblem:
            self._cache.forget(key)
            return
        self._events.normal(bound, "Scheduled", f"Successfully assigned {key[0]}/{key[1]} to {node}")

    def choose(self, pod: PodInfo) -> tuple[str | None, Counter[str], int]:
        """Return the node for a pod (None: none fits), why others were refused, and how many nodes there are."""
        nodes = self._cache.usable()
        refusals: Counter[str] = Counter()
        filters = Filters(pod, nodes, self._namespace_labels, anti_affine=self._cache.anti_affine_pods > 0)
        wanted = feasible_wanted(len(nodes))
        feasible: list[NodeInfo] = []
        looked = 0
        for step in range(len(nodes)):
            node = nodes[(self._start + step) % len(nodes)]
            looked += 1
            why = filters.refusal(node)
            if why is None:
                feasible.append(node)
                if len(feasible) == wanted:
                    break
            else:
                refusals[why] += 1
        if nodes:
            self._start = (self._start + looked) % len(nodes)
        if not feasible:
            return None, refusals, len(nodes)
        if len(feasible) == 1:
            return feasible[0].name, refusals, len(nodes)
        rated = scores(pod, feasible, nodes, self._namespace_labels, self._owner_selector(pod.obj))
        best = max(rated.values())
        ties = [node.name for node in feasible if rated[node.name] == best]
        return self._source.choice(ties), refusals, len(nodes)

    def _give_up(self, key: Key, pod: Object, message: str, now: float) -> None:
        tries = self._waiting[key] = self._waiting.get(key, 0) + 1
        self._not_before[key] = now + min(_FIRST_BACKOFF_SECONDS * 2 ** (tries - 1), _MAX_BACKOFF_SECONDS)
        marked = pod_scheduled_false(pod, message, self._registry.now())
        if marked["status"] != pod.get("status"):
            pod = self._registry.store.put(POD.storage, marked)
        self._events.warning(pod, "FailedScheduling", message)

    def _namespace_labels(self, name: str) -> Mapping[str, str]:
        found = self._registry.store.get("namespaces", "", name)
        return (found["metadata"].get("labels") or {}) if found else {}

    def _owner_selector(self, pod: Object) -> dict[str, Any] | None:
        owner = controller_of(pod)
        storage = _WORKLOADS.get(owner[0]) if owner else None
        if owner is None or storage is None:
            return None
        found = self._registry.store.get(storage, pod["metadata"]["namespace"], owner[1])
        if found is None:
            return None
        selector: dict[str, Any] = found["spec"].get("selector") or {}
        return {"matchLabels": selector} if owner[0] == "ReplicationController" else selector


def _is_ours(pod: Object) -> bool:
    spec = pod["spec"]
    return (
        not spec.get("nodeName")
        and spec.get("schedulerName", NAME) == NAME
        and not spec.get("schedulingGates")
        and "deletionTimestamp" not in pod["metadata"]
        and pod.get("status", {}).get("phase") == "Pending"
    )


def _freer(event: Event) -> bool:
    before, after = event.before, event.after
    if before is None or after is None:
        return True
    if before["spec"] != after["spec"] or before["metadata"].get("labels") != after["metadata"].get("labels"):
        return True
    return bool(before.get("status", {}).get("allocatable") != after.get("status", {}).get("allocatable"))
