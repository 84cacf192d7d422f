"""Windows as a setting gives them: a cron start, a duration, a time zone. When they are open is judged in ``control``."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from pydantic import AfterValidator, Field

from rebalancer.parse.argument_types import Duration, Items
from rebalancer.parse.arguments import Arguments, refusal, shown


def _cron(given: str) -> str:
    expected = f"must be five cron fields (minute hour day month weekday) such as '0 22 * * 1-5', not {shown(given)}"
    if len(given.split()) != 5:
        raise refusal(expected)
    try:
        # Which moment does not matter: only whether the fields can be read.
        CronSim(given, datetime(2026, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise refusal(f"{expected} ({error})") from error
    return given


def _zone(given: str) -> str:
    try:
        ZoneInfo(given)
    except (OSError, ValueError, LookupError) as error:
        raise refusal(f"must be an IANA time zone such as Europe/Berlin, not {shown(given)}") from error
    return given


class WindowSetting(Arguments):
    """One recurring stretch of time."""

    cron: Annotated[str, AfterValidator(_cron)] = Field(description="When it starts (five cron fields, local time).")
    duration: Duration | None = Field(None, description="How long it lasts, as in 6h or 90m.")
    duration_seconds: Annotated[float, Field(gt=0)] | None = Field(None, description="How long it lasts (seconds).")
    time_zone: Annotated[str, AfterValidator(_zone)] = Field("UTC", description="IANA name of the time zone.")
    profiles: Items[str] = Field((), description="Only for these profiles of the policy; for all where not given.")

    def rules(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Refuse a window without exactly one length, or of no length."""
        if (self.duration is None) == (self.duration_seconds is None):
            yield ("duration", "duration_seconds"), "exactly one of duration and durationSeconds is required"
        elif self.duration == 0:
            yield ("duration",), "duration must be more than 0"

    @property
    def length_seconds(self) -> float:
        """How long it lasts, however that was written (seconds)."""
        return float(self.duration if self.duration is not None else self.duration_seconds or 0)
