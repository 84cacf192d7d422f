"""The types of argument fields: lists, choices, percentages per resource, namespaces, selectors, durations.

Values of a document enter, frozen values leave; each type also knows how to be written back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, PlainValidator

from rebalancer.errors import SelectorError
from rebalancer.model.selector import LabelSelector, Operator
from rebalancer.parse.arguments import Arguments, refusal, shown
from rebalancer.parse.duration import duration_seconds, duration_text
from rebalancer.parse.selector import label_selector, parse_selector
from rebalancer.parse.selector_text import text_of_selector
from rebalancer.parse.spelling import nearest_name

Item = TypeVar("Item")

METRIC_RESOURCE = "MetricResource"
_NATIVE_RESOURCES = ("cpu", "memory", "pods", "ephemeral-storage")
_NATIVE_PREFIXES = ("hugepages-", "attachable-volumes-")
_NAME_PART = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_DOMAIN_LABEL = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_DOMAIN = re.compile(rf"{_DOMAIN_LABEL}(\.{_DOMAIN_LABEL})*")


def choice(*names: str) -> AfterValidator:
    """Return a check that a string is one of the names; a misspelt one is answered with the nearest."""

    def check(given: str) -> str:
        if given not in names:
            listed = ", ".join(sorted(name for name in names if name))
            raise refusal(f"must be one of {listed}, not {shown(given)}", nearest_name(given, names))
        return given

    return AfterValidator(check)


def _resource_name(given: str) -> str:
    """Refuse a name that no node can carry.

    Source: https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#extended-resources
    """
    if given in _NATIVE_RESOURCES or given == METRIC_RESOURCE or given.startswith(_NATIVE_PREFIXES):
        return given
    domain, slash, name = given.partition("/")
    if not slash:
        raise refusal(
            f"{given!r} is not a resource: cpu, memory, pods and ephemeral-storage are, and others need a domain, "
            "as in example.com/gpu",
            nearest_name(given, _NATIVE_RESOURCES),
        )
    if len(domain) > 253 or not _DOMAIN.fullmatch(domain) or not _NAME_PART.fullmatch(name):
        raise refusal(f"{given!r} is not a resource name: DOMAIN/NAME is expected, as in example.com/gpu")
    return given


def _frozen(percentages: Mapping[str, float]) -> Mapping[str, float]:
    return MappingProxyType(dict(sorted(percentages.items())))


def _written(percentages: Mapping[str, float]) -> dict[str, float]:
    return {name: int(value) if value == int(value) else value for name, value in percentages.items()}


def _selector(given: Any) -> LabelSelector:
    if isinstance(given, LabelSelector):
        return given
    if not isinstance(given, Mapping):
        raise refusal(f"must be a map with matchLabels or matchExpressions, not {shown(given)}")
    expressions = given.get("matchExpressions")
    known: tuple[str, ...] = ("matchLabels", "matchExpressions")
    for where in (given, *(expressions if isinstance(expressions, list) else ())):
        for key in where if isinstance(where, Mapping) else ():
            if key not in known:
                raise refusal(f"{key!r} is not known in a label selector", nearest_name(str(key), known))
        known = ("key", "operator", "values")
    try:
        return label_selector(dict(given))
    except SelectorError as error:
        raise refusal(str(error)) from error


def _duration(given: Any) -> float:
    if isinstance(given, str):
        try:
            given = duration_seconds(given)
        except ValueError as error:
            raise refusal(str(error)) from error
    elif isinstance(given, bool) or not isinstance(given, int | float):
        raise refusal(f"must be a duration such as 90s or 1h30m, not {shown(given)}")
    return float(given)


def _list(given: Any) -> Any:
    return tuple(given) if isinstance(given, list) else given


Items = Annotated[tuple[Item, ...], BeforeValidator(_list), PlainSerializer(list)]
"""A list in the document, a tuple here."""

Count = Annotated[int, Field(ge=0)]
Percentage = Annotated[float, Field(ge=0, le=100)]
ResourceName = Annotated[str, AfterValidator(_resource_name)]
Percentages = Annotated[
    Mapping[ResourceName, Percentage], Field(min_length=1), AfterValidator(_frozen), PlainSerializer(_written)
]
"""Percent of a node's allocatable, by resource name; at least one."""


def _selector_document(selector: LabelSelector) -> dict[str, Any]:
    """Write a selector so that reading it gives an equal one."""
    requirements = selector.requirements
    plain = all(item.operator is Operator.IN and len(item.values) == 1 for item in requirements)
    if plain and len({item.key for item in requirements}) == len(requirements):
        return {"matchLabels": {item.key: item.values[0] for item in requirements}} if requirements else {}
    expressions = [
        {"key": item.key, "operator": item.operator.value} | ({"values": list(item.values)} if item.values else {})
        for item in requirements
    ]
    return {"matchExpressions": expressions}


Selector = Annotated[LabelSelector, PlainValidator(_selector), PlainSerializer(_selector_document)]


def _node_labels(given: Any) -> LabelSelector:
    if isinstance(given, LabelSelector):
        return given
    if not isinstance(given, str):
        raise refusal(f"must be a string such as pool=a, not {shown(given)}")
    try:
        return parse_selector(given)
    except SelectorError as error:
        raise refusal(str(error)) from error


NodeLabels = Annotated[LabelSelector, PlainValidator(_node_labels), PlainSerializer(text_of_selector)]
"""A label selector written as text (``pool=a,!gpu``); the empty text selects everything."""

Duration = Annotated[float, BeforeValidator(_duration), Field(ge=0), PlainSerializer(duration_text)]
"""A duration as ``1h30m`` in the document, seconds here."""


class Namespaces(Arguments):
    """Which namespaces a strategy looks at: those included, or all but those excluded."""

    include: Items[str] = Field((), description="Only these namespaces (names).")
    exclude: Items[str] = Field((), description="All namespaces but these (names).")

    def rules(self) -> Any:
        """Refuse both lists at once."""
        if self.include and self.exclude:
            yield ("include", "exclude"), "only one of include and exclude may be set"

    def admits(self, namespace: str) -> bool:
        """Tell whether the strategy looks at pods of this namespace."""
        return namespace in self.include if self.include else namespace not in self.exclude


class OwnerKinds(Arguments):
    """Which pods a strategy looks at, by the kind of their owners."""

    include: Items[str] = Field((), description="Only pods with an owner of one of these kinds.")
    exclude: Items[str] = Field((), description="No pods with an owner of one of these kinds.")

    def rules(self) -> Any:
        """Refuse both lists at once."""
        if self.include and self.exclude:
            yield ("include", "exclude"), "only one of include and exclude may be set"

    def admits(self, kinds: tuple[str, ...]) -> bool:
        """Tell whether the strategy looks at a pod whose owners are of these kinds."""
        if self.include:
            return any(kind in self.include for kind in kinds)
        return not any(kind in self.exclude for kind in kinds)


class EvictableNamespaces(Arguments):
    """From which namespaces a utilisation strategy may move pods; pods of the others still count as usage."""

    refused: ClassVar[Mapping[str, str]] = {"include": "is not supported here: only exclude is"}

    exclude: Items[str] = Field((), description="Pods of these namespaces (names) stay where they are.")

    def admits(self, namespace: str) -> bool:
        """Tell whether pods of this namespace may be moved."""
        return namespace not in self.exclude
