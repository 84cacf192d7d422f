"""How often kube-scheduler 1.36 found one of five empty nodes among 90 to 1,000, against our landings: cases/*.json.gz."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest

from rebalancer.parse.objects import parse_objects
from rebalancer.placement.api import place

CASES = sorted((Path(__file__).parent / "cases").glob("*.json.gz"))
RARE = 0.025


def objects(case: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the cluster: nodes in three zones, each with one pod that stands for all that is requested there."""
    found: list[dict[str, Any]] = []
    for position in range(case["nodes"]):
        name = f"w{position:04d}"
        labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"z{position % 3}"}
        found.append(
            {"kind": "Node", "metadata": {"name": name, "labels": labels}, "status": {"allocatable": case["allocatable"]}}
        )
        if cpu := case["cpuRequestedMilli"].get(name):
            requests = {"cpu": f"{cpu}m", "memory": f"{case['memoryRequestedMi'][name]}Mi"}
            found.append(a_pod(f"load-{name}", requests, node=name))
    return found


def a_pod(name: str, requests: dict[str, str], node: str | None = None) -> dict[str, Any]:
    """Return a pod with one container."""
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": "img", "resources": {"requests": requests}}]}
    if node:
        spec["nodeName"] = node
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec}


def at_most(hits: int, tries: int, share: float) -> float:
    """Return the probability of so many hits or fewer."""
    return sum(math.comb(tries, k) * share**k * (1 - share) ** (tries - k) for k in range(hits + 1))


@pytest.mark.parametrize("path", CASES, ids=[path.name.removesuffix(".json.gz") for path in CASES])
def test_expected_share_is_within_the_binomial_error(path: Path) -> None:
    """What sixty tries did is not in the rare tails of what we expect."""
    case = json.loads(gzip.decompress(path.read_bytes()))
    (pod,) = parse_objects([a_pod("new", case["pod"])]).of("Pod")
    placement = place(parse_objects(objects(case)).snapshot(now=0.0), pod)
    expected = min(1.0, sum(placement.landings.get(node, 0.0) for node in case["emptyNodes"]))
    chosen = case["kubeScheduler"]["chosen"]
    hits = sum(node in case["emptyNodes"] for node in chosen)
    assert set(placement.tied) == set(case["emptyNodes"])
    assert at_most(hits, len(chosen), expected) > RARE
    assert 1 - at_most(hits - 1, len(chosen), expected) > RARE
