"""Controllers, scheduler and kubelets in virtual time: what people expect of a cluster happens, and in order."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rebalancer.sim.cluster import EmbeddedCluster
from rebalancer.sim.deletion import DeleteOptions, delete
from rebalancer.sim.eviction import evict
from rebalancer.sim.kinds import BUDGET, DAEMON_SET, DEPLOYMENT, JOB, NODE, POD, STATEFUL_SET
from rebalancer.sim.nodes import NodeShape
from rebalancer.sim.problems import ApiProblem
from rebalancer.sim.scheduler import feasible_wanted

pytestmark = pytest.mark.looptime

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def virtual(**more: Any) -> EmbeddedCluster:
    """A cluster without sockets whose clock is the event loop's."""
    return EmbeddedCluster(
        seed=5, sockets=False, clock=lambda: BEGIN + timedelta(seconds=asyncio.get_running_loop().time()), **more
    )


async def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    """Let time pass until something holds."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not holds():
        assert loop.time() < end, "it never held"
        await asyncio.sleep(0.05)


def workload(name: str, replicas: int | None = None, cpu: str = "100m", **template: Any) -> dict[str, Any]:
    """A workload whose pods ask for some CPU."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    spec = {"containers": [container], **template}
    labels = {"app": name}
    body: dict[str, Any] = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}}
    return {"metadata": {"name": name}, "spec": body | ({} if replicas is None else {"replicas": replicas})}


def pods(cluster: EmbeddedCluster, app: str) -> list[dict[str, Any]]:
    """The pods of a workload."""
    return [pod for pod in cluster.store.objects("pods") if (pod["metadata"].get("labels") or {}).get("app") == app]


def ready(cluster: EmbeddedCluster, app: str) -> list[dict[str, Any]]:
    """Its ready pods."""
    return [
        pod
        for pod in pods(cluster, app)
        if any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", ()))
        and "deletionTimestamp" not in pod["metadata"]
    ]


async def test_a_deployment_spreads_its_pods_over_the_nodes() -> None:
    """Three replicas on three equal nodes: one each, by the scheduler's default spreading."""
    async with virtual(nodes=3) as cluster:
        cluster.registry.create(DEPLOYMENT, "default", workload("web", 3))
        await until(lambda: len(ready(cluster, "web")) == 3)
        assert len({pod["spec"]["nodeName"] for pod in pods(cluster, "web")}) == 3


async def test_an_evicted_pod_is_replaced_while_it_terminates() -> None:
    """The ReplicaSet creates the replacement at once, not when the old pod is gone."""
    async with virtual(nodes=2) as cluster:
        cluster.registry.create(DEPLOYMENT, "default", workload("web", 2))
        await until(lambda: len(ready(cluster, "web")) == 2)
        name = pods(cluster, "web")[0]["metadata"]["name"]
        evict(cluster.registry, "default", name, {"metadata": {"name": name}})
        await asyncio.sleep(0.1)
        assert len(pods(cluster, "web")) == 3
        await until(lambda: len(ready(cluster, "web")) == 2 and len(pods(cluster, "web")) == 2)
        assert cluster.store.get("pods", "default", name) is None


async def test_a_rollout_keeps_within_its_limits() -> None:
    """At no moment are fewer pods available, or more there, than the strategy says."""
    async with virtual(nodes=3) as cluster:
        cluster.registry.create(DEPLOYMENT, "default", workload("web", 4))
        await until(lambda: len(ready(cluster, "web")) == 4)
        low, high = [4], [4]

        def measure(_: Any) -> None:
            """Keep the extremes."""
            low[0] = min(low[0], len(ready(cluster, "web")))
            living = [pod for pod in pods(cluster, "web") if "deletionTimestamp" not in pod["metadata"]]
            high[0] = max(high[0], len(living))

        cluster.store.listen("pods", measure)

        def change(obj: dict[str, Any]) -> None:
            """Ask for another image."""
            obj["spec"]["template"]["spec"]["containers"][0]["image"] = "i:2"

        cluster.registry.modify(DEPLOYMENT, "default", "web", change)

        def done() -> bool:
            """Say whether the rollout is over."""
            images = {pod["spec"]["containers"][0]["image"] for pod in pods(cluster, "web")}
            return images == {"i:2"} and len(ready(cluster, "web")) == 4

        await until(done, 120)
        assert (low[0], high[0]) == (3, 5)


