"""Lists, pages and the opening of watches: versions, continue tokens, what is too old and what is too new.

Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions and k8s.io/apiserver/pkg/storage.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from rebalancer.sim.decoding import json_complaint
from rebalancer.sim.history import Key, Object
from rebalancer.sim.kinds import Kind
from rebalancer.sim.problems import (
    ApiProblem,
    FieldProblem,
    bad_request,
    expired,
    forbidden_field,
    invalid,
    not_supported,
    version_too_large,
)
from rebalancer.sim.selecting import selects
from rebalancer.sim.store import Store
from rebalancer.sim.watching import Watch

_TOKEN_GONE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted "
    "between the time the first chunk was returned and now may show up in the list."
)
_VERSION_GONE = "The resourceVersion for the provided list is too old."
_NOT_OLDER = "NotOlderThan"
_TRUE = frozenset({"true", "1", "t", "T", "TRUE", "True"})


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The query of a list or watch, as texts."""

    labels: str = ""
    fields: str = ""
    version: str = ""
    match: str = ""
    limit: int = 0
    token: str = ""
    watch: bool = False
    bookmarks: bool = False
    initial: bool | None = None
    timeout_seconds: float | None = None

    @classmethod
    def of(cls, query: Mapping[str, str]) -> ListOptions:
        """Return the options that a query holds. Raises ApiProblem 400."""

        def number(name: str) -> int:
            text = query.get(name, "")
            try:
                return int(text) if text else 0
            except ValueError:
                raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None

        initial = query.get("sendInitialEvents")
        timeout = number("timeoutSeconds")
        return cls(
            labels=query.get("labelSelector", ""),
            fields=query.get("fieldSelector", ""),
            version=query.get("resourceVersion", ""),
            match=query.get("resourceVersionMatch", ""),
            limit=number("limit"),
            token=query.get("continue", ""),
            watch=query.get("watch", "") in _TRUE,
            bookmarks=query.get("allowWatchBookmarks", "") in _TRUE,
            initial=None if initial is None else initial in _TRUE,
            timeout_seconds=timeout or None,
        )

    def check(self) -> None:
        """Raise ApiProblem 422 for options that do not go together."""
        problems = self._watch_problems() if self.watch else self._list_problems()
        if problems:
            raise invalid("meta.k8s.io", "ListOptions", "", problems)

    def _list_problems(self) -> list[FieldProblem]:
        at = "resourceVersionMatch"
        problems = []
        if self.match:
            if not self.version:
                problems.append(forbidden_field(at, f"{at} is forbidden unless resourceVersion is provided"))
            if self.token:
                problems.append(forbidden_field(at, f"{at} is forbidden when continue is provided"))
            if self.match not in {"Exact", _NOT_OLDER}:
                problems.append(not_supported(at, self.match, ("Exact", _NOT_OLDER, "")))
            if self.match == "Exact" and self.version == "0":
                problems.append(forbidden_field(at, f'{at} "exact" is forbidden for resourceVersion "0"'))
        if self.initial is not None:
            problems.append(forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list"))
        return problems

    def _watch_problems(self) -> list[FieldProblem]:
        at = "resourceVersionMatch"
        problems = []
        if self.initial is not None and self.match != _NOT_OLDER:
            problems.append(forbidden_field(at, f"sendInitialEvents requires setting {at} to {_NOT_OLDER}"))
        if self.match:
            if self.initial is None:
                problems.append(forbidden_field(at, f"{at} is forbidden for watch unless sendInitialEvents is provided"))
            if self.match != _NOT_OLDER:
                problems.append(not_supported(at, self.match, (_NOT_OLDER,)))
            if self.token:
                problems.append(forbidden_field(at, f"{at} is forbidden when continue is provided"))
        return problems


@dataclass(frozen=True, slots=True)
class Page:
    """A list, or a page of one. metadata: what its ListMeta holds."""

    items: list[Object]
    version: int
    metadata: dict[str, Any] = field(default_factory=dict)


def list_objects(store: Store, kind: Kind, namespace: str | None, options: ListOptions) -> Page:
    """Return the objects that a list request asks for. Raises ApiProblem."""
    options.check()
    selected = selects(kind, options.labels, options.fields)
    selective = bool(options.labels or options.fields)
    limit = options.limit
    start: Key | None = None
    version = store.version
    if options.token:
        if options.version not in {"", "0"}:
            raise bad_request("specifying resource version is not allowed when using continue")
        wanted, start = _read_token(options.token, namespace)
        if wanted >= 0:
            if wanted < store.history(kind.storage).floor:
                raise expired(_TOKEN_GONE, _token(-1, start, namespace, inconsistent=True))
            version = wanted
    elif options.version:
        wanted = parse_version(options.version)
        if wanted > store.version:
            raise version_too_large(wanted, store.version)
        if options.match == "Exact" or (not options.match and limit and wanted):
            if wanted < store.history(kind.storage).floor:
                raise expired(_VERSION_GONE)
            version = wanted
        elif wanted == 0:
            limit = 0
    return _page(store, kind, namespace, version, start, limit, selected, selective)


def _page(
    store: Store,
    kind: Kind,
    namespace: str | None,
    version: int,
    start: Key | None,
    limit: int,
    selected: Any,
    selective: bool,
) -> Page:
    keys = store.keys(kind.storage, namespace, start)
    past: dict[Key, Object | None] = {}
    if version < store.version:
        past = store.history(kind.storage).undone(version)
        gone = [key for key, obj in past.items() if obj is not None and store.get(kind.storage, *key) is None]
        extra = [key for key in gone if namespace in {None, key[0]} and (start is None or key >= start)]
        if extra:
            keys = sorted({*keys, *extra})
        new = {key for key, obj in past.items() if obj is None}
        if new:
            keys = [key for key in keys if key not in new]
    items: list[Object] = []
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    for index, key in enumerate(keys):
        obj = past[key] if key in past else store.get(kind.storage, *key)
        if obj is None or not selected(obj):
            continue
        items.append(obj)
        if limit and len(items) == limit and index + 1 < len(keys):
            metadata["continue"] = _token(version, (key[0], key[1] + "\0"), namespace)
            if not selective:
                metadata["remainingItemCount"] = len(keys) - index - 1
            break
    return Page(items, version, metadata)


def open_watch(store: Store, kind: Kind, namespace: str | None, options: ListOptions) -> Watch:
    """Open a watch. Raises ApiProblem; 410 (too old) is for the stream, not for the answer's status."""
    options.check()
    selected = selects(kind, options.labels, options.fields)
    wanted = parse_version(options.version)
    if wanted > store.version:
        raise version_too_large(wanted, store.version)
    stream = bool(options.initial)
    from_now = options.initial is False and wanted == 0
    floor = store.history(kind.storage).floor
    if 0 < wanted < floor and not stream:
        raise expired(f"too old resource version: {wanted} ({floor})")
    watch = Watch(store, kind.storage, namespace, selected)
    if from_now:
        return watch
    watch.start(kind.storage, wanted or None, stream=stream, end_mark=stream and options.bookmarks)
    return watch


def parse_version(text: str) -> int:
    """Return a resource version as a number, 0 for none. Raises ApiProblem 500, as the server does."""
    if not text:
        return 0
    if not text.isascii() or not text.isdigit():
        why = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise ApiProblem(500, why)
    return int(text)


def _token(version: int, start: Key, namespace: str | None, *, inconsistent: bool = False) -> str:
    if namespace is None:
        text = f"{start[0]}/{start[1]}" if start[0] else start[1]
    else:
        text = start[1] if inconsistent else f"/{start[1]}"
    packed = orjson.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": text})
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def _read_token(token: str, namespace: str | None) -> tuple[int, Key]:
    beginning = "invalid continue token: continue key is not valid: "
    wrong = next((i for i, char in enumerate(token) if not (char.isascii() and (char.isalnum() or char in "-_"))), None)
    if wrong is None and len(token) % 4 == 1:
        wrong = len(token) - 1
    if wrong is not None:
        raise bad_request(f"{beginning}illegal base64 data at input byte {wrong}")
    try:
        packed = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        read = orjson.loads(packed)
    except (binascii.Error, orjson.JSONDecodeError):
        raise bad_request(beginning + json_complaint(packed)) from None
    if not isinstance(read, dict) or read.get("v") != "meta.k8s.io/v1":
        shown = read.get("v", "") if isinstance(read, dict) else ""
        raise bad_request(f'{beginning}server does not recognize this encoded version "{shown}"')
    if not read.get("rv"):
        raise bad_request(f"{beginning}incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    start = str(read.get("start", "")).lstrip("/")
    if not start:
        raise bad_request(f"{beginning}encoded start key empty (version meta.k8s.io/v1)")
    if namespace is not None:
        return int(read["rv"]), (namespace, start)
    space, slash, name = start.rpartition("/")
    return int(read["rv"]), (space, name) if slash else ("", start)
