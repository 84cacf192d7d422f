"""Happenings become Kubernetes Events on the pod and on its owner."""

from __future__ import annotations

from collections.abc import Callable

from rebalancer.control.happenings import Asked, Happening
from rebalancer.control.ports import Reported, Surged
from rebalancer.control.tally import namespace_of
from rebalancer.kube.events import EventSink, Note, Regarding
from rebalancer.model.answer import Accepted, Gone, HeldByBudget, InBackground, Replaced, Throttled, Unknown
from rebalancer.model.pod import Owner


class EventListener:
    """Posts an Event for each eviction."""

    def __init__(self, sink: EventSink, owner_of: Callable[[str, str], Owner | None], failures: Callable[[], bool]) -> None:
        """Post to this sink. owner_of: the owner of a pod by its key and uid. failures: whether failures are told, too."""
        self._sink = sink
        self._owner_of = owner_of
        self._failures = failures

    def __call__(self, happening: Happening) -> None:
        """Post, if it was an eviction."""
        if not isinstance(happening, Asked):
            return
        approval, answer = happening.approval, happening.answer
        text = f"pod eviction from {approval.node} node by sigs.k8s.io/descheduler"
        if approval.rollout:
            text = f"rollout of Deployment {approval.rollout}, to replace it before it leaves {approval.node} node"
        if isinstance(answer, Accepted | InBackground | Surged | Unknown):
            self._post(happening, approval.strategy, text, warning=False)
        elif not isinstance(answer, Reported | Gone | Replaced) and self._failures():
            # Held and throttled evictions are tried again: equal Events become one series.
            detail = "held, will be tried again" if isinstance(answer, HeldByBudget | Throttled) else answer.message
            self._post(happening, "EvictionFailed", f"{text} failed: {detail}", warning=True)

    def _post(self, asked: Asked, reason: str, text: str, *, warning: bool) -> None:
        approval = asked.approval
        namespace = namespace_of(approval)
        name = approval.pod.partition("/")[2]
        self._sink.post(Note(Regarding("Pod", "v1", namespace, name, approval.uid), reason, text, warning))
        owner = self._owner_of(approval.pod, approval.uid)
        if owner is not None:
            about = Regarding(owner.kind, owner.api_version, namespace, owner.name, owner.uid)
            self._sink.post(Note(about, reason, f"{approval.pod}: {text} ({approval.reason})", warning))