async def test_a_stateful_set_replaces_a_pod_only_when_the_old_one_is_gone() -> None:
    """Ordinals stay: the new pod has the old name, and never is there a second one."""
    async with virtual(nodes=2) as cluster:
        asked = workload("db", 2)
        asked["spec"]["serviceName"] = "db"
        cluster.registry.create(STATEFUL_SET, "default", asked)
        await until(lambda: len(ready(cluster, "db")) == 2)
        old = cluster.registry.get(POD, "default", "db-0")["metadata"]["uid"]
        evict(cluster.registry, "default", "db-0", {"metadata": {"name": "db-0"}})
        await asyncio.sleep(0.1)
        assert len(pods(cluster, "db")) == 2
        await until(lambda: len(ready(cluster, "db")) == 2)
        assert cluster.registry.get(POD, "default", "db-0")["metadata"]["uid"] != old


async def test_a_daemon_set_follows_the_nodes() -> None:
    """A pod on each node, also on one that joins; none where a taint forbids it."""
    async with virtual(nodes=2) as cluster:
        cluster.add_node("kept-free", shape=NodeShape(taints=({"key": "k", "effect": "NoSchedule"},)), ready=True)
        cluster.registry.create(DAEMON_SET, "default", workload("agent"))
        await until(lambda: len(ready(cluster, "agent")) == 2)
        cluster.add_node("late")
        await until(lambda: len(ready(cluster, "agent")) == 3)
        assert {pod["spec"]["nodeName"] for pod in pods(cluster, "agent")} == {"node-01", "node-02", "late"}


async def test_a_job_ends() -> None:
    """Its pod runs to its end and the Job is Complete."""
    async with virtual(nodes=1) as cluster:
        spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
        cluster.registry.create(JOB, "default", {"metadata": {"name": "once"}, "spec": spec})
        await until(lambda: bool(cluster.registry.get(JOB, "default", "once").get("status", {}).get("conditions")))
        status = cluster.registry.get(JOB, "default", "once")["status"]
        assert (status["succeeded"], status["conditions"][0]["type"]) == (1, "Complete")


@pytest.mark.parametrize(
    ("spec", "expected", "desired", "allowed"),
    [
        ({"minAvailable": 2}, 3, 2, 1),
        ({"minAvailable": 3}, 3, 3, 0),
        ({"minAvailable": "50%"}, 3, 2, 1),
        ({"maxUnavailable": 1}, 3, 2, 1),
        ({"maxUnavailable": "34%"}, 3, 1, 2),
        ({"maxUnavailable": 0}, 3, 3, 0),
    ],
    ids=["some must stay", "all must stay", "half rounded up", "one may go", "a share rounded up", "none may go"],
)
async def test_a_budget_counts(spec: dict[str, Any], expected: int, desired: int, allowed: int) -> None:
    """Percentages are of what the owners want, rounded up; the rest is what may go."""
    async with virtual(nodes=2) as cluster:
        cluster.registry.create(DEPLOYMENT, "default", workload("web", 3))
        budget = {"metadata": {"name": "b"}, "spec": {**spec, "selector": {"matchLabels": {"app": "web"}}}}
        cluster.registry.create(BUDGET, "default", budget)
        await until(lambda: len(ready(cluster, "web")) == 3)
        await asyncio.sleep(1)
        status = cluster.registry.get(BUDGET, "default", "b")["status"]
        assert (status["expectedPods"], status["desiredHealthy"], status["disruptionsAllowed"]) == (expected, desired, allowed)


