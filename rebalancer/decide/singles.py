"""The only replicas of their workloads: what the guards make of them, and what a rollout in place of an eviction means.

In a rollout the replacement is scheduled while the old pod runs, under another ReplicaSet with another pod-template-hash.
"""

from __future__ import annotations

from dataclasses import replace

from rebalancer.decide.guards import Guards, SingleReplicas
from rebalancer.decide.world import World
from rebalancer.eligibility.objection import Objection
from rebalancer.eligibility.rollout import rollout_of
from rebalancer.model.pod import AffinityTerm, Pod, PodShape, PreferredAffinityTerm, SpreadConstraint
from rebalancer.model.selector import NOTHING, LabelSelector
from rebalancer.model.workload import Workload

_HASH = "pod-template-hash"
# No ReplicaSet has a hash like this one: it cannot be told before there is one.
_NEW = "new"
# The scheduler's default spreading counts the pods of the replacement's ReplicaSet, and there are none yet.
_NOBODY_YET = (SpreadConstraint(1, "kubernetes.io/hostname", False, NOTHING, None, True, False),)


class Singles:
    """Judges the single replicas of one run."""

    def __init__(self, guards: Guards | None, world: World) -> None:
        """Judge as the guards have it; without guards a single replica is a pod like any other."""
        self._wanted = guards.single_replicas if guards is not None else SingleReplicas.EVICT
        self._world = world
        self._rollouts: dict[PodShape, Workload | Objection] = {}
        self._shapes: dict[PodShape, PodShape] = {}

    def objection(self, pod: Pod) -> Objection | None:
        """Say why the pod stays: single replicas are protected, or no rollout can start its replacement first."""
        owner = pod.shape.owner
        if self._wanted is SingleReplicas.EVICT or owner is None or pod.finished:
            return None
        if self._wanted is SingleReplicas.SKIP:
            alone = self._wants_one(owner.uid) or self._world.live_owned(owner.uid) <= 1
            return Objection("single-replica", (f"{owner.kind}/{owner.name}",)) if alone else None
        answer = self._answer(pod)
        return answer if isinstance(answer, Objection) else None

    def rollout(self, pod: Pod) -> Workload | None:
        """Return the Deployment whose rollout replaces the pod; None where it is evicted, or stays."""
        if self._wanted is not SingleReplicas.SURGE:
            return None
        answer = self._answer(pod)
        return None if isinstance(answer, Objection) else answer

    def workload_uid(self, pod: Pod) -> str:
        """Return the uid under which the pod's moves count: its owner's; the Deployment's where only a rollout replaces it.

        While no rollout can, it is the Deployment's as well, so that what a rollout did is remembered during the next.
        """
        owner = pod.shape.owner
        if owner is None:
            return ""
        if self._wanted is SingleReplicas.SURGE and self._answer(pod) is not None:
            own = self._world.snapshot.workloads.get(owner.uid)
            if own is not None and own.owner is not None:
                return own.owner.uid
        return owner.uid

    def surged(self, pod: Pod) -> PodShape | None:
        """Return the shape of a replacement that is placed while the pod still runs; None where the pod goes first."""
        if self.rollout(pod) is None:
            return None
        shape = self._shapes.get(pod.shape)
        if shape is None:
            shape = self._shapes[pod.shape] = _next_revision(pod.shape)
        return shape

    def _answer(self, pod: Pod) -> Workload | Objection | None:
        """Return the Deployment to roll out, why there is none, or None for a pod that is no single replica."""
        owner = pod.shape.owner
        if owner is None or pod.finished:
            return None
        known = owner.uid in self._world.snapshot.workloads
        if not (self._wants_one(owner.uid) if known else self._world.live_owned(owner.uid) <= 1):
            return None
        if (answer := self._rollouts.get(pod.shape)) is None:
            answer = self._rollouts[pod.shape] = rollout_of(self._world.snapshot, pod.shape)
        return answer

    def _wants_one(self, owner_uid: str) -> bool:
        workload = self._world.snapshot.workloads.get(owner_uid)
        return workload is not None and workload.replicas == 1


def _next_revision(shape: PodShape) -> PodShape:
    """Return the shape that the pod's replacement has under the next ReplicaSet."""
    return replace(
        shape,
        labels={**shape.labels, _HASH: _NEW} if _HASH in shape.labels else shape.labels,
        affinity=tuple(map(_term, shape.affinity)),
        anti_affinity=tuple(map(_term, shape.anti_affinity)),
        preferred_affinity=tuple(map(_preferred, shape.preferred_affinity)),
        preferred_anti_affinity=tuple(map(_preferred, shape.preferred_anti_affinity)),
        spread=tuple(replace(each, selector=_selector(each.selector)) for each in shape.spread) or _NOBODY_YET,
    )


def _preferred(term: PreferredAffinityTerm) -> PreferredAffinityTerm:
    return replace(term, term=_term(term.term))


def _term(term: AffinityTerm) -> AffinityTerm:
    return replace(term, selector=_selector(term.selector))


def _selector(selector: LabelSelector) -> LabelSelector:
    """Return the selector with the new hash in place of the old one, which ``matchLabelKeys`` has put there."""
    requirements = tuple(
        replace(each, values=(_NEW,)) if each.key == _HASH and each.values else each for each in selector.requirements
    )
    return replace(selector, requirements=requirements)
