"""Why a pod may not be moved: a stable code and the values that decided; the sentence is made when somebody reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

SENTENCES: Mapping[str, str] = MappingProxyType(
    {
        # the default evictor
        "terminating": "it is already terminating",
        "static": "it is a static or mirror pod, which only its kubelet can move",
        "evict-false": "its annotation descheduler.alpha.kubernetes.io/evict is false",
        "prefer-no-eviction": "its annotation descheduler.alpha.kubernetes.io/prefer-no-eviction protects it "
        "(noEvictionPolicy Mandatory)",
        "local-storage": "it has local storage ({0}), and PodsWithLocalStorage protects it",
        "daemon-set": "it belongs to DaemonSet {0}, and DaemonSetPods protects it",
        "system-critical": "its priority {0} is system critical (at least {1}), and SystemCriticalPods protects it",
        "no-owner": "it has no owner that would replace it, and FailedBarePods protects it",
        "bare-not-failed": "it has no owner, and without the protection FailedBarePods only failed ones may go; its phase is {0}",
        "pvc": "it uses the volume claim {0}, and PodsWithPVC protects it",
        "pvc-storage-class": "its volume claim {0} is of the protected storage class {1}",
        "pvc-unknown-class": "the storage class of its volume claim {0} is not known, and PodsWithPVC protects it",
        "no-budget": "no PodDisruptionBudget selects it, and PodsWithoutPDB protects it",
        "resource-claims": "it uses resource claims, and PodsWithResourceClaims protects it",
        "safe-to-evict-false": "its annotation cluster-autoscaler.kubernetes.io/safe-to-evict is false",
        "do-not-disrupt": "its annotation karpenter.sh/do-not-disrupt is true",
        "priority": "its priority {0} is not below the threshold {1}",
        "label-selector": "its labels do not match the evictor's labelSelector {0}",
        "min-replicas": "its owner {0} has {1} live ready pods, fewer than minReplicas {2}",
        "min-pod-age": "it started {0} s ago, less than minPodAge {1} s",
        "not-started": "it has not started yet, and minPodAge {0} s asks for a started pod",
        "namespace-selector": "the labels of namespace {0} do not match the evictor's namespaceLabelSelector {1}",
        # limits
        "limit-total": "the limit of {0} evictions per run is reached (maxNoOfPodsToEvictTotal)",
        "limit-node": "the limit of {0} evictions from node {1} per run is reached (maxNoOfPodsToEvictPerNode)",
        "limit-namespace": "the limit of {0} evictions from namespace {1} per run is reached (maxNoOfPodsToEvictPerNamespace)",
        "limit-strategy-node": "the strategy's own limit of {0} evictions from node {1} is reached (evictionLimits.node)",
        "cap-total": "the cap of {0} evictions per run is reached",
        "cap-node": "the cap of {0} evictions from node {1} per run is reached",
        "cap-namespace": "the cap of {0} evictions from namespace {1} per run is reached",
        "cap-workload": "the cap of {0} evictions of workload {1} per run is reached",
        # guards
        "protected-namespace": "namespace {0} is protected by the settings",
        "cooldown": "moving {0} off node {1} did not help lately; it rests for another {2} s",
        "single-replica": "it is the only live pod of {0}, and single replicas are protected by the settings",
        "surge-owner": "it is the only replica of {0}, which is no ReplicaSet of a known Deployment, and only a Deployment's "
        "rollout starts the replacement first",
        "surge-paused": "it is the only replica of Deployment {0}, which is paused, so that no rollout would begin",
        "surge-recreate": "it is the only replica of Deployment {0}, whose strategy Recreate stops the old pod first",
        "surge-none": "it is the only replica of Deployment {0}, whose maxSurge {1} lets no replacement start first",
        "surge-unavailable": "it is the only replica of Deployment {0}, whose maxUnavailable {1} lets the old pod stop before "
        "its replacement is Ready",
        "surge-volume": "it is the only replica of its workload, and its replacement could not start beside it: its {0} can be "
        "used on one node at a time",
        "workload-gone": "its owner {0} is gone",
        "workload-scaled-to-zero": "its owner {0} is scaled to zero",
        "workload-in-rollout": "its owner {0} is in the middle of a rollout",
        "workload-unready": "{1} of {2} replicas of its owner {0} are not ready",
        "owner-stopped": "strategies {1} and {2} would undo each other on {0}",
        # budgets
        "budget": "PodDisruptionBudget {0} allows {1} more disruptions",
        "budget-stale": "the status of PodDisruptionBudget {0} is older than its spec",
        "budgets-several": "PodDisruptionBudgets {0} all select it, and the server refuses that",
        # landings
        "no-fit": "no other node can take it: {0}",
        "no-landing": "no node can take its replacement: {0}",
        "no-gain": "more than {1} % of the landings that kube-scheduler may choose are no improvement (at least {0} %); {2}",
        "no-acceptable-landing": "it fits other nodes, but none of them is an improvement; {0}",
        "scheduler-spreads": "more than {1} % of the landings that kube-scheduler may choose pack nothing (at least {0} %); "
        "{2}; packing needs a scheduler with MostAllocated scoring",
        # strategies
        "excluded-namespace": "its namespace {0} is excluded by the strategy",
        "untolerated-destinations": "it tolerates the taints of none of the {0} destinations",
        "relieves-nothing": "it requests nothing of what the node has too much of ({0})",
        "not-thresholding": "it requests none of the resources named in thresholds ({0})",
        "topology-node-fit": "it fits no node of a domain below average, and topologyBalanceNodeFit is on: {0}",
        "no-spread-gain": "wherever it may go, the spread violations of all its constraints together stay at {0}",
        "no-better-node": "no node that it fits has more preferred node affinity than the {0} of its own",
        "same-owner-there": "node {0} has {1} pods of the same owner already, and its own has {2}",
        "hotter-there": "node {0} would be at {1} % of {2} afterwards, its own node is at {3} %",
        "over-target-there": "node {0} would be at {1} % of {2} afterwards, above the target of {3} %",
        "not-a-destination": "node {0} is not one of the destinations",
        "emptier-there": "node {0} is at {1} %, not fuller than the {2} % of its own",
        "prefer-taint-there": "node {0} has the taint {1}, which it does not tolerate",
        "weight-there": "node {0} has {1} preferred node affinity, its own {2}",
        "spread-there": "on node {0} the spread violations of all its constraints would be {1}, not below {2}",
        "undone-taint": "RemovePodsViolatingNodeTaints would move it off node {0} again: it has the taint {1}",
        "undone-affinity": "RemovePodsViolatingNodeAffinity would move it off node {0} again: preferred node affinity {1}, "
        "its own node has {2}",
        "undone-spread": "RemovePodsViolatingTopologySpreadConstraint would move it off node {0} again: spread violations {1}, "
        "they are {2} now",
        "undone-levelling": "LowNodeUtilization would move pods off node {0} again: it would be at {1} % of {2}, above the "
        "target of {3} %",
        "undone-duplicates": "RemoveDuplicates would move it off node {0} again: {1} pods of the same owner would be there, "
        "its own node has {2}",
        "back-again": "it would come back to node {0}",
    }
)
"""Every code and its sentence; ``{0}`` and so on are the operands."""


@dataclass(frozen=True, slots=True)
class Objection:
    """One reason against a move. code: a key of SENTENCES. operands: the values that decided, in the order of the sentence."""

    code: str
    operands: tuple[object, ...] = ()

    def __str__(self) -> str:
        return SENTENCES[self.code].format(*self.operands)
