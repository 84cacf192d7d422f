"""``sim``: the embedded cluster alone, empty, of so many nodes, or in the likeness of a real one; kubectl can be used on it."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rebalancer.cli.reading import read_objects
from rebalancer.errors import InputError, Mistake, RebalancerError

if TYPE_CHECKING:
    from rebalancer.sim.cluster import EmbeddedCluster

FromOption = Annotated[
    str | None, typer.Option("--from", metavar="DUMP", help="Begin with the objects of a dump; - is standard input.")
]
NodesOption = Annotated[int | None, typer.Option("--nodes", min=0, help="Begin with so many nodes (3 without a dump).")]
PortOption = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port on loopback; 0 is any free one.")]
KubeconfigOption = Annotated[str | None, typer.Option("--kubeconfig", metavar="FILE", help="Where to write a kubeconfig.")]
JoinOption = Annotated[int, typer.Option("--join", min=0, help="Let so many more nodes join once it runs.")]
LikeOption = Annotated[str, typer.Option("--like", metavar="NODE", help="In the likeness of this node.")]


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("sim", help="Run the embedded cluster on loopback until Ctrl-C; it evicts nothing by itself.")(sim)


def sim(
    dump: FromOption = None,
    nodes: NodesOption = None,
    port: PortOption = 0,
    kubeconfig: KubeconfigOption = None,
    join: JoinOption = 0,
    like: LikeOption = "",
) -> int:
    """Run it."""
    objects: list[Any] = list(read_objects(dump)) if dump else []
    named = {each["metadata"]["name"] for each in objects if each.get("kind") == "Node"}
    if like and like not in named and not (not dump and like.startswith("node-")):
        raise InputError("arguments", [Mistake("--like", f"there is no node {like!r} in {dump or 'the cluster'}")])
    path = Path(kubeconfig) if kubeconfig else Path(tempfile.gettempdir()) / f"rebalancer-sim-{os.getpid()}.kubeconfig"
    count = nodes if nodes is not None else 0 if dump else 3
    return asyncio.run(_sim(objects, count, port, path, join, like))


async def _sim(objects: list[Any], nodes: int, port: int, path: Path, join: int, like: str) -> int:
    from rebalancer.service.life import Stop
    from rebalancer.sim.cluster import EmbeddedCluster

    stop = Stop()
    stop.listen()
    ours = not await asyncio.to_thread(path.exists)
    cluster = EmbeddedCluster(nodes=nodes, dump=objects, port=port)
    try:
        await cluster.__aenter__()
    except OSError as error:
        raise RebalancerError(f"127.0.0.1:{port} cannot be listened on: {error.strerror or error}") from error
    try:
        cluster.kubeconfig(path)
        print(f"{cluster.url} serves {_count(cluster, 'nodes')} nodes and {_count(cluster, 'pods')} pods")
        print(f"export KUBECONFIG={path}", flush=True)
        for _ in range(join):
            name = _join(cluster, like)
            print(f"{name} joins", flush=True)
        await stop.event.wait()
        if ours:
            await asyncio.to_thread(path.unlink, missing_ok=True)
    finally:
        await cluster.__aexit__(None, None, None)
    return 0


def _join(cluster: EmbeddedCluster, like: str) -> str:
    from rebalancer.sim.problems import ApiProblem

    try:
        return str(cluster.add_node(like=like)["metadata"]["name"])
    except ApiProblem as problem:
        raise InputError("arguments", [Mistake("--like", str(problem))]) from problem


def _count(cluster: EmbeddedCluster, storage: str) -> int:
    return cluster.store.count(storage)
