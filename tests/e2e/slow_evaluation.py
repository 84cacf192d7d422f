"""The controller as ``rebalancer run`` builds it, with evaluations that compute for many seconds without giving way.

Run: ``python -m tests.e2e.slow_evaluation`` with the usual variables.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from rebalancer.control.offload import beside_the_loop
from rebalancer.kube.config import find_access
from rebalancer.kube.transport import Transport
from rebalancer.model.plan import Plan
from rebalancer.placement.profile import DEFAULT
from rebalancer.service.life import Stop, serve
from rebalancer.service.logs import LogListener, configure_logging
from rebalancer.service.parts import build
from rebalancer.settings import load_policy, load_settings

SECONDS = 30.0


async def laboriously(compute: Callable[[], Plan]) -> Plan:
    """Compute in a thread, after a long time of nothing but Python."""

    def work() -> Plan:
        """Work long, then compute."""
        print('{"event": "evaluating"}', file=sys.stderr, flush=True)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            sum(range(1000))
        return compute()

    return await beside_the_loop(work, name="evaluation")


async def run() -> None:
    """Run until told to stop."""
    settings = load_settings(os.environ)
    loaded = load_policy(settings, os.environ, read=lambda path: Path(path).read_bytes())
    log = configure_logging(settings.serving.log_level, settings.serving.log_format)
    stop = Stop()
    stop.listen()
    transport = Transport(find_access(kubeconfig=settings.cluster.kubeconfig, context=None, environment=os.environ))
    listeners = [LogListener(log)]
    parts = build(settings, loaded.policy, DEFAULT, transport, listeners, random=Random(), beside=laboriously)
    await serve(parts, stop, policy_file=None)


if __name__ == "__main__":
    asyncio.run(run())
