"""Which shapes of a namespace a label selector may mean, found by label value instead of one by one."""

from __future__ import annotations

from collections.abc import Iterable

from rebalancer.model.pod import PodShape
from rebalancer.model.selector import LabelSelector, Operator
from rebalancer.strategies.view import View


class LabelIndex:
    """Looks shapes up by namespace, label and value. Holds as long as no new shape appears."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._by_label: dict[tuple[str, str], dict[str, list[PodShape]]] = {}

    def selected(self, namespace: str, selector: LabelSelector) -> list[PodShape]:
        """Return the shapes of a namespace that the selector matches, in the view's order."""
        return [shape for shape in self._candidates(namespace, selector) if selector.matches(shape.labels)]

    def _candidates(self, namespace: str, selector: LabelSelector) -> Iterable[PodShape]:
        wanted = next((each for each in selector.requirements if each.operator is Operator.IN), None)
        if wanted is None:
            return self._view.shapes(namespace)
        index = self._by_label.get((namespace, wanted.key))
        if index is None:
            index = self._by_label[namespace, wanted.key] = {}
            for shape in self._view.shapes(namespace):
                value = shape.labels.get(wanted.key)
                if value is not None:
                    index.setdefault(value, []).append(shape)
        return [shape for value in wanted.values for shape in index.get(value, ())]
