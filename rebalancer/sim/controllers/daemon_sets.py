"""DaemonSets: one pod on each node that suits, placed by the scheduler through its node affinity.

Source: kubernetes/kubernetes pkg/controller/daemon/daemon_controller.go
"""

from __future__ import annotations

import copy
from typing import Any

from rebalancer.sim.controllers.deployments import share
from rebalancer.sim.controllers.indexes import Indexes, controller_of
from rebalancer.sim.controllers.loop import Loop
from rebalancer.sim.controllers.pods import create_pod, is_active, is_finished, is_ready, write_status
from rebalancer.sim.controllers.revisions import HASH, Revisions
from rebalancer.sim.deletion import DeleteOptions, delete
from rebalancer.sim.events import EventWriter
from rebalancer.sim.fitting import matches_node, untolerated
from rebalancer.sim.history import Event, Key, Object
from rebalancer.sim.kinds import DAEMON_SET, POD
from rebalancer.sim.registry import Registry

_TOLERATED = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
_HARD = frozenset({"NoSchedule", "NoExecute"})


class DaemonSetController:
    """Keeps the pods of every DaemonSet."""

    def __init__(self, registry: Registry, indexes: Indexes, events: EventWriter) -> None:
        self._registry = registry
        self._indexes = indexes
        self._events = events
        self._revisions = Revisions(registry, indexes)
        self._loop = Loop(self.reconcile)
        registry.store.listen(DAEMON_SET.storage, self._on_set)
        registry.store.listen("pods", self._on_pod)
        registry.store.listen("nodes", self._on_node)
        for key in registry.store.keys(DAEMON_SET.storage):
            self._loop.add(key)

    async def run(self) -> None:
        """Work until cancelled."""
        await self._loop.run()

    def _on_set(self, event: Event) -> None:
        if event.after is not None:
            self._loop.add(event.key)

    def _on_pod(self, event: Event) -> None:
        for pod in (event.after, event.before):
            owner = controller_of(pod) if pod is not None else None
            if owner is not None and owner[0] == "DaemonSet":
                self._loop.add((event.key[0], owner[1]))
                return

    def _on_node(self, event: Event) -> None:
        before, after = event.before or {}, event.after or {}
        same = before.get("spec") == after.get("spec")
        if same and before.get("metadata", {}).get("labels") == after.get("metadata", {}).get("labels"):
            return
        for key in self._registry.store.keys(DAEMON_SET.storage):
            self._loop.add(key)

    def reconcile(self, key: Key) -> float | None:
        """Create and delete the pods of one DaemonSet, roll it, write its status."""
        owner = self._registry.store.get(DAEMON_SET.storage, *key)
        if owner is None:
            return None
        update, _ = self._revisions.of(owner)
        digest = update["metadata"]["labels"][HASH]
        by_node: dict[str, list[Object]] = {}
        for pod in self._indexes.pods_by_owner.get(owner["metadata"]["uid"]):
            by_node.setdefault(_target(pod), []).append(pod)
        wanted = [node["metadata"]["name"] for node in self._registry.store.objects("nodes") if _suits(owner, node)]
        if "deletionTimestamp" not in owner["metadata"]:
            self._place(owner, wanted, by_node, digest)
            self._roll(owner, by_node, digest)
        self._status(owner, set(wanted), digest)
        return None

    def _place(self, owner: Object, wanted: list[str], by_node: dict[str, list[Object]], digest: str) -> None:
        for name in sorted(wanted):
            pods = by_node.get(name, [])
            for pod in pods:
                if is_finished(pod) and "deletionTimestamp" not in pod["metadata"]:
                    self._delete(owner, pod)
            if not pods:
                self._create(owner, name, digest)
        for name in sorted(set(by_node) - set(wanted)):
            for pod in by_node[name]:
                if is_active(pod):
                    self._delete(owner, pod)

    def _create(self, owner: Object, node: str, digest: str) -> None:
        template = owner["spec"]["template"]
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        affinity: dict[str, Any] = copy.deepcopy(template["spec"].get("affinity", {}))
        required = {"nodeSelectorTerms": [term]}
        affinity.setdefault("nodeAffinity", {})["requiredDuringSchedulingIgnoredDuringExecution"] = required
        tolerations = [*copy.deepcopy(template["spec"].get("tolerations", [])), *_daemon_tolerations(template["spec"])]
        spec = {"affinity": affinity, "tolerations": tolerations}
        labels = {HASH: digest, "pod-template-generation": str(owner["metadata"].get("generation", 1))}
        pod = create_pod(self._registry, owner, template, labels=labels, spec=spec)
        self._events.normal(owner, "SuccessfulCreate", f"Created pod: {pod['metadata']['name']}")

    def _roll(self, owner: Object, by_node: dict[str, list[Object]], digest: str) -> None:
        strategy = owner["spec"].get("updateStrategy", {})
        if strategy.get("type") == "OnDelete":
            return
        pods = [pod for pods in by_node.values() for pod in pods]
        limit = max(1, share(strategy.get("rollingUpdate", {}).get("maxUnavailable", 1), len(by_node), up=True))
        missing = sum(not is_active(pod) or not is_ready(pod) for pod in pods)
        stale = [pod for pod in pods if is_active(pod) and pod["metadata"].get("labels", {}).get(HASH) != digest]
        stale.sort(key=lambda pod: (is_ready(pod), pod["metadata"]["name"]))
        for pod in stale:
            if is_ready(pod):
                if missing >= limit:
                    return
                missing += 1
            self._delete(owner, pod)

    def _delete(self, owner: Object, pod: Object) -> None:
        metadata = pod["metadata"]
        delete(self._registry, POD, metadata["namespace"], metadata["name"], DeleteOptions(uid=metadata["uid"]))
        self._events.normal(owner, "SuccessfulDelete", f"Deleted pod: {metadata['name']}")

    def _status(self, owner: Object, wanted: set[str], digest: str) -> None:
        current = self._registry.store.get(DAEMON_SET.storage, owner["metadata"]["namespace"], owner["metadata"]["name"])
        if current is None:
            return
        pods = [pod for pod in self._indexes.pods_by_owner.get(owner["metadata"]["uid"]) if is_active(pod)]
        right = [pod for pod in pods if _target(pod) in wanted]
        ready = sum(map(is_ready, right))
        updated = sum(pod["metadata"].get("labels", {}).get(HASH) == digest for pod in right)
        status = {
            "currentNumberScheduled": len({_target(pod) for pod in right}),
            "numberMisscheduled": len(pods) - len(right),
            "desiredNumberScheduled": len(wanted),
            "numberReady": ready,
            "observedGeneration": current["metadata"].get("generation"),
            "updatedNumberScheduled": updated or None,
            "numberAvailable": ready or None,
            "numberUnavailable": (len(wanted) - ready) or None,
        }
        write_status(self._registry, DAEMON_SET, current, status)


def _target(pod: Object) -> str:
    if pod["spec"].get("nodeName"):
        return str(pod["spec"]["nodeName"])
    node_affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    terms = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", ())
    for term in terms:
        for field in term.get("matchFields", ()):
            return str(field["values"][0])
    return ""


def _suits(owner: Object, node: Object) -> bool:
    spec = owner["spec"]["template"]["spec"]
    tolerations = [*spec.get("tolerations", ()), *_daemon_tolerations(spec)]
    return matches_node(spec, node) and untolerated(node, tolerations, _HARD) is None


def _daemon_tolerations(spec: dict[str, Any]) -> list[dict[str, Any]]:
    extra = [{"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect} for key, effect in _TOLERATED]
    if spec.get("hostNetwork"):
        extra.append({"key": "node.kubernetes.io/network-unavailable", "operator": "Exists", "effect": "NoSchedule"})
    return extra
