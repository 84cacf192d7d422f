"""The cluster of a history, its replicas, and everything that can happen to them."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from rebalancer.policy import load
from rebalancer.service.parts import build
from rebalancer.settings import load_settings
from rebalancer.sim.cluster import EmbeddedCluster
from rebalancer.sim.history import Object
from rebalancer.sim.kinds import BUDGET, DEPLOYMENT, NODE, kind_named
from rebalancer.sim.kubelet import KubeletTimes, set_node_ready
from rebalancer.sim.nodes import NodeShape
from rebalancer.sim.problems import ApiProblem
from tests.control.virtual import VirtualClock
from tests.histories.actions import ACTIONS
from tests.histories.network import Line
from tests.histories.observer import Observer
from tests.histories.processes import Process, VirtualLoop
from tests.histories.replica import Build, Replica
from tests.histories.witness import LEASE, LEASE_KIND, Promises, Witness

# A whole number of window periods, so that a history begins as a window opens.
EPOCH = 1_790_000_100.0
STATEFUL_SET = kind_named("statefulsets", "apps")

PROMISES = Promises(
    per_minute=10,
    per_node=2,
    per_workload=2,
    total=6,
    run_deadline=60.0,
    lease=15.0,
    renew=10.0,
    request=3.0,
    stale_disconnected=10.0,
    stale_silent=90.0,
)
WINDOW_PERIOD, WINDOW_OPEN = 180.0, 100.0

SETTINGS = {
    "REBALANCER_DEBOUNCE_QUIET_SECONDS": "1",
    "REBALANCER_DEBOUNCE_MAXIMUM_SECONDS": "5",
    "REBALANCER_NODE_SETTLE_SECONDS": "2",
    "REBALANCER_TICK_SECONDS": "10",
    "REBALANCER_RUN_DEADLINE_SECONDS": "60",
    "REBALANCER_EVICTIONS_PER_MINUTE": "10",
    "REBALANCER_CAP_NODE": "2",
    "REBALANCER_CAP_WORKLOAD": "2",
    "REBALANCER_CAP_TOTAL": "6",
    "REBALANCER_MAX_IN_FLIGHT": "3",
    "REBALANCER_SETTLE_TIMEOUT_SECONDS": "20",
    "REBALANCER_COOLDOWN_SECONDS": "5",
    "REBALANCER_COOLDOWN_MAXIMUM_SECONDS": "10",
    "REBALANCER_EVENTS": "false",
}
# Half of the histories: who leads until so late has, at the end, less left of its lease than a request may take.
LATE_RENEW = 14.0
WINDOWS = {"REBALANCER_WINDOWS": json.dumps([{"cron": "*/3 * * * *", "duration": "100s"}])}

POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: default
  pluginConfig:
  - name: RemoveDuplicates
  - name: LowNodeUtilization
    args: {thresholds: {cpu: 20}, targetThresholds: {cpu: 50}}
  - name: PodLifeTime
    args: {maxPodLifeTimeSeconds: 30}
  plugins:
    balance: {enabled: [RemoveDuplicates, LowNodeUtilization]}
    deschedule: {enabled: [PodLifeTime]}
"""