async def test_a_spent_budget_recovers_when_the_replacement_is_ready() -> None:
    """After an eviction the next is refused until the replacement is Ready."""
    async with virtual(nodes=2) as cluster:
        cluster.registry.create(DEPLOYMENT, "default", workload("web", 3))
        budget = {"metadata": {"name": "b"}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}}
        cluster.registry.create(BUDGET, "default", budget)
        await until(lambda: len(ready(cluster, "web")) == 3)
        await asyncio.sleep(1)
        first, second = (pod["metadata"]["name"] for pod in ready(cluster, "web")[:2])
        evict(cluster.registry, "default", first, {"metadata": {"name": first}})
        with pytest.raises(ApiProblem) as caught:
            evict(cluster.registry, "default", second, {"metadata": {"name": second}})
        assert caught.value.code == 429
        await until(lambda: cluster.registry.get(BUDGET, "default", "b")["status"]["disruptionsAllowed"] == 1)
        evict(cluster.registry, "default", second, {"metadata": {"name": second}})


async def test_a_budget_over_pods_whose_owner_is_unknown_fails_to_sync() -> None:
    """A percentage needs the owner's scale; without it nothing may go, and the condition says so."""
    async with virtual(nodes=1) as cluster:
        owner = {"apiVersion": "x.io/v1", "kind": "Thing", "name": "t", "uid": "u", "controller": True}
        pod = workload("solo")["spec"]["template"]
        pod["metadata"] |= {"name": "solo", "ownerReferences": [owner]}
        cluster.registry.create(POD, "default", pod)
        budget = {"metadata": {"name": "b"}, "spec": {"maxUnavailable": "50%", "selector": {"matchLabels": {"app": "solo"}}}}
        cluster.registry.create(BUDGET, "default", budget)
        await asyncio.sleep(5)
        status = cluster.registry.get(BUDGET, "default", "b")["status"]
        assert status["disruptionsAllowed"] == 0
        assert status["conditions"][0]["reason"] == "SyncFailed"


async def test_a_node_that_falls_silent_loses_its_pods_after_five_minutes() -> None:
    """Ready becomes Unknown, the taints follow, the default tolerations run out, the pods go elsewhere."""
    async with virtual(nodes=2) as cluster:
        cluster.registry.create(DEPLOYMENT, "default", workload("web", 2))
        await until(lambda: len(ready(cluster, "web")) == 2)
        cluster.lose_node("node-01")
        await asyncio.sleep(1)
        taints = cluster.registry.get(NODE, "", "node-01")["spec"]["taints"]
        assert {(taint["key"], taint["effect"]) for taint in taints} == {
            ("node.kubernetes.io/unreachable", "NoSchedule"),
            ("node.kubernetes.io/unreachable", "NoExecute"),
        }
        await asyncio.sleep(290)
        assert all("deletionTimestamp" not in pod["metadata"] for pod in pods(cluster, "web"))
        await asyncio.sleep(20)
        living = [pod for pod in pods(cluster, "web") if "deletionTimestamp" not in pod["metadata"]]
        assert {pod["spec"]["nodeName"] for pod in living} == {"node-02"}


async def test_a_cordoned_node_takes_no_more_pods_and_a_full_one_neither() -> None:
    """What fits nowhere stays pending, says why, and is placed once there is room."""
    async with virtual(nodes=2, shape=NodeShape(cpu="1", memory="4Gi")) as cluster:
        cluster.registry.modify(NODE, "", "node-02", lambda node: node["spec"].__setitem__("unschedulable", True))
        cluster.registry.create(DEPLOYMENT, "default", workload("web", 3, cpu="400m"))
        await until(lambda: len(ready(cluster, "web")) == 2)
        await asyncio.sleep(3)
        assert {pod["spec"]["nodeName"] for pod in ready(cluster, "web")} == {"node-01"}
        (pending,) = [pod for pod in pods(cluster, "web") if not pod["spec"].get("nodeName")]
        (condition,) = [c for c in pending["status"]["conditions"] if c["type"] == "PodScheduled"]
        assert condition["message"] == "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."
        cluster.registry.modify(NODE, "", "node-02", lambda node: node["spec"].pop("unschedulable"))
        await until(lambda: len(ready(cluster, "web")) == 3)


