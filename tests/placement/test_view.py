"""What a run has decided, and what kube-scheduler will see when the replacements come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.model.pod import Pod
from rebalancer.placement.occupancy import BucketCache
from rebalancer.placement.profile import DEFAULT, SchedulerConfig, SchedulerProfile
from rebalancer.placement.reasons import Reason
from rebalancer.placement.view import PlacementView
from tests.placement.builders import (
    Document,
    a_node,
    a_pod,
    a_snapshot,
    a_spread,
    a_taint,
    a_term,
    a_view,
    apart,
    on_nodes,
    parsed,
    pod_of,
)

ZONE = "topology.kubernetes.io/zone"


def test_old_pod_of_a_replica_set_still_holds_its_room() -> None:
    """The replacement comes while the old pod is terminating, so it cannot have the old one's room."""
    view = a_view(a_node("n1", "1"), a_node("n2", "500m"), a_pod("p", "600m", on="n1", owner="ReplicaSet/r"))
    prediction = view.replace(pod_of(view, "p"))
    assert prediction.node is None
    assert prediction.filtered == {"n1": "Insufficient cpu", "n2": "Insufficient cpu"}


def test_old_pod_of_a_stateful_set_is_gone_first() -> None:
    """A StatefulSet's replacement comes when the old pod has left, so it may have its room (E1)."""
    view = a_view(a_node("n1", "1"), a_node("n2", "500m"), a_pod("p", "600m", on="n1", owner="StatefulSet/s"))
    assert view.replace(pod_of(view, "p")).landings == {"n1": 1.0}


@pytest.mark.parametrize(("owner", "landings"), [("ReplicaSet/r", {"n2": 1.0}), ("StatefulSet/r", {"n1": 0.5, "n2": 0.5})])
def test_old_pod_and_anti_affinity_against_its_own_kind(owner: str, landings: dict[str, float]) -> None:
    """A terminating pod keeps its siblings away from its node; a StatefulSet's is not there any more."""
    pod = a_pod("p", "1", on="n1", owner=owner, labels={"app": "y"}, affinity=apart(a_term("y")))
    view = a_view(a_node("n1"), a_node("n2"), pod)
    assert view.replace(pod_of(view, "p")).landings == landings


def test_old_pod_and_host_ports() -> None:
    """A terminating pod still holds its host port."""
    view = a_view(a_node("n1"), a_pod("p", on="n1", owner="ReplicaSet/r", ports=[{"containerPort": 1, "hostPort": 80}]))
    assert view.replace(pod_of(view, "p")).refusals == {"ports": 1}


def test_topology_spread_passes_the_old_pod_over() -> None:
    """A terminating pod does not count for topology spread, neither as a filter nor in the score."""
    spread = [a_spread("web", ZONE)]
    web = {"labels": {"app": "web"}, "topologySpreadConstraints": spread, "owner": "ReplicaSet/r"}
    view = a_view(
        a_node("n1", labels={ZONE: "a"}), a_node("n2", labels={ZONE: "b"}), a_pod("p", on="n1", **web), a_pod("q", on="n2", **web)
    )
    assert view.replace(pod_of(view, "p")).filtered == {"n2": "node(s) didn't match pod topology spread constraints"}


def test_asking_changes_nothing() -> None:
    """A question about a replacement leaves the view as it was."""
    view = a_view(a_node("n1", "1"), a_node("n2", "2"), a_pod("p", "600m", on="n1", owner="StatefulSet/s"))
    pod = pod_of(view, "p")
    before = view.predict(pod)
    view.replace(pod)
    assert view.predict(pod) is before


def test_committed_move_takes_room_in_both_places() -> None:
    """After an approval the old pod is terminating where it was and a stand-in holds the landing (E5)."""
    view = a_view(a_node("n1", "2"), a_node("n2", "1"), *[a_pod(name, "900m", on="n1", owner="ReplicaSet/r") for name in "pq"])
    assert view.replace(pod_of(view, "p")).landings == {"n2": 1.0}
    view.commit(pod_of(view, "p"), "n2")
    assert view.replace(pod_of(view, "q")).node is None


