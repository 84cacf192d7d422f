"""What histories came to, in lines; how many refusals by budgets are few enough."""

from __future__ import annotations

from collections import Counter

MOST_REFUSALS = 0.01


def most_refusals(counts: Counter[str]) -> float:
    """Return how many requests may meet a refusal by a budget: 1 %, and one where there are few requests."""
    return max(1.0, MOST_REFUSALS * counts["requests"])


def report(counts: Counter[str]) -> str:
    """Return the figures: the whole first, then what happened and what was met, each with its count."""
    requests = max(counts["requests"], 1)
    progress = counts["seconds until progress, in all"] / max(counts["histories"], 1)
    hours = counts["virtual seconds"] / 3600
    kinds = {name: count for name, count in sorted(counts.items()) if name.partition(":")[0] in ("change", "fault", "met")}
    others = {
        name: count
        for name, count in sorted(counts.items())
        if name not in kinds and name not in ("histories", "virtual seconds", "requests", "seconds until progress, in all")
    }
    faults = sum(count for name, count in kinds.items() if name.startswith("fault:") and not name.endswith("(could not be)"))
    lines = [
        f"{counts['histories']} histories, {hours:.1f} hours of virtual time, {counts['requests']} requests",
        f"held by a budget: {counts['held by a budget'] / requests:.2%} of requests",
        f"progress {progress:.1f} s after the faults ended, on average (windows included)",
        f"faults: {faults}",
        *(f"{count:>8}  {name}" for name, count in {**others, **kinds}.items()),
    ]
    return "\n".join(lines)
