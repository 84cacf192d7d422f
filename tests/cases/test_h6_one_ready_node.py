"""Case H6 in the running service, in virtual time: what goes on one Ready node, and what when a second turns Ready."""

from __future__ import annotations

import asyncio

import pytest

from rebalancer.control.happenings import Asked, RunEnded, RunStarted
from rebalancer.model.trigger import TriggerKind
from rebalancer.sim.kinds import NODE
from rebalancer.sim.kubelet import set_node_ready
from tests.control.virtual import Heard
from tests.histories.story import tell
from tests.histories.world import World

POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
{top}
profiles:
- name: default
  pluginConfig:
  - name: RemoveDuplicates
  - name: LowNodeUtilization
    args: {{thresholds: {{cpu: 20}}, targetThresholds: {{cpu: 50}}}}
  - name: RemoveFailedPods
    args: {{minPodLifetimeSeconds: 5}}
  plugins:
    balance: {{enabled: [RemoveDuplicates, LowNodeUtilization]}}
    deschedule: {{enabled: [RemoveFailedPods]}}
"""
OTHERS = ("node-02", "node-03")


def turn(world: World, name: str, ready: bool) -> None:
    """Have a node become Ready, or cease to be."""
    state, reason = ("True", "KubeletReady") if ready else ("False", "KubeletNotReady")
    set_node_ready(world.cluster.registry, name, state, reason, "for this story")


def fail_one(world: World) -> str:
    """Have a pod of a Deployment fail; return its name."""
    pod = next(
        each
        for each in world.cluster.store.objects("pods")
        if each["metadata"]["name"].startswith("steady") and each["status"]["phase"] == "Running"
    )
    failed = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory."}
    world.cluster.store.put("pods", {**pod, "metadata": dict(pod["metadata"]), "status": {**pod["status"], **failed}})
    return str(pod["metadata"]["name"])


def asked(heard: Heard) -> set[tuple[str, str]]:
    """Return the strategies and pods of what was asked for."""
    return {(each.approval.strategy, each.approval.pod.partition("/")[2]) for each in heard.of(Asked)}


@pytest.mark.parametrize("joins", ["turns Ready", "is added"])
@pytest.mark.parametrize("single_node", [True, False], ids=["singleNode", "as upstream"])
def test_h6_a_failed_pod_is_all_that_goes_until_a_second_node_is_ready(single_node: bool, joins: str) -> None:
    """H6: with singleNode only the failed pod goes, without it nothing at all; then the second node is a trigger."""
    heard = Heard()

    async def story(world: World) -> None:
        """Tell what happens."""
        for name in OTHERS:
            node = world.cluster.registry.get(NODE, "", name)
            world.cluster.registry.update(NODE, node, {**node, "spec": {**node["spec"], "unschedulable": True}})
            turn(world, name, ready=False)
        await world.begin(1)
        failed = fail_one(world)
        await asyncio.sleep(90)
        assert asked(heard) == ({("RemoveFailedPods", failed)} if single_node else set())
        assert len(heard.of(RunEnded)) > 1, "the process keeps running, and looking"
        assert not world.failures()
        runs = len(heard.of(RunStarted))
        if joins == "is added":
            world.cluster.add_node("node-04")
        else:
            node = world.cluster.registry.get(NODE, "", OTHERS[0])
            world.cluster.registry.update(NODE, node, {**node, "spec": {**node["spec"], "unschedulable": False}})
            turn(world, OTHERS[0], ready=True)
        await asyncio.sleep(60)
        causes = {trigger.kind for run in heard.of(RunStarted)[runs:] for trigger in run.batch.triggers}
        assert causes & {TriggerKind.NODE_JOINED, TriggerKind.NODE_CHANGED}
        strategies = {strategy for strategy, _ in asked(heard)}
        assert strategies & {"RemoveDuplicates", "LowNodeUtilization"}
        assert ("RemoveFailedPods", failed) in asked(heard)

    tell(story, policy=POLICY.format(top="singleNode: true" if single_node else ""), listener=heard)
