"""Everything that can happen to a world, by name: changes of the cluster, faults, people, and bad luck.

Each takes the world and a number that decides whatever has to be chosen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from rebalancer.sim.deletion import DeleteOptions, delete
from rebalancer.sim.faults import Fault, Trouble
from rebalancer.sim.history import Object
from rebalancer.sim.kinds import DEPLOYMENT, NODE, POD
from rebalancer.sim.kubelet import set_node_ready
from rebalancer.sim.problems import ApiProblem
from rebalancer.sim.requests import Request
from tests.histories.observer import Ambush, accounts_for
from tests.histories.witness import LEASE, LEASE_KIND

if TYPE_CHECKING:
    from tests.histories.world import World

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


# Changes of the cluster


async def _node_joins(world: World, choice: int) -> None:
    if world.cluster.store.count("nodes") >= 7:
        return await _node_leaves(world, choice)
    world.nodes += 1
    world.cluster.add_node(f"node-{world.nodes:02}", ready=bool(choice % 2))
    return None


async def _node_leaves(world: World, choice: int) -> None:
    if world.cluster.store.count("nodes") > 3:
        name = _name(world, "nodes", choice)
        world.cluster.lose_node(name)
        delete(world.cluster.registry, NODE, "", name, DeleteOptions())


async def _node_turns(world: World, choice: int) -> None:
    name = _name(world, "nodes", choice)
    set_node_ready(world.cluster.registry, name, "False", "KubeletNotReady", "it is not")
    world.later(
        float(2 + choice % 20), lambda: set_node_ready(world.cluster.registry, name, "True", "KubeletReady", "ready again")
    )


async def _node_cordoned(world: World, choice: int) -> None:
    name = _name(world, "nodes", choice)
    world.cordon(name, not world.cluster.registry.get(NODE, "", name)["spec"].get("unschedulable", False))


async def _scaled(world: World, choice: int) -> None:
    found = _deployment(world, choice)
    changed = {**found, "spec": {**found["spec"], "replicas": (0, 1, 2, 3, 4)[choice // 7 % 5]}}
    world.cluster.registry.update(DEPLOYMENT, found, changed)


async def _rolled_out(world: World, choice: int) -> None:
    found = _deployment(world, choice)
    template = found["spec"]["template"]
    metadata = {**template["metadata"], "annotations": {"rolled": str(choice)}}
    spec = {**found["spec"], "template": {**template, "metadata": metadata}}
    world.cluster.registry.update(DEPLOYMENT, found, {**found, "spec": spec})


def _deployment(world: World, choice: int) -> Object:
    name = ("one", "other", "three-up", "twice-guarded")[choice % 4]
    return world.cluster.registry.get(DEPLOYMENT, "default", name)


async def _pod_deleted(world: World, choice: int) -> None:
    if world.cluster.store.count("pods"):
        options = DeleteOptions(grace_seconds=0 if choice % 3 == 0 else None)
        delete(world.cluster.registry, POD, "default", _name(world, "pods", choice), options)


async def _pod_unready(world: World, choice: int) -> None:
    if not world.cluster.store.count("pods"):
        return
    name = _name(world, "pods", choice)
    _set_pod_ready(world, name, False)
    world.later(float(1 + choice % 15), lambda: _set_pod_ready(world, name, True))


def _set_pod_ready(world: World, name: str, ready: bool) -> None:
    pod = world.cluster.store.get("pods", "default", name)
    if pod is None or pod.get("status", {}).get("phase") != "Running" or "deletionTimestamp" in pod["metadata"]:
        return
    state = "True" if ready else "False"
    conditions = [{**each, "status": state} if each["type"] == "Ready" else each for each in pod["status"].get("conditions", ())]
    changed = {**pod, "metadata": dict(pod["metadata"]), "status": {**pod["status"], "conditions": conditions}}
    world.cluster.store.put("pods", changed)


async def _budget_changed(world: World, choice: int) -> None:
    name = ("shared", "three-up", "stateful")[choice % 3]
    given = ({"maxUnavailable": 1}, {"maxUnavailable": 0}, {"minAvailable": 2}, {"maxUnavailable": "50%"})[choice // 5 % 4]
    policy = {"unhealthyPodEvictionPolicy": "AlwaysAllow"} if choice % 2 else {}
    world.allow(name, {**policy, **given})


def _name(world: World, storage: str, choice: int) -> str:
    keys = world.cluster.store.keys(storage)
    return keys[choice % len(keys)][1]


# Faults of processes


async def _killed(world: World, choice: int) -> None:
    victim = world.victim(choice)
    victim.process.kill()
    world.replicas.remove(victim)
    world.later(float(choice % 10), world.start_replica)
    world.funerals.append(victim)


async def _stopped(world: World, choice: int) -> None:
    victim = world.victim(choice)
    if victim.process.frozen:
        return
    if (wrong := await victim.stop()) is not None:
        world.witness.broken.append(wrong)
    world.replicas.remove(victim)
    await victim.bury()
    world.start_replica()


async def _frozen(world: World, choice: int) -> None:
    victim = world.victim(choice)
    victim.process.freeze()
    world.later((1.0, 4.0, 11.0, 14.0, 16.0, 25.0, 50.0)[choice % 7], victim.process.thaw)


# Faults between


async def _refused(world: World, choice: int) -> None:
    _weather(world, choice, refused=True)


async def _void(world: World, choice: int) -> None:
    _weather(world, choice, void=True)


async def _deaf(world: World, choice: int) -> None:
    _weather(world, choice, deaf=True)


async def _replies_lost(world: World, choice: int) -> None:
    _weather(world, choice, replies_lost=True)


def _weather(world: World, choice: int, **weather: Any) -> None:
    line = world.victim(choice).line
    line.change(**weather)
    calm = dict.fromkeys(weather, False)
    world.later((0.5, 3.0, 9.0, 12.0, 20.0, 45.0, 100.0)[choice % 7], lambda: line.change(**calm))


async def _slow(world: World, choice: int) -> None:
    line = world.victim(choice).line
    line.change(latency_seconds=(0.05, 0.3, 1.0)[choice % 3], lag_seconds=(0.05, 0.5, 2.0)[choice // 3 % 3])
    world.later(float(5 + choice % 30), lambda: line.change(latency_seconds=0.003, lag_seconds=world.lag_seconds))


# Faults of the server


async def _evictions_fail(world: World, choice: int) -> None:
    _fault(world, _EVICTION_TROUBLES, "/eviction", choice, watches=False)


async def _lease_fails(world: World, choice: int) -> None:
    _fault(world, _WRITE_TROUBLES, "/leases", choice, watches=False)


async def _state_fails(world: World, choice: int) -> None:
    _fault(world, _WRITE_TROUBLES, "/configmaps", choice, watches=False)


async def _watches_fail(world: World, choice: int) -> None:
    path = ("/api/v1/pods", "/api/v1/nodes", "/poddisruptionbudgets", "/replicasets", "")[choice % 5]
    _fault(world, _WATCH_TROUBLES, path, choice, watches=True)
    for replica in world.replicas:
        replica.line.break_streams()


def _fault(world: World, troubles: tuple[Trouble, ...], path: str, choice: int, *, watches: bool) -> None:
    trouble = troubles[choice // 3 % len(troubles)]
    fault = Fault(
        trouble,
        path,
        watches=watches,
        times=(1, 2, 5)[choice % 3],
        retry_after_seconds=(None, 1, 5)[choice // 7 % 3],
        delay_seconds=(0.5, 1.5, 2.5)[choice // 11 % 3],
    )
    world.cluster.faults.add(fault)
    world.later(30.0, lambda: world.cluster.faults.remove(fault))


async def _server_restarts(world: World, choice: int) -> None:
    if choice % 2:
        world.cluster.store.compact()
    world.cluster.store.incarnation += 1
    down = (0.0, 2.0, 8.0, 30.0)[choice // 2 % 4]
    for replica in world.replicas:
        replica.line.break_streams()
        if down:
            line = replica.line
            line.change(refused=True)
            world.later(down, lambda line=line: line.change(refused=False))  # type: ignore[misc]


async def _history_forgotten(world: World, choice: int) -> None:
    world.cluster.store.compact()
    world.victim(choice).line.break_streams()


# People, and bad luck


async def _operator(world: World, choice: int) -> None:
    world.pause(True)
    world.later(float(3 + choice % 25), lambda: world.pause(False))


async def _lease_deleted(world: World, choice: int) -> None:
    if world.cluster.store.get(LEASE, "kube-system", "descheduler") is not None:
        delete(world.cluster.registry, LEASE_KIND, "kube-system", "descheduler", DeleteOptions())
        world.witness.lease_deleted()


async def _asked(world: World, choice: int) -> None:
    for number in range(1 + choice % 4):
        world.later(0.9 * number, lambda: world.victim(choice).ask())


async def _replaced_on_the_way(world: World, choice: int) -> None:
    """A pod of a StatefulSet is replaced by one of the same name while its eviction is on the wire."""

    async def strike(request: Request) -> None:
        try:
            delete(world.cluster.registry, POD, "default", request.path.split("/")[-2], DeleteOptions(grace_seconds=0))
        except ApiProblem:
            return
        world.counts["met: a pod was replaced while its eviction was on the wire"] += 1
        await asyncio.sleep((0.05, 0.4, 1.5)[choice % 3])

    world.witness.ambushes.append(Ambush(lambda request: "/pods/stateful-" in request.path, strike))


async def _changed_on_the_way(world: World, choice: int) -> None:
    """What a plan rests on changes after it was made: while the account of a request is being written."""

    async def strike(request: Request) -> None:
        asked = accounts_for(request, world.clock.now(), within=10.0)
        pod = next((each for each in world.cluster.store.objects("pods") if each["metadata"]["uid"] in asked), None)
        if pod is None:
            return
        world.counts["met: the world changed while an eviction was being accounted for"] += 1
        if choice % 2:
            delete(world.cluster.registry, POD, "default", pod["metadata"]["name"], DeleteOptions(grace_seconds=30))
        else:
            name = pod["spec"]["nodeName"]
            world.cordon(name, True)
            world.later(20.0, lambda: world.cordon(name, False))
        await asyncio.sleep(1.0)

    passing = iter(range(choice // 2 % 4))

    def meets(request: Request) -> bool:
        return request.method == "PATCH" and "/configmaps/" in request.path and next(passing, None) is None

    world.witness.ambushes.append(Ambush(meets, strike))


ACTIONS: Mapping[str, Callable[[World, int], Awaitable[None]]] = {
    "change: a node joins": _node_joins,
    "change: a node leaves": _node_leaves,
    "change: a node is not Ready for a while": _node_turns,
    "change: a node is cordoned or uncordoned": _node_cordoned,
    "change: a workload is scaled": _scaled,
    "change: a workload is rolled out": _rolled_out,
    "change: a pod is deleted": _pod_deleted,
    "change: a pod is not Ready for a while": _pod_unready,
    "change: a budget is changed": _budget_changed,
    "change: an operator pauses for a while": _operator,
    "change: the lease is deleted": _lease_deleted,
    "change: runs are asked for": _asked,
    "fault: a replica is killed": _killed,
    "fault: a replica is stopped and started": _stopped,
    "fault: a replica is frozen": _frozen,
    "fault: a replica's connections are refused": _refused,
    "fault: a replica's packets are lost": _void,
    "fault: a replica's watches are deaf": _deaf,
    "fault: a replica's replies are lost": _replies_lost,
    "fault: a replica's network is slow": _slow,
    "fault: evictions fail": _evictions_fail,
    "fault: the lease cannot be used": _lease_fails,
    "fault: the state cannot be used": _state_fails,
    "fault: watches fail": _watches_fail,
    "fault: the API server restarts": _server_restarts,
    "fault: the API server forgets its history": _history_forgotten,
    "fault: a pod is replaced while its eviction is on the wire": _replaced_on_the_way,
    "fault: the world changes while an eviction is accounted for": _changed_on_the_way,
}
