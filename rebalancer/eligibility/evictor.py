"""The default evictor of one profile: all rules in upstream's order, judged once per shape where they can be.

Source: https://github.com/kubernetes-sigs/descheduler#evictor-plugin-configuration-default-evictor
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rebalancer.eligibility import rules
from rebalancer.eligibility.arguments import CRITICAL_PRIORITY, DefaultEvictorArgs, Protection
from rebalancer.eligibility.objection import Objection
from rebalancer.model.pod import Pod, PodShape
from rebalancer.model.snapshot import Snapshot


class Evictor:
    """Judges pods by the arguments of one profile. Holds for one snapshot; remembers its judgement of each shape."""

    def __init__(self, args: DefaultEvictorArgs, snapshot: Snapshot, live_ready: Callable[[str], int]) -> None:
        self.args = args
        self._context = rules.Context(args, snapshot, live_ready, args.protections, _threshold(args, snapshot))
        self._filter: dict[PodShape, Objection | None] = {}
        self._pre_eviction: dict[PodShape, Objection | None] = {}
        self._looks_at_pods = args.min_pod_age is not None or Protection.FAILED_BARE not in args.protections

    def filter(self, pod: Pod) -> Objection | None:
        """Return the first objection of upstream's Filter stage, or None."""
        if pod.deleted_at is not None:
            return Objection("terminating")
        shape = pod.shape
        try:
            objection = self._filter[shape]
        except KeyError:
            objection = self._filter[shape] = self._judge(shape)
        if objection is None and self._looks_at_pods and not rules.wants_eviction(shape):
            return next(self._of_pod(pod), None)
        return objection

    def filter_shape(self, shape: PodShape) -> Objection | None:
        """Return the first objection of the Filter stage that holds for every pod of the shape, or None."""
        try:
            return self._filter[shape]
        except KeyError:
            objection = self._filter[shape] = self._judge(shape)
            return objection

    def pre_eviction(self, shape: PodShape) -> Objection | None:
        """Return the objection of upstream's PreEvictionFilter stage, nodeFit aside; no annotation skips it (K9)."""
        try:
            return self._pre_eviction[shape]
        except KeyError:
            verdicts = (rule(shape, self._context) for rule in rules.PRE_EVICTION_SHAPE)
            objection = next((verdict for verdict in verdicts if verdict is not None), None)
            self._pre_eviction[shape] = objection
            return objection

    def every(self, pod: Pod) -> Iterator[tuple[str, Objection | None]]:
        """Yield each rule by name with its answer, in order, for explaining."""
        context = self._context
        for always in (*rules.ALWAYS_SHAPE,):
            yield always.__name__, always(pod.shape, context)
        for of_pod in rules.ALWAYS_POD:
            yield of_pod.__name__, of_pod(pod, context)
        if not rules.wants_eviction(pod.shape):
            for rule in rules.FILTER_SHAPE:
                yield rule.__name__, rule(pod.shape, context)
            for of_pod in rules.FILTER_POD:
                yield of_pod.__name__, of_pod(pod, context)
        for rule in rules.PRE_EVICTION_SHAPE:
            yield rule.__name__, rule(pod.shape, context)

    def _judge(self, shape: PodShape) -> Objection | None:
        chain = rules.ALWAYS_SHAPE if rules.wants_eviction(shape) else (*rules.ALWAYS_SHAPE, *rules.FILTER_SHAPE)
        return next((objection for rule in chain if (objection := rule(shape, self._context)) is not None), None)

    def _of_pod(self, pod: Pod) -> Iterator[Objection]:
        return (objection for rule in rules.FILTER_POD if (objection := rule(pod, self._context)) is not None)


def _threshold(args: DefaultEvictorArgs, snapshot: Snapshot) -> int:
    name = args.priority_threshold.name
    if name and name in snapshot.priority_classes:
        return snapshot.priority_classes[name].value
    return args.priority_below if not name else CRITICAL_PRIORITY
