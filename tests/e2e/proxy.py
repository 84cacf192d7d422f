"""A way to the API server that can be cut: what is sent is lost, nothing comes back, and connections stay as if nothing were."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Proxy:
    """Relays connections to one port on loopback."""

    def __init__(self, target_port: int) -> None:
        """Lead to this port."""
        self._target_port = target_port
        self._cut = False
        self._connections: set[asyncio.Task[None]] = set()
        self.port = 0

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Proxy]:
        """Relay while the block runs."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            await self._end_all()

    def cut(self) -> None:
        """Lose everything from now on."""
        self._cut = True

    async def heal(self) -> None:
        """Relay again; connections from before are reset."""
        self._cut = False
        await self._end_all()

    async def _end_all(self) -> None:
        for task in tuple(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        writers = [writer]
        try:
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
            writers.append(there_writer)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._relay(reader, there_writer))
                group.create_task(self._relay(there_reader, writer))
        except* (OSError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            for each in writers:
                with suppress(Exception):
                    each.transport.abort()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            if self._cut:
                continue
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError
