"""What was promised about evictions, judged at the door of the API server by what is true there at that moment.

Nothing here asks the service what it believes, except for what it could know: its cache, and the plan that it follows.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rebalancer.kube.reply import decode_status
from rebalancer.kube.resources import RESOURCES
from rebalancer.model.plan import Approval
from rebalancer.model.snapshot import Snapshot
from rebalancer.sim.answering import OpenWatch
from rebalancer.sim.eviction import budgets_of
from rebalancer.sim.history import Object
from rebalancer.sim.kinds import BUDGET, POD, kind_named
from rebalancer.sim.registry import Registry
from rebalancer.sim.requests import Answer, Request
from tests.histories.observer import Ambush, Intent, Observer, Reaction
from tests.histories.tenure import Tenure

LEASE_KIND = kind_named("leases", "coordination.k8s.io")
LEASE = LEASE_KIND.storage
_REQUIRED_PATHS = {resource.path: resource.kind for resource in RESOURCES if resource.required}
_SLACK_SECONDS = 0.5
# Of a landing that is as likely as this it matters whether it still is one.
_GREAT_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Promises:
    """The limits that hold. period, open: seconds of the windows (each period begins with an open stretch), 0 for always open."""

    per_minute: int
    per_node: int
    per_workload: int
    total: int
    run_deadline: float
    lease: float
    renew: float
    request: float
    stale_disconnected: float
    stale_silent: float
    period: float = 0.0
    open: float = 0.0

    @property
    def pause_seen(self) -> float:
        """Within how many seconds a pause holds: who cannot read the Lease cannot know of it, and stops for want of a renewal."""
        return min(self.renew, self.lease - self.request)

    def is_open(self, epoch_seconds: float) -> bool:
        """Say whether evictions may go out."""
        return not self.period or epoch_seconds % self.period < self.open


class Witness:
    """Keeps the record of one history. broken: what was promised and not kept. counts: figures."""

    def __init__(self, registry: Registry, promises: Promises, wall_clock: Callable[[], float]) -> None:
        """Begin with nothing seen."""
        self._registry = registry
        self._promises = promises
        self._wall_clock = wall_clock
        self._tenure: Tenure[Observer] = Tenure(self._time, promises.lease, promises.request)
        self._paused_since: float | None = None
        self._reaction: Reaction | None = None
        self._accepted: dict[str, float] = {}
        self._charges: dict[str, list[tuple[int, str, bool]]] = {}
        self.ambushes: list[Ambush] = []
        self.broken: list[str] = []
        self.counts: Counter[str] = Counter()

    @property
    def accepted(self) -> int:
        """How many evictions were accepted."""
        return len(self._accepted)

    def paused(self, paused: bool) -> None:
        """Note that an operator paused or resumed."""
        self._paused_since = (self._paused_since or self._time()) if paused else None

    def _time(self) -> float:
        return asyncio.get_running_loop().time()

    def _breaks(self, who: Observer, pod: str, what: str) -> None:
        self.broken.append(f"{self._time():.3f} {who.name} {pod}: {what}")

    # Leadership and runs

    def lease_written(self, who: Observer, request: Request) -> None:
        """Note who holds the Lease from now on, or gave it back."""
        self._tenure.written(who, json.loads(request.body)["spec"])

    def lease_deleted(self) -> None:
        """Note that the Lease was deleted, and with it what an operator wrote on it."""
        self._tenure.deleted()
        self._paused_since = None

    def run_started(self, who: Observer) -> Reaction:
        """Note a run; where the one before was cut off in the middle, it is the same one that goes on."""
        before, now = self._reaction, self._wall_clock()
        if before is not None and not before.ended and before.counts and now < before.started_at + self._promises.run_deadline:
            before.owner, before.resumed_at = who.name, now
            self.counts["runs taken over"] += 1
            return before
        self._reaction = Reaction(now, who.name)
        self.counts["runs"] += 1
        return self._reaction

    # Evictions

    def eviction_leaves(self, who: Observer, request: Request) -> Intent:
        """Judge what must hold as a request is sent."""
        self.counts["requests"] += 1
        parts = request.path.split("/")
        pod = f"{parts[-4]}/{parts[-2]}"
        assert who.parts is not None
        known = who.parts.cache.pod(pod)
        intent = Intent(pod, known.uid if known else "", who.reaction, seen_ready=known is not None and known.ready)
        for problem in (
            *self._out_of_leadership(who),
            *self._out_of_window(),
            *self._unfresh(who),
            *self._asked_before(intent),
            *self._unaccounted(who, intent),
            *self._without_its_uid(intent, request),
            *self._without_another_look(who, intent),
        ):
            self._breaks(who, pod, problem)
        snapshot = who.parts.cache.snapshot()
        intent.budgets = {f"{each.namespace}/{each.name}": each for group in snapshot.budgets.values() for each in group}
        return intent

    def _out_of_leadership(self, who: Observer) -> list[str]:
        """Return what forbids it by the Lease, and by what its sender itself could reckon is left of it."""
        assert who.parts is not None
        election = who.parts.election
        lease = self._registry.store.get(LEASE, "kube-system", "descheduler")
        found = self._tenure.problems(who, lease["spec"] if lease is not None else None)
        if election is not None and election.remaining_seconds() < self._promises.request:
            found.append(f"sent with {election.remaining_seconds():.2f} s left of its lease by its own reckoning")
        return found

    def _out_of_window(self) -> list[str]:
        found = []
        if not self._promises.is_open(self._wall_clock()):
            found.append("sent outside of the window")
        if self._paused_since is not None and self._time() - self._paused_since > self._promises.pause_seen:
            found.append("sent while an operator pauses")
        return found

    def _unfresh(self, who: Observer) -> list[str]:
        assert who.line is not None
        found = []
        for path, kind in _REQUIRED_PATHS.items():
            heard = who.line.heard.get(path)
            if heard is None or not heard.listed:
                found.append(f"sent before {kind} was synced")
            elif not heard.connected and self._time() - heard.broken_at > self._promises.stale_disconnected + _SLACK_SECONDS:
                found.append(f"sent while {kind} is disconnected")
            elif self._time() - heard.heard_at > self._promises.stale_silent + _SLACK_SECONDS:
                found.append(f"sent while {kind} is silent")
        assert who.parts is not None
        found += [f"sent on a cache that its sender knows to be stale: {said}" for said in who.parts.cache.unfresh()]
        return found

    def _asked_before(self, intent: Intent) -> list[str]:
        return ["sent again after acceptance"] if intent.uid in self._accepted else []

    def _unaccounted(self, who: Observer, intent: Intent) -> list[str]:
        """Whoever takes over has to know of it: what is sent was written down before."""
        return [] if intent.uid in who.accounted else ["sent without having been written down before"]

    def _without_its_uid(self, intent: Intent, request: Request) -> list[str]:
        """A request says which pod it means, so that another of that name is never hit."""
        options = json.loads(request.body).get("deleteOptions") or {}
        uid = (options.get("preconditions") or {}).get("uid")
        return [] if uid and uid == intent.uid else [f"sent with the precondition {uid}, meant for {intent.uid}"]

    def _without_another_look(self, who: Observer, intent: Intent) -> list[str]:
        """Return what the sender knew and should have heeded."""
        assert who.parts is not None
        snapshot = who.parts.cache.snapshot()
        known = who.parts.cache.pod(intent.pod)
        if known is None:
            return ["sent for a pod that its sender knows to be gone"]
        if known.terminating:
            return ["sent for a pod that its sender knows to be terminating"]
        approval = who.plan.get(intent.pod)
        if approval is None:
            return ["sent for a pod that is not in the plan"]
        if approval.uid != known.uid:
            return ["sent for a pod of the same name as the one in the plan"]
        look = who.look
        assert look is not None
        found = [
            f"sent although its sender knows that {name} has changed since it looked"
            for name in {approval.node, *(name for name, share in approval.landings.items() if share > _GREAT_SHARE)}
            if name in look.nodes and _state_of(look, name) != _state_of(snapshot, name)
        ]
        before, now = look.workloads.get(approval.owner_uid), snapshot.workloads.get(approval.owner_uid)
        if before is not None and (now is None or (before.replicas, before.generation) != (now.replicas, now.generation)):
            found.append("sent although its sender knows that its workload has changed since it looked")
        return found

    def eviction_arrives(
        self, who: Observer, request: Request, intent: Intent, answer: Callable[[Request], Answer | OpenWatch]
    ) -> Answer | OpenWatch:
        """Judge what the server makes of it."""
        store = self._registry.store
        namespace, _, name = intent.pod.partition("/")
        pod = store.get(POD.storage, namespace, name)
        budgets = budgets_of(self._registry, pod) if pod is not None else []
        standing = [(each, *self._standing(each)) for each in budgets]
        given = answer(request)
        assert isinstance(given, Answer)
        if given.status < 300:
            assert pod is not None
            self._take_acceptance(who, intent, pod, standing)
        else:
            status = decode_status(given.body)
            self.counts[f"refused with {given.status}"] += 1
            if status is not None and status.has_cause("DisruptionBudget") and budgets:
                self._take_refusal(who, intent, budgets[0], became_ready=_is_healthy(pod or {}) and not intent.seen_ready)
        return given

    def _take_acceptance(self, who: Observer, intent: Intent, pod: Object, standing: list[tuple[Object, int, int]]) -> None:
        uid = pod["metadata"]["uid"]
        now = self._time()
        if uid != intent.uid:
            self._breaks(who, intent.pod, f"another pod of the same name was evicted: meant {intent.uid}, went {uid}")
        if uid in self._accepted:
            self._breaks(who, intent.pod, "evicted twice")
        self._accepted[uid] = now
        self.counts["accepted"] += 1
        last_minute = sum(moment >= now - 60.0 for moment in self._accepted.values())
        if last_minute > self._promises.per_minute:
            self._breaks(who, intent.pod, f"{last_minute} evictions within 60 s")
        self._hold_to_caps(who, intent, pod)
        goes_unasked = pod["status"].get("phase") in ("Pending", "Succeeded", "Failed")
        if len(standing) > 1 and not goes_unasked:
            self._breaks(who, intent.pod, "evicted although two budgets select it")
        for budget, healthy, desired in standing:
            self._note_charge(who, budget, known=intent.seen_ready)
            if not _is_healthy(pod) or "deletionTimestamp" in pod["metadata"]:
                continue
            if healthy != budget["status"].get("currentHealthy", 0):
                self.counts["accepted while the server's own count was behind"] += 1
            elif healthy - 1 < desired:
                self._breaks(who, intent.pod, f"budget exceeded: {healthy} healthy before, {desired} wanted")

    def _note_charge(self, who: Observer, before: Object, *, known: bool) -> None:
        """Note at which version the server spent a budget, if it did. known: its sender reckoned so, for it saw the pod ready."""
        metadata = before["metadata"]
        after = self._registry.store.get(BUDGET.storage, metadata["namespace"], metadata["name"])
        if after is not None and after["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
            version = int(after["metadata"]["resourceVersion"])
            self._charges.setdefault(metadata["uid"], []).append((version, who.name, known))

    def _hold_to_caps(self, who: Observer, intent: Intent, pod: Object) -> None:
        reaction = intent.reaction
        if reaction is None:
            self._breaks(who, intent.pod, "evicted outside of any run")
            return
        reaction.started_at = max(reaction.started_at, reaction.resumed_at)
        owner = next((each["uid"] for each in pod["metadata"].get("ownerReferences", ()) if each.get("controller")), "")
        for what, limit in (
            ("total", self._promises.total),
            (f"node {pod['spec'].get('nodeName', '')}", self._promises.per_node),
            (f"workload {owner}", self._promises.per_workload),
        ):
            reaction.counts[what] += 1
            if reaction.counts[what] > limit:
                self._breaks(who, intent.pod, f"cap exceeded in a run: {reaction.counts[what]} of {what}")

    def hold_reckoning_to_caps(self, who: Observer, approval: Approval) -> None:
        """What a sender must reckon with as evicted in a run keeps to the caps as well: accepted, or nobody knows."""
        for what, limit in (
            ("total", self._promises.total),
            (f"node {approval.node}", self._promises.per_node),
            (f"workload {approval.owner_uid}", self._promises.per_workload),
        ):
            who.reckoned[what] += 1
            if who.reckoned[what] > limit:
                self._breaks(who, approval.pod, f"cap exceeded by its sender's reckoning: {who.reckoned[what]} of {what}")

    def _take_refusal(self, who: Observer, intent: Intent, budget: Object, *, became_ready: bool) -> None:
        """A refusal is a race if it would have been allowed by what its sender knew, less its own evictions since then.

        became_ready: its sender saw the pod unready, for which the server would not have asked the budget. Nor would it for one
        that is unready while as many others are healthy as must be, and that was so when the budget was last heard of.
        """
        self.counts["held by a budget"] += 1
        if became_ready:
            return
        metadata = budget["metadata"]
        known = intent.budgets.get(f"{metadata['namespace']}/{metadata['name']}")
        if known is None:
            self.counts["held by a budget that was new"] += 1
            return
        if not intent.seen_ready and known.current_healthy >= known.desired_healthy > 0:
            self.counts["held by a budget that was healthy"] += 1
            return
        version = int(known.resource_version or 0)
        charges = [reckoned for at, by, reckoned in self._charges.get(metadata["uid"], ()) if at > version and by == who.name]
        own = sum(charges)
        if len(charges) > own:
            self.counts["held by a budget that was charged for a pod seen unready"] += 1
        if known.disruptions_allowed - own < 1:
            self._breaks(
                who,
                intent.pod,
                f"held by a budget without a race: its sender knew of {known.disruptions_allowed} and had taken {own} since",
            )

    def _standing(self, budget: Object) -> tuple[int, int]:
        """Return how many pods of a budget are healthy in truth, and how many must be."""
        status = budget["status"]
        disrupted = status.get("disruptedPods") or {}
        labels = (budget["spec"].get("selector") or {}).get("matchLabels", {})
        healthy = sum(
            _is_healthy(pod) and "deletionTimestamp" not in pod["metadata"] and pod["metadata"]["name"] not in disrupted
            for pod in self._registry.store.objects(POD.storage, budget["metadata"]["namespace"])
            if labels.items() <= (pod["metadata"].get("labels") or {}).items()
        )
        return healthy, status.get("desiredHealthy", 0)

    def budgets(self) -> list[Object]:
        """Return all budgets."""
        return list(self._registry.store.objects(BUDGET.storage))


def _is_healthy(pod: Object) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod.get("status", {}).get("conditions", ()))


def _state_of(snapshot: Snapshot, name: str) -> Any:
    node = snapshot.nodes.get(name)
    return None if node is None else (node.ready, node.unschedulable, node.taints, node.labels)
