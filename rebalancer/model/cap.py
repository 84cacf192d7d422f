"""A limit that is a number, or a share of something that is counted when the limit is needed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*%")


@dataclass(frozen=True, slots=True)
class Cap:
    """A limit: ``Cap(number=3)``, or ``Cap(percent=10)`` of a whole that is counted later.

    number: how many; None where the limit is a share.
    percent: 0 to 100 of the whole; None where the limit is a number.
    """

    number: int | None = None
    percent: float | None = None

    def __post_init__(self) -> None:
        if (self.number is None) == (self.percent is None):
            raise ValueError("a cap is either a number or a percentage")
        if self.number is not None and self.number < 0:
            raise ValueError(f"a cap must be at least 0, not {self.number}")
        if self.percent is not None and not 0 <= self.percent <= 100:
            raise ValueError(f"a cap must be from 0% to 100%, not {self.percent:g}%")

    @classmethod
    def of(cls, text: str | int) -> Cap:
        """Return the cap that a text such as ``20`` or ``10%`` stands for.

        Raises ValueError for anything else.
        """
        if isinstance(text, int) and not isinstance(text, bool):
            return cls(number=text)
        plain = str(text).strip()
        if found := _PERCENT.fullmatch(plain):
            return cls(percent=float(found[1]))
        if plain.isascii() and plain.isdigit():
            return cls(number=int(plain))
        raise ValueError(f"must be a number such as 20 or a percentage such as 10%, not {text!r}")

    def limit(self, whole: int) -> int:
        """Return how many of a whole the cap allows.

        A share is rounded up, as kube-controller-manager rounds the percentages of a PodDisruptionBudget, so that 10%
        of three replicas is one and only 0% is none.
        Source: https://kubernetes.io/docs/tasks/run-application/configure-pdb/#rounding-logic-when-specifying-percentages
        """
        if self.number is not None:
            return self.number
        # The text of the percentage is exact where its float is not: 0.1 % of 1000 is 1, not 2.
        return -(-whole * Fraction(repr(self.percent)) // 100)

    def __str__(self) -> str:
        return f"{self.percent:g}%" if self.number is None else str(self.number)
