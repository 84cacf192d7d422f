"""Find the valid name that a misspelt one most likely stood for.

Names enter, a name or None leaves. Used wherever a user's input is judged: policies, settings, arguments.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher

_LEAST_LIKENESS = 0.7
_LEAST_PART = 4


def nearest_name(name: str, valid: Iterable[str]) -> str | None:
    """Return the valid name most like the given one, or None where none is like it.

    Case, underscores and hyphens count for nothing, so that ``Pods`` finds ``pods`` and ``node_fit`` finds ``nodeFit``;
    a name of some length finds one that it is a part of. ``gpu`` does not find ``cpu``: between short names one letter
    is a different meaning. Equally like names are decided by their alphabetical order.
    """
    best: tuple[float, str] | None = None
    for candidate in sorted(set(valid)):
        likeness = _likeness(_plain(name), _plain(candidate))
        if likeness >= _LEAST_LIKENESS and (best is None or likeness > best[0]):
            best = (likeness, candidate)
    return best[1] if best else None


def _likeness(wanted: str, candidate: str) -> float:
    ratio = 1.0 if wanted == candidate else SequenceMatcher(None, wanted, candidate).ratio()
    if len(wanted) >= _LEAST_PART and wanted in candidate:
        return max(ratio, _LEAST_LIKENESS + ratio / 10)
    return ratio


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")
