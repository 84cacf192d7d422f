"""The text of a policy (YAML or JSON) to plain values. What the values mean is read elsewhere.

Timestamps stay strings, as in every Kubernetes object; a key that stands twice in one map is a mistake, since one of
the two would be lost.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import yaml

from rebalancer.errors import Mistake, PolicyError


class _Reader(yaml.SafeLoader):
    """YAML as Kubernetes reads it."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key.value!r} stands twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_Reader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def values_of_text(text: str | bytes, *, source: str) -> Any:
    """Return the plain values of one YAML or JSON document; None where there is none.

    Raises PolicyError where the text cannot be read.
    """
    try:
        plain = text.decode() if isinstance(text, bytes) else text
        documents = [document for document in yaml.load_all(plain, Loader=_Reader) if document is not None]
    except UnicodeDecodeError as error:
        raise PolicyError(source, [Mistake("document", "must be UTF-8 text")]) from error
    except yaml.YAMLError as error:
        raise PolicyError(source, [Mistake(*_place(error))]) from error
    except (RecursionError, ValueError) as error:
        raise PolicyError(source, [Mistake("document", "must be YAML or JSON that can be read")]) from error
    if len(documents) > 1:
        raise PolicyError(source, [Mistake("document", f"must be one document, not {len(documents)}")])
    return documents[0] if documents else None


def _place(error: yaml.YAMLError) -> tuple[str, str]:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "it cannot be read"
    where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "document"
    return where, f"must be YAML or JSON: {problem}"
