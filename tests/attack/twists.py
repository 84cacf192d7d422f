"""Recorded clusters made odder: every pod and node may get what a strategy or the evictor has a rule about."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

Object = dict[str, Any]
Twist = tuple[float, Callable[[Object, random.Random], object]]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
EVICT = "descheduler.alpha.kubernetes.io/evict"
PREFER_NO_EVICTION = "descheduler.alpha.kubernetes.io/prefer-no-eviction"


def note(pod: Object, name: str, value: str) -> None:
    """Annotate a pod."""
    pod["metadata"].setdefault("annotations", {})[name] = value


def an_expression(key: str, operator: str, *values: str) -> Object:
    """Return an expression of a selector."""
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def an_anti_affinity(pod: Object, rng: random.Random) -> None:
    """Give a pod a required anti-affinity term with every kind of selector and reach."""
    own = pod["metadata"]["namespace"]
    selector = rng.choice(
        [
            {"matchLabels": pod["metadata"].get("labels") or {}},
            {},
            None,
            {"matchExpressions": [an_expression("tier", "In", "web", "db")]},
            {"matchExpressions": [an_expression("tier", "DoesNotExist")]},
        ]
    )
    reach: Object = rng.choice(
        [
            {},
            {"namespaces": ["beta"]},
            {"namespaceSelector": {}},
            {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": own}}},
            {"namespaces": [own], "namespaceSelector": {"matchLabels": {"x": "y"}}},
        ]
    )
    topology_key = rng.choice(["kubernetes.io/hostname", "topology.kubernetes.io/zone", "pool", "unknown"])
    term = {"topologyKey": topology_key, "labelSelector": selector, **reach}
    pod["spec"].setdefault("affinity", {})["podAntiAffinity"] = {REQUIRED: [term]}


def an_affinity(pod: Object, rng: random.Random) -> None:
    """Give a pod one or two required affinity terms, to itself or to others."""
    choices: list[Object] = [
        {"matchLabels": pod["metadata"].get("labels") or {}},
        {"matchExpressions": [an_expression("tier", "In", "web", "db")]},
        {"matchExpressions": [an_expression("tier", "Exists")]},
    ]
    keys = ["kubernetes.io/hostname", "topology.kubernetes.io/zone", "pool"]
    terms = [
        {"topologyKey": rng.choice(keys), "labelSelector": rng.choice(choices), **rng.choice([{}, {"namespaceSelector": {}}])}
        for _ in range(rng.randint(1, 2))
    ]
    pod["spec"].setdefault("affinity", {})["podAffinity"] = {REQUIRED: terms}


def a_spread(pod: Object, rng: random.Random) -> None:
    """Give a pod hard and soft spread constraints with every policy."""
    keys = ["kubernetes.io/hostname", "topology.kubernetes.io/zone", "pool", "unknown"]
    extras: list[Object] = [
        {},
        {"minDomains": rng.randint(1, 5)},
        {"nodeAffinityPolicy": "Ignore"},
        {"nodeTaintsPolicy": "Honor"},
        {"nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Ignore"},
        {"matchLabelKeys": ["tier", "absent"]},
    ]
    selectors: list[Object | None] = [{"matchLabels": pod["metadata"].get("labels") or {}}, {}, None]
    selectors.append({"matchExpressions": [an_expression("tier", "In", "web", "db")]})
    pod["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": rng.randint(1, 3),
            "topologyKey": key,
            "whenUnsatisfiable": rng.choice(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]),
            "labelSelector": rng.choice(selectors),
            **rng.choice(extras),
        }
        for key in rng.sample(keys, rng.randint(1, 2))
    ]


def a_host_port(pod: Object, rng: random.Random) -> None:
    """Have a container listen on the host, on one address or on all."""
    port = {"containerPort": 80, "hostPort": rng.choice([8080, 9090]), "protocol": rng.choice(["TCP", "UDP"])}
    port["hostIP"] = rng.choice(["", "0.0.0.0", "127.0.0.1", "10.0.0.1"])
    pod["spec"]["containers"][0]["ports"] = [port]


def a_node_affinity(pod: Object, rng: random.Random) -> None:
    """Give a pod required and preferred node affinity of every form."""
    terms = rng.choice(
        [
            [{}],
            [{"matchExpressions": [an_expression("pool", rng.choice(["In", "NotIn"]), "a")]}],
            [{"matchFields": [an_expression("metadata.name", "In", "node-1")]}],
            [{"matchExpressions": [an_expression("number", "Gt", "3")]}],
            [{"matchExpressions": []}, {"matchExpressions": [an_expression("pool", "Exists")]}],
        ]
    )
    preference = rng.choice(
        [{"matchExpressions": [an_expression("pool", "In", "b")]}, {"matchExpressions": [an_expression("number", "Lt", "4")]}]
    )
    pod["spec"].setdefault("affinity", {})["nodeAffinity"] = {
        REQUIRED: {"nodeSelectorTerms": terms},
        PREFERRED: [{"weight": rng.choice([1, 50]), "preference": preference}],
    }


def a_state(pod: Object, rng: random.Random) -> None:
    """Have a container restart, wait or end."""
    states: list[Object] = [
        {"waiting": {"reason": "CrashLoopBackOff"}},
        {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
        {"terminated": {"reason": "Error", "exitCode": 1}},
        {"waiting": {}},
        {"running": {}},
    ]
    for status in pod["status"].get("containerStatuses") or ():
        status["state"] = rng.choice(states)
        status["restartCount"] = rng.choice([0, 1, 3, 5, 8])


def an_owner(pod: Object, rng: random.Random) -> None:
    """Take the owner away, make it another kind, or add one."""
    references = pod["metadata"].get("ownerReferences") or []
    kind = rng.choice(["none", "DaemonSet", "Node", "Job", "Custom", "second"])
    if kind == "none":
        pod["metadata"].pop("ownerReferences", None)
    elif kind == "second":
        pod["metadata"]["ownerReferences"] = [*references, {"apiVersion": "x/v1", "kind": "Other", "name": "o", "uid": "other"}]
    elif references:
        references[0]["kind"] = kind


TOLERATIONS: list[list[Object]] = [
    [],
    [{"operator": "Exists"}],
    [{"key": "dedicated", "operator": "Exists"}],
    [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}],
    [{"key": "gpu", "operator": "Exists", "effect": "PreferNoSchedule"}],
    [{"operator": "Exists", "effect": "NoSchedule"}],
]
VOLUMES: list[list[Object]] = [
    [],
    [{"name": "v", "emptyDir": {}}],
    [{"name": "v", "hostPath": {"path": "/"}}],
    [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
    [{"name": "v", "ephemeral": {}}],
]
PRIORITIES = [None, -5, 0, 499, 500, 501, 1000, 1_999_999_999, 2_000_000_000, 2_000_001_000]
TAINTS = ["dedicated", "gpu", "node.kubernetes.io/unschedulable", "node.kubernetes.io/disk-pressure", "example.com/shutdown"]

POD_TWISTS: list[Twist] = [
    (0.10, lambda pod, rng: pod["metadata"].update(deletionTimestamp="2026-06-01T00:00:00Z")),
    (0.10, lambda pod, rng: note(pod, EVICT, rng.choice(["true", "", "false", "True", "no"]))),
    (0.10, lambda pod, rng: note(pod, PREFER_NO_EVICTION, rng.choice(["true", "", "false"]))),
    (0.05, lambda pod, rng: note(pod, "cluster-autoscaler.kubernetes.io/safe-to-evict", rng.choice(["true", "false"]))),
    (0.05, lambda pod, rng: note(pod, "karpenter.sh/do-not-disrupt", rng.choice(["true", "false"]))),
    (0.03, lambda pod, rng: note(pod, "kubernetes.io/config.mirror", "x")),
    (0.03, lambda pod, rng: note(pod, "kubernetes.io/config.source", rng.choice(["api", "file", "http"]))),
    (0.15, lambda pod, rng: pod["spec"].update(priority=rng.choice(PRIORITIES))),
    (0.10, an_owner),
    (0.10, lambda pod, rng: pod["status"].update(phase=rng.choice(["Running", "Pending", "Succeeded", "Failed", "Unknown"]))),
    (0.03, lambda pod, rng: pod["status"].update(reason=rng.choice(["NodeAffinity", "Evicted", "Shutdown"]))),
    (0.05, lambda pod, rng: pod["spec"].update(volumes=rng.choice(VOLUMES))),
    (0.02, lambda pod, rng: pod["spec"].update(resourceClaims=[{"name": "c"}])),
    (0.10, lambda pod, rng: pod["spec"].update(tolerations=rng.choice(TOLERATIONS))),
    (0.05, lambda pod, rng: pod["spec"].update(nodeSelector=rng.choice([{}, {"pool": "a"}, {"pool": "unknown"}]))),
    (0.08, an_anti_affinity),
    (0.06, a_node_affinity),
    (0.05, an_affinity),
    (0.15, a_spread),
    (0.10, a_host_port),
    (0.03, lambda pod, rng: pod["metadata"].update(creationTimestamp="2036-01-01T00:00:00Z")),
    (0.10, a_state),
    (0.10, lambda pod, rng: pod["status"].update(conditions=[{"type": "Ready", "status": rng.choice(["True", "False"])}])),
]
NODE_TWISTS: list[Twist] = [
    (0.15, lambda node, rng: node["spec"].update(unschedulable=True)),
    (0.05, lambda node, rng: node["status"].update(conditions=[])),
    (0.05, lambda node, rng: node["status"].update(conditions=[{"type": "Ready", "status": rng.choice(["False", "Unknown"])}])),
    (0.10, lambda node, rng: node["metadata"]["labels"].pop("topology.kubernetes.io/zone", None)),
    (0.30, lambda node, rng: node["metadata"]["labels"].update(number=rng.choice(["3", "4", "5", "x", "-1"]))),
    (0.30, lambda node, rng: node["spec"].update(taints=[a_taint(rng)])),
]


def a_taint(rng: random.Random) -> Object:
    """Return any taint."""
    effect = rng.choice(["NoSchedule", "PreferNoSchedule", "NoExecute"])
    return {"key": rng.choice(TAINTS), "value": rng.choice(["", "x", "y"]), "effect": effect}


def twisted(objects: list[Object], rng: random.Random) -> list[Object]:
    """Return a copy of a cluster in which many pods and nodes are odd in some way."""
    result = copy.deepcopy(objects)
    for each in result:
        if each["kind"] == "Pod":
            each.setdefault("status", {})
        for chance, twist in {"Pod": POD_TWISTS, "Node": NODE_TWISTS}.get(each["kind"], ()):
            if rng.random() < chance:
                twist(each, rng)
    return result
