"""Jobs and CronJobs, as far as a rebalancer meets them: pods until enough have succeeded.

Source: https://kubernetes.io/docs/concepts/workloads/controllers/job/
"""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from cronsim import CronSim

from rebalancer.sim.controllers.indexes import Indexes, controller_of
from rebalancer.sim.controllers.loop import Loop
from rebalancer.sim.controllers.pods import create_pod, is_active, is_ready, owner_reference, write_status
from rebalancer.sim.deletion import DeleteOptions, delete
from rebalancer.sim.events import EventWriter
from rebalancer.sim.history import Event, Key, Object
from rebalancer.sim.kinds import CRON_JOB, JOB, POD
from rebalancer.sim.moments import moment_of, stamp
from rebalancer.sim.registry import Registry


class JobController:
    """Runs the pods of every Job."""

    def __init__(self, registry: Registry, indexes: Indexes, events: EventWriter) -> None:
        self._registry = registry
        self._indexes = indexes
        self._events = events
        self._loop = Loop(self.reconcile)
        registry.store.listen(JOB.storage, self._on_job)
        registry.store.listen("pods", self._on_pod)
        for key in registry.store.keys(JOB.storage):
            self._loop.add(key)

    async def run(self) -> None:
        """Work until cancelled."""
        await self._loop.run()

    def _on_job(self, event: Event) -> None:
        if event.after is not None:
            self._loop.add(event.key)

    def _on_pod(self, event: Event) -> None:
        for pod in (event.after, event.before):
            owner = controller_of(pod) if pod is not None else None
            if owner is not None and owner[0] == "Job":
                self._loop.add((event.key[0], owner[1]))
                return

    def reconcile(self, key: Key) -> float | None:
        """Create what a Job still needs and write its status."""
        job = self._registry.store.get(JOB.storage, *key)
        if job is None or "deletionTimestamp" in job["metadata"]:
            return None
        if any(item.get("status") == "True" for item in job.get("status", {}).get("conditions", ())):
            return None
        spec = job["spec"]
        pods = self._indexes.pods_by_owner.get(job["metadata"]["uid"])
        active = [pod for pod in pods if is_active(pod)]
        phases = [pod.get("status", {}).get("phase") for pod in pods]
        succeeded, failed = phases.count("Succeeded"), phases.count("Failed")
        wanted = spec.get("completions", 1)
        broken = failed > spec.get("backoffLimit", 6)
        if not spec.get("suspend") and not broken:
            missing = min(spec.get("parallelism", 1), wanted - succeeded) - len(active)
            for _ in range(max(0, missing)):
                made = create_pod(self._registry, job, spec["template"])
                self._events.normal(job, "SuccessfulCreate", f"Created pod: {made['metadata']['name']}")
                active.append(made)
        self._status(job, active, succeeded, failed, done=succeeded >= wanted, broken=broken)
        return None

    def _status(self, job: Object, active: list[Object], succeeded: int, failed: int, *, done: bool, broken: bool) -> None:
        old = job.get("status", {})
        now = self._registry.now()
        status: dict[str, Any] = {
            "conditions": list(old.get("conditions", ())) or None,
            "startTime": old.get("startTime", now),
            "active": len(active) or None,
            "succeeded": succeeded or None,
            "failed": failed or None,
            "ready": sum(map(is_ready, active)),
            "terminating": 0,
        }
        if done or broken:
            kind = "Complete" if done else "Failed"
            reason = "CompletionsReached" if done else "BackoffLimitExceeded"
            condition = {"type": kind, "status": "True", "lastProbeTime": now, "lastTransitionTime": now, "reason": reason}
            status["conditions"] = [condition]
            if done:
                status["completionTime"] = now
            self._events.normal(job, "Completed" if done else reason, "Job completed" if done else "Job has failed")
        write_status(self._registry, JOB, job, status)


