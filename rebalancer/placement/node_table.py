"""What the nodes are, as columns: allocatable amounts, taints, labels, images.

Enters: the nodes of a snapshot. Leaves: arrays and masks. What runs on the nodes is in ``state``. Nothing changes after it is
made (columns and masks are only remembered), so a table is used again as long as the nodes are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from rebalancer.model.node import Node, Taint
from rebalancer.model.selector import NodeSelector, NodeSelectorTerm, Operator, Requirement
from rebalancer.placement.arrays import Bools, Domains, Ints

HOSTNAME = "kubernetes.io/hostname"
UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"

LEAVING_TAINTS = frozenset(
    {
        "karpenter.sh/disrupted",
        "karpenter.sh/disruption",
        "ToBeDeletedByClusterAutoscaler",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cloudprovider.kubernetes.io/shutdown",
    }
)

_MOST_MASKS = 4_096


@dataclass(frozen=True, slots=True)
class Column:
    """One label over all nodes.

    codes: position of each node's value in ``values``; -1 where the node has no such label.
    """

    codes: Domains
    values: tuple[str, ...]
    code_of: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class TaintClass:
    """Nodes that are alike in their taints and their cordon."""

    taints: tuple[Taint, ...]
    unschedulable: bool


class NodeTable:
    """The nodes of one snapshot in the order of their names.

    everywhere, nowhere, nothing: shared by all who have nothing to object or to add; not to be written to.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        """Read the nodes once."""
        self.nodes: tuple[Node, ...] = tuple(nodes)
        self.names: tuple[str, ...] = tuple(node.name for node in self.nodes)
        self.index: dict[str, int] = {name: position for position, name in enumerate(self.names)}
        self.size = len(self.nodes)
        rows = [
            (
                node.allocatable.cpu_millicores,
                node.allocatable.memory_bytes,
                node.allocatable.ephemeral_storage_bytes,
                node.allocatable.pods,
            )
            for node in self.nodes
        ]
        self.cpu, self.memory, self.ephemeral, self.pods = np.array(rows, dtype=np.int64).reshape(-1, 4).T.copy()
        classes: dict[TaintClass, int] = {}
        plain: dict[tuple[tuple[Taint, ...], bool], int] = {}
        codes: list[int] = []
        for node in self.nodes:
            key = (node.taints, node.unschedulable)
            code = plain.get(key)
            if code is None:
                code = plain[key] = len(classes)
                classes[TaintClass(*key)] = code
            codes.append(code)
        self.taint_codes: Domains = np.array(codes, dtype=np.int32)
        self.taint_classes: tuple[TaintClass, ...] = tuple(classes)
        leaving = [any(taint.key in LEAVING_TAINTS for taint in each.taints) for each in self.taint_classes]
        self.leaving: Bools = self.by_taints(leaving)
        self.anything_leaving = any(leaving)
        self._columns: dict[str, Column] = {}
        self._scalars: dict[str, Ints] = {}
        self._masks: dict[Requirement, Bools] = {}
        self._images: dict[str, tuple[int, Bools]] = {}
        self._image_names: frozenset[str] | None = None
        self.everywhere: Bools = np.ones(self.size, dtype=np.bool_)
        self.nothing: Ints = np.zeros(self.size, dtype=np.int64)
        self.nowhere: Bools = np.zeros(self.size, dtype=np.bool_)
        for shared in (self.everywhere, self.nowhere, self.nothing):
            shared.flags.writeable = False

    def made_of(self, nodes: Mapping[str, Node]) -> bool:
        """Say whether these are the very nodes that this table was made of."""
        return len(nodes) == self.size and all(mine is theirs for mine, theirs in zip(self.nodes, nodes.values(), strict=True))

    def by_taints(self, answers: list[bool]) -> Bools:
        """Spread an answer per taint class over the nodes."""
        if not answers:
            return np.zeros(0, dtype=np.bool_)
        return np.array(answers, dtype=np.bool_)[self.taint_codes]

    def scalar(self, resource: str) -> Ints:
        """Return what each node offers of an extended resource."""
        found = self._scalars.get(resource)
        if found is None:
            amounts = [node.allocatable.scalars.get(resource, 0) for node in self.nodes]
            found = self._scalars[resource] = np.array(amounts, dtype=np.int64)
        return found

    def column(self, key: str) -> Column:
        """Return the values of a label."""
        found = self._columns.get(key)
        if found is None:
            code_of: dict[str, int] = {}
            codes = []
            for node in self.nodes:
                value = node.labels.get(key)
                codes.append(-1 if value is None else code_of.setdefault(value, len(code_of)))
            found = self._columns[key] = Column(np.array(codes, dtype=np.int32), tuple(code_of), code_of)
        return found

    def has(self, key: str) -> Bools:
        """Return which nodes carry a label."""
        return self.column(key).codes >= 0

    def matching(self, requirement: Requirement) -> Bools:
        """Return which nodes meet a requirement on their labels. The result is shared: do not write to it."""
        found = self._masks.get(requirement)
        if found is None:
            if len(self._masks) >= _MOST_MASKS:
                self._masks.clear()
            found = self._masks[requirement] = self._evaluate(requirement)
        return found

    def _evaluate(self, requirement: Requirement) -> Bools:
        column = self.column(requirement.key)
        answers = np.zeros(len(column.values) + 1, dtype=np.bool_)  # The last stands for "no such label": code -1 finds it.
        operator = requirement.operator
        if operator in (Operator.IN, Operator.NOT_IN):
            for value in requirement.values:
                code = column.code_of.get(value)
                if code is not None:
                    answers[code] = True
            if operator is Operator.NOT_IN:
                answers = ~answers
        else:
            for code, value in enumerate(column.values):
                answers[code] = requirement.matches({requirement.key: value})
            answers[-1] = requirement.matches({})
        return answers[column.codes]

    # Fields are asked for metadata.name with In and NotIn only; the API server admits nothing else.

    def meeting(self, term: NodeSelectorTerm) -> Bools:
        """Return which nodes a node selector term means; a term without requirements means none."""
        if not term.labels and not term.fields:
            return np.zeros(self.size, dtype=np.bool_)
        mask = np.ones(self.size, dtype=np.bool_)
        for requirement in term.labels:
            mask &= self.matching(requirement)
        for requirement in term.fields:
            mask &= self._named(requirement)
        return mask

    def _named(self, requirement: Requirement) -> Bools:
        mask = np.zeros(self.size, dtype=np.bool_)
        for name in requirement.values:
            position = self.index.get(name)
            if position is not None:
                mask[position] = True
        return ~mask if requirement.operator is Operator.NOT_IN else mask

    def selected(self, selector: NodeSelector) -> Bools:
        """Return which nodes meet one of the selector's terms."""
        mask = np.zeros(self.size, dtype=np.bool_)
        for term in selector.terms:
            mask |= self.meeting(term)
        return mask

    def labelled(self, wanted: Mapping[str, str]) -> Bools:
        """Return which nodes carry all these labels with these values (a nodeSelector)."""
        mask = np.ones(self.size, dtype=np.bool_)
        for key, value in wanted.items():
            mask &= self.matching(Requirement(key, Operator.IN, (value,)))
        return mask

    def image(self, name: str) -> tuple[int, Bools]:
        """Return the size in bytes of an image (as the first node by name has it; 0 where none has it) and who has it."""
        if self._image_names is None:
            self._image_names = frozenset().union(*(node.images for node in self.nodes))
        if name not in self._image_names:
            return 0, self.nowhere
        found = self._images.get(name)
        if found is None:
            sizes = [node.images.get(name) for node in self.nodes]
            size = next(size for size in sizes if size is not None)
            if len(self._images) >= _MOST_MASKS:
                self._images.clear()
            found = self._images[name] = size, np.array([size is not None for size in sizes], dtype=np.bool_)
        return found
