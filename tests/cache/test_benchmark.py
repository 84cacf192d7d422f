"""The benchmark in a small size: its generator is repeatable and realistic, and it measures what it says."""

from __future__ import annotations

import json
import statistics

import pytest

from benchmarks.cache import rows
from benchmarks.generate import Cluster, Size, as_bytes, pages
from rebalancer.parse.objects import parse_objects

SMALL = Size(nodes=6, pods=300, owners=20)


def test_a_generated_cluster_is_the_same_for_the_same_seed_and_is_read_without_a_problem():
    """Figures of different days compare, and every object is one that the parser accepts."""
    one, other = Cluster(SMALL), Cluster(SMALL)
    objects = [*one.nodes(), *one.owners(), *one.budgets(), *one.other_objects(), *one.pods()]
    assert objects == [*other.nodes(), *other.owners(), *other.budgets(), *other.other_objects(), *other.pods()]
    parsed = parse_objects(objects)
    assert parsed.problems == ()
    assert [len(parsed.of(kind)) for kind in ("Node", "Pod", "ReplicaSet", "PodDisruptionBudget")] == [6, 300, 20, 7]
    assert len({pod.shape for pod in parsed.of("Pod")}) == 20


def test_a_generated_pod_is_as_large_as_real_ones():
    """Some six kilobytes, managed fields and all."""
    cluster = Cluster(SMALL)
    assert 5_500 < statistics.mean(len(as_bytes(cluster.pod(number))) for number in range(50)) < 7_000


def test_pages_hold_everything_once():
    """The last page has no token."""
    found = [json.loads(page) for page in pages(Cluster(SMALL).pods(), "Pod", page_size=128)]
    assert [len(page["items"]) for page in found] == [128, 128, 44]
    assert [bool(page["metadata"]["continue"]) for page in found] == [True, True, False]


@pytest.mark.e2e
def test_the_benchmark_takes_every_pod_over():
    """Counts, not times: what is measured is the whole way."""
    figures = dict(rows(SMALL, 100))
    assert figures["pods known"] == 300
    assert all(value >= 0 for name, value in figures.items() if "memory per pod" not in name)
    assert figures["sync: CPU per pod (us)"] > 0
    assert figures["events: CPU per event (us)"] > 0
