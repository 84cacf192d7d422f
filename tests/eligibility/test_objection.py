"""Refusals: every code that is used has a sentence, and every sentence a use."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

import pytest

import rebalancer
from rebalancer.eligibility.objection import SENTENCES, Objection

USED = re.compile(r'Objection\(\s*"([a-z-]+)"|refusal: str = "([a-z-]+)"|refusal="([a-z-]+)"')


def codes_in_source() -> set[str]:
    """Return the codes that the package makes objections with."""
    root = Path(rebalancer.__file__).parent
    found: set[str] = set()
    for folder in ("strategies", "eligibility", "decide"):
        for path in (root / folder).glob("*.py"):
            for match in USED.finditer(path.read_text()):
                found.add(next(group for group in match.groups() if group))
    return found


def test_every_code_has_a_sentence_and_every_sentence_a_use() -> None:
    """No objection is made that could not be explained, and no sentence is left over."""
    assert codes_in_source() == set(SENTENCES)


@pytest.mark.parametrize("code", sorted(SENTENCES))
def test_a_sentence_is_made_of_its_operands(code: str) -> None:
    """Operands are numbered from 0 without a gap, and appear in the sentence."""
    fields = {int(name) for _, name, _, _ in Formatter().parse(SENTENCES[code]) if name}
    assert fields == set(range(len(fields)))
    operands = tuple(f"operand{index}" for index in range(len(fields)))
    text = str(Objection(code, operands))
    assert all(operand in text for operand in operands)
    assert "{" not in text
    assert not text.endswith(".")
