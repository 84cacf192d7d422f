"""Live through many histories, print the figures, and fail where a promise is broken.

Run: ``python -m tests.histories --count 10000``; one again: ``python -m tests.histories --first 4711 --count 1``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.histories.history import drawn, forget, live_through
from tests.histories.report import most_refusals, report

_EVERY = 50


def main() -> int:
    """Return 0 where every promise was kept."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first history")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    failed = 0
    began_at, cpu = time.perf_counter(), time.process_time()
    for number in range(options.first, options.first + options.count):
        outcome = live_through(drawn(number))
        counts += outcome.counts
        if outcome.broken:
            failed += 1
            print(f"history {number} is broken:", *outcome.broken[:5], sep="\n    ", flush=True)
        if number % _EVERY == 0:
            forget()
        if number % 1000 == 999:
            print(f"{number + 1 - options.first} histories, {failed} broken, {time.perf_counter() - began_at:.0f} s", flush=True)
    print(report(counts))
    print(f"{failed} broken; {time.perf_counter() - began_at:.0f} s, {time.process_time() - cpu:.0f} s of them computing")
    return 1 if failed or counts["held by a budget"] > most_refusals(counts) else 0


if __name__ == "__main__":
    sys.exit(main())