def test_committed_move_of_a_stateful_set_frees_its_place() -> None:
    """After the approval of a StatefulSet's pod its old place is free for others."""
    view = a_view(a_node("n1", "1"), a_node("n2", "1"), a_pod("p", "900m", on="n1", owner="StatefulSet/s"))
    view.commit(pod_of(view, "p"), "n2")
    assert view.fits(parsed(a_pod("x", "1")), "n1") is None
    assert view.fits(parsed(a_pod("x", "1")), "n2") == "Insufficient cpu"


def test_terminating_pod_is_not_terminated_twice() -> None:
    """Committing a pod that is on its way out already changes nothing where it is."""
    view = a_view(a_node("n1", "2"), a_pod("p", "900m", on="n1", owner="ReplicaSet/r", deleted=True))
    pod = pod_of(view, "p")
    view.commit(pod, None)
    view.commit(pod, None)
    assert view.fits(parsed(a_pod("x", "1100m")), "n1") is None
    assert view.fits(parsed(a_pod("x", "1101m")), "n1") == "Insufficient cpu"


def test_add_and_remove() -> None:
    """A pod that is added takes its room, removed it gives it back, and adding it elsewhere moves it."""
    view = a_view(a_node("n1", "1"), a_node("n2", "1"))
    pod = parsed(a_pod("p", "900m"))
    view.add(pod, "n1")
    assert view.feasible(pod) == ("n2",)
    view.add(pod, "n2")
    assert view.feasible(pod) == ("n1",)
    view.remove(pod)
    view.remove(pod)
    assert view.feasible(pod) == ("n1", "n2")


def test_fits_may_take_pods_as_gone() -> None:
    """Pods named by uid do not count for one question, wherever they are."""
    view = a_view(a_node("n1", "1"), a_pod("a", "900m", on="n1"), a_pod("b", on="n1", deleted=True))
    pod = parsed(a_pod("p", "1"))
    assert view.fits(pod, "n1") == "Insufficient cpu"
    assert view.objection(pod, "n1") is Reason.RESOURCES
    assert view.fits(pod, "n1", ignore={"uid-default-a", "uid-default-b", "uid-unknown"}) is None
    assert view.fits(pod, "n1") == "Insufficient cpu"


def test_pending_pods_come_first_in_the_order_of_the_queue() -> None:
    """Before any replacement, pending pods take their room: by priority, then the oldest."""
    view = a_view(
        a_node("n1", "1"),
        a_pod("low", "900m", priority=0, created="2026-01-01T00:00:00Z"),
        a_pod("high", "400m", priority=10, created="2026-01-02T00:00:00Z"),
    )
    assert view.fits(parsed(a_pod("x", "600m")), "n1") is None
    assert view.fits(parsed(a_pod("x", "601m")), "n1") == "Insufficient cpu"


def test_nominated_pods_have_their_node() -> None:
    """A pod for which preemption makes room counts where it is nominated, although it does not fit yet."""
    view = a_view(a_node("n1", "1"), a_node("n2", "1"), a_pod("a", "900m", on="n1"), a_pod("p", "900m", nominated="n1"))
    assert view.fits(parsed(a_pod("x", "1")), "n2") is None
    assert view.fits(parsed(a_pod("x", "50m")), "n1") == "Insufficient cpu"


@pytest.mark.parametrize("pod", [a_pod("p", "900m", schedulingGates=[{"name": "g"}]), a_pod("p", "900m", deleted=True)])
def test_pods_that_no_scheduler_looks_at_take_nothing(pod: Document) -> None:
    """Gated and terminating pods do not compete."""
    assert a_view(a_node("n1", "1"), pod).fits(parsed(a_pod("x", "1")), "n1") is None