@pytest.mark.parametrize(
    ("template", "nodes"),
    [
        ({"nodeSelector": {"topology.kubernetes.io/zone": "zone-b"}}, {"node-02", "node-04"}),
        (
            {
                "affinity": {
                    "podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"app": "web"}}}
                        ]
                    }
                }
            },
            None,
        ),
    ],
    ids=["a node selector", "one pod per zone"],
)
async def test_placement_obeys_what_pods_ask_for(template: dict[str, Any], nodes: set[str] | None) -> None:
    """Node selectors and required anti-affinity are honoured."""
    async with virtual(nodes=4, zones=2) as cluster:
        cluster.registry.create(DEPLOYMENT, "default", workload("web", 2, **template))
        await until(lambda: len(ready(cluster, "web")) == 2)
        found = {pod["spec"]["nodeName"] for pod in pods(cluster, "web")}
        if nodes is not None:
            assert found <= nodes
        zones = Counter(
            cluster.registry.get(NODE, "", name)["metadata"]["labels"]["topology.kubernetes.io/zone"] for name in found
        )
        assert nodes is not None or set(zones.values()) == {1}


async def test_what_an_owner_leaves_behind_is_collected() -> None:
    """Deleting a Deployment deletes its ReplicaSet and pods."""
    async with virtual(nodes=1) as cluster:
        cluster.registry.create(DEPLOYMENT, "default", workload("web", 2))
        await until(lambda: len(ready(cluster, "web")) == 2)
        delete(cluster.registry, DEPLOYMENT, "default", "web", DeleteOptions())
        await until(lambda: not pods(cluster, "web") and not list(cluster.store.objects("replicasets.apps")))


async def test_a_pod_that_never_gets_ready_says_so() -> None:
    """The annotation keeps a pod Running and not Ready, for tests of replacements that fail."""
    async with virtual(nodes=1) as cluster:
        asked = workload("web", 1)
        asked["spec"]["template"]["metadata"]["annotations"] = {"sim.rebalancer.io/never-ready": "true"}
        cluster.registry.create(DEPLOYMENT, "default", asked)
        await asyncio.sleep(30)
        (pod,) = pods(cluster, "web")
        assert pod["status"]["phase"] == "Running"
        assert ready(cluster, "web") == []


@pytest.mark.parametrize(
    ("nodes", "wanted"),
    [(0, 0), (99, 99), (100, 100), (150, 100), (500, 230), (1000, 420), (5000, 500), (10000, 500)],
)
def test_the_scheduler_scores_a_sample_of_large_clusters(nodes: int, wanted: int) -> None:
    """All below 100 nodes, at least 100 from there on, 50 % less a percent for each 125 nodes, never below 5 %."""
    assert feasible_wanted(nodes) == wanted


async def test_equal_seeds_give_equal_clusters() -> None:
    """Names, uids and placements repeat with the seed."""

    async def placed() -> set[tuple[str, str]]:
        """Return uids and nodes."""
        async with virtual(nodes=3) as cluster:
            cluster.registry.create(DEPLOYMENT, "default", workload("web", 5))
            await until(lambda: len(ready(cluster, "web")) == 5)
            return {(pod["metadata"]["uid"], pod["spec"]["nodeName"]) for pod in pods(cluster, "web")}

    assert await placed() == await placed()


async def test_events_go_after_an_hour() -> None:
    """An Event stays for an hour after it was last written, and not much longer."""
    async with virtual(nodes=1) as cluster:
        cluster.registry.create(DEPLOYMENT, "default", workload("web", 1))
        await until(lambda: len(ready(cluster, "web")) == 1)
        assert cluster.store.count("events") > 0
        await asyncio.sleep(3500)
        assert cluster.store.count("events") > 0
        await asyncio.sleep(300)
        assert cluster.store.count("events") == 0
