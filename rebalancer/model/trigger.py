"""Reasons to look again, and the facts of the cache that they are made from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class TriggerKind(StrEnum):
    """Why an evaluation starts."""

    NODE_JOINED = "node-joined"
    NODE_CHANGED = "node-changed"
    POD_CHANGED = "pod-changed"
    TICK = "tick"
    WINDOW_OPENED = "window-opened"
    POLICY_CHANGED = "policy-changed"
    MANUAL = "manual"


@dataclass(frozen=True, slots=True)
class Trigger:
    """One reason to look again.

    subject: the node, pod or window it is about; empty for a tick. detail: what happened, in words.
    """

    kind: TriggerKind
    subject: str = ""
    detail: str = ""


class FactKind(StrEnum):
    """What a change of an object meant for the cluster."""

    NODE_JOINED = "node joined"
    NODE_BECAME_SCHEDULABLE = "node became schedulable"
    NODE_BECAME_UNSCHEDULABLE = "node became unschedulable"
    NODE_LABELS_CHANGED = "node labels changed"
    NODE_TAINTS_CHANGED = "node taints changed"
    NODE_CAPACITY_CHANGED = "node capacity changed"
    NODE_GONE = "node gone"
    POD_ADDED = "pod added"
    POD_BOUND = "pod bound"
    POD_READY = "pod ready"
    POD_FAILED = "pod failed"
    POD_RESTARTED = "pod restarted"
    POD_CHANGED = "pod changed"
    POD_TERMINATING = "pod terminating"
    POD_GONE = "pod gone"
    BUDGET_CHANGED = "budget changed"
    OTHER_CHANGED = "other changed"


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that became true. subject: a node's name or a pod's ``namespace/name``; uid: the object's."""

    kind: FactKind
    subject: str
    uid: str = ""
    detail: str = ""
