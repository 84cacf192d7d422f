"""Histories: several replicas of the whole service on one embedded cluster, in virtual time, while things go wrong.

What is checked is checked at the door of the API server: each eviction that arrives is judged by what is true at that moment.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any

from rebalancer.control.happenings import Asked, Happening, LeadershipChanged, RunEnded, RunStarted
from rebalancer.kube.reply import Reply
from rebalancer.model.plan import Plan
from rebalancer.placement.profile import DEFAULT
from rebalancer.policy import load
from rebalancer.service.life import Stop, serve
from rebalancer.service.parts import Parts, build
from rebalancer.settings import load_settings
from rebalancer.sim.cluster import EmbeddedCluster
from rebalancer.sim.faults import Fault, Trouble
from rebalancer.sim.kinds import DEPLOYMENT, NODE, kind_named
from rebalancer.sim.nodes import NodeShape
from rebalancer.sim.problems import ApiProblem
from tests.control.virtual import VirtualClock
from tests.service.direct import DirectTransport
from tests.service.process import POLICY, a_deployment

PER_MINUTE, CAP_NODE, CAP_TOTAL = 6, 2, 5
SETTINGS = {
    "REBALANCER_DEBOUNCE_QUIET_SECONDS": "2",
    "REBALANCER_DEBOUNCE_MAXIMUM_SECONDS": "10",
    "REBALANCER_NODE_SETTLE_SECONDS": "3",
    "REBALANCER_TICK_SECONDS": "60",
    "REBALANCER_RUN_DEADLINE_SECONDS": "120",
    "REBALANCER_EVICTIONS_PER_MINUTE": str(PER_MINUTE),
    "REBALANCER_CAP_NODE": str(CAP_NODE),
    "REBALANCER_CAP_TOTAL": str(CAP_TOTAL),
    "REBALANCER_MAX_IN_FLIGHT": "3",
    "REBALANCER_SETTLE_TIMEOUT_SECONDS": "60",
    "REBALANCER_COOLDOWN_SECONDS": "30",
    "REBALANCER_EVENTS": "false",
    "REBALANCER_STALE_DISCONNECTED_SECONDS": "10",
}
WINDOWS = {"REBALANCER_WINDOWS": json.dumps([{"cron": "*/4 * * * *", "duration": "150s"}])}
BUDGET = kind_named("poddisruptionbudgets", "policy")
LEASE_STORAGE = "leases.coordination.k8s.io"


@dataclass
class Request:
    """One eviction that arrived. problems: promises that it broke."""

    at: float
    replica: str
    uid: str
    pod: str
    status: int
    reason: str
    problems: list[str] = field(default_factory=list)


class WatchedTransport(DirectTransport):
    """A replica's way to the cluster; every eviction passes the judge."""

    judge: Callable[[WatchedTransport, str, Mapping[str, Any]], Callable[[Reply], None]]

    async def request(self, method: str, path: str, **options: Any) -> Reply:
        """Send, and have evictions judged as they start and as they are answered."""
        if not path.endswith("/eviction"):
            return await super().request(method, path, **options)
        answered = self.judge(self, path, options["body"])
        front, answer = self.front, self.front.answer
        proxy = _Front(front, lambda request: self._noted(answer(request), answered, request))
        self.front = proxy  # type: ignore[assignment]
        try:
            return await super().request(method, path, **options)
        finally:
            self.front = front

    def _noted(self, answer: Any, answered: Callable[[Reply], None], request: Any) -> Any:
        if request.path.endswith("/eviction"):
            answered(Reply(answer.status, {}, answer.body))
        return answer


class _Front:
    """A front whose answers somebody else notes."""

    def __init__(self, front: Any, answer: Callable[[Any], Any]) -> None:
        self._front = front
        self.answer = answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._front, name)


