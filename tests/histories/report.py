"""What histories came to, in lines; how many refusals by budgets are few enough."""

from __future__ import annotations

import textwrap
from collections import Counter

MOST_REFUSALS = 0.01
_WIDTH = 120
_KINDS = {"change": "changes", "fault": "faults", "met": "faults and changes that met a request, a watch or a pod"}
_SHOWN_ABOVE = ("histories", "virtual seconds", "requests", "seconds until progress, in all")


def most_refusals(counts: Counter[str]) -> float:
    """Return how many requests may meet a refusal by a budget: 1 %, and one where there are few requests."""
    return max(1.0, MOST_REFUSALS * counts["requests"])


def report(counts: Counter[str]) -> str:
    """Return the figures: the whole first, then what happened and what was met, each with its count."""
    histories, requests = max(counts["histories"], 1), max(counts["requests"], 1)
    kinds: dict[str, dict[str, int]] = {kind: {} for kind in _KINDS}
    others = {}
    for name, count in sorted(counts.items()):
        kind, _, what = name.partition(": ")
        if kind in kinds:
            kinds[kind][what] = count
        elif name not in _SHOWN_ABOVE:
            others[name] = count
    lines = [
        f"{counts['histories']} histories, {counts['virtual seconds'] / 3600:.1f} hours of virtual time, "
        f"{counts['requests']} requests",
        f"held by a budget: {counts['held by a budget'] / requests:.2%} of requests",
        f"progress {counts['seconds until progress, in all'] / histories:.1f} s after the faults ended, on average "
        "(windows included)",
        *_paragraph("what came of it", others),
    ]
    for kind, title in _KINDS.items():
        happened = sum(count for what, count in kinds[kind].items() if not what.endswith("(could not be)"))
        lines += _paragraph(f"{title}: {happened}", kinds[kind])
    return "\n".join(lines)


def _paragraph(title: str, counts: dict[str, int]) -> list[str]:
    # What belongs together is not torn apart at the end of a line.
    each = ", ".join(f"{what} {count}".replace(" ", "\0") for what, count in counts.items())
    wrapped = textwrap.wrap(
        each, _WIDTH, initial_indent="    ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return [title, *(line.replace("\0", " ") for line in wrapped)]
