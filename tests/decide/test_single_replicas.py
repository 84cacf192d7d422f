"""What a plan makes of single replicas: evicted, kept, or replaced by a rollout; and where a replacement beside its pod goes."""

from __future__ import annotations

from typing import Any

import pytest

from rebalancer.decide.explain import explain
from rebalancer.decide.guards import Guards, SingleReplicas, Spent
from rebalancer.model.cap import Cap
from rebalancer.model.plan import PlacementMode
from tests.builders import (
    DAY,
    HOSTNAME,
    NOW,
    REQUIRED_AFFINITY,
    ZONE,
    Object,
    a_budget,
    a_cluster,
    a_node,
    a_pod,
    a_policy,
    decided,
    moved,
    pinned,
    pods,
    refusals,
)
from tests.decide.single import a_deployment, a_replica_set

OLD: dict[str, Any] = {"PodLifeTime": {"maxPodLifeTimeSeconds": 60}}
ANYWHERE = {"nodeFit": None}
SURGE = Guards(single_replicas=SingleReplicas.SURGE)
HASH = "pod-template-hash"
LATER = NOW.timestamp() + 60


def one(*more: Object, **pod: Any) -> Any:
    """Return a cluster of n1 and n2 with a single replica on n1."""
    return a_cluster(a_node("n1"), a_node("n2"), a_pod("p", "n1", **pod), a_replica_set(), a_deployment(), *more)


@pytest.mark.parametrize("mode", list(PlacementMode))
def test_a_rollout_is_approved_past_a_budget_and_the_plan_says_so(mode: PlacementMode) -> None:
    """A budget over one replica that has to stay available keeps it from eviction, not from a rollout; two of them neither."""
    for budgets in ([a_budget("b", app="app", allowed=0, healthy=1)], [a_budget(name, app="app", allowed=1) for name in "ab"]):
        snapshot = one(*budgets)
        if mode is not PlacementMode.OFF:
            assert refusals(decided(snapshot, a_policy(OLD), mode, guards=Guards())).keys() == {"p"}
        (approval,) = decided(snapshot, a_policy(OLD), mode, guards=SURGE).approved
        assert (approval.rollout, approval.owner_uid) == ("web", "deployment-app")
        assert approval.to_dict()["rollout"] == "web"
        assert "a rollout of Deployment web" in approval.why
        found = explain(snapshot, a_policy(OLD), "ns1/p", guards=SURGE, placement=mode)
        assert [(each.verdict, each.reason) for each in found.strategies] == [("approved", approval.why)]
        assert {each.code for each in found.rules} == {""}


def test_an_eviction_has_no_rollout_in_its_json() -> None:
    """What is not there is not said."""
    (approval,) = decided(one(), a_policy(OLD), guards=Guards()).approved
    assert "rollout" not in approval.to_dict()
    assert approval.why == approval.reason


def test_a_rollout_takes_nothing_from_a_budget() -> None:
    """One disruption is allowed over the single replica and another workload's pods: both go, for only one of them is evicted."""
    others = pods(2, "n1", app="other", labels={"app": "app"})
    budget = a_budget("b", app="app", allowed=1)
    snapshot = one(*others, a_replica_set("other", owner=None, replicas=2), budget, age=2 * DAY)
    approved = {each.pod: each.rollout for each in decided(snapshot, a_policy(OLD), guards=SURGE).approved}
    assert approved.pop("ns1/p") == "web"
    assert list(approved.values()) == [""]
    assert len(decided(snapshot, a_policy(OLD), guards=Guards()).approved) == 1


@pytest.mark.parametrize("wanted", list(SingleReplicas))
def test_what_is_no_single_replica_is_treated_as_ever(wanted: SingleReplicas) -> None:
    """Pods of a workload with two replicas, and finished ones, whose replacement is there already."""
    guards = Guards(single_replicas=wanted)
    two = a_cluster(a_node("n1"), a_node("n2"), pods(2, "n1"), a_replica_set(replicas=2))
    expected = 1 if wanted is SingleReplicas.SKIP else 2
    approved = decided(two, a_policy(OLD), guards=guards).approved
    assert len(approved) == expected
    assert {each.rollout for each in approved} == {""}
    policy = a_policy({"RemoveFailedPods": {}})
    done = one(a_pod("done", "n1", phase="Failed"))
    (approval,) = decided(done, policy, guards=guards).approved
    assert (approval.pod, approval.rollout) == ("ns1/done", "")