def daemon(name: str, node: str, **more: object) -> Document:
    """Return a DaemonSet's pod, pinned as its controller pins it."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return a_pod(name, "300m", on=node, owner="DaemonSet/d", affinity=affinity, **more)  # type: ignore[arg-type]


def test_daemons_that_a_fresh_node_has_still_to_start_are_reserved() -> None:
    """A node without a DaemonSet's pod that should have one keeps its room for it; the others do not."""
    tainted = a_node("n3", "1", taints=[a_taint("x")])
    view = a_view(a_node("n1", "1"), a_node("n2", "1"), tainted, daemon("d-n1", "n1"))
    free = parsed(a_pod("x", "701m", tolerations=[{"operator": "Exists"}]))
    assert view.filtered(free) == {"n1": "Insufficient cpu", "n2": "Insufficient cpu"}


def test_daemon_that_selects_its_nodes_is_reserved_there_only() -> None:
    """A DaemonSet's nodeSelector holds for its reservations."""
    objects = [a_node("n1", labels={"gpu": "1"}), a_node("n2", "1"), a_node("n3", "1", labels={"gpu": "1"})]
    view = a_view(*objects, daemon("d-n1", "n1", nodeSelector={"gpu": "1"}))
    assert view.fits(parsed(a_pod("x", "1")), "n2") is None
    assert view.fits(parsed(a_pod("x", "1")), "n3") == "Insufficient cpu"


@pytest.mark.parametrize(("created", "room"), [("2027-01-15T07:50:00Z", False), ("2027-01-15T07:49:59Z", True)])
def test_daemons_are_reserved_on_fresh_nodes_only(created: str, room: bool) -> None:
    """A node that has been there for more than ten minutes runs what it is going to run."""
    view = a_view(a_node("n1"), a_node("n2", "1", created=created), daemon("d-n1", "n1"))
    assert (view.fits(parsed(a_pod("x", "1")), "n2") is None) is room


def test_daemon_pod_that_waits_for_its_node_is_not_reserved_twice() -> None:
    """A pending DaemonSet pod takes its room once."""
    pending = daemon("d-n2", "n2")
    del pending["spec"]["nodeName"]
    pending["status"]["phase"] = "Pending"
    view = a_view(a_node("n1", "1"), a_node("n2", "1"), daemon("d-n1", "n1"), pending)
    assert view.fits(parsed(a_pod("x", "700m")), "n2") is None


@pytest.mark.parametrize(
    "key", ["karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler", "node.cloudprovider.kubernetes.io/uninitialized"]
)
def test_nodes_about_to_be_removed_are_no_destination(key: str) -> None:
    """Even a pod that tolerates everything is not moved to a node that another tool removes; a plain question does not mind."""
    pod = a_pod("p", on="n1", owner="ReplicaSet/r", tolerations=[{"operator": "Exists"}])
    view = a_view(a_node("n1"), a_node("n2", taints=[a_taint(key)]), pod)
    assert view.replace(pod_of(view, "p")).filtered == {"n2": "node(s) are about to be removed"}
    assert view.predict(pod_of(view, "p")).filtered == {}
    assert view.leaving().tolist() == [False, True]


def test_unknown_scheduler_is_judged_by_filters_only() -> None:
    """All nodes that fit are alike for a pod of a scheduler that is not configured, and the answer says why."""
    view = a_view(a_node("n1", "1"), a_node("n2", "8"), a_node("n3", cordoned=True))
    prediction = view.predict(parsed(a_pod("p", schedulerName="mine")))
    assert prediction.landings == {"n1": 0.5, "n2": 0.5}
    assert prediction.scores == {}
    assert prediction.unpredictable == "scheduler 'mine' is not known here, so only filters are judged"


def test_resource_claims_are_unpredictable() -> None:
    """A pod with resource claims is said to be unpredictable."""
    view = a_view(a_node("n1"))
    pod = parsed(a_pod("p", resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}]))
    assert view.predict(pod).unpredictable == "it has resource claims, whose allocation cannot be foreseen"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (SchedulerConfig((SchedulerProfile(foreign=("Mine",)),)), "runs plugins that are not known here: Mine"),
        (SchedulerConfig(extenders=1), "asks extenders"),
        (DEFAULT, None),
    ],
)
def test_what_else_makes_a_scheduler_unpredictable(config: SchedulerConfig, words: str | None) -> None:
    """Foreign plugins and extenders have a say that nothing here can foresee."""
    unpredictable = PlacementView(a_snapshot(a_node("n1")), config).predict(parsed(a_pod("p"))).unpredictable
    assert unpredictable is None if words is None else words in str(unpredictable)


