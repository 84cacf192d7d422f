"""The library's entry points: plain objects in, values out. Pure, and without the Kubernetes client.

Enters: dicts as the API server gives them. Leaves: Plan and Placement. Snapshots, if you have one, go to ``decide.evaluate``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec

from rebalancer.decide.evaluate import evaluate as decide
from rebalancer.decide.guards import Guards
from rebalancer.errors import InputError, Mistake
from rebalancer.model.plan import PlacementMode, Plan
from rebalancer.model.pod import Pod
from rebalancer.model.snapshot import Snapshot
from rebalancer.model.workload import PriorityClass
from rebalancer.parse.dump import missing_notes
from rebalancer.parse.interning import Interner
from rebalancer.parse.objects import parse_objects
from rebalancer.parse.pod import parse_pod
from rebalancer.parse.spelling import nearest_name
from rebalancer.placement.api import Placement
from rebalancer.placement.api import place as predict
from rebalancer.placement.scheduler_config import DEFAULT, SchedulerConfig, scheduler_config
from rebalancer.policy import Policy, load, resolve_priority_classes


def evaluate(
    objects: Iterable[Mapping[str, Any]],
    policy: Mapping[str, Any] | Policy,
    *,
    now: datetime,
    placement: str | PlacementMode = PlacementMode.REQUIRED,
    guards: Guards | None = None,
    scheduler: Mapping[str, Any] | SchedulerConfig | None = None,
) -> Plan:
    """Decide which pods of a cluster should move, and why the others should not.

    objects: dicts with ``kind``; Lists are opened; other kinds are passed over; a malformed object becomes a note.
    policy: a DeschedulerPolicy as read from YAML, or a Policy. now: the moment to decide for, with a time zone.
    placement: ``required``, ``fit`` or ``off``. guards: what settings add; None for only what the policy says.
    scheduler: a KubeSchedulerConfiguration as read from YAML; None for kube-scheduler's defaults.
    Raises InputError (PolicyError for the policy) with every mistake at once, ValueError for a ``now`` without a time zone.
    """
    snapshot, notes = snapshot_of_objects(objects, now)
    plan = decide(
        snapshot,
        typed_policy(policy, snapshot),
        guards=guards,
        placement=placement_mode(placement),
        scheduler=typed_scheduler(scheduler),
    )
    return replace(plan, notes=(*notes, *plan.notes)) if notes else plan


def place(
    objects: Iterable[Mapping[str, Any]], pod: Mapping[str, Any], *, scheduler: Mapping[str, Any] | SchedulerConfig | None = None
) -> Placement:
    """Say where kube-scheduler would put a pod.

    objects: the cluster, as for ``evaluate``; what lacks a node in it waits and holds no room. pod: as it would be created.
    Raises ParseError where the pod is malformed, InputError where the scheduler configuration is.
    """
    interner = Interner()
    snapshot = parse_objects(objects, interner).snapshot(0.0)
    return predict(snapshot, incoming_pod(pod, snapshot, interner), typed_scheduler(scheduler))


def snapshot_of_objects(
    objects: Iterable[Mapping[str, Any]], now: datetime, *, complete: bool = False
) -> tuple[Snapshot, tuple[str, ...]]:
    """Return the snapshot that objects make up, and what a reader should know of them: problems and missing kinds.

    complete: the objects are all that there are, so a kind without any is not missing.
    """
    if now.tzinfo is None:
        raise ValueError("now must have a time zone")
    parsed = parse_objects(objects)
    snapshot = parsed.snapshot(now.timestamp())
    return snapshot, (
        *(f"skipped: {problem}" for problem in parsed.problems),
        *(() if complete else missing_notes(snapshot.missing)),
    )


def typed_policy(policy: Mapping[str, Any] | Policy, snapshot: Snapshot, *, source: str = "policy") -> Policy:
    """Return a policy whose priority classes are resolved in the snapshot. Raises PolicyError."""
    typed = policy if isinstance(policy, Policy) else load(policy, source=source).policy
    return resolve_priority_classes(typed, {each.name: each.value for each in snapshot.priority_classes.values()}, source=source)


def typed_scheduler(scheduler: Mapping[str, Any] | SchedulerConfig | None) -> SchedulerConfig:
    """Return a scheduler configuration; None means kube-scheduler's defaults. Raises InputError."""
    if scheduler is None:
        return DEFAULT
    return scheduler if isinstance(scheduler, SchedulerConfig) else scheduler_config(scheduler)


def placement_mode(value: str | PlacementMode) -> PlacementMode:
    """Return a placement mode; ``false`` is read as ``off``. Raises InputError."""
    text = "off" if str(value).lower() == "false" else str(value)
    try:
        return PlacementMode(text)
    except ValueError:
        modes = [mode.value for mode in PlacementMode]
        raise InputError(
            "arguments", [Mistake("placement", f"must be one of {', '.join(modes)}", nearest_name(text, modes))]
        ) from None


def incoming_pod(pod: Mapping[str, Any], snapshot: Snapshot, interner: Interner) -> Pod:
    """Parse a pod as it would be created: what admission adds (its priority) is added. Raises ParseError."""
    spec = dict(pod.get("spec") or {})
    if spec.get("priority") is None:
        named = _priority(spec.get("priorityClassName"), snapshot)
        if named is not None:
            spec["priority"] = named.value
    spec.pop("nodeName", None)
    metadata = {"namespace": "default", **dict(pod.get("metadata") or {})}
    return parse_pod(msgspec.json.encode({**pod, "metadata": metadata, "spec": spec, "status": {}}), interner)


def _priority(name: Any, snapshot: Snapshot) -> PriorityClass | None:
    if name:
        return snapshot.priority_classes.get(str(name))
    return next((each for each in snapshot.priority_classes.values() if each.global_default), None)