@pytest.mark.parametrize("more", [[], [a_pod("leftover", "n1", phase="Failed"), a_pod("going", "n2", terminating=True)]])
def test_leftovers_of_a_workload_make_it_no_less_single(more: list[Object]) -> None:
    """Failed and terminating pods serve nobody."""
    assert (
        refusals(decided(one(*more), a_policy(OLD), guards=Guards(single_replicas=SingleReplicas.SKIP)))["p"] == "single-replica"
    )
    approved = decided(one(*more), a_policy(OLD), guards=SURGE).approved
    assert [(each.pod, each.rollout) for each in approved if each.pod == "ns1/p"] == [("ns1/p", "web")]


@pytest.mark.parametrize("kind", ["StatefulSet", "Job", "Foo"])
def test_who_has_no_deployment_stays_with_surge_and_goes_without(kind: str) -> None:
    """Known to us or not: the only pod of such an owner cannot be replaced first."""
    snapshot = a_cluster(a_node("n1"), a_node("n2"), a_pod("p", "n1", owner=kind), missing_workload(kind))
    assert refusals(decided(snapshot, a_policy(OLD), guards=SURGE)) == {"p": "surge-owner"}
    assert moved(decided(snapshot, a_policy(OLD), guards=Guards())) == ["p"]


def missing_workload(kind: str) -> list[Object]:
    """Return the owner of this kind where it is one that is watched."""
    if kind == "Foo":
        return []
    spec = {"replicas": 1, "parallelism": 1, "selector": {"matchLabels": {"app": "app"}}}
    status = {"replicas": 1, "readyReplicas": 1, "ready": 1, "updatedReplicas": 1, "observedGeneration": 1}
    metadata = {"name": "app", "namespace": "ns1", "uid": "owner-ns1-app", "generation": 1}
    return [{"kind": kind, "metadata": metadata, "spec": spec, "status": status}]


@pytest.mark.parametrize("rolling", [False, True], ids=["settled", "in a rollout"])
def test_rests_and_conflicts_are_the_deployments(rolling: bool) -> None:
    """Each rollout has a ReplicaSet of its own, so what is remembered of one holds for the next under the Deployment's uid."""
    status = {"observedGeneration": 1} if rolling else {}
    snapshot = a_cluster(a_node("n1"), a_node("n2"), a_pod("p", "n1"), a_replica_set(), a_deployment(status=status))

    def code(**more: Any) -> dict[str, str]:
        return refusals(decided(snapshot, a_policy(OLD), guards=Guards(single_replicas=SingleReplicas.SURGE, **more)))

    assert code(cooldowns={("deployment-app", "n1"): LATER}) == {"p": "cooldown"}
    assert code(stopped={"deployment-app": ("A", "B")}) == {"p": "owner-stopped"}
    assert code(cooldowns={("owner-ns1-app", "n1"): LATER}) == ({"p": "workload-in-rollout"} if rolling else {})


@pytest.mark.parametrize(("spent", "expected"), [({"deployment-app": 1}, {"p": "cap-workload"}), ({"owner-ns1-app": 1}, {})])
def test_the_cap_of_a_workload_counts_its_rollouts(spent: dict[str, int], expected: dict[str, str]) -> None:
    """Under the Deployment's uid, as the run counts them."""
    guards = Guards(workload=Cap(number=1), spent=Spent(by_workload=spent), single_replicas=SingleReplicas.SURGE)
    assert refusals(decided(one(), a_policy(OLD), guards=guards)) == expected


