"""What kube-scheduler would most likely do with one pod: a value with everything worked out on demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import compress

import numpy as np

from rebalancer.placement.arrays import Floats, Ints
from rebalancer.placement.judging import Judgement
from rebalancer.placement.landings import LandingWeights, landing_weights, nodes_to_score
from rebalancer.placement.reasons import Reason, message


@dataclass(frozen=True)
class Prediction:
    """Where one pod would go.

    judgement: what filters and scores said, over all nodes. percentage_to_score: as the profile has it.
    unpredictable: why the scores cannot be relied upon (an unknown scheduler, resource claims), None where they can.
    """

    judgement: Judgement
    percentage_to_score: int = 0
    unpredictable: str | None = None

    @cached_property
    def feasible(self) -> tuple[str, ...]:
        """The nodes that fit, by name."""
        return tuple(compress(self.judgement.names, self.judgement.feasible.tolist()))

    @cached_property
    def _positions(self) -> Ints:
        return np.flatnonzero(self.judgement.feasible)

    @cached_property
    def _totals(self) -> Ints:
        scores = self.judgement.scores
        if scores is None:
            return np.zeros(len(self._positions), dtype=np.int64)
        return scores.total[self._positions]

    @cached_property
    def weights(self) -> Floats:
        """The probability of each node of the cluster, by position; all zero where none fits."""
        weights: Floats = np.zeros(len(self.judgement.names))
        if len(self._positions):
            sampled = len(self._positions)
            if self.unpredictable is None:
                sampled = nodes_to_score(self.judgement.candidates, self.percentage_to_score)
            weights[self._positions] = landing_weights(self._totals, sampled)
        return weights

    @cached_property
    def landings(self) -> Mapping[str, float]:
        """Node to probability, summing to 1; empty where none fits."""
        return LandingWeights(self.judgement.names, self.weights)

    def ranked(self) -> Iterator[tuple[str, float]]:
        """Yield node and probability of the landings, the likeliest first, those alike by name."""
        names, weights = self.judgement.names, self.weights
        likely = np.flatnonzero(weights)
        order = likely[np.argsort(-weights[likely], kind="stable")]
        return zip((names[position] for position in order.tolist()), weights[order].tolist(), strict=True)

    @cached_property
    def tied(self) -> tuple[str, ...]:
        """The nodes with the best score, by name."""
        if not len(self._positions):
            return ()
        best = self._positions[self._totals == self._totals.max()]
        return tuple(self.judgement.names[position] for position in best.tolist())

    @property
    def node(self) -> str | None:
        """The most likely node, the first by name where several are alike; None where none fits."""
        return self.tied[0] if self.tied else None

    @cached_property
    def scores(self) -> Mapping[str, int]:
        """Node to final score; empty unless at least two nodes fit, for then nothing is scored."""
        if self.judgement.scores is None:
            return {}
        return {name: int(total) for name, total in zip(self.feasible, self._totals, strict=True)}

    @cached_property
    def plugin_scores(self) -> Mapping[str, Mapping[str, int]]:
        """Node to plugin to its weighted score; empty where nothing is scored."""
        scores = self.judgement.scores
        if scores is None:
            return {}
        return {
            self.judgement.names[position]: {plugin: int(values[position]) for plugin, values in scores.plugins.items()}
            for position in self._positions.tolist()
        }

    @cached_property
    def filtered(self) -> Mapping[str, str]:
        """Node to the reason why it is out, in kube-scheduler's words."""
        judgement = self.judgement
        return {
            judgement.names[position]: ", ".join(judgement.reasons(position))
            for position in np.flatnonzero(judgement.codes != Reason.FITS).tolist()
        }

    @cached_property
    def refusals(self) -> Mapping[str, int]:
        """How many nodes are out, by the stable code of the reason."""
        codes, counts = np.unique(self.judgement.codes, return_counts=True)
        return {Reason(int(code)).code: int(count) for code, count in zip(codes, counts, strict=True) if code != Reason.FITS}

    @property
    def message(self) -> str:
        """The sentence that kube-scheduler would write about the nodes that are out."""
        return message(len(self.judgement.names), self.judgement.complaints())
