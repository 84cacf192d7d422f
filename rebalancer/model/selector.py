"""Label and node selectors, evaluated locally.

Rules: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors and
https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#node-affinity
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Operator(StrEnum):
    """What a requirement asks of a label's value."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label.

    key: the label (or, in a node's matchFields, the field).
    operator: see Operator; Gt and Lt exist for nodes only.
    values: sorted and without repetition; empty for Exists and DoesNotExist; one integer text for Gt and Lt.
    """

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Say whether the labels meet this requirement. A missing label meets NotIn and DoesNotExist."""
        value = labels.get(self.key)
        operator = self.operator
        if operator is Operator.IN:
            return value is not None and value in self.values
        if operator is Operator.NOT_IN:
            return value is None or value not in self.values
        if operator is Operator.EXISTS:
            return value is not None
        if operator is Operator.DOES_NOT_EXIST:
            return value is None
        return value is not None and _compare(value, operator, self.values[0])

    def __str__(self) -> str:
        if self.operator is Operator.EXISTS:
            return self.key
        if self.operator is Operator.DOES_NOT_EXIST:
            return f"!{self.key}"
        if self.operator is Operator.IN and len(self.values) == 1:
            return f"{self.key}={self.values[0]}"
        return f"{self.key} {self.operator.value} ({','.join(self.values)})"


def _compare(value: str, operator: Operator, bound: str) -> bool:
    try:
        return int(value) > int(bound) if operator is Operator.GT else int(value) < int(bound)
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A set of requirements that must all hold.

    requirements: empty matches everything.
    nothing: True for the null selector, which matches nothing.
    """

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Say whether the labels meet every requirement."""
        if self.nothing:
            return False
        for requirement in self.requirements:
            if not requirement.matches(labels):
                return False
        return True

    def __str__(self) -> str:
        if self.nothing:
            return "<nothing>"
        return ",".join(map(str, self.requirements)) or "<everything>"


EVERYTHING = LabelSelector()
NOTHING = LabelSelector(nothing=True)


@dataclass(frozen=True, slots=True)
class NodeSelectorTerm:
    """One alternative of a node selector: all expressions on labels and all on fields must hold.

    A term without any requirement matches no node.
    """

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Say whether the node with this name and these labels is meant."""
        if not self.labels and not self.fields:
            return False
        for requirement in self.labels:
            if not requirement.matches(labels):
                return False
        if self.fields:
            fields = {"metadata.name": name}
            return all(requirement.matches(fields) for requirement in self.fields)
        return True


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """Alternatives, of which one must match."""

    terms: tuple[NodeSelectorTerm, ...]

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Say whether the node with this name and these labels meets one of the terms."""
        return any(term.matches(name, labels) for term in self.terms)


@dataclass(frozen=True, slots=True)
class PreferredNodeTerm:
    """A node selector term that adds to a node's score.

    weight: 1 to 100.
    """

    weight: int
    term: NodeSelectorTerm
