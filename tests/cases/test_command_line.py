"""Chosen cases through the command line: what ``plan`` says of a dump is what the library decides, and nothing is written."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from rebalancer.cli.program import program
from tests.builders import (
    EVICT,
    NOW,
    REQUIRED_AFFINITY,
    Object,
    a_budget,
    a_document,
    a_node,
    a_pod,
    a_priority_class,
    a_spread,
    pinned,
    pods,
    web_pods,
)

LEVEL = {"LowNodeUtilization": {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}}
OLD = {"PodLifeTime": {"maxPodLifeTimeSeconds": 60}}
TWO_NODES = [a_node("n1"), a_node("n2")]

CASES: dict[str, tuple[list[Object], Object, dict[str, int], str]] = {
    "b13": (
        [a_node("a1", zone="a"), a_node("b1", zone="b"), *web_pods({"a1": 3, "b1": 1}, [a_spread()])],
        a_document({"RemovePodsViolatingTopologySpreadConstraint": {}}),
        {"a1": 1},
        "",
    ),
    "e5": (
        [
            a_node("src", cpu="96", memory="192Gi", taints=["new:NoSchedule"]),
            a_node("tgt", cpu="8", memory="16Gi"),
            *pods(10, "src", cpu="8", memory="16Gi"),
        ],
        a_document({"RemovePodsViolatingNodeTaints": {}}),
        {"src": 1},
        "no capacity left on feasible nodes",
    ),
    "f2": (
        [
            *TWO_NODES,
            a_pod("solo", "n1", cpu="450m", app="solo"),
            pinned("load", "n1", "3150m"),
            a_budget("solo", app="solo", allowed=0, healthy=1),
        ],
        a_document(LEVEL),
        {},
        "PodDisruptionBudget ns1/solo",
    ),
    "f7": ([*TWO_NODES, a_pod("p", "n1", annotations={EVICT: "false"})], a_document(OLD), {}, "evict is false"),
    "g5": (
        [*TWO_NODES, a_pod("p", "n1", owner=None, phase="Failed", ended="Error", age=120)],
        a_document({"RemoveFailedPods": {"minPodLifetimeSeconds": 60}}),
        {},
        "no owner",
    ),
    "h1": (
        [*TWO_NODES, a_priority_class("c1", 10), a_pod("low", "n1"), a_pod("high", "n1", priority=10)],
        a_document(OLD, evictor={"priorityThreshold": {"name": "c1"}}),
        {"n1": 1},
        "threshold 10",
    ),
    "h6": (
        [a_node("n1"), a_node("n2", ready=False), a_pod("p", "n1", phase="Failed", ended="Error"), *pods(3, "n1", age=10)],
        a_document({"RemoveFailedPods": {}, "RemoveDuplicates": {}}, singleNode=True),
        {"n1": 1},
        "",
    ),
    "s7": (
        [a_node("n1"), a_node("n2", labels={"disk": "ssd"}), a_pod("p", "n1", spec={"nodeSelector": {"disk": "ssd"}})],
        a_document({"RemovePodsViolatingNodeAffinity": {"nodeAffinityType": [REQUIRED_AFFINITY]}}),
        {"n2": 0, "n1": 1},
        "",
    ),
}


def planned(folder: Path, objects: list[Object], document: Object) -> tuple[int, list[str]]:
    """Write the input down; return the command's arguments."""
    dump, policy = folder / "dump.json", folder / "policy.yaml"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    policy.write_text(json.dumps(document))
    arguments = ["plan", "--from", str(dump), "--policy", str(policy), "--now", NOW.isoformat(), "--placement", "fit"]
    return program([*arguments, "-o", "json"]), arguments


@pytest.mark.parametrize("case", CASES)
def test_a_plan_for_a_dump_is_the_whole_right_answer(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """B13, E5, F2, F7, G5, H1, H6, S7: how many leave which node, and the reason why the others stay; printed as a table too."""
    monkeypatch.delenv("REBALANCER_POLICY_FILE", raising=False)
    objects, document, expected, reason = CASES[case]
    code, arguments = planned(tmp_path, objects, document)
    assert code == 0
    plan = json.loads(capfdbinary.readouterr().out)
    assert Counter(each["node"] for each in plan["approved"]) == +Counter(expected)
    assert not reason or any(reason in each["reason"] for each in plan["refused"])
    assert program(arguments) == 0
    table = capfdbinary.readouterr().out.decode()
    assert all(each["pod"].partition("/")[2] in table for each in plan["approved"])


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (a_document(OLD, evictor={"priorityThreshold": {"name": "c1", "value": 1}}), "only one of value and name"),
        (a_document(OLD, evictor={"priorityThreshold": {"name": "nowhere"}}), "nowhere"),
        (a_document({"LowNodeUtilization": {"thresholds": {"Pods": 1}, "targetThresholds": {"Pods": 2}}}), "pods"),
    ],
    ids=["h1 both", "h1 missing class", "d12"],
)
def test_a_policy_with_a_mistake_ends_with_2_and_names_it(
    document: Object, said: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """H1, D12: the mistake is named with its place, and nothing is decided."""
    code, _ = planned(tmp_path, [*TWO_NODES, a_pod("p", "n1")], document)
    answer = capfdbinary.readouterr()
    assert code == 2
    assert answer.out == b""
    assert said in answer.err.decode()
