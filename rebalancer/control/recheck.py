"""Does an approval still hold on the newest snapshot? Asked right before each request.

An approval rests on its pod, its node, its workload and the nodes it may land on. Where one of these has changed by anybody
else's doing since the plan was made, the plan is not trusted any further, and the run looks again. Pure.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from rebalancer.model.node import Node
from rebalancer.model.plan import Approval
from rebalancer.model.pod import Pod
from rebalancer.model.snapshot import Snapshot

# To these a landing is good or bad by where the siblings are.
_ABOUT_SIBLINGS = frozenset(
    {"RemoveDuplicates", "RemovePodsViolatingTopologySpreadConstraint", "RemovePodsViolatingInterPodAntiAffinity"}
)
# The share of the predicted landings that must still be as they were.
_SHARE_OF_LANDINGS = 0.95


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why an approval does not hold. look_again: the world changed under the plan; otherwise only this pod drops out."""

    code: str
    reason: str
    look_again: bool


@dataclass(frozen=True, slots=True)
class OwnDoing:
    """What this run has changed itself, and so expected. uids: pods evicted; owners: whose replacements come."""

    uids: Set[str]
    owners: Set[str]


@dataclass(frozen=True, slots=True)
class Progress:
    """What has become of one plan so far.

    seen: nodes by name, and the pods on them, that were found to be as planned but for own doing (which only grows in a run), so
    that each check only looks at what has come since. moved: the approvals of pods that were evicted.
    """

    seen: dict[str, tuple[Node, tuple[Pod, ...]]] = field(default_factory=dict)
    moved: list[Approval] = field(default_factory=list)


def doubt(then: Snapshot, newest: Snapshot, approval: Approval, own: OwnDoing, progress: Progress | None = None) -> Doubt | None:
    """Return why the approval, decided on ``then``, does not hold on ``newest``; None where it does."""
    progress = progress or Progress()
    before, now = _find(then, approval), _find(newest, approval)
    if now is None:
        return Doubt("gone", "it is no longer there", look_again=False)
    if now.terminating:
        return Doubt("terminating", "it is already terminating", look_again=False)
    if before is not None and before is not now and (before.shape is not now.shape or before.finished != now.finished):
        return Doubt("pod-changed", "the pod has changed since it was decided", look_again=True)
    if (change := _node_change(then, newest, approval.node, own)) is not None:
        return Doubt("source-changed", change, look_again=True)
    if (change := _workload_change(then, newest, approval)) is not None:
        return Doubt("workload-changed", change, look_again=True)
    whole = sum(approval.landings.values())
    if whole > 0:
        if (left := _room_given_back(newest, approval, now, progress.moved)) is not None:
            return Doubt("room-given-back", left, look_again=False)
        changes = {node: _landing_change(then, newest, node, own, progress.seen) for node in approval.landings}
        kept = sum(share for node, share in approval.landings.items() if changes[node] is None)
        if kept < _SHARE_OF_LANDINGS * whole:
            first = next(change for change in changes.values() if change is not None)
            return Doubt("landings-changed", first, look_again=True)
    return None


def _room_given_back(newest: Snapshot, approval: Approval, pod: Pod, moved: list[Approval]) -> str | None:
    """Say which sibling is gone that the plan took as still there: its replacement may now land where the plan saw no room.

    Moves of one workload go one after the other, and a plan has the pods of earlier ones terminate meanwhile; those of a
    StatefulSet it has gone. The pod is left to the next look, and the rest of the plan goes on: a strategy that fills nodes up to
    a target would take half-full ones for full enough.
    """
    if approval.strategy not in _ABOUT_SIBLINGS or not approval.owner_uid:
        return None
    if pod.shape.owner is not None and pod.shape.owner.kind == "StatefulSet":
        return None
    for earlier in moved:
        if earlier.owner_uid == approval.owner_uid and _find(newest, earlier) is None:
            return f"pod {earlier.pod} of the same workload has left node {earlier.node}, where the plan took its room as held"
    return None


def _landing_change(
    then: Snapshot, newest: Snapshot, name: str, own: OwnDoing, seen: dict[str, tuple[Node, tuple[Pod, ...]]]
) -> str | None:
    known, node = seen.get(name), newest.nodes.get(name)
    if known is not None and known[0] is node and known[1] is newest.on(name):
        return None
    change = _node_change(then, newest, name, own, only_arrivals=True)
    if change is None and node is not None:
        seen[name] = node, newest.on(name)
    return change


def _find(snapshot: Snapshot, approval: Approval) -> Pod | None:
    return next((pod for pod in snapshot.on(approval.node) if pod.uid == approval.uid), None)


def _node_change(then: Snapshot, newest: Snapshot, name: str, own: OwnDoing, *, only_arrivals: bool = False) -> str | None:
    before, now = then.nodes.get(name), newest.nodes.get(name)
    if now is None:
        return f"node {name} is gone"
    if before is not None and before is not now and not _alike(before, now):
        return f"node {name} has changed"
    old, new = then.on(name), newest.on(name)
    if old is new:
        return None
    # Most of the pods are the same objects: only the others are looked at, since a plan may have thousands of landings.
    same = set(map(id, old)).intersection(map(id, new))
    gone = {pod.uid: pod for pod in old if id(pod) not in same and not pod.finished}
    come = {pod.uid: pod for pod in new if id(pod) not in same and not pod.finished}
    for uid, pod in come.items():
        if uid not in gone and not _ours(pod, own):
            return f"pod {pod.key} came to node {name}"
    if only_arrivals:
        return None
    for uid, pod in gone.items():
        if uid not in come and not _ours(pod, own):
            return f"pod {pod.key} left node {name}"
    return None


def _ours(pod: Pod, own: OwnDoing) -> bool:
    owner = pod.shape.owner
    return pod.uid in own.uids or (owner is not None and owner.uid in own.owners)


def _alike(before: Node, now: Node) -> bool:
    return (
        before.ready == now.ready
        and before.unschedulable == now.unschedulable
        and before.taints == now.taints
        and before.labels == now.labels
        and before.allocatable == now.allocatable
    )


def _workload_change(then: Snapshot, newest: Snapshot, approval: Approval) -> str | None:
    before, now = then.workloads.get(approval.owner_uid), newest.workloads.get(approval.owner_uid)
    if before is now or before is None:
        return None
    if now is None:
        return "its workload is gone"
    if now.replicas != before.replicas:
        return f"its workload was scaled from {before.replicas} to {now.replicas}"
    if now.generation != before.generation or now.update_revision != before.update_revision:
        return "its workload was changed"
    return None
