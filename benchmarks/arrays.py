"""Whether numpy pays: what importing it costs, against what filtering and scoring one shape over all nodes costs without it.

Run: ``python -m benchmarks.arrays [--nodes 5000]``. "plain loop" is cpu and memory alone, node by node in Python, without any
other filter or score (see ``benchmarks.placement``), so it understates what numpy saves.
"""

from __future__ import annotations

import argparse
import importlib
import time

from benchmarks.measuring import isolated, resident_mib


def cost(module: str) -> tuple[float, float]:
    """Return what importing a module adds to the memory (MiB) and takes of CPU (ms), in a process that has nothing else."""
    memory, cpu = resident_mib(), time.process_time()
    importlib.import_module(module)
    return resident_mib() - memory, (time.process_time() - cpu) * 1000


def shape(nodes: int) -> dict[str, float]:
    """Return medians in milliseconds for one shape over all nodes."""
    from benchmarks.placement import measure

    return measure(nodes, 30, 50)


def main() -> None:
    """Print cost and gain."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5_000)
    nodes = parser.parse_args().nodes
    memory, cpu = isolated(cost, "numpy")
    print(f"import numpy: {memory:.1f} MiB, {cpu:.0f} ms of CPU")
    figures = isolated(shape, nodes)
    print(f"one shape over {nodes:,} nodes, all filters and scores, first time: {figures['cold']:.2f} ms")
    print(f"the same again after five nodes changed: {figures['warm']:.2f} ms")
    print(f"plain loop over cpu and memory alone: {figures['plain loop']:.2f} ms")


if __name__ == "__main__":
    main()
