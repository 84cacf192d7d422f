"""Deployments: a ReplicaSet per revision, rolled within the limits of the strategy.

Source: kubernetes/kubernetes pkg/controller/deployment (rolling.go, sync.go, progress.go)
"""

from __future__ import annotations

import copy
import math
from typing import Any

from rebalancer.sim.controllers.indexes import Indexes, controller_of
from rebalancer.sim.controllers.loop import Loop
from rebalancer.sim.controllers.pods import condition, is_active, owner_reference, put_spec, template_hash, write_status
from rebalancer.sim.deletion import DeleteOptions, delete
from rebalancer.sim.events import EventWriter
from rebalancer.sim.history import Event, Key, Object
from rebalancer.sim.kinds import DEPLOYMENT, REPLICA_SET
from rebalancer.sim.registry import Registry

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
_DESIRED = "deployment.kubernetes.io/desired-replicas"
_MAXIMUM = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED = frozenset({"kubectl.kubernetes.io/last-applied-configuration", REVISION, _DESIRED, _MAXIMUM})


def share(value: int | str, total: int, *, up: bool) -> int:
    """Return a number, or a percentage of a total rounded up or down."""
    if isinstance(value, int):
        return value
    exact = total * int(value.rstrip("%")) / 100
    return math.ceil(exact) if up else math.floor(exact)


