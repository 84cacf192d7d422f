"""Every figure that the project promises of large clusters, in one table.

Run: ``python -m benchmarks [--times 5] [--process-times 5] [--nodes 5000] [--markdown FILE]``, or ``tox -e bench``. Each figure
has a command of its own, in the last column. Takes about half an hour; ``--nodes`` makes everything smaller in proportion.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import evaluation, events, growth, process
from benchmarks.measuring import isolated, machine
from benchmarks.scenario import CALM, FEW, UNSHARED, Kind, scaled

Figures = dict[str, float]
_EVENTS = 20_000


@dataclass(frozen=True, slots=True)
class Row:
    """One promise. target: the limit; measured: medians, those without a name of their own first; command: what prints them."""

    what: str
    target: str
    measured: str
    met: bool
    command: str


def medians(results: list[Figures]) -> Figures:
    """Return the median of each figure."""
    return {label: statistics.median(result[label] for result in results) for label in results[0]}


def of_sync(what: str, figures: Figures, command: str) -> Row:
    """Return the row about the first sync."""
    cpu, seconds = figures["first sync: CPU (s)"], figures["first sync: time (s)"]
    return Row(f"first sync from another process, {what}: CPU", "15 s", f"{cpu:.1f} s ({seconds:.1f} s)", cpu <= 15, command)


def of_waits(what: str, figures: Figures, command: str) -> Row:
    """Return the row about the event loop: the longest of all waits, wherever it came."""
    busy = {label.partition(":")[0]: value for label, value in figures.items() if label.endswith("loop (ms of CPU)")}
    waits = {label.partition(":")[0]: value for label, value in figures.items() if label.endswith("loop (ms)")}
    worst, longest = (max(each, key=lambda label: each[label]) for each in (busy, waits))
    measured = f"{busy[worst]:.0f} ms ({worst}); by the clock {waits[longest]:.0f} ms ({longest})"
    return Row(f"event loop blocked at a time, own CPU{what}", "100 ms", measured, busy[worst] <= 100, command)


def of_process(figures: Figures) -> Iterator[Row]:
    """Yield what is measured on a running controller."""
    command = "python -m benchmarks.process"
    memory = figures["memory after three runs (MiB)"]
    synced = figures["memory synced (MiB)"]
    yield Row("resident memory after three runs", "400 MiB", f"{memory:.0f} MiB ({synced:.0f} synced)", memory <= 400, command)
    yield of_sync("streamed", figures, command)
    behind = figures[f"events at {process.EVENTS_PER_SECOND} per second: seconds behind at the end"]
    over_http = figures[f"events at {process.EVENTS_PER_SECOND} per second: CPU per event (us)"]
    measured = f"{behind:.2f} s behind at the end, {over_http:.0f} us of CPU each over HTTP"
    yield Row("2,000 events per second sustained", "0 s", measured, behind < 0.1, command)
    yield of_waits("", figures, command)


def of_evaluation(name: str, what: str, limit: float, figures: Figures) -> Row:
    """Return one row about evaluations."""
    counted = f", {figures['shapes judged']:.0f} shapes predicted" if "shapes judged" in figures else ""
    measured = f"{figures['CPU seconds']:.2f} s CPU, {figures['seconds']:.2f} s{counted}, {figures['approved']:.0f} approved"
    return Row(what, f"{limit:g} s", measured, figures["CPU seconds"] <= limit, f"python -m benchmarks.evaluation {name}")


def rows(times: int, process_times: int, nodes: int | None) -> Iterator[Row]:
    """Measure, and yield one row after another."""

    def whole(kind: Kind, *, streamed: bool = True) -> Figures:
        kind = scaled(kind, nodes) if nodes else kind
        return medians([process.run(kind, streamed=streamed) for _ in range(process_times)])

    yield from of_process(whole(FEW))
    command = "python -m benchmarks.process --paged"
    paged = whole(FEW, streamed=False)
    yield of_sync("in pages", paged, command)
    yield of_waits(", lists in pages", paged, command)
    taken = medians([isolated(events.measure, scaled(CALM, nodes or CALM.size.nodes), _EVENTS) for _ in range(process_times)])[
        "CPU per event (us)"
    ]
    yield Row("CPU per watch event, bytes to indexes", "100 us", f"{taken:.0f} us", taken <= 100, "python -m benchmarks.events")
    for name, what, limit in (
        ("few", "full evaluation, up to 50 shapes predicted", 2),
        ("many", "full evaluation, about 1,000 shapes predicted", 8),
        ("joined", "evaluation after one node joined, warm", 0.5),
        ("small", "full evaluation at 1,000 nodes, 30,000 pods", 0.4),
        ("unshared", "full evaluation, every pod its own owner", 6),
        ("hostile", "full evaluation, hostile cluster", 10),
    ):
        yield of_evaluation(name, what, limit, evaluation.measure(name, times, nodes))
    unshared = whole(UNSHARED)
    memory = unshared["memory after three runs (MiB)"]
    command = "python -m benchmarks.process --unshared"
    yield Row("resident memory, every pod its own owner", "800 MiB", f"{memory:.0f} MiB", memory <= 800, command)
    yield of_waits(", every pod its own owner", unshared, command)
    sizes = growth.NODES if nodes is None else tuple(max(30, count * nodes // 5_000) for count in growth.NODES)
    curve = growth.run(times, sizes)
    bent = growth.exponent(curve)
    span = f"{min(curve):,.0f} to {max(curve):,.0f} pods"
    yield Row(f"growth of a full evaluation, {span}", "exponent 1", f"{bent:.2f}", bent <= 1.05, "python -m benchmarks.growth")


def markdown(found: list[Row]) -> str:
    """Return the table as Markdown."""
    head = "| what | target | measured | met | command |\n| --- | --- | --- | --- | --- |\n"
    return head + "".join(
        f"| {row.what} | {row.target} | {row.measured} | {'yes' if row.met else 'no'} | `{row.command}` |\n" for row in found
    )


def main() -> None:
    """Print each row as soon as it is known."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=5, help="evaluations, of which the median counts")
    parser.add_argument("--process-times", type=int, default=5, help="processes, of which the median counts")
    parser.add_argument("--nodes", type=int, help="another size, everything in proportion; targets are those of 5,000 nodes")
    parser.add_argument("--markdown", type=Path, help="write the table here, too")
    options = parser.parse_args()
    print(", ".join(f"{name} {value}" for name, value in machine().items()))
    found = []
    for row in rows(options.times, options.process_times, options.nodes):
        print(f"{'met' if row.met else 'NOT':<4}{row.what:<58}{row.target:>11}  {row.measured}")
        sys.stdout.flush()
        found.append(replace(row))
    if options.markdown:
        options.markdown.write_text(markdown(found))


if __name__ == "__main__":
    main()
