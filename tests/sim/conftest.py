"""Clusters for the tests of the embedded cluster."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from rebalancer.sim.cluster import EmbeddedCluster

STORIES = Path(__file__).parent.parent / "conformance" / "api"


def story(name: str) -> dict[str, Any]:
    """Return a recorded story by name."""
    with gzip.open(STORIES / f"{name}.json.gz") as file:
        loaded: dict[str, Any] = json.load(file)
    return loaded


@pytest.fixture
async def bare() -> AsyncIterator[EmbeddedCluster]:
    """An API server with no controllers, the namespace ``s`` and no nodes."""
    async with EmbeddedCluster(seed=1, controllers=False) as cluster:
        cluster.add_namespace("s")
        yield cluster