def test_preferred_node_that_is_tainted_is_no_landing() -> None:
    """The landing is where the pod can go, not where it would like to (A1, A2)."""
    spot = a_node("spot-1", labels={"tier": "spot"}, taints=[a_taint("spot")])
    affinity = on_nodes({"key": "tier", "operator": "In", "values": ["spot"]}, preferred=10)
    view = a_view(spot, a_node("od-1"), a_node("od-2"), a_pod("p", "500m", on="od-1", owner="ReplicaSet/r", affinity=affinity))
    prediction = view.replace(pod_of(view, "p"))
    assert prediction.landings == {"od-2": 1.0}
    assert prediction.filtered == {"spot-1": "node(s) had untolerated taint(s)"}


# Following changes


def a_crowd() -> list[Document]:
    """Return a small cluster with every kind of tie between pods."""
    nodes = [a_node(f"n{position}", labels={ZONE: f"z{position % 2}"}) for position in range(4)]
    shapes: list[Document] = [
        {"labels": {"app": "a"}, "affinity": apart(a_term("b", ZONE))},
        {"labels": {"app": "b"}, "ports": [{"containerPort": 1, "hostPort": 80}]},
        {
            "labels": {"app": "c"},
            "topologySpreadConstraints": [a_spread("c", ZONE), a_spread("c", "kubernetes.io/hostname", hard=False)],
        },
        {
            "labels": {"app": "d"},
            "affinity": {
                "podAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 9, "podAffinityTerm": a_term("c", ZONE)}],
                    "requiredDuringSchedulingIgnoredDuringExecution": [a_term("c", ZONE)],
                }
            },
        },
    ]
    pods = [
        a_pod(f"p{number}", "300m", "1Gi", on=f"n{number % 4}", owner=f"{kind}/r{number % 4}", **shapes[number % 4])
        for number, kind in enumerate(["ReplicaSet", "StatefulSet"] * 6)
    ]
    return nodes + pods


CROWD = a_snapshot(*a_crowd())
CROWD_PODS = sorted((pod for pod in CROWD.all_pods()), key=lambda pod: pod.uid)
STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "remove", "commit"]), st.sampled_from(CROWD_PODS), st.sampled_from(list(CROWD.nodes)))
)


def answers(view: PlacementView) -> list[object]:
    """Return all that a view says of every shape."""
    shapes = dict.fromkeys(pod.shape for pod in CROWD_PODS)
    return [(view.filtered(shape), view.scores(shape), view.plugin_scores(shape)) for shape in shapes]


def carry_out(view: PlacementView, steps: list[tuple[str, Pod, str]]) -> None:
    """Do to the view what the steps say."""
    for verb, pod, node in steps:
        if verb == "add":
            view.add(pod, node)
        elif verb == "remove":
            view.remove(pod)
        else:
            view.commit(pod, node)


@given(STEPS)
def test_view_that_follows_says_the_same_as_one_that_starts_late(steps: list[tuple[str, Pod, str]]) -> None:
    """Counts kept up to date from the start equal counts taken at the end."""
    early, late = PlacementView(CROWD), PlacementView(CROWD)
    answers(early)
    carry_out(early, steps)
    for pod in CROWD_PODS:
        early.replace(pod)
    carry_out(late, steps)
    assert answers(early) == answers(late)


@given(STEPS)
def test_what_is_added_and_removed_leaves_no_trace(steps: list[tuple[str, Pod, str]]) -> None:
    """Once every pod is back where it was, every answer is what it was."""
    view = PlacementView(CROWD)
    before = answers(view)
    carry_out(view, [step for step in steps if step[0] != "commit"])
    for pod in CROWD_PODS:
        view.add(pod, str(pod.node))
    assert answers(view) == before


