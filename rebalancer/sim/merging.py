"""Patches: JSON patch, merge patch, strategic merge patch, each from a document and a patch to a new document.

Sources: RFC 6902, RFC 7386, and
https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md
"""

from __future__ import annotations

import copy
from typing import Any

from rebalancer.sim.problems import ApiProblem, bad_request
from rebalancer.sim.schema import Field, fields_of


def merge_patch(document: Any, patch: Any) -> Any:
    """Return a document changed by a merge patch. Neither is changed."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), value)
    return result


def json_patch(document: Any, operations: Any) -> Any:
    """Return a document changed by a JSON patch. Raises ApiProblem for one that does not apply."""
    if not isinstance(operations, list):
        raise bad_request("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    result = copy.deepcopy(document)
    for operation in operations:
        result = _operate(result, operation)
    return result


def _operate(document: Any, operation: dict[str, Any]) -> Any:
    name, path = operation.get("op"), operation.get("path", "")
    if name in {"move", "copy"}:
        value = copy.deepcopy(_find(document, operation.get("from", ""), str(name)))
        if name == "move":
            document = _operate(document, {"op": "remove", "path": operation.get("from", "")})
        return _operate(document, {"op": "add", "path": path, "value": value})
    if name == "test":
        if _find(document, path, "test") != operation.get("value"):
            raise _unprocessable(f"testing value {path} failed: test failed")
        return document
    if path == "":
        return copy.deepcopy(operation.get("value"))
    parent, last = _parent(document, path, str(name))
    if name == "add":
        _add(parent, last, copy.deepcopy(operation.get("value")), path)
    elif name == "remove":
        _take_out(parent, last, path)
    elif name == "replace":
        _find(document, path, "replace")
        if isinstance(parent, list):
            parent[int(last)] = copy.deepcopy(operation.get("value"))
        else:
            parent[last] = copy.deepcopy(operation.get("value"))
    else:
        raise _unprocessable(f"Unexpected kind: {name}")
    return document


def _steps(path: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]


def _parent(document: Any, path: str, operation: str) -> tuple[Any, str]:
    *steps, last = _steps(path)
    for step in steps:
        document = _into(document, step, path, operation)
    return document, last


def _find(document: Any, path: str, operation: str) -> Any:
    for step in _steps(path):
        document = _into(document, step, path, operation)
    return document


def _into(document: Any, step: str, path: str, operation: str) -> Any:
    try:
        return document[int(step)] if isinstance(document, list) else document[step]
    except (KeyError, IndexError, ValueError, TypeError):
        why = f'{operation} operation does not apply: doc is missing path: "{path}": missing value'
        raise _unprocessable(why) from None


def _add(parent: Any, last: str, value: Any, path: str) -> None:
    if isinstance(parent, list):
        if last == "-":
            parent.append(value)
        elif last.isdigit() and int(last) <= len(parent):
            parent.insert(int(last), value)
        else:
            raise _unprocessable(f'add operation does not apply: doc is missing path: "{path}": missing value')
    else:
        parent[last] = value


def _take_out(parent: Any, last: str, path: str) -> None:
    try:
        del parent[int(last) if isinstance(parent, list) else last]
    except (KeyError, IndexError, ValueError):
        why = f"remove operation does not apply: doc is missing path: {path}: missing value"
        raise _unprocessable(why) from None


def _unprocessable(why: str) -> ApiProblem:
    problem = ApiProblem(422, "the server rejected our request due to an error in our request", "Invalid", {})
    problem.add_note(why)
    return problem


def strategic_merge(document: Any, patch: Any, type_name: str) -> Any:
    """Return a document changed by a strategic merge patch; ``type_name`` says how its lists merge."""
    return _strategic(document, patch, fields_of(type_name) or {})


def _strategic(document: Any, patch: dict[str, Any], known: dict[str, Field]) -> dict[str, Any]:
    directive = patch.get("$patch")
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != "$patch"}
    if directive == "delete":
        return {}
    result = dict(document) if isinstance(document, dict) else {}
    if "$retainKeys" in patch:
        kept = set(patch["$retainKeys"])
        result = {name: value for name, value in result.items() if name in kept}
    for name, value in patch.items():
        if name.startswith("$setElementOrder/") or name in {"$retainKeys", "$patch"}:
            continue
        if name.startswith("$deleteFromPrimitiveList/"):
            field = name.partition("/")[2]
            result[field] = [item for item in result.get(field, ()) if item not in value]
        elif value is None:
            result.pop(name, None)
        else:
            result[name] = _merged_field(result.get(name), value, known.get(name))
    for name, order in patch.items():
        if name.startswith("$setElementOrder/"):
            field = name.partition("/")[2]
            if field in result:
                result[field] = _in_order(result[field], order, known.get(field))
    return result


def _merged_field(old: Any, value: Any, described: Field | None) -> Any:
    if isinstance(value, dict):
        inner = fields_of(described.type) if described is not None else None
        if described is not None and described.type[0] == "{":
            inner = None
        return _strategic(old, value, inner or {})
    if isinstance(value, list) and described is not None and described.merge.key is not None:
        return _merged_list(old if isinstance(old, list) else [], value, described)
    if isinstance(value, list):
        return [copy.deepcopy(item) for item in value if not (isinstance(item, dict) and set(item) == {"$patch"})]
    return value


def _merged_list(old: list[Any], patch: list[Any], described: Field) -> list[Any]:
    key = described.merge.key
    if not key:
        return [*old, *(item for item in patch if item not in old)]
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if item.get("$patch") != "replace"]
    known = fields_of(described.element) or {}
    result = [dict(item) for item in old]
    for item in patch:
        place = next((i for i, one in enumerate(result) if one.get(key) == item.get(key)), None)
        if item.get("$patch") == "delete":
            result = [one for one in result if one.get(key) != item.get(key)]
        elif place is None:
            result.append(_strategic({}, item, known))
        else:
            result[place] = _strategic(result[place], item, known)
    return result


def _in_order(items: list[Any], order: list[Any], described: Field | None) -> list[Any]:
    key = described.merge.key if described is not None else None

    def identity(item: Any) -> Any:
        return item.get(key) if isinstance(item, dict) and key else item

    wanted = [item.get(key) if isinstance(item, dict) and key else item for item in order]
    listed = [item for item in items if identity(item) in wanted]
    listed.sort(key=lambda item: wanted.index(identity(item)))
    slots = iter(listed)
    return [next(slots) if identity(item) in wanted else item for item in items]
