"""Objects of the live cluster for commands that only look."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from rebalancer.settings import Settings


def live_objects(settings: Settings) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the objects of the cluster that the settings point at, and notes. Raises KubeError."""
    return asyncio.run(_objects(settings))


async def _objects(settings: Settings) -> tuple[list[dict[str, Any]], list[str]]:
    from rebalancer.kube.config import find_access
    from rebalancer.kube.listing import list_all
    from rebalancer.kube.transport import Transport

    access = find_access(kubeconfig=settings.cluster.kubeconfig, context=settings.cluster.kube_context, environment=os.environ)
    transport = Transport(access)
    try:
        return await list_all(transport)
    finally:
        await transport.close()
