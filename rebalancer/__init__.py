"""Event-driven rebalancer for Kubernetes.

As a library: ``evaluate`` decides which pods of a set of objects should move, ``place`` says where kube-scheduler would put
a pod. Both are pure: equal arguments give an equal result, byte for byte. Everything else is the program ``rebalancer``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rebalancer.api import evaluate, place
    from rebalancer.model.plan import Plan

__version__ = "0.1.0"

__all__ = ["Plan", "__version__", "evaluate", "place"]


def __getattr__(name: str) -> Any:
    """Import the library's entry points when they are first used, so that a command pays only for what it needs."""
    if name in ("evaluate", "place"):
        from rebalancer import api

        return getattr(api, name)
    if name == "Plan":
        from rebalancer.model.plan import Plan

        return Plan
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
