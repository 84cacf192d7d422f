"""Label selectors in their text form (``pool=a,tier in (web,api),!gpu``), to values and back.

Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors
"""

from __future__ import annotations

import re

from rebalancer.errors import SelectorError
from rebalancer.model.selector import LabelSelector, Operator, Requirement

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_KEY = rf"(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?/)?{_NAME}"
_SET = re.compile(rf"\s*({_KEY})\s+(in|notin)\s*\(([^()]*)\)\s*(?:,|$)")
_EQUALITY = re.compile(rf"\s*({_KEY})\s*(==|=|!=|>|<)\s*((?:{_NAME})?)\s*(?:,|$)")
_PRESENCE = re.compile(rf"\s*(!?)\s*({_KEY})\s*(?:,|$)")
_OPERATORS = {"=": Operator.IN, "==": Operator.IN, "!=": Operator.NOT_IN, ">": Operator.GT, "<": Operator.LT}


def selector_of_text(text: str) -> LabelSelector:
    """Return the selector that a text stands for; the empty text selects everything.

    Raises SelectorError for a text that the API server would refuse.
    """
    requirements: list[Requirement] = []
    position = 0
    while position < len(text.rstrip()):
        requirement, position = _next(text, position)
        requirements.append(requirement)
    if text.rstrip().endswith(","):
        raise SelectorError(f"label selector {text!r} ends with a comma")
    return LabelSelector(tuple(sorted(requirements, key=lambda item: (item.key, item.operator, item.values))))


def text_of_selector(selector: LabelSelector) -> str:
    """Return the text that stands for a selector."""
    return ",".join(map(_text, selector.requirements))


def _next(text: str, position: int) -> tuple[Requirement, int]:
    if found := _SET.match(text, position):
        values = tuple(sorted({value.strip() for value in found[3].split(",")}))
        if all(not value or re.fullmatch(_NAME, value) for value in values):
            operator = Operator.IN if found[2] == "in" else Operator.NOT_IN
            return Requirement(found[1], operator, values), found.end()
    elif found := _EQUALITY.match(text, position):
        operator = _OPERATORS[found[2]]
        if operator not in {Operator.GT, Operator.LT} or re.fullmatch("[0-9]+", found[3]):
            return Requirement(found[1], operator, (found[3],)), found.end()
    elif found := _PRESENCE.match(text, position):
        return Requirement(found[2], Operator.DOES_NOT_EXIST if found[1] else Operator.EXISTS), found.end()
    raise SelectorError(f"label selector {text!r} cannot be read from {text[position:].strip()!r} on")


def _text(requirement: Requirement) -> str:
    key, operator, values = requirement.key, requirement.operator, requirement.values
    if operator is Operator.EXISTS:
        return key
    if operator is Operator.DOES_NOT_EXIST:
        return f"!{key}"
    if operator in {Operator.GT, Operator.LT}:
        return f"{key}{'>' if operator is Operator.GT else '<'}{values[0]}"
    if len(values) == 1:
        return f"{key}{'=' if operator is Operator.IN else '!='}{values[0]}"
    return f"{key} {'in' if operator is Operator.IN else 'notin'} ({','.join(values)})"
