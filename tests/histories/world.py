"""The cluster of a history, its replicas, and everything that can happen to them."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from rebalancer.policy import load
from rebalancer.service.parts import build
from rebalancer.settings import load_settings
from rebalancer.sim.cluster import EmbeddedCluster
from rebalancer.sim.deletion import DeleteOptions, delete
from rebalancer.sim.faults import Fault, Trouble
from rebalancer.sim.history import Object
from rebalancer.sim.kinds import BUDGET, DEPLOYMENT, NODE, POD, kind_named
from rebalancer.sim.kubelet import KubeletTimes, set_node_ready
from rebalancer.sim.nodes import NodeShape
from rebalancer.sim.problems import ApiProblem
from rebalancer.sim.requests import Request
from tests.control.virtual import VirtualClock
from tests.histories.network import Line
from tests.histories.observer import Ambush, Observer, accounts_for
from tests.histories.processes import Process, VirtualLoop
from tests.histories.replica import Build, Replica
from tests.histories.witness import LEASE, Promises, Witness

# A whole number of window periods, so that a history begins as a window opens.
EPOCH = 1_790_000_100.0
LEASE_KIND = kind_named("leases", "coordination.k8s.io")
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

_EVICTION_TROUBLES = (
    Trouble.THROTTLED,
    Trouble.INTERNAL,
    Trouble.BAD_GATEWAY,
    Trouble.UNAVAILABLE,
    Trouble.UNAUTHORIZED,
    Trouble.FORBIDDEN,
    Trouble.RESET,
    Trouble.SILENT,
    Trouble.SLOW,
    Trouble.CUT_LINE,
)
_WRITE_TROUBLES = (
    Trouble.THROTTLED,
    Trouble.INTERNAL,
    Trouble.BAD_GATEWAY,
    Trouble.FORBIDDEN,
    Trouble.RESET,
    Trouble.SILENT,
    Trouble.SLOW,
    Trouble.CUT_LINE,
)
_WATCH_TROUBLES = (
    Trouble.GONE,
    Trouble.GONE_IN_STREAM,
    Trouble.UNAVAILABLE,
    Trouble.CUT_LINE,
    Trouble.INTERNAL,
    Trouble.FORBIDDEN,
    Trouble.RESET,
)


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
        self._lag_seconds = lag_seconds
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
        self._nodes = 3
        self._timers: list[asyncio.TimerHandle] = []
        self._funerals: list[Replica] = []

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
        line.change(lag_seconds=self._lag_seconds)
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
                refused=False, void=False, deaf=False, replies_lost=False, lag_seconds=self._lag_seconds, latency_seconds=0.003
            )
            replica.process.thaw()
        for node in list(self.cluster.store.objects("nodes")):
            if node["spec"].get("unschedulable"):
                self._cordon(node["metadata"]["name"], False)
            set_node_ready(self.cluster.registry, node["metadata"]["name"], "True", "KubeletReady", "ready")
        self._pause(False)
        for name in ("shared", "three-up", "stateful"):
            self._allow(name, {"maxUnavailable": 1})
        if not self.replicas:
            self.start_replica()

    async def end(self) -> list[str]:
        """Stop everything; return what was wrong with how it stopped."""
        wrong = [said for replica in self.replicas if (said := await replica.stop()) is not None]
        for replica in (*self.replicas, *self._funerals):
            await replica.bury()
        await self.cluster.__aexit__(None, None, None)
        return wrong

    def failures(self) -> list[str]:
        """Return which replicas have ended by themselves."""
        return [said for replica in self.replicas if (said := replica.failure()) is not None]

    # Changes of the cluster

    async def _node_joins(self, choice: int) -> None:
        if self.cluster.store.count("nodes") >= 7:
            return await self._node_leaves(choice)
        self._nodes += 1
        self.cluster.add_node(f"node-{self._nodes:02}", ready=bool(choice % 2))
        return None

    async def _node_leaves(self, choice: int) -> None:
        if self.cluster.store.count("nodes") > 3:
            name = self._name("nodes", choice)
            self.cluster.lose_node(name)
            delete(self.cluster.registry, NODE, "", name, DeleteOptions())

    async def _node_turns(self, choice: int) -> None:
        name = self._name("nodes", choice)
        set_node_ready(self.cluster.registry, name, "False", "KubeletNotReady", "it is not")
        self._later(
            float(2 + choice % 20), lambda: set_node_ready(self.cluster.registry, name, "True", "KubeletReady", "ready again")
        )

    async def _node_cordoned(self, choice: int) -> None:
        name = self._name("nodes", choice)
        self._cordon(name, not self.cluster.registry.get(NODE, "", name)["spec"].get("unschedulable", False))

    def _cordon(self, name: str, cordoned: bool) -> None:
        node = self.cluster.registry.get(NODE, "", name)
        self.cluster.registry.update(NODE, node, {**node, "spec": {**node["spec"], "unschedulable": cordoned}})

    async def _scaled(self, choice: int) -> None:
        found = self._deployment(choice)
        changed = {**found, "spec": {**found["spec"], "replicas": (0, 1, 2, 3, 4)[choice // 7 % 5]}}
        self.cluster.registry.update(DEPLOYMENT, found, changed)

    async def _rolled_out(self, choice: int) -> None:
        found = self._deployment(choice)
        template = found["spec"]["template"]
        metadata = {**template["metadata"], "annotations": {"rolled": str(choice)}}
        spec = {**found["spec"], "template": {**template, "metadata": metadata}}
        self.cluster.registry.update(DEPLOYMENT, found, {**found, "spec": spec})

    def _deployment(self, choice: int) -> Object:
        name = ("one", "other", "three-up", "twice-guarded")[choice % 4]
        return self.cluster.registry.get(DEPLOYMENT, "default", name)

    async def _pod_deleted(self, choice: int) -> None:
        if self.cluster.store.count("pods"):
            options = DeleteOptions(grace_seconds=0 if choice % 3 == 0 else None)
            delete(self.cluster.registry, POD, "default", self._name("pods", choice), options)

    async def _pod_unready(self, choice: int) -> None:
        if not self.cluster.store.count("pods"):
            return
        name = self._name("pods", choice)
        self._set_pod_ready(name, False)
        self._later(float(1 + choice % 15), lambda: self._set_pod_ready(name, True))

    def _set_pod_ready(self, name: str, ready: bool) -> None:
        pod = self.cluster.store.get("pods", "default", name)
        if pod is None or pod.get("status", {}).get("phase") != "Running" or "deletionTimestamp" in pod["metadata"]:
            return
        state = "True" if ready else "False"
        conditions = [
            {**each, "status": state} if each["type"] == "Ready" else each for each in pod["status"].get("conditions", ())
        ]
        changed = {**pod, "metadata": dict(pod["metadata"]), "status": {**pod["status"], "conditions": conditions}}
        self.cluster.store.put("pods", changed)

    async def _budget_changed(self, choice: int) -> None:
        name = ("shared", "three-up", "stateful")[choice % 3]
        given = ({"maxUnavailable": 1}, {"maxUnavailable": 0}, {"minAvailable": 2}, {"maxUnavailable": "50%"})[choice // 5 % 4]
        policy = {"unhealthyPodEvictionPolicy": "AlwaysAllow"} if choice % 2 else {}
        self._allow(name, {**policy, **given})

    def _allow(self, name: str, given: Mapping[str, Any]) -> None:
        found = self.cluster.registry.get(BUDGET, "default", name)
        kept = {key: value for key, value in found["spec"].items() if key not in ("maxUnavailable", "minAvailable")}
        self.cluster.registry.update(BUDGET, found, {**found, "spec": {**kept, **given}})

    def _name(self, storage: str, choice: int) -> str:
        keys = self.cluster.store.keys(storage)
        return keys[choice % len(keys)][1]

    # Faults of processes

    async def _killed(self, choice: int) -> None:
        victim = self._victim(choice)
        victim.process.kill()
        self.replicas.remove(victim)
        self._later(float(choice % 10), self.start_replica)
        self._funerals.append(victim)

    async def _stopped(self, choice: int) -> None:
        victim = self._victim(choice)
        if victim.process.frozen:
            return
        if (wrong := await victim.stop()) is not None:
            self.witness.broken.append(wrong)
        self.replicas.remove(victim)
        await victim.bury()
        self.start_replica()

    async def _frozen(self, choice: int) -> None:
        victim = self._victim(choice)
        victim.process.freeze()
        self._later((1.0, 4.0, 11.0, 14.0, 16.0, 25.0, 50.0)[choice % 7], victim.process.thaw)

    def _victim(self, choice: int) -> Replica:
        """Return who is hit: mostly who leads."""
        if not self.replicas:
            self.start_replica()
        leading = [replica for replica in self.replicas if replica.leads]
        return leading[0] if leading and choice % 4 else self.replicas[choice % len(self.replicas)]

    # Faults between

    async def _refused(self, choice: int) -> None:
        self._weather(choice, refused=True)

    async def _void(self, choice: int) -> None:
        self._weather(choice, void=True)

    async def _deaf(self, choice: int) -> None:
        self._weather(choice, deaf=True)

    async def _replies_lost(self, choice: int) -> None:
        self._weather(choice, replies_lost=True)

    def _weather(self, choice: int, **weather: Any) -> None:
        line = self._victim(choice).line
        line.change(**weather)
        calm = dict.fromkeys(weather, False)
        self._later((0.5, 3.0, 9.0, 12.0, 20.0, 45.0, 100.0)[choice % 7], lambda: line.change(**calm))

    async def _slow(self, choice: int) -> None:
        line = self._victim(choice).line
        line.change(latency_seconds=(0.05, 0.3, 1.0)[choice % 3], lag_seconds=(0.05, 0.5, 2.0)[choice // 3 % 3])
        self._later(float(5 + choice % 30), lambda: line.change(latency_seconds=0.003, lag_seconds=self._lag_seconds))

    # Faults of the server

    async def _evictions_fail(self, choice: int) -> None:
        self._fault(_EVICTION_TROUBLES, "/eviction", choice, watches=False)

    async def _lease_fails(self, choice: int) -> None:
        self._fault(_WRITE_TROUBLES, "/leases", choice, watches=False)

    async def _state_fails(self, choice: int) -> None:
        self._fault(_WRITE_TROUBLES, "/configmaps", choice, watches=False)

    async def _watches_fail(self, choice: int) -> None:
        path = ("/api/v1/pods", "/api/v1/nodes", "/poddisruptionbudgets", "/replicasets", "")[choice % 5]
        self._fault(_WATCH_TROUBLES, path, choice, watches=True)
        for replica in self.replicas:
            replica.line.break_streams()

    def _fault(self, troubles: tuple[Trouble, ...], path: str, choice: int, *, watches: bool) -> None:
        trouble = troubles[choice // 3 % len(troubles)]
        fault = Fault(
            trouble,
            path,
            watches=watches,
            times=(1, 2, 5)[choice % 3],
            retry_after_seconds=(None, 1, 5)[choice // 7 % 3],
            delay_seconds=(0.5, 1.5, 2.5)[choice // 11 % 3],
        )
        self.cluster.faults.add(fault)
        self._later(30.0, lambda: self.cluster.faults.remove(fault))

    async def _server_restarts(self, choice: int) -> None:
        if choice % 2:
            self.cluster.store.compact()
        self.cluster.store.incarnation += 1
        down = (0.0, 2.0, 8.0, 30.0)[choice // 2 % 4]
        for replica in self.replicas:
            replica.line.break_streams()
            if down:
                line = replica.line
                line.change(refused=True)
                self._later(down, lambda line=line: line.change(refused=False))  # type: ignore[misc]

    async def _history_forgotten(self, choice: int) -> None:
        self.cluster.store.compact()
        self._victim(choice).line.break_streams()

    # People, and bad luck

    async def _operator(self, choice: int) -> None:
        self._pause(True)
        self._later(float(3 + choice % 25), lambda: self._pause(False))

    def _pause(self, paused: bool) -> None:
        lease = self.cluster.store.get(LEASE, "kube-system", "descheduler")
        if lease is not None:
            annotations = {"rebalancer.io/paused": "true"} if paused else {}
            changed = {**lease, "metadata": {**lease["metadata"], "annotations": annotations}}
            self.cluster.registry.update(LEASE_KIND, lease, changed)
            self.witness.paused(paused)

    async def _lease_deleted(self, choice: int) -> None:
        if self.cluster.store.get(LEASE, "kube-system", "descheduler") is not None:
            delete(self.cluster.registry, LEASE_KIND, "kube-system", "descheduler", DeleteOptions())
            self.witness.lease_deleted()

    async def _asked(self, choice: int) -> None:
        for number in range(1 + choice % 4):
            self._later(0.9 * number, lambda: self._victim(choice).ask())

    async def _replaced_on_the_way(self, choice: int) -> None:
        """A pod of a StatefulSet is replaced by one of the same name while its eviction is on the wire."""

        async def strike(request: Request) -> None:
            try:
                delete(self.cluster.registry, POD, "default", request.path.split("/")[-2], DeleteOptions(grace_seconds=0))
            except ApiProblem:
                return
            self.counts["met: a pod was replaced while its eviction was on the wire"] += 1
            await asyncio.sleep((0.05, 0.4, 1.5)[choice % 3])

        self.witness.ambushes.append(Ambush(lambda request: "/pods/stateful-" in request.path, strike))

    async def _changed_on_the_way(self, choice: int) -> None:
        """What a plan rests on changes after it was made: while the account of a request is being written."""

        async def strike(request: Request) -> None:
            asked = accounts_for(request, self.clock.now(), within=10.0)
            pod = next((each for each in self.cluster.store.objects("pods") if each["metadata"]["uid"] in asked), None)
            if pod is None:
                return
            self.counts["met: the world changed while an eviction was being accounted for"] += 1
            if choice % 2:
                delete(self.cluster.registry, POD, "default", pod["metadata"]["name"], DeleteOptions(grace_seconds=30))
            else:
                name = pod["spec"]["nodeName"]
                self._cordon(name, True)
                self._later(20.0, lambda: self._cordon(name, False))
            await asyncio.sleep(1.0)

        passing = iter(range(choice // 2 % 4))

        def meets(request: Request) -> bool:
            return request.method == "PATCH" and "/configmaps/" in request.path and next(passing, None) is None

        self.witness.ambushes.append(Ambush(meets, strike))

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
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


ACTIONS: Mapping[str, Callable[[World, int], Awaitable[None]]] = {
    "change: a node joins": World._node_joins,
    "change: a node leaves": World._node_leaves,
    "change: a node is not Ready for a while": World._node_turns,
    "change: a node is cordoned or uncordoned": World._node_cordoned,
    "change: a workload is scaled": World._scaled,
    "change: a workload is rolled out": World._rolled_out,
    "change: a pod is deleted": World._pod_deleted,
    "change: a pod is not Ready for a while": World._pod_unready,
    "change: a budget is changed": World._budget_changed,
    "change: an operator pauses for a while": World._operator,
    "change: the lease is deleted": World._lease_deleted,
    "change: runs are asked for": World._asked,
    "fault: a replica is killed": World._killed,
    "fault: a replica is stopped and started": World._stopped,
    "fault: a replica is frozen": World._frozen,
    "fault: a replica's connections are refused": World._refused,
    "fault: a replica's packets are lost": World._void,
    "fault: a replica's watches are deaf": World._deaf,
    "fault: a replica's replies are lost": World._replies_lost,
    "fault: a replica's network is slow": World._slow,
    "fault: evictions fail": World._evictions_fail,
    "fault: the lease cannot be used": World._lease_fails,
    "fault: the state cannot be used": World._state_fails,
    "fault: watches fail": World._watches_fail,
    "fault: the API server restarts": World._server_restarts,
    "fault: the API server forgets its history": World._history_forgotten,
    "fault: a pod is replaced while its eviction is on the wire": World._replaced_on_the_way,
    "fault: the world changes while an eviction is accounted for": World._changed_on_the_way,
}
