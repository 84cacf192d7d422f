"""Find the valid name that a misspelt one most likely stood for.

Names enter, a name or None leaves. Used wherever a user's input is judged: policies, settings, arguments.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher

_LEAST_LIKENESS = 0.6


def nearest_name(name: str, valid: Iterable[str]) -> str | None:
    """Return the valid name most like the given one, or None where none is like it.

    Case, underscores and hyphens count for nothing, so that ``Pods`` finds ``pods`` and ``node_fit`` finds ``nodeFit``.
    Equally like names are decided by their alphabetical order.
    """
    wanted = _plain(name)
    best: tuple[float, str] | None = None
    for candidate in sorted(set(valid)):
        likeness = 1.0 if _plain(candidate) == wanted else SequenceMatcher(None, wanted, _plain(candidate)).ratio()
        if likeness >= _LEAST_LIKENESS and (best is None or likeness > best[0]):
            best = (likeness, candidate)
    return best[1] if best else None


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")
