"""Which nodes could take a pod, against a second implementation of the filters: recorded clusters, pods of other clusters."""

from __future__ import annotations

import copy
import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

import rebalancer
from tests.attack.reference_filters import Filters
from tests.attack.twists import twisted
from tests.conformance.recorded import names, scenario

CASES = sorted((Path(__file__).parents[1] / "conformance" / "scheduler" / "cases").glob("*.json.gz"))
ROUNDS = 25


def a_case(rng: random.Random) -> dict[str, Any]:
    """Return a recorded cluster with the pod that was placed in it."""
    found: dict[str, Any] = json.loads(gzip.decompress(rng.choice(CASES).read_bytes()))
    return found


def a_pod_of_elsewhere(rng: random.Random) -> dict[str, Any]:
    """Return a pod of another cluster as it would be created anew, without claims, whose binding is another matter."""
    if rng.random() < 0.5:
        pod = {"kind": "Pod", **a_case(rng)["pod"]}
    else:
        objects = a_case(rng)["objects"] if rng.random() < 0.5 else scenario(rng.choice(names())).document["objects"]
        pod = copy.deepcopy(rng.choice([each for each in objects if each["kind"] == "Pod"]))
    return pod


def incoming(pod: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return the pod under a name of its own."""
    pod["metadata"] = {**pod["metadata"], "name": "incoming", "uid": "incoming"}
    pod["metadata"].pop("deletionTimestamp", None)
    pod["metadata"].setdefault("namespace", rng.choice(["alpha", "beta", "default"]))
    for field in ("nodeName", "resourceClaims"):
        pod["spec"].pop(field, None)
    volumes = pod["spec"].get("volumes") or ()
    pod["spec"]["volumes"] = [each for each in volumes if not {"persistentVolumeClaim", "ephemeral"} & set(each)]
    return pod


@pytest.mark.parametrize("odd", [False, True], ids=["as recorded", "twisted"])
@pytest.mark.parametrize("seed", range(6))
def test_the_same_nodes_pass_as_a_second_implementation_says(seed: int, odd: bool) -> None:
    """Feasible nodes are equal in every round, with some rounds where all fit, some, and none."""
    rng = random.Random(f"filters {seed} {odd}")
    outcomes: set[str] = set()
    for _ in range(ROUNDS):
        objects = a_case(rng)["objects"]
        pod = a_pod_of_elsewhere(rng)
        if odd:
            objects, (pod,) = twisted(objects, rng), twisted([pod], rng)
        pod = incoming(pod, rng)
        nodes = {each["metadata"]["name"] for each in objects if each["kind"] == "Node"}
        theirs = Filters(objects, pod).feasible()
        assert nodes - set(rebalancer.place(objects, pod).filtered) == theirs, json.dumps(pod)
        outcomes.add("all" if theirs == nodes else "some" if theirs else "none")
    assert {"some", "none"} <= outcomes
