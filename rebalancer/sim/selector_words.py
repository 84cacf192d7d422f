"""What the API server says about a label selector that it cannot read.

Source: the grammar in k8s.io/apimachinery/pkg/labels/selector.go
"""

from __future__ import annotations

import re

from rebalancer.sim.naming import label_value_problems, qualified_name_problems

_TOKEN = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+)")
_SIGNS = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">"})
_OPERATORS = frozenset({"in", "notin", "=", "==", "!=", "<", ">"})
_EXPECTED_OPERATOR = "in, notin, =, ==, !=, gt, lt"


class _Unreadable(Exception):
    pass


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens = [match[1] for match in _TOKEN.finditer(text)]
        self._at = 0

    def look(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def take(self) -> str:
        token = self.look()
        self._at += 1
        return token


def complaint(text: str) -> str:
    """Return the server's words about a selector; empty if it can be read."""
    reader = _Reader(text)
    try:
        while token := reader.look():
            if token in _SIGNS and token != "!":
                raise _Unreadable(f"found '{token}', expected: !, identifier, or 'end of string'")
            try:
                _requirement(reader)
            except _Unreadable as problem:
                raise _Unreadable(f"unable to parse requirement: {problem}") from None
            token = reader.take()
            if not token:
                break
            if token != ",":
                raise _Unreadable(f"found '{token}', expected: ',' or 'end of string'")
            following = reader.look()
            if not following or (following in _SIGNS and following != "!"):
                raise _Unreadable(f"found '{following}', expected: identifier after ','")
    except _Unreadable as problem:
        return str(problem)
    return ""


def _requirement(reader: _Reader) -> None:
    absent = reader.look() == "!"
    if absent:
        reader.take()
    key = reader.take()
    if not key or key in _SIGNS:
        raise _Unreadable(f"found '{key}', expected: identifier")
    for problem in qualified_name_problems("key", key):
        raise _Unreadable(f"<nil>: {problem.message}")
    if absent or reader.look() in {"", ","}:
        return
    operator = reader.take()
    if operator not in _OPERATORS:
        raise _Unreadable(f"found '{operator}', expected: {_EXPECTED_OPERATOR}")
    values = _values(reader) if operator in {"in", "notin"} else [_exact(reader)]
    if operator in {"<", ">"}:
        if not values[0].lstrip("-").isdigit():
            detail = "for 'Gt', 'Lt' operators, the value must be an integer"
            raise _Unreadable(f'values[0]: Invalid value: "{values[0]}": {detail}')
        return
    for index, value in enumerate(sorted(values)):
        for problem in label_value_problems("", value):
            raise _Unreadable(f"values[{index}][{key}]: {problem.message}")


def _exact(reader: _Reader) -> str:
    token = reader.look()
    if token in {"", ","}:
        return ""
    if token in _SIGNS:
        raise _Unreadable(f"found '{token}', expected: identifier")
    return reader.take()


def _values(reader: _Reader) -> list[str]:
    token = reader.take()
    if token != "(":
        raise _Unreadable(f"found '{token}' expected: '('")
    values: list[str] = []
    while True:
        token = reader.take()
        if token == ")":
            return values or [""]
        if token == ",":
            values.append("") if reader.look() in {",", ")"} else None
            continue
        if not token or token in _SIGNS:
            raise _Unreadable(f"found '{token}', expected: ',', ')' or identifier")
        values.append(token)
        if reader.look() not in {",", ")"}:
            raise _Unreadable(f"found '{reader.look()}', expected: ',' or ')'")
