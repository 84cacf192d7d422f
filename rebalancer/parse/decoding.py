"""Bytes to wire structs, with errors that name the object and the field."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from sys import intern
from typing import TypeVar

import msgspec

from rebalancer.errors import ParseError
from rebalancer.model.pod import Owner
from rebalancer.parse import wire

T = TypeVar("T")

# Annotations that mean something here; all others are dropped while parsing.
ANNOTATION_PREFIXES = (
    "descheduler.alpha.kubernetes.io/",
    "cluster-autoscaler.kubernetes.io/",
    "karpenter.sh/",
    "kubernetes.io/config.",
    "rebalancer.io/",
)
_NEEDLES = tuple(prefix.encode() for prefix in ANNOTATION_PREFIXES)

NO_ENTRIES: Mapping[str, str] = {}
"""Shared by all who have none of something: an empty dictionary per shape would add up."""

_LABELS = msgspec.json.Decoder(dict[str, str])
_OWNERS = msgspec.json.Decoder(list[wire.OwnerReference])
_IDENTITY = msgspec.json.Decoder(wire.NamedWire)


def decode(raw: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T], kind: str) -> T:
    """Decode one object. Raises ParseError with the object's name, where it can be found, and the field."""
    try:
        return decoder.decode(raw)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError) as error:
        raise ParseError(f"{identity(raw, kind)}: {error}") from error


def decode_part(raw: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[T], field: str) -> T:
    """Decode one field of an object whose name the caller knows. Raises ParseError with the field."""
    try:
        return decoder.decode(raw)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError) as error:
        raise ParseError(f"{field}: {error}") from error


def identity(raw: bytes | msgspec.Raw, kind: str) -> str:
    """Return ``Kind namespace/name`` of an object as far as it can be read."""
    try:
        metadata = _IDENTITY.decode(raw).metadata
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return f"{kind} <unreadable>"
    return f"{kind} {metadata.namespace}/{metadata.name}" if metadata.namespace else f"{kind} {metadata.name or '<unnamed>'}"


def require_name(name: str) -> None:
    """Raise ParseError for a name that is missing, or that could do harm where it is printed."""
    if not name:
        raise ParseError("metadata.name is missing")
    if not name.isprintable():
        raise ParseError(f"metadata.name is {name!r}, which holds characters that no name can")


def present(raw: msgspec.Raw) -> bytes:
    """Return the bytes of an optional field; empty where it is missing or null."""
    found = bytes(raw)
    return b"" if found == b"null" else found


def labels(raw: msgspec.Raw) -> dict[str, str]:
    """Decode a map of labels, its keys in order."""
    found = present(raw)
    if not found:
        return {}
    return {intern(key): value for key, value in sorted(decode_part(found, _LABELS, "metadata.labels").items())}


def kept_annotations(raw: msgspec.Raw) -> Mapping[str, str]:
    """Decode the annotations that mean something here. Cheap where there are none: only bytes are searched."""
    found = present(raw)
    if not found or not any(needle in found for needle in _NEEDLES):
        return NO_ENTRIES
    everything = decode_part(found, _LABELS, "metadata.annotations")
    return {key: value for key, value in sorted(everything.items()) if key.startswith(ANNOTATION_PREFIXES)}


def owners(raw: msgspec.Raw, namespace: str) -> tuple[Owner, ...]:
    """Decode owner references, in their order; one without a UID is known by kind and name in the namespace, as workloads are."""
    found = present(raw)
    if not found:
        return ()
    references = decode_part(found, _OWNERS, "metadata.ownerReferences")
    return tuple(
        Owner(
            intern(each.kind),
            each.name,
            each.uid or f"{each.kind}/{namespace}/{each.name}",
            intern(each.apiVersion),
            bool(each.controller),
        )
        for each in references
    )


def seconds(moment: datetime | None) -> float | None:
    """Return seconds since the epoch; None for a missing time. Raises ParseError for a time without a zone."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise ParseError(f"{moment.isoformat()} has no time zone")
    return moment.timestamp()
