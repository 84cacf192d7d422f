"""All strategies by name, found by looking at the modules of this package: a new file is a new strategy."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

import rebalancer.strategies as package
from rebalancer.errors import BrokenInvariant
from rebalancer.strategies.view import Strategy


def find() -> Mapping[str, Strategy]:
    """Return each module's STRATEGY by its name, in the order of names."""
    found: dict[str, Strategy] = {}
    for module_info in pkgutil.iter_modules(package.__path__):
        if module_info.name == "catalogue":
            continue
        module = importlib.import_module(f"{package.__name__}.{module_info.name}")
        strategy = getattr(module, "STRATEGY", None)
        if strategy is None:
            continue
        if strategy.name in found:
            raise BrokenInvariant(f"two strategies are called {strategy.name}")
        found[strategy.name] = strategy
    return MappingProxyType(dict(sorted(found.items())))


STRATEGIES: Mapping[str, Strategy] = find()
"""Every strategy of this package by upstream's name."""
