"""What every benchmark needs: a machine's facts, medians, CPU and memory of this process, and processes to measure in."""

from __future__ import annotations

import multiprocessing
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Result = TypeVar("Result")


def resident_mib() -> float:
    """Return the resident memory of this process (VmRSS), in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """Return how many seconds some work takes, and its result."""
    before = time.perf_counter()
    result = work()
    return time.perf_counter() - before, result


def median_seconds(work: Callable[[], Any], times: int) -> float:
    """Return the median of some runs, in seconds."""
    return statistics.median(timed(work)[0] for _ in range(times))


def isolated(work: Callable[..., Result], *arguments: Any) -> Result:
    """Run in a fresh process, so that one measurement's memory and caches are not the next one's."""
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(target=_deliver, args=(there, work, arguments))
    process.start()
    there.close()
    try:
        result: Result = here.recv()
    finally:
        process.join()
    return result


def _deliver(to: Any, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    to.send(work(*arguments))


def machine() -> dict[str, str]:
    """Return what the figures were measured on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
    memory_kib = next(
        int(line.split()[1]) for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal:")
    )
    return {
        "processor": model,
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{memory_kib / 2**20:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }
