"""Files that a person names on the command line: dumps, policies, pods, times. Every mistake is an InputError."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rebalancer.errors import InputError, Mistake
from rebalancer.parse.dump import read_dump

STANDARD_INPUT = "-"


def read_bytes(path: str) -> bytes:
    """Return a file's bytes; ``-`` is standard input. Raises OSError where it cannot be read."""
    if path != STANDARD_INPUT:
        return Path(path).read_bytes()
    if sys.stdin is None:
        raise OSError("standard input is closed")
    return sys.stdin.buffer.read()


def read_input(path: str) -> bytes:
    """Return the bytes of a file that the user named. Raises InputError where it cannot be read."""
    try:
        return read_bytes(path)
    except OSError as error:
        raise InputError(path, [Mistake(path, f"cannot be read: {error.strerror or error}")]) from error


def read_objects(path: str) -> list[Mapping[str, Any]]:
    """Return the objects of a dump. Raises DumpError."""
    return read_dump(read_input(path), "standard input" if path == STANDARD_INPUT else path)


def read_document(path: str, what: str) -> Mapping[str, Any]:
    """Return a YAML or JSON document that must be a mapping. what: what to call it. Raises InputError."""
    import yaml

    from rebalancer.parse.yaml_text import yaml_documents

    try:
        documents = [document for document in yaml_documents(read_input(path)) if document is not None]
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(path, [Mistake("$", f"is not YAML: {' '.join(str(error).split())}")]) from error
    document = documents[0] if len(documents) == 1 else None
    if not isinstance(document, Mapping):
        raise InputError(path, [Mistake("$", f"must be {what}")])
    return document


def read_time(text: str | None) -> datetime:
    """Return the moment to decide for; None is the present. Raises InputError unless it is ISO 8601 with a time zone."""
    if text is None:
        return datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InputError(
            "arguments", [Mistake("--now", f"must be a time with a zone such as 2026-01-31T12:00:00Z, not {text!r}")]
        )
    return moment
