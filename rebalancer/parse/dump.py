"""The text of a dump to loose objects: a List, an array, single objects, several YAML documents or concatenated JSON.

As ``kubectl get nodes,pods,pdb -A -o json`` (or ``-o yaml``) writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson
import yaml

from rebalancer.errors import DumpError, Mistake
from rebalancer.parse.objects import PARSERS, flatten
from rebalancer.parse.yaml_text import yaml_documents

# Kinds whose absence changes what a rule can know, with what is assumed then.
ASSUMED: Mapping[str, str] = {
    "PodDisruptionBudget": "no disruption budget exists",
    "Namespace": "namespaces carry no labels but their name",
    "PriorityClass": "priority classes of the policy cannot be resolved by name",
    "PersistentVolume": "volumes do not tie pods to nodes",
    "PersistentVolumeClaim": "claims exist and are bound",
    "Service": "no service selects pods for the built-in spread constraints",
    "ReplicaSet": "workloads are complete and none is in the middle of a rollout",
}


def read_dump(data: bytes, source: str) -> list[Mapping[str, Any]]:
    """Return the single objects of a dump. source: its name, for errors.

    Raises DumpError where nothing in it can be used, with what was found and what was expected.
    """
    text = data.removeprefix(b"\xef\xbb\xbf")
    if not text.strip():
        raise DumpError(source, [Mistake("$", "is empty; expected objects as `kubectl get nodes,pods -A -o json` gives")])
    documents = _documents(text, source)
    objects: list[Mapping[str, Any]] = []
    mistakes = []
    for path, document in documents:
        if document is None:
            continue
        items = document if isinstance(document, list) else [document]
        for index, item in enumerate(items):
            where = f"{path}[{index}]" if isinstance(document, list) else path
            if isinstance(item, Mapping):
                objects.append(item)
            else:
                mistakes.append(Mistake(where, f"is {_called(item)}; expected an object with `kind`, or a List of them"))
    flat = list(flatten(objects))
    if mistakes:
        raise DumpError(source, mistakes[:20])
    _refuse_the_useless(flat, source)
    return flat


def _documents(text: bytes, source: str) -> list[tuple[str, Any]]:
    if text.lstrip()[:1] in (b"{", b"["):
        try:
            return [("$", orjson.loads(text))]
        except orjson.JSONDecodeError as error:
            lines = _json_lines(text)
            if lines is not None:
                return lines
            json_error = str(error)
    else:
        json_error = ""
    try:
        documents = list(yaml_documents(text))
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        detail = json_error or " ".join(str(error).split())
        raise DumpError(source, [Mistake("$", f"is neither JSON nor YAML: {detail}")]) from error
    return [(f"document {number}" if len(documents) > 1 else "$", document) for number, document in enumerate(documents, start=1)]


def _json_lines(text: bytes) -> list[tuple[str, Any]] | None:
    """One JSON value per line, as ``jq -c`` writes them; None where it is something else."""
    found: list[tuple[str, Any]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            found.append((f"line {number}", orjson.loads(line)))
        except orjson.JSONDecodeError:
            return None
    return found


def _called(item: object) -> str:
    return {str: "a text", int: "a number", float: "a number", bool: "a boolean", type(None): "null"}.get(type(item), "a list")


def _refuse_the_useless(objects: list[Mapping[str, Any]], source: str) -> None:
    kinds = {str(each.get("kind")) for each in objects}
    if "DeschedulerPolicy" in kinds:
        raise DumpError(source, [Mistake("$.kind", "is DeschedulerPolicy: this is a policy; give it with --policy")])
    if not kinds & set(PARSERS):
        seen = ", ".join(sorted(kinds)[:5]) or "nothing"
        raise DumpError(source, [Mistake("$.kind", f"is {seen}; expected Node and Pod objects among them")])


def missing_notes(missing: Iterable[str]) -> list[str]:
    """Return one warning for each kind that a rule may need and the dump does not have, with what is assumed."""
    absent = set(missing)
    notes = [f"the dump has no {kind}: assumed that {assumed}" for kind, assumed in ASSUMED.items() if kind in absent]
    for kind in ("Node", "Pod"):
        if kind in absent:
            notes.insert(0, f"the dump has no {kind}: there is nothing to decide")
    return notes
