"""Small clusters in one line: Kubernetes objects as dicts, parsed into a snapshot. Each builder states only what matters.

Defaults: a Ready node with 4 cpu, 16Gi and 110 pod slots; a Running pod of ReplicaSet ``app`` in ``ns1``, one day old, asking
for 100m cpu and no memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from rebalancer.decide.evaluate import evaluate
from rebalancer.decide.guards import Guards
from rebalancer.model.plan import PlacementMode, Plan
from rebalancer.model.snapshot import Snapshot
from rebalancer.parse.objects import parse_objects
from rebalancer.placement.profile import DEFAULT, SchedulerConfig, SchedulerProfile, ScoringKind, ScoringStrategy
from rebalancer.policy import Policy, load, resolve_priority_classes
from rebalancer.strategies.catalogue import STRATEGIES

NOW = datetime(2026, 1, 15, 12, 0, tzinfo=UTC)
DAY = 86_400.0
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
EVICT = "descheduler.alpha.kubernetes.io/evict"
PREFER_NO_EVICTION = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
REQUIRED_AFFINITY = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED_AFFINITY = "preferredDuringSchedulingIgnoredDuringExecution"

PACKING = SchedulerConfig((SchedulerProfile(fit=ScoringStrategy(ScoringKind.MOST_ALLOCATED)),))
"""A scheduler that packs."""

Object = dict[str, Any]


def stamp(age_seconds: float) -> str:
    """Return the timestamp of so long ago."""
    return (NOW - timedelta(seconds=age_seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def a_taint(text: str) -> Object:
    """Return the taint that ``key=value:Effect`` or ``key:Effect`` stands for."""
    key, _, effect = text.rpartition(":")
    name, _, value = key.partition("=")
    return {"key": name, "effect": effect, **({"value": value} if value else {})}


def a_node(
    name: str,
    *,
    cpu: str = "4000m",
    memory: str = "16Gi",
    pods: int = 110,
    zone: str | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[str] = (),
    cordoned: bool = False,
    ready: bool = True,
    more: Mapping[str, str] | None = None,
) -> Object:
    """Build a node. more: further resources. A cordoned or NotReady one carries the node controller's taint."""
    taints = [*taints]
    if cordoned:
        taints.append("node.kubernetes.io/unschedulable:NoSchedule")
    if not ready:
        taints.append("node.kubernetes.io/not-ready:NoSchedule")
    resources = {"cpu": cpu, "memory": memory, "pods": str(pods), **(more or {})}
    return {
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"node-{name}",
            "labels": {HOSTNAME: name, **({ZONE: zone} if zone else {}), **(labels or {})},
            "creationTimestamp": stamp(DAY),
        },
        "spec": {"taints": [a_taint(text) for text in taints], **({"unschedulable": True} if cordoned else {})},
        "status": {
            "allocatable": resources,
            "capacity": resources,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def a_pod(
    name: str,
    node: str | None,
    *,
    cpu: str | None = "100m",
    memory: str | None = None,
    more: Mapping[str, str] | None = None,
    app: str = "app",
    owner: str | None = "ReplicaSet",
    namespace: str = "ns1",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    priority: int | None = 0,
    phase: str = "Running",
    ready: bool | None = None,
    age: float = DAY,
    terminating: bool = False,
    restarts: Iterable[int] = (),
    init_restarts: Iterable[int] = (),
    ended: str | None = None,
    image: str = "registry.example/app:1",
    spec: Mapping[str, Any] | None = None,
) -> Object:
    """Build a pod. owner: kind of its owner, named like ``app``; None for a bare pod. ended: reason of a terminated container."""
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory), *(more or {}).items()) if value}
    is_ready = phase == "Running" and not terminating if ready is None else ready
    states = [{"name": f"c{index}", "restartCount": count, "ready": True} for index, count in enumerate(restarts)]
    if ended is not None:
        states.append({"name": "c", "restartCount": 0, "state": {"terminated": {"reason": ended, "exitCode": 1}}})
    metadata: Object = {
        "name": name,
        "namespace": namespace,
        "uid": f"pod-{namespace}-{name}",
        "labels": {"app": app, **(labels or {})},
        "annotations": dict(annotations or {}),
        "creationTimestamp": stamp(age),
    }
    if owner is not None:
        reference = {"apiVersion": "apps/v1", "kind": owner, "name": app, "uid": f"owner-{namespace}-{app}", "controller": True}
        metadata["ownerReferences"] = [reference]
    if terminating:
        metadata["deletionTimestamp"] = stamp(0)
    return {
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            **({"nodeName": node} if node else {}),
            **({"priority": priority} if priority is not None else {}),
            "containers": [{"name": "c0", "image": image, "resources": {"requests": requests}}],
            "schedulerName": "default-scheduler",
            **(spec or {}),
        },
        "status": {
            "phase": phase,
            "startTime": stamp(age),
            "qosClass": "Burstable" if requests else "BestEffort",
            "conditions": [{"type": "Ready", "status": "True" if is_ready else "False"}],
            "containerStatuses": states,
            "initContainerStatuses": [{"name": f"i{index}", "restartCount": count} for index, count in enumerate(init_restarts)],
        },
    }


def pinned(name: str, node: str, cpu: str | None = None, **more: Any) -> Object:
    """Build a pod that counts and may not be moved."""
    return a_pod(name, node, cpu=cpu, owner="DaemonSet", app=f"pinned-{name}", **more)


