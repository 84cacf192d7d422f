"""Resource quantities: text such as ``100m``, ``1.5Gi``, ``2e3`` to integers, exactly as the API server reads them.

Grammar and rounding: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Context, Decimal
from functools import lru_cache

from rebalancer.errors import QuantityError

_GRAMMAR = re.compile(r"([+-]?)(\d+(?:\.\d*)?|\.\d+)((?:[KMGTPE]i)|[numkMGTPE]|[eE][+-]?\d+)?", re.ASCII)

_SUFFIXES: dict[str, Decimal] = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
} | {prefix + "i": Decimal(1024**power) for power, prefix in enumerate("KMGTPE", start=1)}

# The server caps what it cannot hold in an int64, and rounds what is finer than nano up.
_LARGEST = Decimal(2**63 - 1)
_NANO = Decimal("1e-9")
_EXACT = Context(prec=64, rounding=ROUND_CEILING)


@lru_cache(maxsize=65_536)
def parse_quantity(text: str) -> Decimal:
    """Return the exact value of a quantity, in units (cores, bytes, pieces).

    Raises QuantityError where the API server would reject the text.
    """
    match = _GRAMMAR.fullmatch(text)
    if match is None:
        raise QuantityError(f"{text!r} is not a quantity such as 100m, 2, 1.5Gi or 1e3")
    sign, digits, suffix = match.groups()
    value = Decimal(digits)
    if suffix:
        if suffix[0] in "eE" and len(suffix) > 1 and suffix[1] != "i":
            exponent = int(suffix[1:])
            if abs(exponent) > 400:
                raise QuantityError(f"{text!r} has an exponent that no quantity can hold")
            value = _EXACT.multiply(value, Decimal(10) ** exponent)
        else:
            value = _EXACT.multiply(value, _SUFFIXES[suffix])
    value = min(value, _LARGEST)
    if value and value % _NANO:
        value = value.quantize(_NANO, rounding=ROUND_CEILING, context=_EXACT)
    return -value if sign == "-" else value


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else repr(value)


def millis(value: str | float) -> int:
    """Return thousandths of a unit, rounded up (millicores for cpu), as Go's ``Quantity.MilliValue``."""
    return _millis(_text(value))


def units(value: str | float) -> int:
    """Return whole units, rounded up (bytes, pieces), as Go's ``Quantity.Value``."""
    return _units(_text(value))


@lru_cache(maxsize=65_536)
def _millis(text: str) -> int:
    return int((parse_quantity(text) * 1000).to_integral_value(rounding=ROUND_CEILING))


@lru_cache(maxsize=65_536)
def _units(text: str) -> int:
    return int(parse_quantity(text).to_integral_value(rounding=ROUND_CEILING))