class DeploymentController:
    """Rolls every Deployment towards its template and replicas."""

    def __init__(self, registry: Registry, indexes: Indexes, events: EventWriter) -> None:
        self._registry = registry
        self._indexes = indexes
        self._events = events
        self._loop = Loop(self.reconcile)
        registry.store.listen(DEPLOYMENT.storage, self._on_deployment)
        registry.store.listen(REPLICA_SET.storage, self._on_set)
        registry.store.listen("pods", self._on_pod)
        for key in registry.store.keys(DEPLOYMENT.storage):
            self._loop.add(key)

    async def run(self) -> None:
        """Work until cancelled."""
        await self._loop.run()

    def _on_deployment(self, event: Event) -> None:
        if event.after is not None:
            self._loop.add(event.key)

    def _on_set(self, event: Event) -> None:
        self._add_owner(event.key[0], event.after or event.before)

    def _on_pod(self, event: Event) -> None:
        if event.after is None and event.before is not None:
            owner = controller_of(event.before)
            if owner is not None and owner[0] == "ReplicaSet":
                self._add_owner(event.key[0], self._registry.store.get(REPLICA_SET.storage, event.key[0], owner[1]))

    def _add_owner(self, namespace: str, obj: Object | None) -> None:
        owner = controller_of(obj) if obj is not None else None
        if owner is not None and owner[0] == "Deployment":
            self._loop.add((namespace, owner[1]))

    def reconcile(self, key: Key) -> float | None:
        """Move one Deployment one step on."""
        deployment = self._registry.store.get(DEPLOYMENT.storage, *key)
        if deployment is None or "deletionTimestamp" in deployment["metadata"]:
            return None
        sets = self._sets(deployment)
        template = deployment["spec"]["template"]
        new = next((one for one in sets if _same_template(one, template)), None)
        recreate = deployment["spec"]["strategy"].get("type") == "Recreate"
        if deployment["spec"].get("paused"):
            self._scale_paused(deployment, sets, new)
        else:
            old = [one for one in sets if one is not new]
            if recreate and self._drain(deployment, old):
                self._status(deployment, self._sets(deployment), new)
                return None
            new = self._newest(deployment, sets, new, recreate)
            old = [one for one in self._sets(deployment) if one["metadata"]["name"] != new["metadata"]["name"]]
            if recreate:
                self._scale(deployment, new, deployment["spec"].get("replicas", 0))
            elif not self._scale_up(deployment, new, old):
                self._scale_down(deployment, new, old)
            self._clean_up(deployment, old)
        current = self._registry.store.get(DEPLOYMENT.storage, *key)
        if current is not None:
            sets = self._sets(current)
            self._status(current, sets, next((one for one in sets if _same_template(one, template)), None))
        return None

    def _sets(self, deployment: Object) -> list[Object]:
        sets = self._indexes.sets_by_owner.get(deployment["metadata"]["uid"])
        return sorted(sets, key=lambda one: (_revision(one), one["metadata"]["name"]))

    def _newest(self, deployment: Object, sets: list[Object], new: Object | None, recreate: bool) -> Object:
        highest = max((_revision(one) for one in sets if one is not new), default=0)
        revision = str(highest + 1)
        if new is not None:
            if _revision(new) <= highest:
                new = self._note(new, {REVISION: revision})
            self._note_revision(deployment, new["metadata"]["annotations"].get(REVISION, revision))
            return new
        template = copy.deepcopy(deployment["spec"]["template"])
        digest = template_hash(template, deployment.get("status", {}).get("collisionCount", 0))
        template.setdefault("metadata", {}).setdefault("labels", {})[HASH] = digest
        selector = copy.deepcopy(deployment["spec"]["selector"])
        selector.setdefault("matchLabels", {})[HASH] = digest
        notes = deployment["metadata"].get("annotations", {})
        replicas = 0 if not recreate else deployment["spec"].get("replicas", 0)
        created = self._registry.create_read(
            REPLICA_SET,
            deployment["metadata"]["namespace"],
            {
                "kind": "ReplicaSet",
                "apiVersion": "apps/v1",
                "metadata": {
                    "name": f"{deployment['metadata']['name']}-{digest}",
                    "labels": dict(template["metadata"]["labels"]),
                    "annotations": {
                        **{name: value for name, value in notes.items() if name not in _NOT_COPIED},
                        **_sizes(deployment),
                        REVISION: revision,
                    },
                    "ownerReferences": [owner_reference(deployment)],
                },
                "spec": {
                    "replicas": replicas,
                    "selector": selector,
                    "template": template,
                    **(
                        {"minReadySeconds": deployment["spec"]["minReadySeconds"]}
                        if "minReadySeconds" in deployment["spec"]
                        else {}
                    ),
                },
                "status": {"replicas": 0},
            },
        )
        self._note_revision(deployment, revision)
        return created

    def _note_revision(self, deployment: Object, revision: str) -> None:
        if deployment["metadata"].get("annotations", {}).get(REVISION) != revision:
            self._registry.modify(
                DEPLOYMENT,
                deployment["metadata"]["namespace"],
                deployment["metadata"]["name"],
                lambda obj: obj["metadata"].setdefault("annotations", {}).__setitem__(REVISION, revision),
            )

    def _note(self, one: Object, notes: dict[str, str]) -> Object:
        return self._registry.modify(
            REPLICA_SET,
            one["metadata"]["namespace"],
            one["metadata"]["name"],
            lambda obj: obj["metadata"].setdefault("annotations", {}).update(notes),
        )

    def _scale(self, deployment: Object, one: Object, replicas: int) -> None:
        before = one["spec"].get("replicas", 0)
        if before == replicas:
            return
        put_spec(self._registry, REPLICA_SET, one, replicas=replicas)
        self._note(one, _sizes(deployment))
        direction = "up" if replicas > before else "down"
        name = one["metadata"]["name"]
        self._events.normal(deployment, "ScalingReplicaSet", f"Scaled {direction} replica set {name} from {before} to {replicas}")

    def _scale_up(self, deployment: Object, new: Object, old: list[Object]) -> bool:
        wanted = deployment["spec"].get("replicas", 0)
        current = new["spec"].get("replicas", 0)
        if current > wanted:
            self._scale(deployment, new, wanted)
            return True
        if current == wanted:
            return False
        rolling = deployment["spec"]["strategy"].get("rollingUpdate", {})
        surge = share(rolling.get("maxSurge", "25%"), wanted, up=True)
        total = current + sum(one["spec"].get("replicas", 0) for one in old)
        room = wanted + surge - total
        if room <= 0:
            return False
        self._scale(deployment, new, min(wanted, current + room))
        return True

    def _scale_down(self, deployment: Object, new: Object, old: list[Object]) -> None:
        holding = [one for one in old if one["spec"].get("replicas", 0) > 0]
        if not holding:
            return
        wanted = deployment["spec"].get("replicas", 0)
        least = wanted - _max_unavailable(deployment, wanted)
        total = sum(one["spec"].get("replicas", 0) for one in [new, *old])
        new_missing = new["spec"].get("replicas", 0) - _available(new)
        may_go = total - least - new_missing
        for one in holding:
            unhealthy = one["spec"].get("replicas", 0) - _available(one)
            if may_go > 0 and unhealthy > 0:
                going = min(may_go, unhealthy)
                self._scale(deployment, one, one["spec"]["replicas"] - going)
                may_go -= going
        spare = sum(map(_available, [new, *old])) - least
        for one in self._sets(deployment):
            held = one["spec"].get("replicas", 0)
            if spare <= 0 or may_go <= 0:
                return
            if one["metadata"]["name"] != new["metadata"]["name"] and held:
                going = min(held, spare, may_go)
                self._scale(deployment, one, held - going)
                spare -= going
                may_go -= going

    def _drain(self, deployment: Object, old: list[Object]) -> bool:
        """Bring the old sets of a Recreate rollout to nothing; say whether any pod is still there."""
        waiting = False
        for one in old:
            self._scale(deployment, one, 0)
            pods = self._indexes.pods_by_owner.get(one["metadata"]["uid"])
            waiting = waiting or any(is_active(pod) or "deletionTimestamp" in pod["metadata"] for pod in pods)
        return waiting

    def _scale_paused(self, deployment: Object, sets: list[Object], new: Object | None) -> None:
        holding = [one for one in sets if one["spec"].get("replicas", 0)] or ([new] if new else [])
        if len(holding) == 1:
            self._scale(deployment, holding[0], deployment["spec"].get("replicas", 0))

    def _clean_up(self, deployment: Object, old: list[Object]) -> None:
        limit = deployment["spec"].get("revisionHistoryLimit", 10)
        empty = [one for one in old if not one["spec"].get("replicas") and not one["status"].get("replicas")]
        for one in empty[: max(0, len(empty) - limit)]:
            delete(self._registry, REPLICA_SET, one["metadata"]["namespace"], one["metadata"]["name"], DeleteOptions())

    def _status(self, deployment: Object, sets: list[Object], new: Object | None) -> None:
        wanted = deployment["spec"].get("replicas", 0)
        total = sum(one["status"].get("replicas", 0) for one in sets)
        available = sum(map(_available, sets))
        updated = new["status"].get("replicas", 0) if new else 0
        status: dict[str, Any] = {
            "observedGeneration": deployment["metadata"].get("generation"),
            "replicas": total or None,
            "updatedReplicas": updated or None,
            "readyReplicas": sum(one["status"].get("readyReplicas", 0) for one in sets) or None,
            "availableReplicas": available or None,
            "unavailableReplicas": max(0, sum(one["spec"].get("replicas", 0) for one in sets) - available) or None,
            "conditions": self._conditions(deployment, new, wanted, available, updated, total),
            "collisionCount": deployment.get("status", {}).get("collisionCount"),
        }
        write_status(self._registry, DEPLOYMENT, deployment, status)

    def _conditions(
        self, deployment: Object, new: Object | None, wanted: int, available: int, updated: int, total: int
    ) -> list[dict[str, Any]]:
        enough = available >= wanted - _max_unavailable(deployment, wanted)
        words = ("has", "MinimumReplicasAvailable") if enough else ("does not have", "MinimumReplicasUnavailable")
        found = [self._condition(deployment, "Available", enough, words[1], f"Deployment {words[0]} minimum availability.")]
        name = new["metadata"]["name"] if new else ""
        if deployment["spec"].get("paused"):
            reason, message = "DeploymentPaused", "Deployment is paused"
            return [*found, self._condition(deployment, "Progressing", None, reason, message)]
        done = updated == wanted == total and available == wanted
        reason = "NewReplicaSetAvailable" if done else "ReplicaSetUpdated"
        message = f'ReplicaSet "{name}" ' + ("has successfully progressed." if done else "is progressing.")
        return [*found, self._condition(deployment, "Progressing", True, reason, message)]

    def _condition(self, deployment: Object, kind: str, holds: bool | None, reason: str, message: str) -> dict[str, Any]:
        now = self._registry.now()
        state = "Unknown" if holds is None else "True" if holds else "False"
        old = condition(deployment, kind) or {}
        if (old.get("status"), old.get("reason"), old.get("message")) == (state, reason, message):
            return old
        since = old["lastTransitionTime"] if old.get("status") == state else now
        return {
            "type": kind,
            "status": state,
            "lastUpdateTime": now,
            "lastTransitionTime": since,
            "reason": reason,
            "message": message,
        }


