"""The rules of upstream's DefaultEvictor, each a small function from a shape or a pod to an objection.

Source of names and order: https://github.com/kubernetes-sigs/descheduler#evictor-plugin-configuration-default-evictor
Most rules look at the shape only, so they are judged once for all pods of a template.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rebalancer.eligibility.arguments import CRITICAL_PRIORITY, DefaultEvictorArgs, Protection
from rebalancer.eligibility.budgets import selecting
from rebalancer.eligibility.objection import Objection
from rebalancer.model.pod import Phase, Pod, PodShape
from rebalancer.model.snapshot import Snapshot

EVICT = "descheduler.alpha.kubernetes.io/evict"
PREFER_NO_EVICTION = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"


@dataclass(frozen=True, slots=True)
class Context:
    """What the rules look at beside the pod.

    args: the evictor's arguments. snapshot: for claims, budgets, namespaces and the clock.
    live_ready: how many live ready pods an owner has at the start of the run, by its UID.
    priority_below: the priority from which on pods stay.
    """

    args: DefaultEvictorArgs
    snapshot: Snapshot
    live_ready: Callable[[str], int]
    protections: frozenset[Protection] = field(default_factory=frozenset)
    priority_below: int = CRITICAL_PRIORITY


ShapeRule = Callable[[PodShape, Context], Objection | None]
PodRule = Callable[[Pod, Context], Objection | None]


def wants_eviction(shape: PodShape) -> bool:
    """Tell whether the annotation asks for eviction whatever the filters say; only "true" and the empty value do (F37)."""
    return shape.annotations.get(EVICT) in ("true", "")


def refuses_eviction(shape: PodShape, context: Context) -> Objection | None:
    """Whoever writes "false" into the annotation wants the pod left alone; upstream evicts it for that (F37)."""
    return Objection("evict-false") if shape.annotations.get(EVICT) == "false" else None


def prefers_no_eviction(shape: PodShape) -> bool:
    """Tell whether the annotation asks to be left alone; its presence is enough."""
    return PREFER_NO_EVICTION in shape.annotations


def static(shape: PodShape, context: Context) -> Objection | None:
    """A static or mirror pod comes back at once, whatever is done to it (F14: no annotation changes that)."""
    return Objection("static") if shape.static else None


def no_eviction_is_mandatory(shape: PodShape, context: Context) -> Objection | None:
    """With noEvictionPolicy Mandatory the annotation protects."""
    protected = context.args.no_eviction_is_mandatory and prefers_no_eviction(shape)
    return Objection("prefer-no-eviction") if protected else None


def local_storage(shape: PodShape, context: Context) -> Objection | None:
    """An emptyDir or hostPath volume would be lost or left behind."""
    if Protection.LOCAL_STORAGE not in context.protections:
        return None
    kinds = sorted({volume.kind for volume in shape.volumes if volume.kind in ("emptyDir", "hostPath")})
    return Objection("local-storage", (" and ".join(kinds),)) if kinds else None


def daemon_set(shape: PodShape, context: Context) -> Objection | None:
    """A DaemonSet's pod comes back to the same node."""
    if Protection.DAEMON_SET not in context.protections:
        return None
    return next((Objection("daemon-set", (owner.name,)) for owner in shape.owners if owner.kind == "DaemonSet"), None)


def system_critical(shape: PodShape, context: Context) -> Objection | None:
    """Priorities from two thousand million on are the system's own."""
    if Protection.SYSTEM_CRITICAL not in context.protections or (shape.priority or 0) < CRITICAL_PRIORITY:
        return None
    return Objection("system-critical", (shape.priority, CRITICAL_PRIORITY))


def priority(shape: PodShape, context: Context) -> Objection | None:
    """Only pods below the threshold go; those without a priority always may (K7). Holds without SystemCriticalPods too (F15)."""
    if shape.priority is None or shape.priority < context.priority_below:
        return None
    threshold = context.args.priority_threshold
    if threshold.value is None and not threshold.name and Protection.SYSTEM_CRITICAL not in context.protections:
        return None
    return Objection("priority", (shape.priority, context.priority_below))


def owned(shape: PodShape, context: Context) -> Objection | None:
    """Nobody would replace a pod without an owner."""
    if Protection.FAILED_BARE not in context.protections or shape.owners:
        return None
    return Objection("no-owner")