def a_spread(**more: Any) -> Object:
    """Return a pod spec that spreads strictly over nodes."""
    selector = {"labelSelector": {"matchLabels": {"app": "app"}}}
    constraint = {"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "DoNotSchedule", **selector, **more}
    return {"topologySpreadConstraints": [constraint]}


def lands(guards: Guards, spec: Object) -> dict[str, float]:
    """Return where the replacement of a single replica goes that would rather stay: n2 is nearly full."""
    snapshot = a_cluster(
        a_node("n1"),
        a_node("n2"),
        a_pod("p", "n1", spec=spec, labels={HASH: "old"}),
        pinned("load", "n2", "3500m"),
        a_replica_set(labels={HASH: "old"}),
        a_deployment(),
    )
    (approval,) = decided(snapshot, a_policy(OLD, evictor=ANYWHERE), PlacementMode.REQUIRED, guards=guards).approved
    found = explain(snapshot, a_policy(OLD, evictor=ANYWHERE), "ns1/p", guards=guards)
    assert dict(found.landings) == dict(approval.landings)
    return dict(approval.landings)


def an_anti_affinity(**more: Any) -> Object:
    """Return a pod spec that wants no other pod of the app on its node."""
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "app"}}, **more}
    return {"affinity": {"podAntiAffinity": {REQUIRED_AFFINITY: [term]}}}


@pytest.mark.parametrize(
    ("spec", "evicted", "surged"),
    [
        pytest.param({}, "n1", "n1", id="nothing asked"),
        pytest.param(a_spread(), "n1", "n2", id="spread counts the old pod"),
        pytest.param(a_spread(matchLabelKeys=[HASH]), "n1", "n1", id="spread of one revision does not"),
        pytest.param(an_anti_affinity(), "n2", "n2", id="anti-affinity keeps away from the old pod"),
        pytest.param(an_anti_affinity(matchLabelKeys=[HASH]), "n2", "n1", id="anti-affinity of one revision does not"),
    ],
)
def test_the_replacement_is_placed_while_the_old_pod_runs_and_under_a_new_revision(
    spec: Object, evicted: str, surged: str
) -> None:
    """What kube-scheduler sees in a rollout is not what it sees after an eviction."""
    assert lands(Guards(), spec) == {evicted: 1.0}
    assert lands(SURGE, spec) == {surged: 1.0}


@pytest.mark.parametrize("mode", [PlacementMode.FIT, PlacementMode.REQUIRED])
def test_node_fit_is_judged_by_the_new_revision_too(mode: PlacementMode) -> None:
    """An anti-affinity within a revision leaves the old pod's zone open to its replacement, and closed after an eviction."""
    spec = an_anti_affinity(matchLabelKeys=[HASH], topologyKey=ZONE)
    snapshot = a_cluster(
        a_node("n1", zone="z", taints=["leave:NoSchedule"]),
        a_node("n2", zone="z"),
        a_pod("p", "n1", spec=spec, labels={HASH: "old"}),
        a_replica_set(labels={HASH: "old"}),
        a_deployment(),
    )
    policy = a_policy(OLD, evictor={"nodeSelector": f"{ZONE}=z"})
    assert refusals(decided(snapshot, policy, mode, guards=Guards())).keys() == {"p"}
    assert moved(decided(snapshot, policy, mode, guards=SURGE)) == ["p"]


def test_a_replacement_needs_room_beside_the_old_pod() -> None:
    """Where only the old pod's own place is large enough there is no landing."""
    snapshot = a_cluster(
        a_node("n1"),
        a_node("n2", cpu="1"),
        a_pod("p", "n1", cpu="3"),
        a_replica_set(),
        a_deployment(),
        a_pod("q", "n2", cpu="500m"),
    )
    plan = decided(snapshot, a_policy(OLD, evictor=ANYWHERE), PlacementMode.REQUIRED, guards=SURGE)
    assert refusals(plan)["p"] == "no-landing"


def test_the_room_of_the_old_pod_is_nobody_elses_in_the_same_run() -> None:
    """The old pod stays until its replacement is Ready, so the next pod of the plan cannot count on its place."""
    others = pods(2, "n3", cpu="2", app="other")
    snapshot = a_cluster(
        *(a_node(name) for name in ("n1", "n2", "n3")),
        a_pod("p", "n1", cpu="3", age=2 * DAY),
        a_replica_set(),
        a_deployment(),
        others,
        a_replica_set("other", owner=None, replicas=2),
    )
    plan = decided(snapshot, a_policy(OLD), guards=SURGE)
    assert moved(plan) == ["p"]
    assert refusals(plan) == {"other-n3-0": "no-fit", "other-n3-1": "no-fit"}
