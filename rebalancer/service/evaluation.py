"""The policy of the moment, and evaluations with it beside the event loop."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

from rebalancer.cache.collector import unseen
from rebalancer.control.caps import Caps, CapSet
from rebalancer.control.happenings import Listener, StrategyFailed
from rebalancer.control.offload import beside_the_loop
from rebalancer.control.ports import Circumstances
from rebalancer.decide.evaluate import Memory, evaluate
from rebalancer.decide.guards import Guards, SingleReplicas, Spent
from rebalancer.model.plan import PlacementMode, Plan
from rebalancer.model.snapshot import Snapshot
from rebalancer.model.trigger import TriggerKind
from rebalancer.placement.profile import SchedulerConfig
from rebalancer.policy import Policy, resolve_priority_classes
from rebalancer.settings import Settings
from rebalancer.strategies.catalogue import STRATEGIES

# These are not caused by the cluster, so every policy reacts to them.
_ALWAYS = frozenset({TriggerKind.TICK, TriggerKind.WINDOW_OPENED, TriggerKind.POLICY_CHANGED, TriggerKind.MANUAL})

# A budget keeps what it forbids in any case: that is what ``auto`` asks for.
_SINGLE_REPLICAS = {
    "auto": SingleReplicas.EVICT,
    "evict": SingleReplicas.EVICT,
    "skip": SingleReplicas.SKIP,
    "surge": SingleReplicas.SURGE,
}

Took = Callable[[str, str, float], None]
Beside = Callable[[Callable[[], Plan]], Awaitable[Plan]]


@dataclass(slots=True)
class InForce:
    """The policy that is in force; replaced as a whole when its file changes."""

    policy: Policy


def wanted_triggers(policy: Policy) -> frozenset[TriggerKind]:
    """Return the kinds of triggers that can change the answer of some strategy of the policy."""
    used = [STRATEGIES[use.name].runs_on for _, use in policy.uses() if use.name in STRATEGIES]
    return _ALWAYS.union(*used)


def caps_of(settings: Settings, policy: Policy) -> Caps:
    """Return the caps of settings and policy together."""
    given = settings.caps
    own = CapSet("settings", given.cap_node, given.cap_namespace, given.cap_workload, given.cap_total)
    return Caps([own, CapSet.of_numbers("policy", policy.max_per_node, policy.max_per_namespace, policy.max_total)])


class Evaluation:
    """Evaluates snapshots with the policy in force, one at a time."""

    def __init__(
        self,
        in_force: InForce,
        settings: Settings,
        scheduler: SchedulerConfig,
        tell: Listener,
        beside: Beside | None = None,
        took: Took | None = None,
    ) -> None:
        """Evaluate with what is in force.

        beside: how to compute beside the loop; a thread where it is left out.
        took: told how long each strategy took (profile, strategy, seconds), in the event loop.
        """
        self._in_force = in_force
        self._settings = settings
        self._scheduler = scheduler
        self._tell = tell
        self._beside = beside
        self._took = took
        self._memory = Memory()

    async def __call__(self, snapshot: Snapshot, circumstances: Circumstances) -> Plan:
        """Return the plan. Raises PolicyError where the policy names a priority class that does not exist."""
        classes = {each.name: each.value for each in snapshot.priority_classes.values()}
        policy = without_profiles(resolve_priority_classes(self._in_force.policy, classes), circumstances.closed_profiles)
        guards = guards_of(self._settings, circumstances)
        mode = PlacementMode(self._settings.mode.placement)
        if circumstances.distrust_landings and mode is PlacementMode.REQUIRED:
            mode = PlacementMode.FIT

        failures: list[StrategyFailed] = []

        def failed(profile: str, strategy: str, error: Exception) -> None:
            failures.append(StrategyFailed(profile, strategy, f"{type(error).__name__}: {error}"))

        watch = _Stopwatch()

        def compute() -> Plan:
            with unseen():
                plan = evaluate(
                    snapshot, policy, guards, mode, self._scheduler, memory=self._memory, failed=failed, began=watch.began
                )
            watch.stop()
            return plan

        plan = await (self._beside(compute) if self._beside is not None else beside_the_loop(compute, name="evaluation"))
        for (profile, strategy), seconds in watch.seconds.items():
            if self._took is not None:
                self._took(profile, strategy, seconds)
        for failure in failures:
            self._tell(failure)
        return plan


class _Stopwatch:
    """Measures the strategies of one evaluation, one after another. seconds: by profile and strategy."""

    def __init__(self) -> None:
        self.seconds: dict[tuple[str, str], float] = {}
        self._running: tuple[str, str] | None = None
        self._since = 0.0

    def began(self, profile: str, strategy: str) -> None:
        """Note that a strategy begins, and that the one before has ended."""
        self.stop()
        self._running = (profile, strategy)

    def stop(self) -> None:
        """Note that the last one has ended."""
        now = time.perf_counter()
        if self._running is not None:
            self.seconds[self._running] = self.seconds.get(self._running, 0.0) + now - self._since
        self._running, self._since = None, now


def guards_of(settings: Settings, circumstances: Circumstances | None = None) -> Guards:
    """Return what the settings, and the circumstances of a run, add to a policy."""
    caps, mode = settings.caps, settings.mode
    now = circumstances or Circumstances()
    return Guards(
        node=caps.cap_node,
        namespace=caps.cap_namespace,
        workload=caps.cap_workload,
        total=caps.cap_total,
        protected_namespaces=frozenset(mode.protected_namespaces),
        cooldowns=now.cooling,
        single_replicas=_SINGLE_REPLICAS[mode.single_replica],
        stopped=now.stopped,
        spent=Spent(now.evicted_total, now.evicted_by_node, now.evicted_by_namespace, now.evicted_by_workload),
    )


def without_profiles(policy: Policy, names: frozenset[str]) -> Policy:
    """Return the policy without the profiles of these names."""
    if not names:
        return policy
    return replace(policy, profiles=tuple(profile for profile in policy.profiles if profile.name not in names))


def difference(old: Policy, new: Policy) -> Mapping[str, tuple[object, object]]:
    """Return what differs between two policies: path to old and new value."""
    return dict(_differences("", old.to_dict(), new.to_dict()))


def _differences(path: str, old: object, new: object) -> list[tuple[str, tuple[object, object]]]:
    if old == new:
        return []
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted({*old, *new})
        return [found for key in keys for found in _differences(f"{path}.{key}" if path else key, old.get(key), new.get(key))]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [
            found for number, pair in enumerate(zip(old, new, strict=True)) for found in _differences(f"{path}[{number}]", *pair)
        ]
    return [(path, (old, new))]
