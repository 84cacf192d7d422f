"""Policies: what a user wants moved, read from documents or environment variables into one typed value.

``load`` reads a document, ``from_environment`` the variables; ``resolve_priority_classes`` looks up what a policy names;
``describe`` says in words what it will do. Mistakes come all at once, in one PolicyError.
"""

from rebalancer.policy.environment import from_environment, is_policy_variable, policy_variables
from rebalancer.policy.metrics import MetricsProvider
from rebalancer.policy.policy import PluginUse, Policy, Profile
from rebalancer.policy.priority import named_priority_classes, resolve_priority_classes
from rebalancer.policy.reading import Loaded, load
from rebalancer.policy.words import conflicts, describe

__all__ = [
    "Loaded",
    "MetricsProvider",
    "PluginUse",
    "Policy",
    "Profile",
    "conflicts",
    "describe",
    "from_environment",
    "is_policy_variable",
    "load",
    "named_priority_classes",
    "policy_variables",
    "resolve_priority_classes",
]
