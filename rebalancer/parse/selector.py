"""Label and node selectors: from wire, from dicts and from the command line's string form.

Validation: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from rebalancer.errors import SelectorError
from rebalancer.model.selector import (
    EVERYTHING,
    NOTHING,
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Operator,
    Requirement,
)
from rebalancer.parse import wire

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)


class _StrictExpression(wire.Expression, frozen=True, forbid_unknown_fields=True):
    """An expression in which a misspelt key is an error, because it would widen what is selected."""


class _StrictSelector(wire.Wire, frozen=True, forbid_unknown_fields=True):
    """A selector as a policy gives it."""

    matchLabels: dict[str, str] | None = None  # noqa: N815
    matchExpressions: list[_StrictExpression] | None = None  # noqa: N815


def check_label_key(key: str) -> None:
    """Raise SelectorError unless the key is a qualified name: an optional DNS prefix, a slash, a name of up to 63 characters."""
    prefix, slash, name = key.rpartition("/")
    good = _NAME.fullmatch(name) and (not slash or (len(prefix) <= 253 and _PREFIX.fullmatch(prefix)))
    if not good:
        raise SelectorError(f"{key!r} is not a label key")


def check_label_value(value: str) -> None:
    """Raise SelectorError unless the value is empty or a name of at most 63 characters."""
    if value and not _NAME.fullmatch(value):
        raise SelectorError(f"{value!r} is not a label value")


def requirement(key: str, operator: str, values: Iterable[str] = (), *, node: bool = False) -> Requirement:
    """Build one checked requirement. node: Gt and Lt are allowed. Raises SelectorError."""
    listed = tuple(values)
    check_label_key(key)
    try:
        known = Operator(operator)
    except ValueError:
        raise SelectorError(f"{operator!r} is not an operator for {key!r}: In, NotIn, Exists or DoesNotExist") from None
    if known in (Operator.GT, Operator.LT):
        if not node:
            raise SelectorError(f"{operator} on {key!r} is allowed for nodes only")
        if len(listed) != 1 or not _INTEGER.fullmatch(listed[0]):
            raise SelectorError(f"{operator} on {key!r} takes one integer")
    elif known in (Operator.IN, Operator.NOT_IN):
        if not listed:
            raise SelectorError(f"{operator} on {key!r} needs values")
    elif listed:
        raise SelectorError(f"{operator} on {key!r} takes no values")
    for value in listed:
        check_label_value(value)
    return Requirement(key, known, tuple(sorted(set(listed))))


def from_wire(selector: wire.Selector | None, extra: Iterable[Requirement] = ()) -> LabelSelector:
    """Build a selector; None (null) matches nothing, an empty one everything. extra: requirements added to it."""
    if selector is None:
        return NOTHING
    found = [requirement(key, "In", (value,)) for key, value in sorted((selector.matchLabels or {}).items())]
    found += [requirement(each.key, each.operator, each.values or ()) for each in selector.matchExpressions or ()]
    found.extend(extra)
    return LabelSelector(tuple(dict.fromkeys(found))) if found else EVERYTHING


def from_labels(labels: Mapping[str, str]) -> LabelSelector:
    """Build the selector that asks for exactly these labels."""
    return LabelSelector(tuple(requirement(key, "In", (value,)) for key, value in sorted(labels.items())))


def label_selector(document: Mapping[str, Any]) -> LabelSelector:
    """Build a selector from its dict form (``matchLabels``, ``matchExpressions``). Raises SelectorError, for unknown keys too."""
    try:
        strict = msgspec.convert(document, _StrictSelector)
    except msgspec.ValidationError as error:
        raise SelectorError(str(error)) from error
    return from_wire(wire.Selector(strict.matchLabels, list(strict.matchExpressions or ())))


def node_term(term: wire.NodeTerm) -> NodeSelectorTerm:
    """Build one alternative of a node selector."""
    fields = []
    for each in term.matchFields or ():
        if each.key != "metadata.name" or each.operator not in ("In", "NotIn") or len(each.values or ()) != 1:
            raise SelectorError(f"matchFields takes metadata.name In or NotIn one value, not {each.key} {each.operator}")
        fields.append(Requirement(each.key, Operator(each.operator), tuple(each.values or ())))
    labels = tuple(requirement(each.key, each.operator, each.values or (), node=True) for each in term.matchExpressions or ())
    return NodeSelectorTerm(labels, tuple(fields))


def node_selector(terms: wire.NodeTerms) -> NodeSelector:
    """Build a node selector: one of its terms must match."""
    return NodeSelector(tuple(node_term(term) for term in terms.nodeSelectorTerms or ()))


_SPLIT = re.compile(r",(?![^()]*\))")
_SET = re.compile(r"\s*(\S+)\s+(in|notin)\s+\(([^()]*)\)\s*")
_COMPARE = re.compile(r"\s*([^\s=!<>()]+)\s*(==|=|!=|>|<)\s*([^\s=!<>()]*)\s*")
_EXISTS = re.compile(r"\s*(!?)\s*([^\s=!<>(),]+)\s*")


def parse_selector(text: str) -> LabelSelector:
    """Read the string form of kubectl and of the policy's nodeSelector: ``a=b,c in (d,e),!f,g>1``. Raises SelectorError."""
    if not text.strip():
        return EVERYTHING
    found = []
    for part in _SPLIT.split(text):
        if match := _SET.fullmatch(part):
            values = [value.strip() for value in match[3].split(",")]
            found.append(requirement(match[1], "In" if match[2] == "in" else "NotIn", values))
        elif match := _COMPARE.fullmatch(part):
            key, sign, value = match.groups()
            if sign in "<>":
                found.append(requirement(key, "Gt" if sign == ">" else "Lt", (value,), node=True))
            else:
                found.append(requirement(key, "NotIn" if sign == "!=" else "In", (value,)))
        elif match := _EXISTS.fullmatch(part):
            found.append(requirement(match[2], "DoesNotExist" if match[1] else "Exists"))
        else:
            raise SelectorError(f"{part.strip()!r} is not a requirement such as key=value, key in (a,b), key or !key")
    return LabelSelector(tuple(found))
