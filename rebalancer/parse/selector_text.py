"""Label selectors to the text that ``parse.selector.parse_selector`` reads (``pool=a,tier in (api,web),!gpu``)."""

from __future__ import annotations

from rebalancer.model.selector import LabelSelector, Operator, Requirement


def text_of_selector(selector: LabelSelector) -> str:
    """Return the text that stands for a selector; the empty text where it selects everything."""
    return ",".join(map(_text, selector.requirements))


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
