"""Where a pod may land: ties, and the sample that large clusters are scored by."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.placement.landings import landing_weights, nodes_to_score


@pytest.mark.parametrize(
    ("nodes", "percentage", "scored"),
    [
        (1, 0, 1),
        (99, 0, 99),
        (100, 0, 100),
        (101, 0, 100),
        (200, 0, 100),
        (500, 0, 230),
        (1_000, 0, 420),
        (5_000, 0, 500),
        (5_625, 0, 281),
        (10_000, 0, 500),
        (5_000, 100, 5_000),
        (5_000, 1, 100),
        (50, 10, 50),
    ],
)
def test_how_many_nodes_are_scored(nodes: int, percentage: int, scored: int) -> None:
    """All below 100 and never fewer above; the configured share, or 50 % less one for every 125 nodes, at least 5 %."""
    assert nodes_to_score(nodes, percentage) == scored


def test_ties_share_equally() -> None:
    """Where all nodes are scored, the best share and the others get nothing."""
    assert landing_weights(np.array([3, 5, 5, 1]), 4).tolist() == [0.0, 0.5, 0.5, 0.0]


def test_one_of_five_best_is_usually_in_the_sample() -> None:
    """With 46 % of 500 nodes sampled, one of five is found 95 % of the time."""
    weights = landing_weights(np.array([9] * 5 + [1] * 495), 230)
    assert weights[:5].sum() == pytest.approx(1 - math.comb(495, 230) / math.comb(500, 230))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=7), st.integers(1, 8))
def test_weights_are_those_of_all_samples(scores: list[int], sampled: int) -> None:
    """The weights are what averaging over every possible sample gives."""
    size = min(sampled, len(scores))
    samples = list(combinations(range(len(scores)), size))
    expected = [0.0] * len(scores)
    for sample in samples:
        best = max(scores[position] for position in sample)
        winners = [position for position in sample if scores[position] == best]
        for position in winners:
            expected[position] += 1 / len(winners) / len(samples)
    assert landing_weights(np.array(scores), sampled).tolist() == pytest.approx(expected)


@given(st.lists(st.integers(0, 900), min_size=1, max_size=400), st.integers(1, 200))
def test_weights_sum_to_one(scores: list[int], sampled: int) -> None:
    """Whatever the scores, the weights are probabilities."""
    weights = landing_weights(np.array(scores), sampled)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)