class Replica:
    """One process of the service."""

    def __init__(self, history: History, number: int) -> None:
        """Start it."""
        self.name = f"replica-{number}"
        self.history = history
        self.transport = WatchedTransport(history.cluster.front, history.cluster.faults)
        self.transport.judge = history.judge
        self.stop = Stop()
        self.identity = ""
        self.parts = build(
            history.settings,
            load(POLICY, source="test").policy,
            DEFAULT,
            self.transport,  # type: ignore[arg-type]
            [self.hear],
            random=Random(number),
            clock=history.clock,
            beside=at_once,
        )
        assert self.parts.election is not None
        self.run_accepted: Counter[str] = Counter()
        self.task = asyncio.create_task(serve(self.parts, self.stop, policy_file=None, listen=False), name=self.name)

    def hear(self, happening: Happening) -> None:
        """Hold the caps of each run to their word."""
        self.history.hear(self, happening)

    async def end(self, *, killed: bool) -> None:
        """Stop it, or kill it: then nothing that it might still want to say reaches anybody."""
        if killed:
            self.transport.weather.cut = True
            self.task.cancel()
        self.stop.event.set()
        await asyncio.gather(self.task, return_exceptions=True)
        error = None if self.task.cancelled() else self.task.exception()
        if error is not None:
            raise error


async def at_once(compute: Callable[[], Plan]) -> Plan:
    """Compute in the loop itself: in virtual time that takes none."""
    await asyncio.sleep(0.05)
    return compute()


