"""Server-side apply: an intent is merged into an object, field by field, with an eye on who else has set what.

Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/
"""

from __future__ import annotations

from typing import Any

from rebalancer.sim.decoding import read_object
from rebalancer.sim.history import Object
from rebalancer.sim.kinds import Kind
from rebalancer.sim.ownership import ITEM, Leaves, Managers, Path, element, leaves, shown
from rebalancer.sim.problems import ApiProblem, bad_request
from rebalancer.sim.registry import Registry
from rebalancer.sim.schema import Field, Merge, fields_of, type_of


def apply_object(
    registry: Registry,
    kind: Kind,
    namespace: str,
    name: str,
    intent: Any,
    manager: str,
    *,
    force: bool = False,
    dry_run: bool = False,
    strictness: str = "Strict",
    subresource: str = "",
) -> tuple[Object, bool, list[str]]:
    """Apply an intent. Returns the object, whether it was created, and warnings. Raises ApiProblem (409 on conflict)."""
    if not manager:
        raise bad_request('PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch')
    if not isinstance(intent, dict) or not intent.get("apiVersion") or not intent.get("kind"):
        raise bad_request("invalid object type: /, Kind=")
    if (intent.get("metadata") or {}).get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    _, warnings = read_object(kind, intent, b"", strictness)
    type_name = type_of(kind)
    wanted = leaves(type_name, intent)
    old = registry.store.get(kind.storage, namespace if kind.namespaced else "", name)
    if old is None:
        obj, _ = read_object(kind, {**intent, "metadata": {**intent.get("metadata", {}), "name": name}}, b"", "Ignore")
        managers = Managers()
        managers.set((manager, "Apply", subresource), set(wanted), kind.api_version, registry.now())
        created = registry.create_read(kind, namespace, obj, dry_run=dry_run, managed=managers.written())
        return created, True, warnings
    managers = Managers(old["metadata"].get("managedFields", ()))
    merged = _merged(type_name, old, intent)
    mine = managers.paths(manager, "Apply", subresource)
    others = managers.others(manager, "Apply")
    unwanted = {path for path in mine - set(wanted) if not any(path in paths for paths in others.values())}
    merged = _without(type_name, merged, unwanted)
    _settle_conflicts(managers, others, leaves(type_name, old), wanted, force, (manager, "Apply", subresource))
    obj, _ = read_object(kind, merged, b"", "Ignore")
    managers.take_from_others((manager, "Apply", subresource), set())
    if mine != set(wanted):
        managers.set((manager, "Apply", subresource), set(wanted), kind.api_version, registry.now())
    updated = registry.update(kind, old, obj, subresource=subresource, dry_run=dry_run, managed=managers.written())
    return updated, False, warnings


def _settle_conflicts(
    managers: Managers,
    others: dict[tuple[str, str, str], set[Path]],
    live: Leaves,
    wanted: Leaves,
    force: bool,
    key: tuple[str, str, str],
) -> None:
    changed = {path for path, value in wanted.items() if value is not ITEM and path in live and not _equal(live[path], value)}
    found = [(other, path) for other, paths in sorted(others.items()) for path in sorted(changed & paths)]
    if not found:
        return
    if force:
        managers.take_from_others(key, changed)
        return
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{other[0]}"{_using(managers, other)}',
            "field": shown(path),
        }
        for other, path in found
    ]
    count = "1 conflict" if len(found) == 1 else f"{len(found)} conflicts"
    if len(found) == 1:
        text = f"{causes[0]['message']}: {causes[0]['field']}"
    else:
        by_manager: dict[str, list[str]] = {}
        for cause in causes:
            by_manager.setdefault(cause["message"], []).append(cause["field"])
        text = "\n".join(f"{who}:\n" + "\n".join(f"- {field}" for field in fields) for who, fields in by_manager.items())
        text = "conflicts" + text.removeprefix("conflict") if len(by_manager) == 1 else text
    raise ApiProblem(409, f"Apply failed with {count}: {text}", "Conflict", {"causes": causes})


def _using(managers: Managers, other: tuple[str, str, str]) -> str:
    subresource = f' with subresource "{other[2]}"' if other[2] else ""
    version = managers.version_of(other)
    return subresource + (f" using {version}" if other[1] == "Update" and version else "")


def _equal(one: Any, other: Any) -> bool:
    return bool(one == other)


def _merged(type_name: str, live: Any, intent: Any) -> Any:
    known = fields_of(type_name)
    if known is None or not isinstance(live, dict) or not isinstance(intent, dict):
        return intent
    result = dict(live)
    for name, value in intent.items():
        if value is None:
            continue
        described = known.get(name)
        result[name] = _merged_field(described, result.get(name), value) if described is not None else value
    return result


def _merged_field(described: Field, live: Any, value: Any) -> Any:
    kind, merge = described.type, described.merge
    if live is None or merge.kind == "atomic":
        return value
    if kind[0] == "[":
        if merge.kind == "set":
            return [*live, *(item for item in value if item not in live)]
        return _merged_list(described, live, value) if merge.kind == "map" else value
    if kind[0] == "{":
        return {**live, **value}
    return _merged(kind, live, value) if "." in kind else value


def _merged_list(described: Field, live: list[Any], value: list[Any]) -> list[Any]:
    wanted = {element(described.merge, item): item for item in value}
    result = []
    for item in live:
        mine = wanted.pop(element(described.merge, item), None)
        result.append(item if mine is None else _merged(described.element, item, mine))
    return [*result, *wanted.values()]


def _without(type_name: str, value: Any, unwanted: set[Path]) -> Any:
    """Return a value without some paths. An element of a list goes only if its own path does."""
    if not unwanted or not isinstance(value, dict):
        return value
    known = fields_of(type_name) or {}
    result = {}
    for name, item in value.items():
        step = f"f:{name}"
        if (step,) in unwanted:
            continue
        inner = {path[1:] for path in unwanted if path[0] == step and len(path) > 1}
        described = known.get(name)
        if not inner or described is None:
            result[name] = item
        elif described.type[0] == "{" and isinstance(item, dict):
            result[name] = {key: held for key, held in item.items() if (f"f:{key}",) not in inner}
        elif described.type[0] == "[" and isinstance(item, list):
            result[name] = _list_without(described, item, inner)
        else:
            result[name] = _without(described.type, item, inner)
    return result


def _list_without(described: Field, items: list[Any], unwanted: set[Path]) -> list[Any]:
    merge: Merge = described.merge
    result = []
    for item in items:
        step = element(merge, item)
        if (step,) in unwanted:
            continue
        inner = {path[1:] for path in unwanted if path[0] == step and len(path) > 1}
        result.append(_without(described.element, item, inner) if inner else item)
    return result