class World:
    """A cluster under test. counts: what happened, by name."""

    def __init__(
        self,
        loop: VirtualLoop,
        *,
        seed: int,
        windows: bool,
        evaluation_seconds: float,
        lag_seconds: float,
        history_limit: int = 20_000,
        policy: str = POLICY,
        build: Build = build,
    ) -> None:
        """Set up; nothing runs yet.

        lag_seconds: by which watches are behind in good weather. history_limit: events that the API server remembers, per kind.
        policy: what the replicas follow.
        """
        self._loop = loop
        self._seed = seed
        self._build = build
        self._evaluation_seconds = evaluation_seconds
        self.lag_seconds = lag_seconds
        self.clock = VirtualClock(epoch=EPOCH)
        self.windows = windows
        renew = LATE_RENEW if seed % 2 else PROMISES.renew
        given = {"REBALANCER_LEASE_RENEW_SECONDS": str(renew), **(WINDOWS if windows else {})}
        self._settings = load_settings({**SETTINGS, **given})
        self._policy = load(policy, source="history").policy
        self.cluster = EmbeddedCluster(
            nodes=3,
            shape=NodeShape(cpu="4", memory="16Gi"),
            seed=seed,
            sockets=False,
            history_limit=history_limit,
            clock=lambda: datetime.fromtimestamp(self.clock.now(), UTC),
            write_events=False,
            times=KubeletTimes(start=(0.2, 5.0), stop=(0.2, 3.0)),
            lag_seconds=(0.01, 0.2),
        )
        promises = replace(PROMISES, renew=renew)
        if windows:
            promises = replace(promises, period=WINDOW_PERIOD, open=WINDOW_OPEN)
        self.witness = Witness(self.cluster.registry, promises, self.clock.now)
        self.counts: Counter[str] = Counter()
        self.replicas: list[Replica] = []
        self._started = 0
        self.nodes = 3
        self._timers: list[asyncio.TimerHandle] = []
        self.funerals: list[Replica] = []

    async def begin(self, replicas: int) -> None:
        """Fill the cluster, start the replicas and let them settle."""
        await self.cluster.__aenter__()
        for name, count, group in (
            ("steady", 2, "steady"),
            ("one", 2, "shared"),
            ("other", 2, "shared"),
            ("third", 2, "shared"),
            ("three-up", 4, "three-up"),
            ("twice-guarded", 2, "twice-guarded"),
        ):
            self.cluster.registry.create(DEPLOYMENT, "default", _workload(name, count, group))
        self._budget("shared", {"group": "shared"}, {"maxUnavailable": 1})
        self._budget("three-up", {"group": "three-up"}, {"minAvailable": 3})
        self._budget("guarded", {"group": "twice-guarded"}, {"maxUnavailable": 1})
        self._budget("guarded-again", {"app": "twice-guarded"}, {"minAvailable": 1})
        stateful = _workload("stateful", 3, "stateful")
        stateful["spec"]["serviceName"] = "stateful"
        self.cluster.registry.create(STATEFUL_SET, "default", stateful)
        self._budget("stateful", {"group": "stateful"}, {"maxUnavailable": 1})
        await asyncio.sleep(5.0)
        for _ in range(replicas):
            self.start_replica()

    def _budget(self, name: str, labels: Mapping[str, str], spec: Mapping[str, Any]) -> None:
        whole = {"selector": {"matchLabels": dict(labels)}, **spec}
        self.cluster.registry.create(BUDGET, "default", {"metadata": {"name": name}, "spec": whole})

    def start_replica(self) -> None:
        """Start one more process."""
        self._started += 1
        observer = Observer(f"replica-{self._started}", self.witness)
        line = Line(self.cluster.front, self.cluster.faults, observer, self._met)
        line.change(lag_seconds=self.lag_seconds)
        self.replicas.append(
            Replica(
                Process(self._loop),
                observer,
                line,
                self._settings,
                self._policy,
                self.clock,
                seed=self._seed * 31 + self._started,
                evaluation_seconds=self._evaluation_seconds,
                build=self._build,
            )
        )

    def _met(self, fault: str) -> None:
        self.counts[f"met: {fault}"] += 1

    async def act(self, action: str, choice: int) -> None:
        """Let something happen. choice: decides whatever has to be chosen."""
        try:
            await ACTIONS[action](self, choice)
        except ApiProblem:
            self.counts[f"{action} (could not be)"] += 1
        else:
            self.counts[action] += 1

    async def heal(self) -> None:
        """End every fault, and have every node and process work again."""
        for timer in self._timers:
            timer.cancel()
        self.cluster.faults.clear()
        self.witness.ambushes.clear()
        for replica in self.replicas:
            replica.line.change(
                refused=False, void=False, deaf=False, replies_lost=False, lag_seconds=self.lag_seconds, latency_seconds=0.003
            )
            replica.process.thaw()
        for node in list(self.cluster.store.objects("nodes")):
            if node["spec"].get("unschedulable"):
                self.cordon(node["metadata"]["name"], False)
            set_node_ready(self.cluster.registry, node["metadata"]["name"], "True", "KubeletReady", "ready")
        self.pause(False)
        for name in ("shared", "three-up", "stateful"):
            self.allow(name, {"maxUnavailable": 1})
        if not self.replicas:
            self.start_replica()

    async def end(self) -> list[str]:
        """Stop everything; return what was wrong with how it stopped."""
        wrong = [said for replica in self.replicas if (said := await replica.stop()) is not None]
        for replica in (*self.replicas, *self.funerals):
            await replica.bury()
        await self.cluster.__aexit__(None, None, None)
        return wrong

    def failures(self) -> list[str]:
        """Return which replicas have ended by themselves."""
        return [said for replica in self.replicas if (said := replica.failure()) is not None]

    # What can be done to it

    def cordon(self, name: str, cordoned: bool) -> None:
        """Have a node take no new pods, or take them again."""
        node = self.cluster.registry.get(NODE, "", name)
        self.cluster.registry.update(NODE, node, {**node, "spec": {**node["spec"], "unschedulable": cordoned}})

    def allow(self, name: str, given: Mapping[str, Any]) -> None:
        """Change what a budget allows."""
        found = self.cluster.registry.get(BUDGET, "default", name)
        kept = {key: value for key, value in found["spec"].items() if key not in ("maxUnavailable", "minAvailable")}
        self.cluster.registry.update(BUDGET, found, {**found, "spec": {**kept, **given}})

    def victim(self, choice: int) -> Replica:
        """Return who is hit: mostly who leads."""
        if not self.replicas:
            self.start_replica()
        leading = [replica for replica in self.replicas if replica.leads]
        return leading[0] if leading and choice % 4 else self.replicas[choice % len(self.replicas)]

    def pause(self, paused: bool) -> None:
        """Have an operator pause, or end the pause."""
        lease = self.cluster.store.get(LEASE, "kube-system", "descheduler")
        annotations = {"rebalancer.io/paused": "true"} if paused else {}
        if lease is not None and (lease["metadata"].get("annotations") or {}) != annotations:
            changed = {**lease, "metadata": {**lease["metadata"], "annotations": annotations}}
            self.cluster.registry.update(LEASE_KIND, lease, changed)
            self.witness.paused(paused)

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        """Have something happen after a while, if it can then."""

        def attempt() -> None:
            try:
                act()
            except ApiProblem:
                self.counts["met: a change that could not be"] += 1

        self._timers.append(self._loop.call_later(seconds, attempt))


def _workload(name: str, replicas: int, group: str) -> Object:
    container = {"name": "main", "image": "image:1", "resources": {"requests": {"cpu": "400m"}}}
    template = {"metadata": {"labels": {"app": name, "group": group}}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}
