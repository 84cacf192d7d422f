"""Serve the application on one address until told to stop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from rebalancer.web.app import application
from rebalancer.web.faces import Faces


class AddressInUse(OSError):
    """Somebody else listens there already. The message names the address."""


@asynccontextmanager
async def serving(faces: Faces, host: str, port: int) -> AsyncIterator[int]:
    """Serve while the block runs; gives the port that was taken. Raises AddressInUse, and OSError for other bad addresses."""
    # Whoever asks must not be able to hold up the exit of the process.
    runner = web.AppRunner(application(faces), access_log=None, handle_signals=False, shutdown_timeout=0.5)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as error:
            raise AddressInUse(f"{host}:{port} cannot be listened on: {error.strerror or error}") from error
        sockets = runner.addresses
        yield int(sockets[0][1]) if sockets else port
    finally:
        await runner.cleanup()