def test_kept_cache_says_the_same_as_a_fresh_one() -> None:
    """What is kept from run to run equals what is read afresh, after pods and nodes came, changed and went."""
    cache = BucketCache()
    everything = a_crowd()
    twins = [a_pod(name, "10m", on="n0", owner="DaemonSet/d", requests={"example.com/gpu": "1"}) for name in ("t1", "t2")]
    for chosen in (
        everything,
        everything[1:9],
        everything[:6],
        [*everything, *twins],
        [*everything, twins[1], a_pod("done", on="n0", phase="Succeeded")],
        [*everything[2:], a_node("n9")],
        everything,
    ):
        snapshot = a_snapshot(*chosen)
        assert answers(PlacementView(snapshot, cache=cache)) == answers(PlacementView(snapshot))


def test_cache_reads_only_buckets_that_changed() -> None:
    """As long as nodes and buckets are the same objects, columns and sums are used again."""
    cache = BucketCache()
    PlacementView(CROWD, cache=cache)
    table = cache.table
    PlacementView(CROWD, cache=cache)
    assert cache.table is table


def test_view_outlives_a_refresh_of_its_cache() -> None:
    """A view whose cache another run has moved on still answers from its own snapshot."""
    cache = BucketCache()
    view = PlacementView(CROWD, cache=cache)
    PlacementView(a_snapshot(*a_crowd()[:5]), cache=cache)
    assert answers(view) == answers(PlacementView(CROWD))


def test_counts_of_many_nodes_equal_counts_of_few() -> None:
    """A kind of pod that is on hundreds of nodes is counted as exactly as one that is on a few."""
    nodes = [a_node(f"n{position:03d}") for position in range(300)]
    pods = [a_pod(f"p{position}", on=f"n{position:03d}", labels={"app": "y"}) for position in range(300)]
    view = a_view(*nodes, *pods)
    pod = parsed(a_pod("x", affinity=apart(a_term("y"))))
    assert view.feasible(pod) == ()
    view.remove(pod_of(view, "p7"))
    assert view.feasible(pod) == ("n007",)
    view.add(pod_of(view, "p7"), "n007")
    assert view.feasible(pod) == ()


def test_shapes_that_reach_every_namespace_are_followed() -> None:
    """A pod whose terms select namespaces by label keeps others away as soon as it is added, wherever they are."""
    view = a_view(a_node("n1"), a_node("n2"))
    first, second = parsed(a_pod("a", labels={"app": "y"})), parsed(a_pod("b", namespace="other", labels={"app": "y"}))
    keeper = parsed(a_pod("k", affinity=apart(a_term("y", namespaceSelector={}))))
    assert view.feasible(first) == ("n1", "n2")
    view.add(keeper, "n1")
    assert view.feasible(first) == view.feasible(second) == ("n2",)
    view.remove(keeper)
    assert view.feasible(first) == view.feasible(second) == ("n1", "n2")


def test_extended_resources_follow() -> None:
    """Extended resources are taken and given back like cpu."""
    view = a_view(a_node("n1", extra={"example.com/gpu": "1"}))
    pod = parsed(a_pod("p", requests={"example.com/gpu": "1"}))
    view.add(pod, "n1")
    assert view.filtered(pod) == {"n1": "Insufficient example.com/gpu"}
    view.remove(pod)
    assert view.feasible(pod) == ("n1",)


def test_every_node_runs_its_daemons() -> None:
    """Where every node has its DaemonSet pod, nothing is reserved."""
    view = a_view(a_node("n1", "1"), a_node("n2", "1"), daemon("d-n1", "n1"), daemon("d-n2", "n2"))
    assert view.feasible(parsed(a_pod("x", "700m"))) == ("n1", "n2")


def test_moving_a_pod_that_is_nowhere() -> None:
    """A pod without a node may be asked about and committed; only its stand-in takes room."""
    view = a_view(a_node("n1", "1"), reserve=False)
    pod = parsed(a_pod("p", "900m", owner="ReplicaSet/r"))
    assert view.replace(pod).landings == {"n1": 1.0}
    view.commit(pod, "n1")
    assert view.replace(pod).node is None
