"""What may never go, and what may go only where a policy or an annotation says so: one table, every combination.

Each row is a pod that some rule keeps. Every pod exists once for each pair of annotations, and all are judged under policies that
switch every protection off, none, or only the row's own, by a policy of all ten strategies, in every placement mode.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest

from rebalancer.decide.guards import Guards
from rebalancer.eligibility.arguments import DEFAULT_PROTECTIONS, EXTRA_PROTECTIONS
from rebalancer.model.plan import PlacementMode
from rebalancer.model.snapshot import Snapshot
from tests.builders import (
    EVICT,
    PREFER_NO_EVICTION,
    REQUIRED_AFFINITY,
    Object,
    a_budget,
    a_cluster,
    a_node,
    a_pod,
    a_policy,
    a_spread,
    decided,
    keeps_away,
)

ABSOLUTE = "nothing lifts it"
EVERY_STRATEGY: dict[str, dict[str, Any]] = {
    "PodLifeTime": {"maxPodLifeTimeSeconds": 60},
    "RemoveFailedPods": {"minPodLifetimeSeconds": 0},
    "RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 1},
    "RemovePodsViolatingNodeTaints": {"includePreferNoSchedule": True},
    "RemovePodsViolatingNodeAffinity": {"nodeAffinityType": [REQUIRED_AFFINITY]},
    "RemovePodsViolatingInterPodAntiAffinity": {},
    "RemoveDuplicates": {},
    "LowNodeUtilization": {"thresholds": {"pods": 1}, "targetThresholds": {"pods": 2}},
    "HighNodeUtilization": {"thresholds": {"cpu": 50}},
    "RemovePodsViolatingTopologySpreadConstraint": {"constraints": ["DoNotSchedule", "ScheduleAnyway"]},
}


@dataclass(frozen=True)
class Row:
    """One kind of pod.

    protection: what keeps it; ABSOLUTE for what no setting lifts. overridden: whether the evict annotation does.
    extra: whether the protection holds only where it is switched on. pod: what differs from a plain pod.
    """

    name: str
    protection: str = ""
    overridden: bool = True
    extra: bool = False
    pod: Object = field(default_factory=dict)


def owned_by(kind: str) -> Object:
    """Return the fields of a pod with an owner of this kind."""
    return {"owner": kind}


def volume(**source: Any) -> Object:
    """Return the fields of a pod with one volume."""
    return {"spec": {"volumes": [{"name": "v", **source}]}}


def noted(key: str, value: str) -> Object:
    """Return the fields of a pod with an annotation."""
    return {"annotations": {key: value}}


SAFE, DISRUPT = "cluster-autoscaler.kubernetes.io/safe-to-evict", "karpenter.sh/do-not-disrupt"
ROWS = (
    Row("plain"),
    Row("mirror", ABSOLUTE, False, pod=noted("kubernetes.io/config.mirror", "x")),
    Row("static-file", ABSOLUTE, False, pod=noted("kubernetes.io/config.source", "file")),
    Row("from-the-api", pod=noted("kubernetes.io/config.source", "api")),
    Row("of-the-node", ABSOLUTE, False, pod=owned_by("Node")),
    Row("terminating", ABSOLUTE, False, pod={"terminating": True}),
    Row("terminating-failed", ABSOLUTE, False, pod={"terminating": True, "phase": "Failed"}),
    Row("daemon", "DaemonSetPods", pod=owned_by("DaemonSet")),
    Row("bare-failed", "FailedBarePods", pod={"owner": None, "phase": "Failed"}),
    Row("bare-running", ABSOLUTE, pod={"owner": None}),
    Row("critical", "SystemCriticalPods", pod={"priority": 2_000_000_000}),
    Row("node-critical", "SystemCriticalPods", pod={"priority": 2_000_001_000}),
    Row("nearly-critical", pod={"priority": 1_999_999_999}),
    Row("without-priority", pod={"priority": None}),
    Row("empty-dir", "PodsWithLocalStorage", pod=volume(emptyDir={})),
    Row("host-path", "PodsWithLocalStorage", pod=volume(hostPath={"path": "/"})),
    Row("config-map", pod=volume(configMap={"name": "c"})),
    Row("safe-to-evict-false", "PodsWithSafeToEvictFalse", pod=noted(SAFE, "false")),
    Row("safe-to-evict-true", pod=noted(SAFE, "true")),
    Row("do-not-disrupt", "PodsWithDoNotDisrupt", pod=noted(DISRUPT, "true")),
    Row("do-disrupt", pod=noted(DISRUPT, "false")),
    Row("claim", "PodsWithPVC", extra=True, pod=volume(persistentVolumeClaim={"claimName": "c"})),
    Row("device", "PodsWithResourceClaims", extra=True, pod={"spec": {"resourceClaims": [{"name": "d"}]}}),
    Row("without-budget", "PodsWithoutPDB", extra=True, pod={"namespace": "unbudgeted"}),
)
EVICT_NOTES = (None, "true", "", "false", "True")
PREFER_NOTES = (None, "true", "false")
SETTINGS = ("defaults", "all off", "all on", "own off")


def a_name(row: Row, evict: str | None, prefer: str | None) -> str:
    """Name a pod after its row and annotations."""
    return f"{row.name}.{EVICT_NOTES.index(evict)}.{PREFER_NOTES.index(prefer)}"


def subjects() -> Iterator[tuple[Row, str | None, str | None]]:
    """Yield every pod of the table."""
    yield from itertools.product(ROWS, EVICT_NOTES, PREFER_NOTES)


def a_table_pod(row: Row, evict: str | None, prefer: str | None, **more: Any) -> Object:
    """Build a pod that every strategy has something against, were it not for its row."""
    annotations = {**row.pod.get("annotations", {})}
    annotations |= {} if evict is None else {EVICT: evict}
    annotations |= {} if prefer is None else {PREFER_NO_EVICTION: prefer}
    spec = {
        "nodeSelector": {"pool": "elsewhere"},
        "topologySpreadConstraints": [a_spread("kubernetes.io/hostname", app="app")],
        **keeps_away("app"),
        **row.pod.get("spec", {}),
    }
    fields = {"namespace": "ns1", "restarts": [5], **row.pod, "annotations": annotations, "spec": spec, **more}
    return a_pod(a_name(row, evict, prefer), "full", cpu="10m", **fields)


NODES = [
    a_node("full", pods=2000, taints=["dedicated=x:NoSchedule"]),
    a_node("free", pods=2000, labels={"pool": "elsewhere"}),
    a_node("spare", pods=2000, labels={"pool": "elsewhere"}),
]


@cache
def the_table() -> Snapshot:
    """Return the cluster in which every pod of the table stands on the full node."""
    return a_cluster(NODES, [a_table_pod(*each) for each in subjects()], a_budget("b", app="app", allowed=10_000))


def an_evictor(setting: str, *, mandatory: bool) -> Object:
    """Return the evictor's arguments of one setting."""
    own = ("PodsWithSafeToEvictFalse", "PodsWithDoNotDisrupt")
    off: dict[str, list[str]] = {"defaults": [], "all off": list(DEFAULT_PROTECTIONS), "all on": [], "own off": list(own)}
    on = [str(each) for each in EXTRA_PROTECTIONS] if setting == "all on" else []
    protections = {"defaultDisabled": [str(each) for each in off[setting]], "extraEnabled": on}
    return {"nodeFit": False, "podProtections": protections, **({"noEvictionPolicy": "Mandatory"} if mandatory else {})}


