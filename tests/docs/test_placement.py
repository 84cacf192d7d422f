"""What the placement page says about large clusters is what a plan says."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import rebalancer
from tests.docs.pages import DOCS

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
POLICY = {
    "apiVersion": "descheduler/v1alpha2",
    "kind": "DeschedulerPolicy",
    "profiles": [
        {
            "name": "default",
            "pluginConfig": [
                {"name": "LowNodeUtilization", "args": {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}},
            ],
            "plugins": {"balance": {"enabled": ["LowNodeUtilization"]}},
        }
    ],
}


def a_cluster(*, busy: int, new: int) -> list[dict[str, Any]]:
    """Return nodes of 4 cores, the busy ones requested to 60 % by four pods of owners of their own, the new ones empty."""
    objects: list[dict[str, Any]] = []
    for number in range(busy + new):
        node = f"node-{number:04}"
        size = {"cpu": "4", "memory": "16Gi", "pods": "110"}
        objects.append(
            {
                "kind": "Node",
                "metadata": {"name": node, "uid": node, "labels": {"kubernetes.io/hostname": node}},
                "status": {"allocatable": size, "capacity": size, "conditions": [{"type": "Ready", "status": "True"}]},
            }
        )
        for place in range(4 if number < busy else 0):
            name = f"pod-{number}-{place}"
            owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": f"owner-{name}", "controller": True}
            container = {"name": "main", "image": "main", "resources": {"requests": {"cpu": "600m"}}}
            objects.append(
                {
                    "kind": "Pod",
                    "metadata": {"name": name, "namespace": "shop", "uid": name, "ownerReferences": [owner]},
                    "spec": {"nodeName": node, "schedulerName": "default-scheduler", "containers": [container]},
                    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
                }
            )
    return objects


def share_in_table(nodes: str, column: int) -> int:
    """Return a percentage of the table: by the number of nodes as written, and the column of so many new nodes."""
    (row,) = re.findall(rf"^\| {nodes} \| .*$", (DOCS / "placement.md").read_text(), re.MULTILINE)
    return int(row.split("|")[3 + column].strip().rstrip("%"))


def test_two_new_nodes_among_two_hundred_are_found_too_seldom() -> None:
    """Pods that improve on the new nodes only stay, as no-gain; a pod lands there with the probability that the table gives."""
    objects = a_cluster(busy=198, new=2)
    plan = rebalancer.evaluate(objects, POLICY, now=NOW)
    assert plan.approved == ()
    assert set(plan.refused_counts) == {"no-gain"}
    pod = {**objects[-3], "metadata": {"name": "another", "namespace": "shop"}, "spec": {**objects[-3]["spec"], "nodeName": None}}
    landings = rebalancer.place(objects, pod).landings
    assert round(sum(landings[node] for node in ("node-0198", "node-0199")) * 100) == share_in_table("200", 1)


def test_ten_new_nodes_among_two_hundred_are_found() -> None:
    """There the table says nearly certainly, and pods move."""
    assert share_in_table("200", 3) >= 95
    assert rebalancer.evaluate(a_cluster(busy=190, new=10), POLICY, now=NOW).approved


def test_fit_asks_for_less() -> None:
    """The same pods move, although not all of them will land on the new nodes."""
    plan = rebalancer.evaluate(a_cluster(busy=198, new=2), POLICY, now=NOW, placement="fit")
    assert plan.approved
    new = {"node-0198", "node-0199"}
    assert all(sum(share for node, share in each.landings.items() if node in new) < 0.95 for each in plan.approved)


def test_below_a_hundred_nodes_every_node_is_scored() -> None:
    """One new node is enough."""
    plan = rebalancer.evaluate(a_cluster(busy=49, new=1), POLICY, now=NOW)
    assert plan.approved
    assert dict(plan.approved[0].landings) == {"node-0049": 1.0}
