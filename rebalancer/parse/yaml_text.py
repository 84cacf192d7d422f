"""YAML as Kubernetes reads it: timestamps stay texts, a key stands once in a map, and aliases may not swell beyond reason.

Text enters, plain values leave. ``yaml.YAMLError`` is raised where it cannot be read; its mark says where.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

# What go-yaml allows without question; beyond it a document may become this many times larger by its aliases.
_EXPANDED_NODES = 400_000
_EXPANSION = 10


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Looks at each document as a whole before values are made of it."""

    def construct_document(self, node: yaml.Node) -> Any:
        _check(node)
        return super().construct_document(node)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def yaml_documents(text: str | bytes) -> Iterator[Any]:
    """Yield the plain values of each document; None for an empty one.

    Raises yaml.YAMLError, and ValueError for a scalar that is none (a date that does not exist, say).
    """
    try:
        yield from yaml.load_all(text, _Loader)
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply") from None


def _check(root: yaml.Node) -> None:
    """Refuse keys that stand twice, maps and lists that contain themselves, and documents that aliases blow up."""
    expanded: dict[int, int] = {}
    open_nodes: set[int] = set()
    count = 0
    stack = [(root, False)]
    while stack:
        node, left = stack.pop()
        if not isinstance(node, yaml.CollectionNode) or id(node) in expanded:
            count += 1
        elif left:
            open_nodes.discard(id(node))
            count += 1
            expanded[id(node)] = 1 + sum(expanded.get(id(child), 1) for child in _children(node))
            if expanded[id(node)] > max(_EXPANDED_NODES, _EXPANSION * count):
                raise _refused(node, "its aliases make it too large")
        elif id(node) in open_nodes:
            raise _refused(node, "it contains itself")
        else:
            open_nodes.add(id(node))
            stack.append((node, True))
            stack += [(child, False) for child in _children(node)]
            if isinstance(node, yaml.MappingNode):
                _refuse_twins(node)


def _children(node: yaml.CollectionNode) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [each for pair in node.value for each in pair]
    return list(node.value)


def _refuse_twins(node: yaml.MappingNode) -> None:
    seen: set[str] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            continue
        if key.value in seen:
            raise _refused(key, f"the key {key.value!r} stands twice")
        seen.add(key.value)


def _refused(node: yaml.Node, problem: str) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
