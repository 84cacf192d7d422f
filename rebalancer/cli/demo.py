"""``demo``: a whole cluster in this process, the controller on it, and what happens when nodes join."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from random import Random

    from rebalancer.cli.demo_view import View
    from rebalancer.service.life import Stop
    from rebalancer.sim.cluster import EmbeddedCluster

# With these the demo ends by itself within 50 s, whatever happens.
_PLACING_SECONDS = 14.0
_FIRST_LOOK_SECONDS = 6.0
_REBALANCING_SECONDS = 26.0

StayOption = Annotated[bool, typer.Option("--stay", help="Go on afterwards, with a kubeconfig, so that kubectl can look on.")]
SeedOption = Annotated[int, typer.Option("--seed", help="Another seed is another cluster.")]


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("demo", help="Watch nodes join an embedded cluster and pods follow. Needs nothing but this package.")(demo)


def demo(stay: StayOption = False, seed: SeedOption = 7) -> int:
    """Show it."""
    return asyncio.run(_demo(stay=stay, seed=seed))


async def _demo(*, stay: bool, seed: int) -> int:
    from random import Random

    from rich.console import Console

    from rebalancer.cli import demo_world as world
    from rebalancer.cli.demo_view import View
    from rebalancer.service.life import Stop
    from rebalancer.sim.cluster import EmbeddedCluster
    from rebalancer.sim.kinds import DEPLOYMENT
    from rebalancer.sim.nodes import NodeShape

    stop = Stop()
    stop.listen()
    random = Random(seed)
    async with EmbeddedCluster(nodes=world.FIRST_NODES, shape=NodeShape(cpu="4", memory="16Gi"), seed=seed) as cluster:
        cluster.add_namespace(world.NAMESPACE)
        for deployment in world.deployments(random):
            cluster.registry.create(DEPLOYMENT, world.NAMESPACE, deployment)
        view = View(Console(highlight=False, emoji=False), lambda: world.requested(cluster))
        with view:
            view.say(f"cluster   {world.FIRST_NODES} nodes and {world.DEPLOYMENTS} Deployments at {cluster.url}")
            await _until(lambda: world.all_ready(cluster), _PLACING_SECONDS, stop)
            view.say("placed    kube-scheduler's simulation is done; the controller starts")
            await _with_controller(cluster, view, stop, random, stay=stay)
        view.summary()
    return 0


async def _with_controller(cluster: EmbeddedCluster, view: View, stop: Stop, random: Random, *, stay: bool) -> None:
    """Run the controller, let nodes join, and wait until there is nothing left to gain."""
    from rebalancer.cli import demo_world as world
    from rebalancer.kube.config import from_kubeconfig
    from rebalancer.kube.transport import Transport
    from rebalancer.placement.profile import DEFAULT
    from rebalancer.policy import load
    from rebalancer.service.life import serve
    from rebalancer.service.parts import build
    from rebalancer.settings import load_settings

    with tempfile.TemporaryDirectory(prefix="rebalancer-demo-") as folder:
        kubeconfig = cluster.kubeconfig(Path(folder) / "kubeconfig")
        settings = load_settings(world.SETTINGS)
        policy = load(world.POLICY, source="the demo's policy").policy
        parts = build(settings, policy, DEFAULT, Transport(from_kubeconfig(str(kubeconfig))), [view], random=random)
        inner = _inner_stop()
        controller = asyncio.create_task(serve(parts, inner, policy_file=None, listen=False), name="controller")
        try:
            await _until(lambda: bool(view.ended) or controller.done(), _FIRST_LOOK_SECONDS, stop)
            view.before = world.requested(cluster)
            view.begin_counting()
            for number in range(world.JOINING_NODES):
                name = f"node-{world.FIRST_NODES + number + 1:02}"
                cluster.add_node(name)
                view.say(f"join      {name} registers, empty")
                await _until(controller.done, 0.3, stop)
            await _until(lambda: view.settled_down() or controller.done(), _REBALANCING_SECONDS, stop)
            view.after = world.requested(cluster)
            if stay and not stop.event.is_set():
                view.say(f"staying   export KUBECONFIG={kubeconfig}   (Ctrl-C ends it)")
                await _until(controller.done, float("inf"), stop)
        finally:
            inner.event.set()
            await controller


def _inner_stop() -> Stop:
    from rebalancer.service.life import Stop

    return Stop()


async def _until(condition: Callable[[], bool], seconds: float, stop: Stop) -> bool:
    """Wait until the condition holds, at most so long, and not once the demo was told to stop."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while loop.time() < end and not stop.event.is_set():
        if condition():
            return True
        await asyncio.sleep(0.1)
    return False
