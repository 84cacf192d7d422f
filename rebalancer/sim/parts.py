"""The controllers, the scheduler and the kubelets of one cluster."""

from __future__ import annotations

import random

from rebalancer.sim.controllers.budgets import BudgetController
from rebalancer.sim.controllers.daemon_sets import DaemonSetController
from rebalancer.sim.controllers.deployments import DeploymentController
from rebalancer.sim.controllers.expiry import EventExpiry
from rebalancer.sim.controllers.garbage import GarbageCollector, PodCollector
from rebalancer.sim.controllers.indexes import Indexes
from rebalancer.sim.controllers.jobs import CronJobController, JobController
from rebalancer.sim.controllers.loop import Controller
from rebalancer.sim.controllers.namespaces import NamespaceController
from rebalancer.sim.controllers.nodes import NodeController
from rebalancer.sim.controllers.replica_sets import ReplicaSetController
from rebalancer.sim.controllers.stateful_sets import StatefulSetController
from rebalancer.sim.events import EventWriter
from rebalancer.sim.kinds import REPLICA_SET, REPLICATION_CONTROLLER
from rebalancer.sim.kubelet import Kubelets, KubeletTimes
from rebalancer.sim.registry import Registry
from rebalancer.sim.scheduler import Scheduler


class Parts:
    """Everything that works on the objects by itself."""

    def __init__(
        self,
        registry: Registry,
        source: random.Random,
        times: KubeletTimes,
        lag_seconds: tuple[float, float],
        *,
        write_events: bool,
    ) -> None:
        def writer(component: str) -> EventWriter:
            return EventWriter(registry, component, enabled=write_events)

        self._registry = registry
        self._indexes = indexes = Indexes(registry.store)
        self.kubelets = Kubelets(registry, writer("kubelet"), source, times)
        self.scheduler = Scheduler(registry, writer("default-scheduler"), source, lag_seconds)
        self._controllers: tuple[Controller, ...] = (
            ReplicaSetController(registry, indexes, REPLICA_SET, writer("replicaset-controller")),
            ReplicaSetController(registry, indexes, REPLICATION_CONTROLLER, writer("replication-controller")),
            DeploymentController(registry, indexes, writer("deployment-controller")),
            StatefulSetController(registry, indexes, writer("statefulset-controller")),
            DaemonSetController(registry, indexes, writer("daemonset-controller")),
            JobController(registry, indexes, writer("job-controller")),
            CronJobController(registry, indexes),
            BudgetController(registry),
            NodeController(registry, indexes, writer("node-controller")),
            GarbageCollector(registry),
            NamespaceController(registry),
            PodCollector(registry, indexes),
            EventExpiry(registry),
        )

    def all(self) -> tuple[Controller, ...]:
        """Return every part that runs."""
        return (*self._controllers, self.scheduler, self.kubelets)

    def adopt(self) -> None:
        """Put kubelets on the nodes that are there, and have them look at the pods that are not running yet."""
        for node in self._registry.store.objects("nodes"):
            name = node["metadata"]["name"]
            self.kubelets.manage(name)
            self.kubelets.look_at(
                [
                    pod
                    for pod in self._indexes.pods_by_node.get(name)
                    if "deletionTimestamp" in pod["metadata"] or pod.get("status", {}).get("phase") == "Pending"
                ]
            )
