"""What happens in control, as values. Logs, metrics, Kubernetes Events, the status page and the demo all listen to these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from rebalancer.control.debounce import Batch
from rebalancer.control.ports import Reply
from rebalancer.model.plan import Approval, Plan
from rebalancer.model.trigger import Trigger


@dataclass(frozen=True, slots=True)
class TriggerSeen:
    """A trigger came in and waits for its batch."""

    trigger: Trigger


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run begins. number: counts up from 1 in this process."""

    number: int
    batch: Batch


@dataclass(frozen=True, slots=True)
class Looked:
    """An evaluation ended. look: the how manieth of this run. seconds: how long it took."""

    number: int
    look: int
    plan: Plan
    seconds: float
    node_count: int
    pod_count: int


@dataclass(frozen=True, slots=True)
class Asked:
    """An eviction was sent and answered."""

    number: int
    approval: Approval
    answer: Reply
    seconds: float


@dataclass(frozen=True, slots=True)
class Passed:
    """An approved pod was not asked for after all. code: stable; reason: in words."""

    number: int
    approval: Approval
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class LimitReached:
    """A cap stopped (part of) a run. Told once per limit and run."""

    number: int
    limit: str


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A run is over.

    ending: stable word; reason: in words. accepted, refused: requests by outcome; left: approved and not done.
    """

    number: int
    ending: str
    reason: str
    accepted: int
    refused: int
    left: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Settled:
    """A replacement was followed to its end.

    outcome: ``ready``, ``timeout``, ``gone`` (none was needed), ``not-evicted``.
    landed: the node the replacement was bound to, empty where it never was.
    expected: it was among the landings; None where none were predicted. came_back: it is on the node that it left.
    bound_seconds, ready_seconds: from acceptance.
    """

    approval: Approval
    outcome: str
    replacement: str = ""
    landed: str = ""
    expected: bool | None = None
    came_back: bool = False
    bound_seconds: float | None = None
    ready_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class LeadershipChanged:
    """This process began or ceased to lead. holder: who holds the lease now, as far as is known."""

    leading: bool
    holder: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class GateChanged:
    """Acting became possible (no reasons) or impossible."""

    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StrategyFailed:
    """A strategy raised; the others went on."""

    profile: str
    strategy: str
    error: str


@dataclass(frozen=True, slots=True)
class Noticed:
    """Something an operator should know. code: stable; loud: a warning rather than a remark. values: the numbers that matter."""

    code: str
    text: str
    loud: bool = True
    values: Mapping[str, object] = field(default_factory=dict)


Happening = (
    TriggerSeen
    | RunStarted
    | Looked
    | Asked
    | Passed
    | LimitReached
    | RunEnded
    | Settled
    | LeadershipChanged
    | GateChanged
    | StrategyFailed
    | Noticed
)
Listener = Callable[[Happening], None]


class Teller:
    """Tells everybody who listens, in the order in which they came."""

    def __init__(self, listeners: Iterable[Listener] = ()) -> None:
        self._listeners = list(listeners)

    def listen(self, listener: Listener) -> None:
        """Add a listener. It must be quick and may not raise."""
        self._listeners.append(listener)

    def __call__(self, happening: Happening) -> None:
        """Tell."""
        for listener in self._listeners:
            listener(happening)
