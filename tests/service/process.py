"""The controller as a process of its own, against an embedded cluster over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from rebalancer.sim.cluster import EmbeddedCluster
from rebalancer.sim.history import Event
from rebalancer.sim.kinds import DEPLOYMENT

POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: default
  pluginConfig:
  - name: RemoveDuplicates
  - name: LowNodeUtilization
    args: {thresholds: {cpu: 20}, targetThresholds: {cpu: 50}}
  plugins:
    balance: {enabled: [RemoveDuplicates, LowNodeUtilization]}
"""

FAST = {
    "REBALANCER_DEBOUNCE_QUIET_SECONDS": "0.5",
    "REBALANCER_NODE_SETTLE_SECONDS": "0.5",
    "REBALANCER_CAP_NODE": "none",
    "REBALANCER_CAP_TOTAL": "none",
    "REBALANCER_EVICTIONS_PER_MINUTE": "none",
    "REBALANCER_LISTEN_ADDRESS": "127.0.0.1",
    "REBALANCER_LISTEN_PORT": "0",
    "REBALANCER_LOG_FORMAT": "json",
}


class Controller:
    """A running controller, and what it has logged."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        """Follow a process."""
        self.process = process
        self.logged: list[dict[str, Any]] = []
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            try:
                self.logged.append(json.loads(line))
            except ValueError:
                self.logged.append({"event": "text", "text": line.decode(errors="replace").rstrip()})

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the lines of one event."""
        return [line for line in self.logged if line.get("event") == name]

    async def logs(self, name: str, *, count: int = 1, seconds: float = 20.0) -> list[dict[str, Any]]:
        """Wait until an event was logged so often."""
        try:
            async with asyncio.timeout(seconds):
                while len(self.events(name)) < count:
                    if self.process.returncode is not None:
                        await self._reading
                        break
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"{name} was not logged {count} times: {self.logged[-30:]}") from None
        return self.events(name)

    async def end(self, seconds: float = 40.0) -> int:
        """Wait for the end and return the exit code."""
        try:
            async with asyncio.timeout(seconds):
                code = await self.process.wait()
                await self._reading
        except TimeoutError:
            raise AssertionError(f"it did not end: {self.logged[-20:]}") from None
        return code

    async def kill(self) -> None:
        """End it whatever it does."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        await self._reading


@asynccontextmanager
async def controller(
    kubeconfig: Path, folder: Path, *, command: str = "run", policy: str = POLICY, more: Mapping[str, str] | None = None
) -> AsyncIterator[Controller]:
    """Run ``rebalancer run`` (or another command) while the block runs."""
    file = folder / "policy.yaml"
    if not file.exists():
        file.write_text(policy)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("REBALANCER_", "KUBE"))}
    environment = {**clean, **FAST, "REBALANCER_KUBECONFIG": str(kubeconfig), "REBALANCER_POLICY_FILE": str(file), **(more or {})}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "rebalancer", command, env=environment, stderr=asyncio.subprocess.PIPE
    )
    running = Controller(process)
    try:
        yield running
    finally:
        await running.kill()


def a_deployment(name: str, replicas: int, *, cpu: str = "500m") -> dict[str, Any]:
    """Return a Deployment."""
    container = {"name": "main", "image": "image:1", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
        },
    }


async def placed(cluster: EmbeddedCluster, deployments: int, replicas: int, *, cpu: str = "500m") -> None:
    """Create Deployments and wait until all their pods are Ready."""
    for number in range(deployments):
        cluster.registry.create(DEPLOYMENT, "default", a_deployment(f"app{number}", replicas, cpu=cpu))
    async with asyncio.timeout(30):
        while ready_pods(cluster) < deployments * replicas:
            await asyncio.sleep(0.05)


def ready_pods(cluster: EmbeddedCluster) -> int:
    """Return how many pods are Ready."""
    return sum(
        any(each["type"] == "Ready" and each["status"] == "True" for each in pod.get("status", {}).get("conditions", ()))
        for pod in cluster.store.objects("pods")
    )


class Deletions:
    """Notes when each pod was asked to go, by uid, as the store sees it; a second time would be a double eviction."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        """Listen to the store."""
        self.moments: dict[str, float] = {}
        self.names: list[str] = []
        self.came = asyncio.Event()
        cluster.store.listen("pods", self._on_event)

    def _on_event(self, event: Event) -> None:
        before, after = event.before, event.after
        if after is None or "deletionTimestamp" not in after["metadata"]:
            return
        if before is None or "deletionTimestamp" not in before["metadata"]:
            self.moments[after["metadata"]["uid"]] = asyncio.get_running_loop().time()
            self.names.append(after["metadata"]["name"])
            self.came.set()
