"""Where a pod would go, and whether that is good enough: the placement view asked as the mode demands.

off: only a profile's own ``nodeFit: true`` asks for a fit; approved pods vanish, as upstream's dry run has it.
fit: some other node fits, with room reserved. required: nearly every landing that kube-scheduler may choose is an improvement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from rebalancer.eligibility.arguments import DefaultEvictorArgs
from rebalancer.eligibility.objection import Objection
from rebalancer.model.node import Node
from rebalancer.model.plan import PlacementMode
from rebalancer.model.pod import Pod, PodShape
from rebalancer.model.snapshot import Snapshot
from rebalancer.placement.arrays import Bools
from rebalancer.placement.occupancy import BucketCache
from rebalancer.placement.prediction import Prediction
from rebalancer.placement.profile import SchedulerConfig
from rebalancer.placement.reasons import Reason, message
from rebalancer.placement.view import PlacementView
from rebalancer.strategies.view import Aim, Demand

SURE = 0.95
"""The share of the landings, by weight, that have to be an improvement."""

_ROUNDING = 1e-9
_MOST_PREDICTIONS = 64
_MOST_MASKS = 64


@dataclass(frozen=True, slots=True)
class Landing:
    """The answer for one pod. node: where its replacement most likely goes; None where none is needed or asked for."""

    objection: Objection | None = None
    landings: Mapping[str, float] | None = None
    node: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Misfit:
    """The scheduler's sentence about the nodes that do not fit, made when somebody reads it; the prediction is not kept."""

    nodes: int
    complaints: Mapping[str, int]

    @classmethod
    def of(cls, prediction: Prediction) -> Misfit:
        """Return what a prediction says of the nodes that do not fit."""
        judgement = prediction.judgement
        return cls(len(judgement.names), judgement.complaints())

    def __str__(self) -> str:
        sentence = message(self.nodes, self.complaints)
        full = any(text.startswith("Insufficient ") or text == "Too many pods" for text in self.complaints)
        return f"no capacity left on feasible nodes; {sentence}" if full else sentence


def demand_of(mode: PlacementMode, node_fit: bool | None) -> Demand:
    """Return what is asked of landings: ``nodeFit: false`` asks for nothing in any mode, ``true`` for a fit at least."""
    if node_fit is False:
        return Demand.NOTHING
    if mode is PlacementMode.REQUIRED:
        return Demand.IMPROVEMENT
    if mode is PlacementMode.FIT or node_fit:
        return Demand.FIT
    return Demand.NOTHING


def as_upstream_fits(shape: PodShape) -> PodShape:
    """Return the shape reduced to what upstream's NodeFit looks at.

    Cordon, taints, node affinity, resources, and the pod's own required anti-affinity against pods on that one node; ports,
    volumes, pod affinity, spread and the rules of others are passed over.
    Source: https://github.com/kubernetes-sigs/descheduler#node-fit-filtering
    """
    own = tuple(replace(term, topology_key="kubernetes.io/hostname") for term in shape.anti_affinity)
    return replace(
        shape,
        labels={},
        scheduler_name="",
        affinity=(),
        anti_affinity=own,
        preferred_affinity=(),
        preferred_anti_affinity=(),
        spread=(),
        host_ports=(),
        volumes=(),
        resource_claims=False,
    )


def _but_for_others(prediction: Prediction) -> Bools:
    """Return which nodes fit, or would if no other pod's anti-affinity forbade it."""
    return np.isin(prediction.judgement.codes, (Reason.FITS, Reason.EXISTING_ANTI_AFFINITY))


