"""An API server reduced to what a benchmark needs: lists in pages or as a stream, and watch events at a chosen rate.

It runs in a process of its own, with every byte made before the first request, so that it is never what is waited for.
Commands come over a pipe: ``events`` (count, per second; 0 for as fast as they go), ``expire`` (every watch of pods ends with
410), ``join`` (a node is added), ``stop``.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from random import Random
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson

from benchmarks.scenario import Kind, Scenario
from rebalancer.kube.resources import RESOURCES

VERSION = 2_000_000
_PAGE = 500
_EVENTS_KEPT = 20_000
_SLOT_SECONDS = 0.01


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _item(value: dict[str, Any]) -> bytes:
    return orjson.dumps({key: each for key, each in value.items() if key not in ("kind", "apiVersion")})


@dataclass
class _Kind:
    """One kind's objects: their bytes, and who watches them."""

    name: str
    items: list[bytes] = field(default_factory=list)
    whole: list[bytes] = field(default_factory=list)
    watchers: list[asyncio.StreamWriter] = field(default_factory=list)

    def page(self, start: int) -> bytes:
        """Return a page of the list."""
        end = start + _PAGE
        token = str(end) if end < len(self.items) else ""
        metadata = f'{{"resourceVersion":"{VERSION}","continue":"{token}"}}'
        head = f'{{"kind":"{self.name}List","apiVersion":"v1","metadata":{metadata},"items":['
        return head.encode() + b",".join(self.items[start:end]) + b"]}"

    def stream(self) -> Iterator[bytes]:
        """Yield a streamed list in chunks."""
        for start in range(0, len(self.whole), 50):
            yield _chunk(b"".join(b'{"type":"ADDED","object":%b}\n' % each for each in self.whole[start : start + 50]))
        yield _chunk(_bookmark(self.name, VERSION, initial=True))


def _bookmark(kind: str, version: int, *, initial: bool = False) -> bytes:
    metadata: dict[str, Any] = {"resourceVersion": str(version), "creationTimestamp": None}
    if initial:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return orjson.dumps({"type": "BOOKMARK", "object": {"kind": kind, "apiVersion": "v1", "metadata": metadata}}) + b"\n"


class _Server:
    """Holds the cluster and answers."""

    def __init__(self, kind: Kind, commands: Connection) -> None:
        self.commands = commands
        self.kinds = {resource.path: _Kind(resource.kind) for resource in RESOURCES}
        by_name = {each.name: each for each in self.kinds.values()}
        scenario = Scenario(kind)
        groups: Iterable[Iterable[dict[str, Any]]] = (
            scenario.nodes(),
            scenario.owners(),
            scenario.budgets(),
            scenario.others(),
            scenario.pods(),
        )
        for group in groups:
            for each in group:
                known = by_name[each["kind"]]
                known.items.append(_item(each))
                known.whole.append(orjson.dumps(each))
        self.pods = by_name["Pod"]
        self.nodes = by_name["Node"]
        self.events = list(self._events(scenario))
        self.fresh_nodes = 0

    def _events(self, scenario: Scenario) -> Iterator[bytes]:
        """Yield status changes of pods drawn at random: what most events of a cluster are."""
        random = Random(7)
        for number in range(min(_EVENTS_KEPT, len(scenario.placed))):
            pod = scenario.pod(random.choice(scenario.placed), version=VERSION + 1 + number)
            pod["status"]["containerStatuses"][0]["restartCount"] = 1 if number % 50 == 0 else 0
            pod["status"]["conditions"][2]["status"] = random.choice(("True", "False"))
            yield _chunk(b'{"type":"MODIFIED","object":%b}\n' % orjson.dumps(pod))

    async def run(self) -> None:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.commands.send(server.sockets[0].getsockname()[1])
        loop = asyncio.get_running_loop()
        try:
            while True:
                command, *arguments = await loop.run_in_executor(None, self.commands.recv)
                if command == "stop":
                    os._exit(0)  # Nobody waits for the connections.
                await {"events": self._events_out, "expire": self._expire, "join": self._join}[command](*arguments)
                self.commands.send("done")
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ", 2)[1].decode()
                if await self._answer(path, writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    async def _answer(self, target: str, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether the connection has become a watch that is served elsewhere."""
        parts = urlsplit(target)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        kind = self.kinds.get(parts.path)
        if kind is None:
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}")
            return False
        if query.get("watch") != "true":
            body = kind.page(int(query.get("continue", "0")))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
            writer.write(body)
            await writer.drain()
            return False
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        if query.get("sendInitialEvents") == "true":
            for chunk in kind.stream():
                writer.write(chunk)
                await writer.drain()
        kind.watchers.append(writer)
        await writer.drain()
        while not writer.is_closing():
            await asyncio.sleep(1.0)
            writer.write(_chunk(_bookmark(kind.name, VERSION)))
            await writer.drain()
        return True

    async def _events_out(self, count: int, per_second: float) -> None:
        (watcher,) = self.pods.watchers[-1:]
        started = time.perf_counter()
        sent = 0
        while sent < count:
            due = count if not per_second else min(count, int((time.perf_counter() - started + _SLOT_SECONDS) * per_second))
            while sent < due:
                batch = self.events[sent % len(self.events) :][: min(40, due - sent)]
                watcher.write(b"".join(batch))
                sent += len(batch)
                await watcher.drain()
            if per_second:
                await asyncio.sleep(_SLOT_SECONDS)

    async def _expire(self) -> None:
        status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
        line = _chunk(orjson.dumps({"type": "ERROR", "object": status}) + b"\n") + b"0\r\n\r\n"
        watchers, self.pods.watchers = self.pods.watchers, []
        for watcher in watchers:
            watcher.write(line)
            await watcher.drain()
            watcher.close()

    async def _join(self) -> None:
        self.fresh_nodes += 1
        node = orjson.loads(self.nodes.whole[0])
        name = f"node-z{self.fresh_nodes:04}.internal"
        node["metadata"] |= {"name": name, "uid": f"uid-{name}", "creationTimestamp": "2026-12-01T00:00:00Z"}
        node["metadata"]["labels"]["kubernetes.io/hostname"] = name
        for watcher in self.nodes.watchers:
            watcher.write(_chunk(b'{"type":"ADDED","object":%b}\n' % orjson.dumps(node)))
            await watcher.drain()


def _main(kind: Kind, commands: Connection) -> None:
    server = _Server(kind, commands)
    asyncio.run(server.run())


class ApiServer:
    """The server's process, from outside."""

    def __init__(self, kind: Kind) -> None:
        """Start it and wait until it has made everything."""
        self._pipe, there = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("spawn").Process(target=_main, args=(kind, there), daemon=True)
        self._process.start()
        self.port: int = self._pipe.recv()

    def command(self, name: str, *arguments: Any) -> None:
        """Give a command and wait until it has been carried out."""
        self._pipe.send((name, *arguments))
        self._pipe.recv()

    def close(self) -> None:
        """End the process."""
        self._pipe.send(("stop",))
        self._process.join(5)
