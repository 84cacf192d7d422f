"""Times as the API server wants them written."""

from __future__ import annotations

from datetime import UTC, datetime


def micro_time(seconds: float) -> str:
    """Write seconds since the epoch as a MicroTime: UTC, always six digits behind the point."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def whole_time(seconds: float) -> str:
    """Write seconds since the epoch as a Time: UTC, whole seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_time(text: str | None) -> float:
    """Read a Time or MicroTime to seconds since the epoch; 0 where there is none or it is none."""
    if not text:
        return 0.0
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return 0.0
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
