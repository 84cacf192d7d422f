"""The base of every argument model of a policy: strict, frozen, and able to report all of its mistakes at once.

Documents (dictionaries with upstream's camelCase names) enter, frozen values leave. Unknown names, wrong types and bad
values are refused, each with its path and the nearest valid name. ``null`` means "not given", as in every Kubernetes
object. The models themselves are in ``eligibility.arguments`` and ``strategies.arguments``, the types of their fields
in ``parse.argument_types``; documents as a whole are read in ``policy``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import InitErrorDetails, PydanticCustomError

from rebalancer.errors import Mistake
from rebalancer.parse.spelling import nearest_name

_WANTED_TYPE = {
    "string_type": "a string",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_parsing": "true or false",
    "int_parsing": "a whole number",
    "float_parsing": "a number",
    "tuple_type": "a list",
    "dict_type": "a map",
    "mapping_type": "a map",
    "model_type": "a map",
    "model_attributes_type": "a map",
    "finite_number": "a finite number",
}


class Arguments(BaseModel):
    """A group of arguments: frozen, strict about names and types, camelCase outside and snake_case inside."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        populate_by_name=True,
        allow_inf_nan=False,
        arbitrary_types_allowed=True,
    )

    refused: ClassVar[Mapping[str, str]] = {}
    """Names that are known and not allowed, with what to say of them instead of a nearest name."""

    def rules(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield each broken rule over several fields: their Python names, and what would have been right."""
        yield from ()

    def cautions(self) -> Iterator[str]:
        """Yield a sentence for each thing that is allowed but seldom meant."""
        yield from ()

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the argument names as a document writes them, in the order of declaration."""
        return tuple(field.alias or name for name, field in cls.model_fields.items())

    def to_dict(self) -> dict[str, Any]:
        """Return what differs from the defaults, as a document writes it."""
        return self.model_dump(by_alias=True, exclude_defaults=True)

    @model_validator(mode="wrap")
    @classmethod
    def _report_all(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Check the rules over several fields even where other fields are wrong, so that one look finds everything."""
        if not isinstance(data, Mapping):
            return handler(data)
        given = {key: value for key, value in data.items() if value is not None}
        details: list[InitErrorDetails] = []
        sound: Self | None
        wrong: set[int | str] = set()
        try:
            sound = handler(given)
        except ValidationError as error:
            errors = error.errors(include_url=False)
            details = [cls._with_nearest(item) for item in errors]
            wrong = {item["loc"][0] for item in errors if item["loc"]}
            try:
                sound = handler({key: value for key, value in given.items() if key not in wrong})
            except ValidationError:
                sound = None
        dropped = {name for name, field in cls.model_fields.items() if {name, field.alias} & wrong}
        for fields, expected in sound.rules() if sound is not None else ():
            if not dropped & set(fields):
                details.append({"type": refusal(expected, kind="rule"), "input": data})
        if details or sound is None:
            raise ValidationError.from_exception_data(cls.__name__, details)
        return sound

    @classmethod
    def _with_nearest(cls, item: Any) -> InitErrorDetails:
        """Rebuild one error so that it can be raised again, an unknown name with the nearest valid one."""
        rebuilt: InitErrorDetails = {"type": item["type"], "loc": item["loc"], "input": item["input"]}
        if item["type"] == "extra_forbidden" and len(item["loc"]) == 1:
            name = str(item["loc"][0])
            near = None if name in cls.refused else nearest_name(name, cls.names())
            rebuilt["type"] = refusal(cls.refused.get(name, "is not known here"), near, kind="unknown")
        elif item["type"] in {"unknown", "rule", "value"}:
            rebuilt["type"] = refusal(item["ctx"]["expected"], item["ctx"]["nearest"] or None, kind=item["type"])
        elif "ctx" in item:
            rebuilt["ctx"] = item["ctx"]
        return rebuilt


def refusal(expected: str, nearest: str | None = None, *, kind: str = "value") -> PydanticCustomError:
    """Return the error for a value that is of the right type and still wrong."""
    return PydanticCustomError(kind, "{expected}", {"expected": expected, "nearest": nearest or ""})


def mistakes_of(error: ValidationError, path: str, origins: Mapping[str, str] | None = None) -> tuple[Mistake, ...]:
    """Return what pydantic found wrong as mistakes, their paths beginning with the given one.

    origins: the paths of single arguments that were written elsewhere in the document.
    """
    found: dict[Mistake, None] = {}
    for item in error.errors(include_url=False):
        steps = item["loc"]
        origin = origins.get(str(steps[0])) if origins and steps else None
        where = joined_path(path, steps) if origin is None else joined_path(origin, steps[1:])
        found[_mistake(item, where)] = None
    return tuple(found)


def joined_path(path: str, steps: tuple[int | str, ...]) -> str:
    """Return the path of a value inside a document: ``profiles[0].pluginConfig[1].args.thresholds.cpu``."""
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step == "[key]":
            continue
        elif step.replace("_", "").replace("-", "").isalnum():
            path += f".{step}" if path else step
        else:
            path += f'["{step}"]'
    return path


def shown(value: object) -> str:
    """Return a value as an error message shows it: short, and as YAML or JSON would write it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _mistake(item: Any, where: str) -> Mistake:
    kind, context, given = item["type"], item.get("ctx", {}), shown(item["input"])
    if kind in {"unknown", "rule", "value"}:
        return Mistake(where, context["expected"], context["nearest"] or None)
    if kind == "literal_error":
        names = re.findall("'([^']*)'", context["expected"])
        near = nearest_name(item["input"], names) if isinstance(item["input"], str) else None
        return Mistake(where, f"must be one of {', '.join(names)}, not {given}", near)
    if kind == "missing":
        return Mistake(where, "is required")
    if kind in _WANTED_TYPE:
        return Mistake(where, f"must be {_WANTED_TYPE[kind]}, not {given}")
    if kind == "greater_than_equal":
        return Mistake(where, f"must be at least {_number(context['ge'])}, not {given}")
    if kind == "less_than_equal":
        return Mistake(where, f"must be at most {_number(context['le'])}, not {given}")
    if kind == "greater_than":
        return Mistake(where, f"must be more than {_number(context['gt'])}, not {given}")
    if kind in {"too_short", "string_too_short"}:
        return Mistake(where, "must not be empty")
    return Mistake(where, f"{item['msg'][:1].lower()}{item['msg'][1:]}, not {given}")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
