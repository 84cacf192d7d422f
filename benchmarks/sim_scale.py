"""How large an embedded cluster may be: loading a dump, memory, and the fan-out of watch events over HTTP.

python -m benchmarks.sim_scale --nodes 5000 --pods 150000 --rate 2000 --watchers 3
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from benchmarks.generate import Cluster, Size
from rebalancer.sim.cluster import EmbeddedCluster
from rebalancer.sim.store import Store

_WATCHER = """
import asyncio, sys, time, aiohttp
async def main():
    url, wanted = sys.argv[1], int(sys.argv[2])
    headers = {"Authorization": "Bearer admin-token"}
    async with aiohttp.ClientSession(read_bufsize=2**20) as session, session.get(url, headers=headers) as response:
        print("open", flush=True)
        count = 0
        async for line in response.content:
            count += 1
            if count == wanted:
                break
    print(count, time.time(), flush=True)
asyncio.run(main())
"""


def megabytes() -> float:
    """Return the resident size of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def written(path: Path, size: Size) -> None:
    """Write a generated cluster, one object a line."""
    cluster = Cluster(size)
    with path.open("wb") as file:
        for obj in (*cluster.nodes(), *cluster.owners(), *cluster.budgets()):
            file.write(orjson.dumps(obj) + b"\n")
        for obj in cluster.pods():
            file.write(orjson.dumps(obj) + b"\n")


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file."""
    with path.open("rb") as file:
        for line in file:
            yield orjson.loads(line)


def touch(store: Store, keys: list[tuple[str, str]], number: int) -> None:
    """Change one pod as a kubelet would."""
    pod = store.get("pods", *keys[number % len(keys)])
    assert pod is not None
    status = {**pod["status"], "message": str(number)}
    store.put("pods", {**pod, "metadata": dict(pod["metadata"]), "status": status})


async def fan_out(embedded: EmbeddedCluster, rate: int, watchers: int, seconds: int) -> None:
    """Change pods at a steady rate and see how far behind the watchers are at the end."""
    store = embedded.store
    wanted = rate * seconds
    url = f"{embedded.url}/api/v1/pods?watch=1&resourceVersion={store.version}"
    processes = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", _WATCHER, url, str(wanted), stdout=asyncio.subprocess.PIPE)
        for _ in range(watchers)
    ]
    for process in processes:
        assert process.stdout is not None
        await process.stdout.readline()
    keys = store.keys("pods")[:5000]
    began = time.perf_counter()
    cpu = time.process_time()
    worst = 0.0
    for number in range(wanted):
        due = began + number / rate
        wait = due - time.perf_counter()
        if wait > 0.002:
            await asyncio.sleep(wait)
        elif number % 20 == 0:
            await asyncio.sleep(0)
        worst = max(worst, time.perf_counter() - due)
        touch(store, keys, number)
    ended = time.time()
    took = time.perf_counter() - began
    lags = []
    for process in processes:
        assert process.stdout is not None
        count, when = (await process.stdout.readline()).split()
        assert int(count) == wanted
        lags.append(float(when) - ended)
        await process.wait()
    cpu = time.process_time() - cpu
    print(f"fan-out: {wanted} events in {took:.1f} s ({wanted / took:.0f}/s) to {watchers} watchers")
    print(f"  server CPU per event {cpu / wanted * 1e6:.0f} µs")
    print(f"  last event seen {max(lags):.2f} s after it was made; maker at most {worst:.2f} s late; server CPU {cpu:.1f} s")


async def measure(path: Path, arguments: argparse.Namespace) -> None:
    """Load the dump, list it, and watch it."""
    before = megabytes()
    began, cpu = time.perf_counter(), time.process_time()
    embedded = EmbeddedCluster(dump=read(path), write_events=False)
    loaded, cpu = time.perf_counter() - began, time.process_time() - cpu
    pods, nodes = embedded.store.count("pods"), embedded.store.count("nodes")
    grown = megabytes() - before
    print(f"load: {nodes} nodes and {pods} pods in {loaded:.1f} s (CPU {cpu:.1f} s), {grown:.0f} MB more ({megabytes():.0f} MB)")
    async with embedded:
        await asyncio.sleep(5)
        print(f"running 5 s: {megabytes():.0f} MB")
        await listing(embedded)
        await fan_out(embedded, arguments.rate, arguments.watchers, arguments.seconds)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:.0f} MB")


async def listing(embedded: EmbeddedCluster) -> None:
    """Page through all pods as an informer does."""
    code = (
        "import sys, time, orjson, urllib.request, urllib.parse, gc\n"
        "gc.disable()\n"
        "url, token, pages, began = sys.argv[1], '', 0, time.time()\n"
        "while True:\n"
        "    query = {'limit': 500, **({'continue': token} if token else {})}\n"
        "    request = urllib.request.Request(url + '?' + urllib.parse.urlencode(query))\n"
        "    request.add_header('Authorization', 'Bearer admin-token')\n"
        "    page = orjson.loads(urllib.request.urlopen(request).read()); pages += 1\n"
        "    token = page['metadata'].get('continue')\n"
        "    if not token: break\n"
        "print(f'list: {pages} pages of 500 in {time.time() - began:.1f} s, decoding included')\n"
    )
    cpu = time.process_time()
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, f"{embedded.url}/api/v1/pods")
    await process.wait()
    print(f"  server CPU {time.process_time() - cpu:.1f} s")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--rate", type=int, default=2000)
    parser.add_argument("--watchers", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--generate", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    size = Size(arguments.nodes, arguments.pods, max(1, arguments.pods // 22))
    if arguments.generate:
        written(Path(arguments.generate), size)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "objects.jsonl"
        sizes = ["--nodes", str(arguments.nodes), "--pods", str(arguments.pods)]
        subprocess.run([sys.executable, "-m", "benchmarks.sim_scale", "--generate", str(path), *sizes], check=True)
        print(f"dump: {path.stat().st_size / 2**20:.0f} MB")
        asyncio.run(measure(path, arguments))


if __name__ == "__main__":
    main()
