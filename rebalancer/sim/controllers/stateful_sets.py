"""StatefulSets: pods with ordinals, one after another, the old one gone before the new one comes.

Source: kubernetes/kubernetes pkg/controller/statefulset/stateful_set_control.go
"""

from __future__ import annotations

import copy
from typing import Any

from rebalancer.sim.controllers.indexes import Indexes, controller_of
from rebalancer.sim.controllers.loop import Loop
from rebalancer.sim.controllers.pods import create_pod, is_active, is_finished, is_ready, write_status
from rebalancer.sim.controllers.revisions import HASH, Revisions
from rebalancer.sim.deletion import DeleteOptions, delete
from rebalancer.sim.events import EventWriter
from rebalancer.sim.history import Event, Key, Object
from rebalancer.sim.kinds import CLAIM, POD, STATEFUL_SET
from rebalancer.sim.registry import Registry


class StatefulSetController:
    """Keeps the pods of every StatefulSet."""

    def __init__(self, registry: Registry, indexes: Indexes, events: EventWriter) -> None:
        self._registry = registry
        self._indexes = indexes
        self._events = events
        self._revisions = Revisions(registry, indexes)
        self._loop = Loop(self.reconcile)
        registry.store.listen(STATEFUL_SET.storage, self._on_set)
        registry.store.listen("pods", self._on_pod)
        for key in registry.store.keys(STATEFUL_SET.storage):
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
            if owner is not None and owner[0] == "StatefulSet":
                self._loop.add((event.key[0], owner[1]))
                return

    def reconcile(self, key: Key) -> float | None:
        """Move one StatefulSet one step on."""
        owner = self._registry.store.get(STATEFUL_SET.storage, *key)
        if owner is None:
            return None
        update, current = self._revisions.of(owner)
        pods = {_ordinal(pod): pod for pod in self._indexes.pods_by_owner.get(owner["metadata"]["uid"])}
        if "deletionTimestamp" not in owner["metadata"]:
            self._step(owner, pods, update, current)
        pods = {_ordinal(pod): pod for pod in self._indexes.pods_by_owner.get(owner["metadata"]["uid"])}
        self._status(key, pods, update, current)
        return None

    def _step(self, owner: Object, pods: dict[int, Object], update: Object, current: Object) -> None:
        spec = owner["spec"]
        start = spec.get("ordinals", {}).get("start", 0)
        wanted = range(start, start + spec.get("replicas", 0))
        one_by_one = spec.get("podManagementPolicy", "OrderedReady") == "OrderedReady"
        partition = spec.get("updateStrategy", {}).get("rollingUpdate", {}).get("partition", 0)
        for ordinal in wanted:
            pod = pods.get(ordinal)
            if pod is not None and is_finished(pod) and "deletionTimestamp" not in pod["metadata"]:
                self._delete(owner, pod)
                return
            if pod is None:
                self._create(owner, ordinal, update if ordinal >= partition else current)
            if one_by_one and (pod is None or not is_ready(pod) or "deletionTimestamp" in pod["metadata"]):
                return
        beyond = sorted((ordinal for ordinal in pods if ordinal not in wanted), reverse=True)
        for ordinal in beyond:
            if is_active(pods[ordinal]):
                self._delete(owner, pods[ordinal])
            if one_by_one:
                return
        if spec.get("updateStrategy", {}).get("type") == "OnDelete":
            return
        self._roll(owner, [pods[ordinal] for ordinal in wanted if ordinal >= partition and ordinal in pods], update)

    def _roll(self, owner: Object, pods: list[Object], update: Object) -> None:
        for pod in reversed(pods):
            if pod["metadata"].get("labels", {}).get(HASH) != update["metadata"]["name"]:
                if "deletionTimestamp" not in pod["metadata"]:
                    self._delete(owner, pod)
                return
            if not is_ready(pod):
                return

    def _create(self, owner: Object, ordinal: int, revision: Object) -> None:
        name = f"{owner['metadata']['name']}-{ordinal}"
        namespace = owner["metadata"]["namespace"]
        template = revision["data"]["spec"]["template"]
        spec: dict[str, Any] = {"hostname": name, "subdomain": owner["spec"].get("serviceName", "")}
        volumes = copy.deepcopy(template["spec"].get("volumes", []))
        for claim in owner["spec"].get("volumeClaimTemplates", ()):
            claim_name = f"{claim['metadata']['name']}-{name}"
            volumes = [volume for volume in volumes if volume["name"] != claim["metadata"]["name"]]
            volumes.append({"name": claim["metadata"]["name"], "persistentVolumeClaim": {"claimName": claim_name}})
            if self._registry.store.get(CLAIM.storage, namespace, claim_name) is None:
                made = {"metadata": {**claim["metadata"], "name": claim_name}, "spec": copy.deepcopy(claim["spec"])}
                self._registry.create(CLAIM, namespace, made)
        if volumes:
            spec["volumes"] = volumes
        labels = {
            "apps.kubernetes.io/pod-index": str(ordinal),
            HASH: revision["metadata"]["name"],
            "statefulset.kubernetes.io/pod-name": name,
        }
        spec = {field: value for field, value in spec.items() if value}
        create_pod(self._registry, owner, template, name=name, labels=labels, spec=spec)
        self._events.normal(owner, "SuccessfulCreate", f"create Pod {name} in StatefulSet {owner['metadata']['name']} successful")

    def _delete(self, owner: Object, pod: Object) -> None:
        metadata = pod["metadata"]
        delete(self._registry, POD, metadata["namespace"], metadata["name"], DeleteOptions(uid=metadata["uid"]))
        name = owner["metadata"]["name"]
        self._events.normal(owner, "SuccessfulDelete", f"delete Pod {metadata['name']} in StatefulSet {name} successful")

    def _status(self, key: Key, pods: dict[int, Object], update: Object, current: Object) -> None:
        owner = self._registry.store.get(STATEFUL_SET.storage, *key)
        if owner is None:
            return
        live = [pod for pod in pods.values() if not is_finished(pod)]
        revisions = [pod["metadata"].get("labels", {}).get(HASH) for pod in live if is_active(pod)]
        new, old = update["metadata"]["name"], current["metadata"]["name"]
        wanted = owner["spec"].get("replicas", 0)
        ready = sum(is_ready(pod) for pod in live)
        rolled = revisions.count(new) == wanted and ready == wanted == len(live)
        if rolled:
            old = new
            self._revisions.settle(owner, update)
        status: dict[str, Any] = {
            "observedGeneration": owner["metadata"].get("generation"),
            "replicas": len(live),
            "readyReplicas": ready or None,
            "currentReplicas": (revisions.count(old)) or None,
            "updatedReplicas": revisions.count(new) or None,
            "currentRevision": old,
            "updateRevision": new,
            "collisionCount": 0,
            "availableReplicas": ready,
        }
        write_status(self._registry, STATEFUL_SET, owner, status)


def _ordinal(pod: Object) -> int:
    text = pod["metadata"]["name"].rpartition("-")[2]
    return int(text) if text.isdigit() else -1