def _sizes(deployment: Object) -> dict[str, str]:
    wanted = deployment["spec"].get("replicas", 0)
    rolling = deployment["spec"]["strategy"].get("rollingUpdate", {})
    surge = share(rolling.get("maxSurge", 0), wanted, up=True)
    return {_DESIRED: str(wanted), _MAXIMUM: str(wanted + surge)}


def _max_unavailable(deployment: Object, wanted: int) -> int:
    if deployment["spec"]["strategy"].get("type") == "Recreate":
        return 0
    rolling = deployment["spec"]["strategy"].get("rollingUpdate", {})
    allowed = share(rolling.get("maxUnavailable", "25%"), wanted, up=False)
    if allowed == 0 and share(rolling.get("maxSurge", "25%"), wanted, up=True) == 0:
        return 1
    return min(allowed, wanted)


def _available(one: Object) -> int:
    return int(one["status"].get("availableReplicas", 0))


def _revision(one: Object) -> int:
    text = one["metadata"].get("annotations", {}).get(REVISION, "0")
    return int(text) if text.isdigit() else 0


def _same_template(one: Object, template: Object) -> bool:
    held = one["spec"]["template"]
    if held.get("spec") != template.get("spec"):
        return False
    mine, theirs = held.get("metadata", {}), template.get("metadata", {})
    labels = {name: value for name, value in mine.get("labels", {}).items() if name != HASH}
    return bool(labels == theirs.get("labels", {}) and mine.get("annotations", {}) == theirs.get("annotations", {}))