class CronJobController:
    """Starts the Jobs of every CronJob when they are due; what fell due before the cluster began is not made up for."""

    def __init__(self, registry: Registry, indexes: Indexes) -> None:
        self._registry = registry
        self._indexes = indexes
        self._began = registry.clock()
        self._loop = Loop(self.reconcile)
        registry.store.listen(CRON_JOB.storage, self._on_cron_job)
        registry.store.listen(JOB.storage, self._on_job)
        for key in registry.store.keys(CRON_JOB.storage):
            self._loop.add(key)

    async def run(self) -> None:
        """Work until cancelled."""
        await self._loop.run()

    def _on_cron_job(self, event: Event) -> None:
        if event.after is not None:
            self._loop.add(event.key)

    def _on_job(self, event: Event) -> None:
        owner = controller_of(event.after or event.before or {"metadata": {}})
        if owner is not None and owner[0] == "CronJob":
            self._loop.add((event.key[0], owner[1]))

    def reconcile(self, key: Key) -> float | None:
        """Start a Job if one is due; come back when the next one is."""
        cron = self._registry.store.get(CRON_JOB.storage, *key)
        if cron is None or "deletionTimestamp" in cron["metadata"]:
            return None
        jobs = self._indexes.jobs_by_owner.get(cron["metadata"]["uid"])
        active = [job for job in jobs if not job.get("status", {}).get("conditions")]
        self._forget(cron, [job for job in jobs if job.get("status", {}).get("conditions")])
        status = {**cron.get("status", {}), "active": [_reference(job) for job in active] or None}
        again: float | None = None
        if not cron["spec"].get("suspend"):
            due, again = self._due(cron)
            may = cron["spec"].get("concurrencyPolicy") != "Forbid" or not active
            if due is not None and may:
                if cron["spec"].get("concurrencyPolicy") == "Replace":
                    for job in active:
                        self._delete(job)
                made = self._start(cron, due)
                status["active"] = [*(status["active"] or ()), _reference(made)]
                status["lastScheduleTime"] = stamp(due)
        write_status(self._registry, CRON_JOB, cron, status)
        return again

    def _due(self, cron: Object) -> tuple[datetime | None, float]:
        zone = ZoneInfo(cron["spec"].get("timeZone") or "UTC")
        now = self._registry.clock()
        last = cron.get("status", {}).get("lastScheduleTime") or cron["metadata"]["creationTimestamp"]
        since = max(moment_of(last), self._began)
        times = CronSim(cron["spec"]["schedule"], since.astimezone(zone))
        due: datetime | None = None
        following = next(times).astimezone(UTC)
        while following <= now:
            due, following = following, next(times).astimezone(UTC)
        return due, (following - now).total_seconds()

    def _start(self, cron: Object, due: datetime) -> Object:
        template = copy.deepcopy(cron["spec"]["jobTemplate"])
        metadata = {**template.get("metadata", {}), "name": f"{cron['metadata']['name']}-{int(due.timestamp()) // 60}"}
        metadata["ownerReferences"] = [owner_reference(cron)]
        job = {"kind": "Job", "apiVersion": "batch/v1", "metadata": metadata, "spec": template["spec"]}
        return self._registry.create_read(JOB, cron["metadata"]["namespace"], job)

    def _forget(self, cron: Object, finished: list[Object]) -> None:
        for kind, limit in (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit")):
            ended = [job for job in finished if job["status"]["conditions"][0]["type"] == kind]
            ended.sort(key=lambda job: job["metadata"]["creationTimestamp"])
            for job in ended[: max(0, len(ended) - cron["spec"].get(limit, 1))]:
                self._delete(job)

    def _delete(self, job: Object) -> None:
        for pod in self._indexes.pods_by_owner.get(job["metadata"]["uid"]):
            delete(self._registry, POD, pod["metadata"]["namespace"], pod["metadata"]["name"], DeleteOptions())
        options = DeleteOptions(propagation="Background")
        delete(self._registry, JOB, job["metadata"]["namespace"], job["metadata"]["name"], options)


def _reference(job: Object) -> dict[str, str]:
    metadata = job["metadata"]
    return {
        "kind": "Job",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "apiVersion": "batch/v1",
        "resourceVersion": metadata["resourceVersion"],
    }
