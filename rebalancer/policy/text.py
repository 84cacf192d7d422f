"""The text of a policy (YAML or JSON) to plain values. What the values mean is read elsewhere.

Timestamps stay strings, as in every Kubernetes object; a key that stands twice in one map is a mistake, since one of
the two would be lost.
"""

from __future__ import annotations

from typing import Any

import yaml

from rebalancer.errors import Mistake, PolicyError
from rebalancer.parse.yaml_text import yaml_documents


def values_of_text(text: str | bytes, *, source: str) -> Any:
    """Return the plain values of one YAML or JSON document; None where there is none.

    Raises PolicyError where the text cannot be read.
    """
    try:
        plain = text.decode() if isinstance(text, bytes) else text
        documents = [document for document in yaml_documents(plain) if document is not None]
    except UnicodeDecodeError as error:
        raise PolicyError(source, [Mistake("document", "must be UTF-8 text")]) from error
    except yaml.YAMLError as error:
        raise PolicyError(source, [Mistake(*_place(error))]) from error
    except ValueError as error:
        raise PolicyError(source, [Mistake("document", "must be YAML or JSON that can be read")]) from error
    if len(documents) > 1:
        raise PolicyError(source, [Mistake("document", f"must be one document, not {len(documents)}")])
    return documents[0] if documents else None


def _place(error: yaml.YAMLError) -> tuple[str, str]:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "document"
    if isinstance(error, yaml.reader.ReaderError):
        where = f"character {error.position + 1}"
    return where, f"must be YAML or JSON: {problem}"
