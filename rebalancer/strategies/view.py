"""What a strategy sees of a run, and how it asks: the picture with everything approved so far, and the verdict on each pod.

``decide`` implements View. A strategy never learns whether anything is really evicted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, Protocol, TypeAlias, TypeVar

from rebalancer.eligibility.objection import Objection
from rebalancer.model.node import Node
from rebalancer.model.pod import Pod, PodShape
from rebalancer.model.resources import Resources
from rebalancer.model.trigger import TriggerKind

Result = TypeVar("Result")


class Scope(IntEnum):
    """How far a refusal reaches: a strategy may stop asking for everything inside it."""

    POD = 0
    NAMESPACE = 1
    NODE = 2
    RUN = 3


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to one question. objection: None means approved. scope: what else would get the same answer.

    landing: the node that the replacement most likely gets; None where nobody looked or none is needed.
    """

    objection: Objection | None = None
    scope: Scope = Scope.POD
    landing: str | None = None

    @property
    def approved(self) -> bool:
        """The pod goes."""
        return self.objection is None

    @property
    def ends_run(self) -> bool:
        """Nothing more can be approved in this run."""
        return self.scope is Scope.RUN

    @property
    def ends_node(self) -> bool:
        """Nothing more can be approved on the pod's node."""
        return self.scope >= Scope.NODE


class Demand(Enum):
    """What is asked of the place a pod would go to: nothing, that some node fits with room reserved, or sure improvement."""

    NOTHING = "nothing"
    FIT = "fit"
    IMPROVEMENT = "improvement"


@dataclass(frozen=True, slots=True)
class Aim:
    """What a strategy wants of the node that a replacement lands on.

    judge: the objection to landing on a node, by name; None where any node that fits will do.
    even_in_fit: where only a fit is demanded, some fitting node has to satisfy ``judge`` too.
    away: the replacement must not come back to its node.
    refusal: the code under which a lack of improvement is refused.
    forced: it has to go, whatever other strategies would rather keep.
    """

    judge: Callable[[str], Objection | None] | None = None
    even_in_fit: bool = False
    away: bool = True
    refusal: str = "no-gain"
    forced: bool = False


ANYWHERE = Aim(away=False)


class View(Protocol):
    """A run as one strategy of one profile sees it.

    now: seconds since the epoch. nodes: Ready ones within the policy's nodeSelector, in the order of names.
    demand: what is asked of landings. node_fit: the profile's own nodeFit, None where it does not say.
    """

    @property
    def now(self) -> float:
        """Seconds since the epoch."""

    @property
    def nodes(self) -> Sequence[Node]:
        """Ready nodes within the policy's nodeSelector, in the order of names."""

    @property
    def demand(self) -> Demand:
        """What is asked of landings."""

    @property
    def node_fit(self) -> bool | None:
        """The profile's own nodeFit; None where it does not say."""

    @property
    def left(self) -> frozenset[str]:
        """The nodes that earlier looks of the same run have moved pods off."""

    def node(self, name: str) -> Node:
        """Return any node of the cluster."""

    def on(self, node: str) -> Sequence[Pod]:
        """Return all pods on a node, finished and terminating ones included; approved ones are gone, stand-ins are there."""

    def live(self, node: str) -> Mapping[PodShape, Sequence[Pod]]:
        """Return a node's pods that are neither finished nor terminating, by shape."""

    def requested(self, node: str) -> Resources:
        """Return what the live pods of a node request."""

    def of_node(self, node: Node, what: Hashable, compute: Callable[[], Result]) -> Result:
        """Return what follows from a node and its pods alone, as they are now.

        what: names the question, whatever else the answer depends on included. The answer is kept, from run to run even,
        as long as node and pods are the same; nobody may change it.
        """

    def shapes(self, namespace: str) -> Sequence[PodShape]:
        """Return the shapes of live pods in a namespace."""

    def namespaces(self) -> Sequence[str]:
        """Return the namespaces that have live pods, in the order of names."""

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Return a namespace's labels."""

    def where(self, shape: PodShape) -> Mapping[str, Sequence[Pod]]:
        """Return the live pods of a shape by node."""

    def filter(self, pod: Pod) -> Objection | None:
        """Return what the profile's evictor has against the pod, without recording it (upstream's Filter)."""

    def screen(self, pod: Pod) -> Objection | None:
        """Return what Filter and PreEvictionFilter (with a profile's own nodeFit) have against the pod."""

    def ask(self, pod: Pod, reason: str, aim: Aim = ANYWHERE) -> Verdict:
        """Ask for a pod to be moved; the answer is recorded, and an approval shows in everything seen afterwards."""

    def refuse(self, pod: Pod, objection: Objection) -> None:
        """Record that the strategy itself found something against a pod it would have moved."""

    def fits_elsewhere(self, pod: Pod, nodes: Iterable[str] | None = None) -> Objection | None:
        """Say why no other node (of the given ones) can take the pod, or None. Nothing is reserved."""

    def barred(self, pod: Pod) -> Objection | None:
        """Return what would refuse the pod before its landing is looked at, without recording it."""

    def waits(self, pod: Pod) -> bool:
        """Tell whether only what this run has taken from its budget bars the pod, so that a later look may approve it."""

    def fitting(self, pod: Pod) -> frozenset[str]:
        """Return the other nodes that can take the pod's replacement now. Nothing is reserved."""

    def landings(self, pod: Pod) -> Mapping[str, float]:
        """Return the landings that kube-scheduler may choose for the pod's replacement, with their weights."""

    def classify(self, node: str, verdict: str, usage_percent: Mapping[str, float]) -> None:
        """Record how a node was seen."""

    def note(self, text: str) -> None:
        """Record a remark for the reader of the plan."""


LandingJudge: TypeAlias = Callable[[str], Objection | None]
"""Says what is wrong with landing on a node, by name."""

Keeper: TypeAlias = Callable[[Pod], LandingJudge | None]
"""Says for a pod where a strategy would sooner or later move it away again; None where it does not care."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """One strategy. name: upstream's. args: its argument model. extension_point: ``deschedule`` or ``balance``.

    runs_on: the triggers that can change its answer. propose: asks the view for pods.
    keeps: returns what others must not undo, for strategies whose aim is a matter of degree; None for the rest.
    """

    name: str
    args: type[Any]
    extension_point: str
    runs_on: frozenset[TriggerKind]
    propose: Callable[[View, Any], None]
    keeps: Callable[[View, Any], Keeper] | None = None