def pods(count: int, node: str, *, prefix: str | None = None, **more: Any) -> list[Object]:
    """Build so many equal pods on one node."""
    return [a_pod(f"{prefix or more.get('app', 'app')}-{node}-{index}", node, **more) for index in range(count)]


def web_pods(counts: Mapping[str, int], spread: list[Object], **more: Any) -> list[Object]:
    """Build pods labelled app=web with these spread constraints, so many on each node."""
    spec = {"topologySpreadConstraints": spread, **more.pop("spec", {})}
    return [pod for node, count in counts.items() for pod in pods(count, node, app="web", spec=spec, **more)]


def a_spread(key: str = ZONE, *, hard: bool = True, skew: int = 1, app: str = "web", **more: Any) -> Object:
    """Build a topology spread constraint over pods labelled ``app``."""
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": app}},
        **more,
    }


def keeps_away(app: str, key: str = HOSTNAME, **more: Any) -> Object:
    """Build a pod spec with required anti-affinity to pods labelled ``app``."""
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **more}
    return {"affinity": {"podAntiAffinity": {REQUIRED_AFFINITY: [term]}}}


def wants_node(**labels: str) -> Object:
    """Build a pod spec whose required node affinity asks for these labels."""
    expressions = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
    return {"affinity": {"nodeAffinity": {REQUIRED_AFFINITY: {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}}}


def would_like_node(weight: int = 10, **labels: str) -> Object:
    """Build a pod spec whose preferred node affinity asks for these labels."""
    expressions = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
    return {
        "affinity": {"nodeAffinity": {PREFERRED_AFFINITY: [{"weight": weight, "preference": {"matchExpressions": expressions}}]}}
    }


def tolerating(key: str, value: str | None = None) -> Object:
    """Build a pod spec with one toleration."""
    operator: Object = {"operator": "Equal", "value": value} if value else {"operator": "Exists"}
    return {"tolerations": [{"key": key, **operator}]}


def a_budget(name: str, *, app: str, allowed: int, namespace: str = "ns1", healthy: int = 3, **spec: Any) -> Object:
    """Build a PodDisruptionBudget over pods labelled ``app`` that allows so many disruptions."""
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace, "uid": f"budget-{namespace}-{name}", "generation": 1},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}, **spec},
        "status": {
            "observedGeneration": 1,
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": max(healthy - allowed, 1),
            "expectedPods": healthy,
        },
    }


def a_namespace(name: str, **labels: str) -> Object:
    """Build a namespace with these labels."""
    return {"kind": "Namespace", "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name, **labels}}}


def a_priority_class(name: str, value: int) -> Object:
    """Build a priority class."""
    return {"kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def a_cluster(*objects: Object | list[Object]) -> Snapshot:
    """Return the snapshot of these objects. With fewer than two nodes, an empty node ``spare`` is added."""
    flat = [each for item in objects for each in (item if isinstance(item, list) else [item])]
    if sum(each["kind"] == "Node" for each in flat) < 2:
        flat.append(a_node("spare"))
    parsed = parse_objects(flat)
    assert not parsed.problems, parsed.problems
    return parsed.snapshot(NOW.timestamp())


def a_document(
    strategies: Mapping[str, Mapping[str, Any] | None], *, evictor: Mapping[str, Any] | None = None, **top: Any
) -> Object:
    """Return a v1alpha2 document that enables these strategies in this order. evictor: ``nodeFit: true`` unless it says so."""
    plugins: dict[str, Any] = {}
    config: list[Object] = [{"name": "DefaultEvictor", "args": {"nodeFit": True, **(evictor or {})}}]
    for name, args in strategies.items():
        plugins.setdefault(STRATEGIES[name].extension_point, {"enabled": []})["enabled"].append(name)
        config.append({"name": name, **({"args": dict(args)} if args is not None else {})})
    return {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "profiles": [{"name": "p", "pluginConfig": config, "plugins": plugins}],
        **top,
    }


def a_policy(
    strategies: Mapping[str, Mapping[str, Any] | None], *, evictor: Mapping[str, Any] | None = None, **top: Any
) -> Policy:
    """Return the policy of ``a_document``."""
    return load(a_document(strategies, evictor=evictor, **top), source="test").policy


def decided(
    snapshot: Snapshot,
    policy: Policy,
    placement: PlacementMode = PlacementMode.FIT,
    *,
    guards: Guards | None = None,
    scheduler: SchedulerConfig = DEFAULT,
) -> Plan:
    """Evaluate, with priority classes looked up in the snapshot."""
    classes = {each.name: each.value for each in snapshot.priority_classes.values()}
    return evaluate(snapshot, resolve_priority_classes(policy, classes, source="test"), guards, placement, scheduler)


def moved(plan: Plan) -> list[str]:
    """Return the names of the approved pods, sorted."""
    return sorted(approval.pod.partition("/")[2] for approval in plan.approved)


def moved_from(plan: Plan) -> dict[str, int]:
    """Return how many approved pods leave each node."""
    counts: dict[str, int] = {}
    for approval in plan.approved:
        counts[approval.node] = counts.get(approval.node, 0) + 1
    return counts


def refusals(plan: Plan) -> dict[str, str]:
    """Return the code by which each pod was refused last."""
    return {refusal.pod.partition("/")[2]: refusal.code for refusal in plan.refused}
