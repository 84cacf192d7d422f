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
from rebalancer.errors import InputError, Mistake, ParseError
from rebalancer.model.plan import PlacementMode, Plan
from rebalancer.model.pod import Pod
from rebalancer.model.snapshot import Snapshot
from rebalancer.model.workload import PriorityClass
from rebalancer.parse.arguments import shown
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
    if guards is not None and not isinstance(guards, Guards):
        raise InputError("arguments", [Mistake("guards", f"must be Guards or None, not {shown(guards)}")])
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
    snapshot = parse_objects(_loose(objects), interner).snapshot(0.0)
    return predict(snapshot, incoming_pod(pod, snapshot, interner), typed_scheduler(scheduler))


def snapshot_of_objects(
    objects: Iterable[Mapping[str, Any]], now: datetime, *, complete: bool = False
) -> tuple[Snapshot, tuple[str, ...]]:
    """Return the snapshot that objects make up, and what a reader should know of them: problems and missing kinds.

    complete: the objects are all that there are, so a kind without any is not missing.
    """
    if not isinstance(now, datetime) or now.tzinfo is None:
        raise ValueError(f"now must be a datetime with a time zone, not {now!r}")
    parsed = parse_objects(_loose(objects))
    snapshot = parsed.snapshot(now.timestamp())
    return snapshot, (
        *(f"skipped: {problem}" for problem in parsed.problems),
        *(() if complete else missing_notes(snapshot.missing)),
    )


def _loose(objects: Iterable[Mapping[str, Any]]) -> Iterable[Any]:
    """Return the objects one by one; a single one (a List, mostly) may be given as it is. Raises InputError for anything else."""
    if isinstance(objects, Mapping):
        return (objects,) if objects else ()
    if isinstance(objects, str | bytes) or not isinstance(objects, Iterable):
        raise InputError("arguments", [Mistake("objects", f"must be an iterable of dicts with kind, not {shown(objects)}")])
    return objects


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
    text = str(value).strip().lower()
    text = "off" if text == "false" else text
    try:
        return PlacementMode(text)
    except ValueError:
        modes = [mode.value for mode in PlacementMode]
        raise InputError(
            "arguments", [Mistake("placement", f"must be one of {', '.join(modes)}", nearest_name(text, modes))]
        ) from None


def incoming_pod(pod: Mapping[str, Any], snapshot: Snapshot, interner: Interner) -> Pod:
    """Parse a pod as it would be created: what admission adds (its priority) is added. Raises ParseError."""
    if not isinstance(pod, Mapping):
        raise ParseError(f"Pod: must be an object, not {shown(pod)}")
    spec, given = _section(pod, "spec"), _section(pod, "metadata")
    if spec.get("priority") is None:
        named = _priority(spec.get("priorityClassName"), snapshot)
        if named is not None:
            spec["priority"] = named.value
    spec.pop("nodeName", None)
    name = given.get("name") or given.get("generateName") or "pod"
    metadata = {**given, "name": name, "namespace": given.get("namespace") or "default"}
    try:
        data = msgspec.json.encode({**pod, "metadata": metadata, "spec": spec, "status": {}})
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ParseError(f"Pod: cannot be written as JSON: {error}") from error
    return parse_pod(data, interner)


def _section(pod: Mapping[str, Any], name: str) -> dict[str, Any]:
    section = pod.get(name)
    if section is not None and not isinstance(section, Mapping):
        raise ParseError(f"Pod: {name} must be an object, not {shown(section)}")
    return dict(section or {})


def _priority(name: Any, snapshot: Snapshot) -> PriorityClass | None:
    if name:
        return snapshot.priority_classes.get(str(name))
    defaults = [each for each in snapshot.priority_classes.values() if each.global_default]
    return min(defaults, key=lambda each: (each.value, each.name), default=None)
