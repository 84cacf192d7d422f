"""The types of settings: texts of environment variables enter, frozen values leave."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic_settings import NoDecode

from rebalancer.model.cap import Cap
from rebalancer.parse.arguments import refusal, shown

NO_LIMIT = "none"
"""What to write for a limit that is not to hold; an empty value would mean the default."""


def _cap(given: Any) -> Cap | None:
    if given is None or isinstance(given, Cap):
        return given
    if isinstance(given, str) and given.strip().lower() == NO_LIMIT:
        return None
    try:
        return Cap.of(given)
    except ValueError as error:
        raise refusal(f"{error} (or {NO_LIMIT})") from error


def _count(given: Any) -> Any:
    return None if isinstance(given, str) and given.strip().lower() == NO_LIMIT else given


def _names(given: Any) -> Any:
    """Take a list apart: names between commas, or JSON."""
    if not isinstance(given, str):
        return given
    if given.lstrip().startswith("["):
        return _json(given)
    return tuple(name.strip() for name in given.split(",") if name.strip())


def _json(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError) as error:
        raise refusal(f"must be JSON, not {shown(given)}") from error


def _switch(given: Any) -> Any:
    # YAML reads the word off as false, and a chart hands that on.
    return "off" if given is False or (isinstance(given, str) and given.strip().lower() == "false") else given


def _small(given: Any) -> Any:
    return given.strip().lower() if isinstance(given, str) else given


Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
SecondsOrNone = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""Seconds of which 0 is a sensible value."""

LimitOrNone = Annotated[Annotated[int, Field(ge=0)] | None, BeforeValidator(_count)]
"""A whole number, or none."""

CapOrNone = Annotated[Cap | None, NoDecode, BeforeValidator(_cap)]
"""A number, a percentage, or none."""

Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names)]
"""Names between commas, or a JSON list; ``[]`` is the empty list."""

FromJSON = BeforeValidator(_json)
OffIsFalse = BeforeValidator(_switch)
InSmallLetters = BeforeValidator(_small)
