"""What a strategy of v1alpha1 means today: a warning for each meaning that changed since.

Source: https://github.com/kubernetes-sigs/descheduler/tree/v0.18.0/pkg/descheduler/strategies
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rebalancer.policy.findings import Findings
from rebalancer.strategies.arguments import HighNodeUtilizationArgs, LowNodeUtilizationArgs, StrategyArgs

_CHANGED: Mapping[str, tuple[str, ...]] = {
    "RemoveDuplicates": ("kept one pod per node; now replicas are spread to the average, ceil(replicas / usable nodes)",),
    "LowNodeUtilization": ("went on while any resource had room on the under-used nodes; now every resource needs room",),
    "RemovePodsViolatingInterPodAntiAffinity": (
        "looked at conflicts on one node only; now conflicts within a topology value count, as the rule says",
    ),
    "RemovePodsViolatingNodeAffinity": ("looked at node affinity only; now a plain nodeSelector is upheld as well",),
    "RemovePodsViolatingNodeTaints": (
        "drained cordoned nodes; now taints that the node controller sets (node.kubernetes.io/...) are ignored unless "
        "includedTaints lists them",
    ),
    "RemovePodsViolatingTopologySpreadConstraint": (
        "looked at each constraint alone and counted evictable pods only; now all constraints of a pod are met together and "
        "every matching pod counts",
    ),
}


def warn_of_changes(name: str, args: StrategyArgs, params: Mapping[str, Any], path: str, findings: Findings) -> None:
    """Warn of each meaning of a v1alpha1 strategy that changed and that its arguments touch.

    params: as the document gives them. path: where they stand.
    """
    for sentence in _CHANGED.get(name, ()):
        findings.warn(path.removesuffix(".params"), f"{name} {sentence}")
    if isinstance(args, LowNodeUtilizationArgs | HighNodeUtilizationArgs) and args.number_of_nodes > 0:
        count = args.number_of_nodes
        findings.warn(
            f"{path}.nodeResourceUtilizationThresholds.numberOfNodes",
            f"acted from {count} under-used nodes on; now acts from {count + 1} on: write {count - 1} to keep what it meant",
        )
    if name == "PodLifeTime" and params.get("nodeFit"):
        findings.warn(f"{path}.nodeFit", "had no effect on PodLifeTime; now it holds for it as for every strategy")
