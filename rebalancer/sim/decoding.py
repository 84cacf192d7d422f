"""From a request's body to an object: JSON errors, kinds, unknown fields, all in the server's words.

Source: k8s.io/apiserver/pkg/endpoints/handlers (create.go, rest.go) and encoding/json of Go.
"""

from __future__ import annotations

from typing import Any

import orjson

from rebalancer.sim.history import Object
from rebalancer.sim.kinds import Kind
from rebalancer.sim.problems import ApiProblem, bad_request
from rebalancer.sim.schema import DecodeProblem, Reading, type_of

_SHOWN = 30
_SPACE = " \t\r\n"


def parse(body: bytes, wanted: str) -> Any:
    """Return the JSON value of a body. Raises ApiProblem 400; ``wanted`` is the kind that was expected."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        why = f"couldn't get version/kind; json parse error: {json_complaint(body)}"
        raise unrecognized(body, wanted, why) from None


def unrecognized(body: bytes, wanted: str, why: str) -> ApiProblem:
    """400: the body is no object that could be meant."""
    return bad_request(f"the object provided is unrecognized (must be of type {wanted}): {why} ({_summary(body)})")


def read_object(kind: Kind, value: Any, body: bytes, strictness: str) -> tuple[Object, list[str]]:
    """Return the object of a body and the warnings about it.

    strictness: Strict (unknown fields are refused), Warn or Ignore.
    """
    if not isinstance(value, dict):
        got = "array" if isinstance(value, list) else type(value).__name__
        why = (
            "couldn't get version/kind; json parse error: json: cannot unmarshal "
            f'{got} into Go value of type struct {{ APIVersion string "json:\\"apiVersion,omitempty\\""; '
            'Kind string "json:\\"kind,omitempty\\"" }'
        )
        raise unrecognized(body, kind.kind, why)
    check_kind(kind, value, body)
    return _read(kind.kind, kind.version, type_of(kind), {**value, "apiVersion": kind.api_version, "kind": kind.kind}, strictness)


def check_kind(kind: Kind, value: dict[str, Any], body: bytes) -> None:
    """Refuse a body that says it is something else."""
    version, name = value.get("apiVersion") or "", value.get("kind") or ""
    if not version and not name:
        return
    if (name and name != kind.kind) or (version and version != kind.api_version):
        if name and name != kind.kind:
            group = version.rpartition("/")[0]
            short = version.rpartition("/")[2]
            raise bad_request(
                f'{name} in version "{short}" cannot be handled as a {kind.kind}: '
                f"converting ({group or 'v1'}.{name}) to ({kind.group or 'v1'}.{kind.kind}): unknown conversion"
            )
        shown = f"{version}, Kind={name}"
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version ({kind.api_version})"
            if name
            else f"no kind {shown}"
        )


def read_typed(kind: str, version: str, type_name: str, value: Any, strictness: str = "Ignore") -> tuple[Object, list[str]]:
    """Return a value of a named type, and warnings."""
    return _read(kind, version, type_name, value, strictness)


def _read(kind: str, version: str, type_name: str, value: Any, strictness: str) -> tuple[Object, list[str]]:
    reading = Reading()
    beginning = f'{kind} in version "{version}" cannot be handled as a {kind}: '
    try:
        obj = reading.read(type_name, value)
    except DecodeProblem as problem:
        raise bad_request(beginning + str(problem)) from None
    unknown = [f'unknown field "{path}"' for path in reading.unknown]
    if unknown and strictness == "Strict":
        raise bad_request(beginning + "strict decoding error: " + ", ".join(unknown))
    return obj, unknown if strictness == "Warn" else []


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    cut = body[:_SHOWN]
    ending = " ..." if len(body) > _SHOWN else ""
    text = cut.decode("utf-8", "replace") if body[:1] == b"{" else cut.hex()
    return text + ending


def json_complaint(body: bytes) -> str:
    """Return what Go's JSON decoder says about a text that is not JSON."""
    text = body.decode("utf-8", "replace")
    try:
        position = _value(text, _skip(text, 0))
        position = _skip(text, position)
        if position < len(text):
            raise _Wrong(position, "after top-level value")
    except _Wrong as wrong:
        if wrong.position >= len(text):
            return "unexpected end of JSON input"
        return f"invalid character {_quoted(text[wrong.position])} {wrong.context}"
    return "unexpected end of JSON input"


class _Wrong(Exception):
    def __init__(self, position: int, context: str) -> None:
        super().__init__(context)
        self.position = position
        self.context = context


def _quoted(char: str) -> str:
    if char == "'":
        return "'\\''"
    if char == '"':
        return "'\"'"
    return "'" + char.encode("unicode_escape").decode() + "'" if ord(char) < 32 else f"'{char}'"


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in _SPACE:
        position += 1
    return position


def _value(text: str, at: int) -> int:
    char = text[at : at + 1]
    if char == "{":
        return _members(text, at + 1)
    if char == "[":
        return _elements(text, at + 1)
    if char == '"':
        return _string(text, at + 1)
    if char and char in "-0123456789":
        return _number(text, at)
    for word in ("true", "false", "null"):
        if char == word[0]:
            for index, letter in enumerate(word):
                if text[at + index : at + index + 1] != letter:
                    raise _Wrong(at + index, f"in literal {word} (expecting '{letter}')")
            return at + len(word)
    raise _Wrong(at, "looking for beginning of value")


def _members(text: str, at: int) -> int:
    at = _skip(text, at)
    if text[at : at + 1] == "}":
        return at + 1
    while True:
        at = _skip(text, at)
        if text[at : at + 1] != '"':
            raise _Wrong(at, "looking for beginning of object key string")
        at = _skip(text, _string(text, at + 1))
        if text[at : at + 1] != ":":
            raise _Wrong(at, "after object key")
        at = _skip(text, _value(text, _skip(text, at + 1)))
        if text[at : at + 1] == "}":
            return at + 1
        if text[at : at + 1] != ",":
            raise _Wrong(at, "after object key:value pair")
        at += 1


def _elements(text: str, at: int) -> int:
    at = _skip(text, at)
    if text[at : at + 1] == "]":
        return at + 1
    while True:
        at = _skip(text, _value(text, _skip(text, at)))
        if text[at : at + 1] == "]":
            return at + 1
        if text[at : at + 1] != ",":
            raise _Wrong(at, "after array element")
        at += 1


def _string(text: str, at: int) -> int:
    while at < len(text):
        char = text[at]
        if char == '"':
            return at + 1
        if char == "\\":
            if text[at + 1 : at + 2] not in set('"\\/bfnrtu'):
                raise _Wrong(at + 1, "in string escape code")
            at += 1
        elif ord(char) < 32:
            raise _Wrong(at, "in string literal")
        at += 1
    raise _Wrong(at, "in string literal")


def _number(text: str, at: int) -> int:
    start = at
    if text[at] == "-":
        at += 1
    if not text[at : at + 1].isdigit():
        raise _Wrong(at, "in numeric literal")
    while at < len(text) and (text[at].isdigit() or text[at] in ".eE+-"):
        at += 1
    return max(at, start + 1)
