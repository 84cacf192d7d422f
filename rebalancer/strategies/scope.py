"""Which pods a strategy looks at: namespaces and labels, judged once per shape."""

from __future__ import annotations

from collections.abc import Callable

from rebalancer.model.pod import PodShape
from rebalancer.model.selector import LabelSelector
from rebalancer.parse.argument_types import Namespaces


def in_scope(namespaces: Namespaces, selector: LabelSelector | None = None) -> Callable[[PodShape], bool]:
    """Return a test of shapes that remembers its answers."""
    known: dict[PodShape, bool] = {}
    everything = not namespaces.include and not namespaces.exclude and selector is None

    def test(shape: PodShape) -> bool:
        if everything:
            return True
        answer = known.get(shape)
        if answer is None:
            answer = namespaces.admits(shape.namespace) and (selector is None or selector.matches(shape.labels))
            known[shape] = answer
        return answer

    return test


def owner_kinds(shape: PodShape) -> tuple[str, ...]:
    """Return the kinds of a shape's owners."""
    return tuple(owner.kind for owner in shape.owners)