def holds(row: Row, setting: str) -> bool:
    """Tell whether a row's protection holds under a setting."""
    if not row.protection:
        return False
    if row.protection == ABSOLUTE:
        return True
    if row.extra:
        return setting == "all on"
    if setting == "all off":
        return False
    return not (setting == "own off" and row.protection in ("PodsWithSafeToEvictFalse", "PodsWithDoNotDisrupt"))


def may_go(row: Row, evict: str | None, prefer: str | None, setting: str, *, mandatory: bool) -> bool:
    """Say what the rules say: the annotation (F37: "true" or empty) overrides all but the absolute (F14); "false" protects."""
    if evict in ("true", "") and row.overridden:
        return True
    if evict == "false":
        return False
    if mandatory and prefer is not None:
        return False
    return not holds(row, setting)


@pytest.mark.parametrize("mandatory", [False, True], ids=["preferred", "mandatory"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_exactly_the_pods_go_that_may(setting: str, mandatory: bool) -> None:
    """Without placement and with a strategy that wants every pod, the table and the plan agree pod by pod."""
    policy = a_policy({"PodLifeTime": {"maxPodLifeTimeSeconds": 60}}, evictor=an_evictor(setting, mandatory=mandatory))
    cluster = the_table()
    going = {each.pod.partition("/")[2] for each in decided(cluster, policy, PlacementMode.OFF).approved}
    expected = {a_name(*each) for each in subjects() if may_go(*each, setting, mandatory=mandatory)}
    assert going == expected


@pytest.mark.parametrize("mode", list(PlacementMode))
@pytest.mark.parametrize("mandatory", [False, True], ids=["preferred", "mandatory"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_no_strategy_in_no_mode_moves_what_may_not_go(setting: str, mandatory: bool, mode: PlacementMode) -> None:
    """All ten strategies at once: whatever they want, nothing protected is among the approved."""
    for name, args in EVERY_STRATEGY.items():
        policy = a_policy({name: args}, evictor=an_evictor(setting, mandatory=mandatory))
        plan = decided(the_table(), policy, mode)
        going = {each.pod.partition("/")[2] for each in plan.approved}
        assert going <= {a_name(*each) for each in subjects() if may_go(*each, setting, mandatory=mandatory)}, name
    policy = a_policy(EVERY_STRATEGY, evictor=an_evictor(setting, mandatory=mandatory))
    plan = decided(the_table(), policy, mode)
    going = {each.pod.partition("/")[2] for each in plan.approved}
    assert going
    assert len(going) == len(plan.approved)
    assert going <= {a_name(*each) for each in subjects() if may_go(*each, setting, mandatory=mandatory)}


BUDGETS = {
    "none allowed": [a_budget("b", app="app", allowed=0)],
    "negative": [a_budget("b", app="app", allowed=-1)],
    "two": [a_budget("b", app="app", allowed=9), a_budget("c", app="app", allowed=9)],
    "everything in the namespace": [a_budget("b", app="app", allowed=0, selector={})],
    "status older than spec": [
        {**a_budget("b", app="app", allowed=9), "metadata": {"name": "b", "namespace": "ns1", "generation": 2}}
    ],
}


@pytest.mark.parametrize("mode", [PlacementMode.REQUIRED, PlacementMode.FIT])
@pytest.mark.parametrize("node_fit", [None, False, True])
@pytest.mark.parametrize("budgets", BUDGETS)
def test_a_budget_that_allows_nothing_keeps_every_ready_pod(budgets: str, node_fit: bool | None, mode: PlacementMode) -> None:
    """Neither annotations nor protections that are off nor nodeFit lift a budget; only where placement is off it is not read."""
    evictor = {**an_evictor("all off", mandatory=False), "nodeFit": node_fit}
    table = [a_table_pod(Row("plain"), evict, None) for evict in EVICT_NOTES]
    cluster = a_cluster(NODES, table, BUDGETS[budgets])
    assert decided(cluster, a_policy(EVERY_STRATEGY, evictor=evictor), mode).approved == ()
    assert decided(cluster, a_policy(EVERY_STRATEGY, evictor=evictor), PlacementMode.OFF).approved


@pytest.mark.parametrize("mode", list(PlacementMode))
def test_guards_keep_namespaces_and_resting_owners_whatever_is_annotated(mode: PlacementMode) -> None:
    """A protected namespace, an owner at rest on that node, one that strategies fight over: no annotation changes that."""
    policy = a_policy(EVERY_STRATEGY, evictor=an_evictor("all off", mandatory=False))
    table = [a_table_pod(Row("plain"), evict, None, namespace="kube-system") for evict in EVICT_NOTES]
    cluster = a_cluster(NODES, table)
    uid = "owner-kube-system-app"
    for guards in (
        Guards(protected_namespaces=frozenset({"kube-system"})),
        Guards(cooldowns={(uid, "full"): cluster.now + 1}),
        Guards(stopped={uid: ("RemoveDuplicates", "LowNodeUtilization")}),
    ):
        assert decided(cluster, policy, mode, guards=guards).approved == ()
    assert decided(cluster, policy, mode, guards=Guards()).approved


def test_the_evict_annotation_does_not_override_the_namespace_selector() -> None:
    """K9: PreEvictionFilter holds for annotated pods, too."""
    evictor = {**an_evictor("all off", mandatory=False), "namespaceLabelSelector": {"matchLabels": {"team": "a"}}}
    policy = a_policy({"PodLifeTime": {"maxPodLifeTimeSeconds": 60}}, evictor=evictor)
    cluster = a_cluster(NODES, [a_table_pod(Row("plain"), evict, None) for evict in EVICT_NOTES])
    assert decided(cluster, policy, PlacementMode.OFF).approved == ()


@pytest.mark.parametrize(
    ("evictor", "pod"),
    [
        pytest.param({"priorityThreshold": {"value": 500}}, {"priority": 500}, id="priority at the threshold"),
        pytest.param({"priorityThreshold": {"value": -5}}, {"priority": 0}, id="negative threshold"),
        pytest.param({"priorityThreshold": {"value": 0}}, {"priority": 0}, id="threshold 0"),
        pytest.param({"labelSelector": {"matchLabels": {"x": "y"}}}, {}, id="labelSelector"),
        pytest.param({"minReplicas": 99}, {}, id="minReplicas"),
        pytest.param({"minPodAge": "48h"}, {}, id="minPodAge"),
    ],
)
def test_thresholds_of_the_evictor_yield_to_the_annotation_only(evictor: Object, pod: Object) -> None:
    """With every protection off they still hold (F15), and the evict annotation with the right value overrides them (K9, F37)."""
    arguments = {**an_evictor("all off", mandatory=False), **evictor}
    policy = a_policy({"PodLifeTime": {"maxPodLifeTimeSeconds": 60}}, evictor=arguments)
    row = Row("plain", pod=pod)
    cluster = a_cluster(NODES, [a_table_pod(row, evict, None) for evict in EVICT_NOTES])
    going = {each.pod.partition("/")[2] for each in decided(cluster, policy, PlacementMode.OFF).approved}
    assert going == {a_name(row, evict, None) for evict in ("true", "")}


@pytest.mark.parametrize("mode", [PlacementMode.OFF, PlacementMode.FIT])
@pytest.mark.parametrize("node_fit", [None, True])
def test_a_cordoned_node_is_no_destination_for_pods_that_tolerate_everything(node_fit: bool | None, mode: PlacementMode) -> None:
    """The first check of nodeFit: a node that is being emptied is not where a pod should go, toleration or not."""
    spec = {"nodeSelector": {"pool": "a"}, "tolerations": [{"operator": "Exists"}]}
    pod = a_pod("p", "here", spec=spec)
    policy = a_policy(
        {"RemovePodsViolatingNodeAffinity": EVERY_STRATEGY["RemovePodsViolatingNodeAffinity"]}, evictor={"nodeFit": node_fit}
    )
    cordoned = a_node("there", labels={"pool": "a"})
    cordoned["spec"]["unschedulable"] = True
    assert decided(a_cluster(a_node("here"), cordoned, pod), policy, mode).approved == ()
    assert decided(a_cluster(a_node("here"), a_node("there", labels={"pool": "a"}), pod), policy, mode).approved
