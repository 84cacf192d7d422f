"""Durations as Kubernetes objects write them (``90s``, ``1h30m``, ``250ms``), to seconds and back.

Source: https://pkg.go.dev/time#ParseDuration
"""

from __future__ import annotations

import re
from fractions import Fraction

_SECONDS_PER_UNIT = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "μs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}
_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")


def duration_seconds(text: str) -> float:
    """Return the seconds of a duration such as ``1h30m``; a bare ``0`` needs no unit.

    Raises ValueError for anything that Go's time.ParseDuration would refuse.
    """
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in {"-", "+"} else text
    if rest == "0":
        return 0.0
    total, position = Fraction(0), 0
    while part := _PART.match(rest, position):
        total += Fraction(part[1].rstrip(".") if not part[1].startswith(".") else "0" + part[1]) * _SECONDS_PER_UNIT[part[2]]
        position = part.end()
    if not rest or position != len(rest):
        raise ValueError(f"{text!r} is not a duration such as 90s or 1h30m")
    return float(sign * total)


def duration_text(seconds: float) -> str:
    """Return the duration in its shortest usual form: 5400.0 gives ``1h30m``, 0.25 gives ``250ms``."""
    if seconds < 0:
        return "-" + duration_text(-seconds)
    if seconds and seconds < 1:
        return f"{seconds * 1000:.12g}ms"
    hours, rest = divmod(Fraction(repr(seconds)), 3600)
    minutes, rest = divmod(rest, 60)
    parts = [f"{hours}h" if hours else "", f"{minutes}m" if minutes else "", f"{float(rest):.12g}s" if rest else ""]
    return "".join(parts) or "0s"