class Landings:
    """The placement view of one run, built when first needed, and its answers while nothing changes."""

    def __init__(
        self,
        snapshot: Snapshot,
        mode: PlacementMode,
        scheduler: SchedulerConfig,
        cache: BucketCache | None = None,
        *,
        surged: Callable[[Pod], PodShape | None],
    ) -> None:
        """Answer for one run. surged: the shape of a replacement that is placed beside the old pod, None where that goes."""
        self._surged = surged
        self._snapshot = snapshot
        self._mode = mode
        self._scheduler = scheduler
        self._cache = cache
        self._view: PlacementView | None = None
        self._gone: list[Pod] = []
        self._predictions: dict[tuple[PodShape, str], Prediction] = {}
        self._reduced: dict[PodShape, PodShape] = {}
        self._masks: dict[frozenset[str], Bools] = {}
        # A cordoned node is no destination, even for pods that kube-scheduler would put there since they tolerate everything.
        self._open_names = frozenset(name for name, node in snapshot.nodes.items() if node.ready and not node.unschedulable)

    @property
    def view(self) -> PlacementView:
        """The placement view with every approval so far."""
        if self._view is None:
            reserve = self._mode is not PlacementMode.OFF
            self._view = PlacementView(self._snapshot, self._scheduler, cache=self._cache, reserve=reserve)
            for pod in self._gone:
                self._view.remove(pod)
        return self._view

    def prediction(self, pod: Pod) -> Prediction:
        """Say where the pod's replacement would go, were the pod moved now."""
        surged = self._surged(pod)
        key = (surged or pod.shape, pod.node or "")
        known = self._predictions.get(key)
        if known is None:
            if len(self._predictions) >= _MOST_PREDICTIONS:
                self._predictions.clear()
            known = self.view.replace(pod) if surged is None else self.view.predict(surged, moving=True)
            self._predictions[key] = known
        return known

    def takers(self, pod: Pod) -> Bools:
        """Return which other nodes can take the pod's replacement, were the pod moved now; by position."""
        if self._surged(pod) is not None:
            return self._others(self.prediction(pod).judgement.feasible, pod)
        return self._others(self.view.takers(pod), pod)

    def _others(self, nodes: Bools, pod: Pod) -> Bools:
        """Leave out the pod's own node."""
        own = self.view.position(pod.node or "")
        if own is not None and nodes[own]:
            nodes = nodes.copy()
            nodes[own] = False
        return nodes

    def _among(self, names: Iterable[str]) -> Bools:
        chosen = frozenset(names)
        mask = self._masks.get(chosen)
        if mask is None:
            if len(self._masks) >= _MOST_MASKS:
                self._masks.clear()
            mask = self._masks[chosen] = self.view.among(chosen)
        return mask

    def fits_elsewhere(self, pod: Pod, nodes: Iterable[str] | None, *, as_upstream: bool) -> Objection | None:
        """Say why no node other than the pod's own (of the given ones) can take it, or None."""
        fits = self._others(_but_for_others(self._upstream(pod)), pod) if as_upstream else self.takers(pod)
        fits = fits & self._among(self._open_names)
        if nodes is not None:
            fits = fits & self._among(nodes)
        if fits.any():
            return None
        return Objection("no-fit", (Misfit.of(self._upstream(pod) if as_upstream else self.prediction(pod)),))

    def _upstream(self, pod: Pod) -> Prediction:
        reduced = self._reduced.get(pod.shape)
        if reduced is None:
            reduced = self._reduced[pod.shape] = as_upstream_fits(pod.shape)
        return self.view.predict(reduced)

    def judge(self, pod: Pod, aim: Aim, demand: Demand, destinations: frozenset[str] | None, *, other_node: bool) -> Landing:
        """Say whether a pod has a landing as demanded.

        destinations: the only nodes that count for a fit, None for all. other_node: its own node does not count as one.
        """
        replaced = bool(pod.shape.owners) and not pod.finished
        if demand is Demand.NOTHING or (not replaced and self._mode is not PlacementMode.OFF):
            return Landing()
        prediction = self.prediction(pod)
        if demand is Demand.IMPROVEMENT and prediction.unpredictable is None:
            if destinations is not None and not (self.takers(pod) & self._among(destinations)).any():
                return Landing(Objection("no-fit", (Misfit.of(prediction),)))
            return self._improvement(pod, prediction, aim, other_node=other_node)
        landing = self._fit(pod, prediction, aim, destinations)
        if not replaced:
            return Landing(landing.objection)
        if demand is Demand.IMPROVEMENT:
            return replace(landing, note=f"{pod.shape.scheduler_name}: {prediction.unpredictable}; judged by filters only")
        return landing

    def _fit(self, pod: Pod, prediction: Prediction, aim: Aim, destinations: frozenset[str] | None) -> Landing:
        fitting = [
            name
            for name in prediction.feasible
            if name != pod.node and name in self._open_names and (destinations is None or name in destinations)
        ]
        if not fitting:
            return Landing(Objection("no-fit", (Misfit.of(prediction),)))
        scores = prediction.scores
        first: Objection | None = None
        for name in sorted(fitting, key=lambda name: (-scores.get(name, 0), name)):
            objection = aim.judge(name) if aim.judge is not None and aim.even_in_fit else None
            if objection is None:
                return Landing(None, prediction.landings, name)
            first = first or objection
        return Landing(Objection("no-acceptable-landing", (first,)))

    def _improvement(self, pod: Pod, prediction: Prediction, aim: Aim, *, other_node: bool) -> Landing:
        if not prediction.judgement.feasible.any():
            return Landing(Objection("no-landing", (Misfit.of(prediction),)))
        good = bad = 0.0
        best: str | None = None
        first: Objection | None = None
        for name, weight in prediction.ranked():
            objection: Objection | None = None
            if name == pod.node and (aim.away or other_node):
                objection = Objection("back-again", (name,))
            elif aim.judge is not None:
                objection = aim.judge(name)
            if objection is None:
                good += weight
                best = best or name
                if good >= SURE - _ROUNDING:
                    return Landing(None, prediction.landings, best)
            else:
                bad += weight
                first = first or objection
                if bad > 1 - SURE + _ROUNDING:
                    break
        share = f"{bad * 100:.0f}"
        return Landing(Objection(aim.refusal, (share, f"{(1 - SURE) * 100:.0f}", first)))

    def approve(self, pod: Pod, node: str | None) -> None:
        """Take a pod as moved: in ``off`` it vanishes, otherwise it terminates; its replacement holds room.

        In a rollout it stays as it is until the replacement is Ready, so nobody else gets its room in this run.
        """
        self._predictions.clear()
        if self._mode is not PlacementMode.OFF:
            if (surged := self._surged(pod)) is None:
                self.view.commit(pod, node)
            elif node is not None:
                self.view.add(replace(pod, uid=f"{pod.uid}+", node=None, shape=surged), node)
            return
        if self._view is None and node is None:
            self._gone.append(pod)
            return
        self.view.remove(pod)
        if node is not None:
            self.view.add(replace(pod, uid=f"{pod.uid}+", node=None), node)

    def close(self) -> None:
        """End the run: nothing may be asked any more."""
        if self._view is not None:
            self._view.close()


def destinations_of(args: DefaultEvictorArgs, nodes: Iterable[Node]) -> frozenset[str] | None:
    """Return the nodes that the evictor's nodeSelector lets count as destinations, None for all."""
    selector = args.node_selector
    if not selector.requirements and not selector.nothing:
        return None
    return frozenset(node.name for node in nodes if selector.matches(node.labels))
