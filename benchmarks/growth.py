"""How the evaluation grows with the cluster, at the same number of pods per node: CPU time from 10,000 to 150,000 pods.

Run: ``python -m benchmarks.growth [--times 5]``. Printed: CPU seconds per size, and the exponent of the power law that fits them
best (1 is linear).
"""

from __future__ import annotations

import argparse
import math

from benchmarks.evaluation import measure

NODES = (333, 667, 1_667, 3_333, 5_000)


def exponent(points: dict[float, float]) -> float:
    """Return the exponent b of the curve a * x**b that fits best: least squares on the logarithms."""
    logs = [(math.log(size), math.log(value)) for size, value in points.items()]
    mean_x, mean_y = (sum(values) / len(logs) for values in zip(*logs, strict=True))
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)


def run(times: int, nodes: tuple[int, ...] = NODES) -> dict[float, float]:
    """Return CPU seconds of a full evaluation by the number of pods."""
    found = {}
    for count in nodes:
        figures = measure("few", times, count)
        found[figures["pods"]] = figures["CPU seconds"]
    return found


def main() -> None:
    """Print the curve and its exponent."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=5)
    points = run(parser.parse_args().times)
    for pods, seconds in points.items():
        print(f"{pods:>9,.0f} pods: {seconds:.3f} s, {seconds / pods * 1e6:.2f} us per pod")
    print(f"exponent {exponent(points):.2f}")


if __name__ == "__main__":
    main()