class History:
    """A cluster, replicas, and everything that was promised about evictions."""

    def __init__(self, seed: int, *, windows: bool) -> None:
        """Set up; has to be called in a loop of virtual time."""
        self.random = Random(seed)
        self.clock = VirtualClock(epoch=1_790_000_040.0)
        self.settings = load_settings({**SETTINGS, **(WINDOWS if windows else {})})
        self.cluster = EmbeddedCluster(
            nodes=3,
            shape=NodeShape(cpu="4", memory="16Gi"),
            seed=seed,
            sockets=False,
            clock=lambda: datetime.fromtimestamp(self.clock.now(), UTC),
            write_events=False,
        )
        self.requests: list[Request] = []
        self.accepted: dict[str, float] = {}
        self.faults: Counter[str] = Counter()
        self.problems: list[str] = []
        self.replicas: list[Replica] = []
        self.heard: deque[tuple[float, str, Happening]] = deque(maxlen=400)
        self._started = 0
        self._names = 3

    # What happens at the door

    def judge(self, transport: WatchedTransport, path: str, body: Mapping[str, Any]) -> Callable[[Reply], None]:
        """Judge an eviction as it starts; return what takes its answer."""
        replica = next(each for each in self.replicas if each.transport is transport)
        parts = replica.parts
        assert parts.election is not None
        uid = body["deleteOptions"].get("preconditions", {}).get("uid", "")
        broken: list[str] = []
        holder = self._holder()
        if not holder or holder != parts.election.holder:
            broken.append(f"sent without leadership: the lease is {holder or 'nobody'}'s")
        if not uid:
            broken.append("sent without a precondition")
        if uid in self.accepted:
            broken.append("sent again after it was accepted")
        _, namespace, _, name, _ = path.rsplit("/", 4)
        known = parts.cache.pod(f"{namespace}/{name}")
        if known is None or known.uid != uid or known.terminating:
            broken.append("sent for a pod that is known to be gone or going")
        if parts.cache.unfresh():
            broken.append(f"sent on a cache that is not fresh: {parts.cache.unfresh()}")
        if (closed := parts.gate.windows.closed_because(self.clock.now())) is not None:
            broken.append(f"sent {closed}")
        if parts.election.remaining_seconds() < self.settings.evictions.eviction_timeout_seconds:
            broken.append("sent though the lease does not outlast it")
        request = Request(self.clock.monotonic(), replica.name, uid, path.split("/")[-2], 0, "", broken)

        def answered(reply: Reply) -> None:
            request.status = reply.status
            detail = reply.detail
            request.reason = "budget" if detail is not None and detail.has_cause("DisruptionBudget") else ""
            if reply.ok:
                self.accepted[uid] = self.clock.monotonic()
            self.requests.append(request)
            self.problems += [f"{request.at:.1f} {request.pod} by {request.replica}: {problem}" for problem in broken]

        return answered

    def _holder(self) -> str:
        lease = self.cluster.store.get(LEASE_STORAGE, "kube-system", "descheduler")
        return str(lease["spec"].get("holderIdentity") or "") if lease else ""

    def hear(self, replica: Replica, happening: Happening) -> None:
        """Hold each run to its caps."""
        self.heard.append((self.clock.monotonic(), replica.name, happening))
        if isinstance(happening, RunStarted):
            replica.run_accepted.clear()
        elif isinstance(happening, Asked) and type(happening.answer).__name__ in ("Accepted", "Unknown"):
            replica.run_accepted["total"] += 1
            replica.run_accepted[happening.approval.node] += 1
            for key, count in replica.run_accepted.items():
                if count > (CAP_TOTAL if key == "total" else CAP_NODE):
                    self.problems.append(f"run of {replica.name}: {count} evictions on {key}")
        elif isinstance(happening, LeadershipChanged | RunEnded):
            pass

    # What may happen

    async def start(self, replicas: int) -> None:
        """Fill the cluster and start replicas."""
        await self.cluster.__aenter__()
        for number in range(8):
            deployment = a_deployment(f"app{number}", 3, cpu="400m")
            deployment["spec"]["template"]["metadata"]["labels"]["tier"] = f"tier{number % 3}"
            self.cluster.registry.create(DEPLOYMENT, "default", deployment)
        # One budget over several workloads: only the ledger keeps two of them from spending it at once.
        self._budget("tier0", {"maxUnavailable": 1})
        self._budget("tier1", {"maxUnavailable": "20%"})
        for _ in range(replicas):
            self.start_replica()
        await asyncio.sleep(20)

    def start_replica(self) -> None:
        """Start one more process."""
        self._started += 1
        self.replicas.append(Replica(self, self._started))

    def _budget(self, tier: str, spec: Mapping[str, Any]) -> None:
        selector = {"selector": {"matchLabels": {"tier": tier}}}
        self.cluster.registry.create(BUDGET, "default", {"metadata": {"name": tier}, "spec": {**selector, **spec}})

    async def act(self, action: str) -> None:
        """Let something happen. What is not possible at the moment does not."""
        self.faults[action] += 1
        try:
            await self._ACTIONS[action](self)
        except ApiProblem:
            self.faults[f"{action} (not possible)"] += 1

    async def _join(self) -> None:
        if self.cluster.store.count("nodes") < 7:
            self._names += 1
            self.cluster.add_node(f"node-{self._names:02}")

    async def _leave(self) -> None:
        names = [name for _, name in self.cluster.store.keys("nodes")]
        if len(names) > 3:
            name = self.random.choice(names)
            self.cluster.lose_node(name)
            from rebalancer.sim.deletion import DeleteOptions, delete

            delete(self.cluster.registry, NODE, "", name, DeleteOptions())

    async def _cordon(self) -> None:
        _, name = self.random.choice(self.cluster.store.keys("nodes"))
        node = self.cluster.registry.get(NODE, "", name)
        cordoned = not node["spec"].get("unschedulable", False)
        self.cluster.registry.update(NODE, node, {**node, "spec": {**node["spec"], "unschedulable": cordoned}})

    async def _scale(self) -> None:
        namespace, name = self.random.choice(self.cluster.store.keys(DEPLOYMENT.storage))
        found = self.cluster.registry.get(DEPLOYMENT, namespace, name)
        replicas = self.random.choice((0, 1, 2, 3, 4, 5))
        self.cluster.registry.update(DEPLOYMENT, found, {**found, "spec": {**found["spec"], "replicas": replicas}})

    async def _delete_pod(self) -> None:
        from rebalancer.sim.deletion import DeleteOptions, delete
        from rebalancer.sim.kinds import POD

        keys = self.cluster.store.keys("pods")
        if keys:
            namespace, name = self.random.choice(keys)
            delete(self.cluster.registry, POD, namespace, name, DeleteOptions())

    async def _kill(self) -> None:
        await self._end(killed=True)

    async def _restart(self) -> None:
        await self._end(killed=False)

    async def _end(self, *, killed: bool) -> None:
        victim = self.replicas[self.random.randrange(len(self.replicas))]
        await victim.end(killed=killed)
        self.replicas.remove(victim)
        self.start_replica()

    async def _cut_replica(self) -> None:
        await self._weather("cut", self.random.choice((3.0, 12.0, 40.0)))

    async def _deafen(self) -> None:
        await self._weather("deaf", self.random.choice((5.0, 60.0, 120.0)))

    async def _lose_replies(self) -> None:
        await self._weather("loses_replies", self.random.choice((2.0, 10.0)))

    async def _slow_watch(self) -> None:
        weather = self.random.choice(self.replicas).transport.weather
        weather.watch_delay_seconds = self.random.choice((0.0, 0.2, 1.0))

    async def _weather(self, what: str, seconds: float) -> None:
        weather = self.random.choice(self.replicas).transport.weather
        setattr(weather, what, True)
        asyncio.get_running_loop().call_later(seconds, setattr, weather, what, False)

    def _fault(self, trouble: Trouble, path: str, *, watches: bool | None = None) -> None:
        times = self.random.choice((1, 3))
        retry = self.random.choice((None, 1, 5))
        self.cluster.faults.add(Fault(trouble, path, watches=watches, times=times, retry_after_seconds=retry, delay_seconds=2.0))

    async def _evictions_fail(self) -> None:
        troubles = (Trouble.THROTTLED, Trouble.INTERNAL, Trouble.BAD_GATEWAY, Trouble.RESET, Trouble.SILENT, Trouble.SLOW)
        self._fault(self.random.choice(troubles), "/eviction", watches=False)

    async def _writes_fail(self) -> None:
        path = self.random.choice(("/leases", "/configmaps"))
        self._fault(self.random.choice((Trouble.INTERNAL, Trouble.SILENT, Trouble.RESET, Trouble.THROTTLED)), path, watches=False)

    async def _watches_fail(self) -> None:
        path = self.random.choice(("/pods", "/nodes", "/poddisruptionbudgets"))
        self._fault(self.random.choice((Trouble.GONE, Trouble.UNAVAILABLE, Trouble.CUT_LINE)), path, watches=True)

    async def _forget_history(self) -> None:
        self.cluster.store.compact()

    async def _pause(self) -> None:
        kind = kind_named("leases", "coordination.k8s.io")
        lease = self.cluster.store.get(LEASE_STORAGE, "kube-system", "descheduler")
        if lease is not None:
            annotations = lease["metadata"].get("annotations", {})
            paused = {} if annotations else {"rebalancer.io/paused": "true"}
            changed = {**lease, "metadata": {**lease["metadata"], "annotations": paused}}
            self.cluster.registry.update(kind, lease, changed)

    _ACTIONS: Mapping[str, Callable[[History], Awaitable[None]]] = {
        "a node joins": _join,
        "a node leaves": _leave,
        "a node is cordoned or uncordoned": _cordon,
        "a Deployment is scaled": _scale,
        "a pod is deleted": _delete_pod,
        "a replica is killed": _kill,
        "a replica is restarted": _restart,
        "a replica is cut off": _cut_replica,
        "a replica hears nothing": _deafen,
        "a replica's replies get lost": _lose_replies,
        "a replica's watches lag": _slow_watch,
        "evictions fail": _evictions_fail,
        "writes fail": _writes_fail,
        "watches fail": _watches_fail,
        "the history is forgotten": _forget_history,
        "an operator pauses or resumes": _pause,
    }

    # The end

    async def heal(self) -> None:
        """End every fault."""
        self.cluster.faults.clear()
        for replica in self.replicas:
            for name in ("cut", "deaf", "loses_replies"):
                setattr(replica.transport.weather, name, False)
            replica.transport.weather.watch_delay_seconds = 0.0
        lease = self.cluster.store.get(LEASE_STORAGE, "kube-system", "descheduler")
        if lease is not None and lease["metadata"].get("annotations"):
            await self._pause()

    async def close(self) -> None:
        """Stop everything."""
        for replica in self.replicas:
            await replica.end(killed=False)
        await self.cluster.__aexit__(None, None, None)

    def broken(self) -> list[str]:
        """Return every promise that was broken."""
        found = list(self.problems)
        moments = sorted(self.accepted.values())
        for number, begin in enumerate(moments):
            count = sum(moment <= begin + 60.0 for moment in moments[number:])
            if count > PER_MINUTE:
                found.append(f"{count} evictions in the minute from {begin:.1f} on")
        return found

    def parts_that_lead(self) -> list[Parts]:
        """Return the services that lead."""
        return [each.parts for each in self.replicas if each.parts.election is not None and each.parts.election.leading]


# What leads to evictions comes more often.
ACTIONS = (*History._ACTIONS, *("a node joins", "a node leaves", "evictions fail", "a replica's watches lag") * 2)
