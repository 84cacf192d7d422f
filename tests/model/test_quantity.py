"""Quantities: what the API server accepts is read exactly, what it rejects is rejected."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.errors import QuantityError
from rebalancer.model.quantity import millis, parse_quantity, units


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("1", 1),
        ("+1", 1),
        ("-1", -1),
        ("1.", 1),
        (".5", Decimal("0.5")),
        ("0.1", Decimal("0.1")),
        ("100m", Decimal("0.1")),
        ("1500u", Decimal("0.0015")),
        ("123n", Decimal("1.23e-7")),
        ("1k", 1000),
        ("1M", 10**6),
        ("1G", 10**9),
        ("1T", 10**12),
        ("1P", 10**15),
        ("1E", 10**18),
        ("1Ki", 1024),
        ("1.5Gi", 3 * 2**29),
        ("7Ei", 7 * 2**60),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1e-3", Decimal("0.001")),
        ("5e+2", 500),
    ],
)
def test_every_form_is_read_exactly(text: str, value: Decimal | int) -> None:
    """Decimal and binary suffixes, exponents, signs and bare points mean what the API server says they mean."""
    assert parse_quantity(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 1",
        "1 ",
        "1 Gi",
        "1_000",
        "1K",
        "1ki",
        "1mi",
        "1e3Ki",
        "1Kim",
        "NaN",
        "Infinity",
        "0x10",
        "1e",
        "--1",
        "1.2.3",
        "٣",
        ".",
    ],
)
def test_what_the_api_server_rejects_is_rejected(text: str) -> None:
    """A text outside the grammar raises an error that quotes it."""
    with pytest.raises(QuantityError, match="is not a quantity"):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1", 1000), ("100m", 100), ("0.1", 100), ("1n", 1), ("1.0001", 1001), ("250u", 1), ("0", 0), ("2e-4", 1)],
)
def test_millicores_round_up(text: str, expected: int) -> None:
    """Whatever is finer than a thousandth is rounded up, so that a pod never asks for less than it said."""
    assert millis(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("1", 1), ("1500m", 2), ("1Ki", 1024), ("0.1", 1), ("1e3", 1000), ("100Mi", 100 * 2**20)]
)
def test_whole_units_round_up(text: str, expected: int) -> None:
    """Bytes and pieces are whole."""
    assert units(text) == expected


def test_numbers_of_json_are_quantities_too() -> None:
    """``cpu: 1`` and ``cpu: 0.5`` are written without quotes often enough."""
    assert millis(1) == 1000
    assert millis(0.5) == 500


def test_amounts_are_capped_at_what_the_server_can_hold() -> None:
    """Beyond 2^63 - 1 the server stores 2^63 - 1."""
    assert units("9Ei") == 2**63 - 1
    assert units("1e30") == 2**63 - 1
    assert units("9223372036854775807") == 2**63 - 1


def test_an_absurd_exponent_is_rejected_quickly() -> None:
    """An exponent made to eat memory is an error, not a very long integer."""
    with pytest.raises(QuantityError, match="exponent"):
        parse_quantity("1e999999999")


@given(st.integers(min_value=0, max_value=10**15), st.sampled_from(["", "k", "M", "Ki", "Mi", "m", "u", "n"]))
def test_millis_are_never_below_the_exact_value(number: int, suffix: str) -> None:
    """Rounding goes up, and by less than one."""
    exact = parse_quantity(f"{number}{suffix}") * 1000
    assert 0 <= millis(f"{number}{suffix}") - exact < 1