def volume_claims(shape: PodShape, context: Context) -> Objection | None:
    """Claims tie a pod to its data; with storage classes listed, only those of these classes, or of none that is known."""
    if Protection.PVC not in context.protections:
        return None
    classes = context.args.protected_storage_classes
    for name in shape.claims:
        if not classes:
            return Objection("pvc", (name,))
        claim = context.snapshot.claims.get((shape.namespace, name))
        if claim is None or claim.storage_class is None:
            return Objection("pvc-unknown-class", (name,))
        if claim.storage_class in classes:
            return Objection("pvc-storage-class", (name, claim.storage_class))
    return None


def budgeted(shape: PodShape, context: Context) -> Objection | None:
    """With PodsWithoutPDB only pods that a budget selects may go."""
    if Protection.WITHOUT_PDB not in context.protections or selecting(context.snapshot, shape):
        return None
    return Objection("no-budget")


def resource_claims(shape: PodShape, context: Context) -> Objection | None:
    """Devices claimed through dynamic resource allocation may not be there elsewhere."""
    protected = Protection.RESOURCE_CLAIMS in context.protections and shape.resource_claims
    return Objection("resource-claims") if protected else None


def safe_to_evict(shape: PodShape, context: Context) -> Objection | None:
    """The cluster autoscaler's annotation means the same to us."""
    if Protection.SAFE_TO_EVICT_FALSE not in context.protections:
        return None
    return Objection("safe-to-evict-false") if shape.annotations.get(SAFE_TO_EVICT) == "false" else None


def do_not_disrupt(shape: PodShape, context: Context) -> Objection | None:
    """Karpenter's annotation means the same to us."""
    if Protection.DO_NOT_DISRUPT not in context.protections:
        return None
    return Objection("do-not-disrupt") if shape.annotations.get(DO_NOT_DISRUPT) == "true" else None


def label_selector(shape: PodShape, context: Context) -> Objection | None:
    """Only pods that the evictor's labelSelector matches may go."""
    selector = context.args.label_selector
    if selector is None or selector.matches(shape.labels):
        return None
    return Objection("label-selector", (str(selector),))


def min_replicas(shape: PodShape, context: Context) -> Objection | None:
    """An owner keeps its pods while it has too few that are live and ready (F16); pods of several owners are not judged."""
    wanted = context.args.min_replicas
    if wanted <= 1 or len(shape.owners) != 1:
        return None
    owner = shape.owners[0]
    count = context.live_ready(owner.uid)
    return Objection("min-replicas", (f"{owner.kind}/{owner.name}", count, wanted)) if count < wanted else None


def namespace_selector(shape: PodShape, context: Context) -> Objection | None:
    """Only pods of namespaces that the evictor's namespaceLabelSelector matches may go (asked before eviction)."""
    selector = context.args.namespace_label_selector
    if selector is None or selector.matches(context.snapshot.namespace_labels(shape.namespace)):
        return None
    return Objection("namespace-selector", (shape.namespace, str(selector)))


def terminating(pod: Pod, context: Context) -> Objection | None:
    """A pod that somebody is deleting already is gone for us (F14: no annotation changes that)."""
    return Objection("terminating") if pod.deleted_at is not None else None


def bare_pods_failed(pod: Pod, context: Context) -> Objection | None:
    """Without the protection FailedBarePods, pods without an owner go only when they failed."""
    if Protection.FAILED_BARE in context.protections or pod.shape.owners or pod.phase is Phase.FAILED:
        return None
    return Objection("bare-not-failed", (pod.phase.value,))


def old_enough(pod: Pod, context: Context) -> Objection | None:
    """Only pods that started long enough ago may go; one that has not started may not."""
    least = context.args.min_pod_age
    if least is None:
        return None
    if pod.started_at is None:
        return Objection("not-started", (f"{least:g}",))
    age = context.snapshot.now - pod.started_at
    return Objection("min-pod-age", (f"{age:g}", f"{least:g}")) if age < least else None


ALWAYS_SHAPE: tuple[ShapeRule, ...] = (static,)
ALWAYS_POD: tuple[PodRule, ...] = (terminating,)
FILTER_SHAPE: tuple[ShapeRule, ...] = (
    refuses_eviction,
    no_eviction_is_mandatory,
    owned,
    local_storage,
    daemon_set,
    system_critical,
    priority,
    volume_claims,
    budgeted,
    resource_claims,
    safe_to_evict,
    do_not_disrupt,
    label_selector,
    min_replicas,
)
FILTER_POD: tuple[PodRule, ...] = (bare_pods_failed, old_enough)
PRE_EVICTION_SHAPE: tuple[ShapeRule, ...] = (namespace_selector,)
