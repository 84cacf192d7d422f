"""One evaluation: every strategy of every profile on one snapshot, to one plan."""

from __future__ import annotations

from collections.abc import Callable

from rebalancer.decide.guards import Guards
from rebalancer.decide.landing import Landings
from rebalancer.decide.record import Record
from rebalancer.decide.singles import Singles
from rebalancer.decide.view import Run, RunView
from rebalancer.decide.world import FactsCache, World
from rebalancer.errors import BrokenInvariant
from rebalancer.model.plan import PlacementMode, Plan
from rebalancer.model.snapshot import Snapshot
from rebalancer.placement.occupancy import BucketCache
from rebalancer.placement.profile import DEFAULT, SchedulerConfig
from rebalancer.policy import Policy
from rebalancer.strategies.catalogue import STRATEGIES

_FEWEST_NODES = 2

PRECEDENCE = (
    "RemovePodsViolatingNodeTaints",
    "RemovePodsViolatingNodeAffinity",
    "RemovePodsViolatingTopologySpreadConstraint",
    "RemoveDuplicates",
    "LowNodeUtilization",
    "HighNodeUtilization",
)
"""Where improvement is demanded, a strategy here never undoes what one before it keeps, so that no two go on for ever."""

Failed = Callable[[str, str, Exception], None]
Began = Callable[[str, str], None]


class Memory:
    """What may be kept from one evaluation to the next, so that only changed nodes are worked out again."""

    def __init__(self) -> None:
        self.facts = FactsCache()
        self.buckets = BucketCache()


def evaluate(
    snapshot: Snapshot,
    policy: Policy,
    guards: Guards | None = None,
    placement: PlacementMode = PlacementMode.REQUIRED,
    scheduler: SchedulerConfig = DEFAULT,
    *,
    memory: Memory | None = None,
    failed: Failed | None = None,
    began: Began | None = None,
) -> Plan:
    """Decide which pods should move. Equal input gives an equal plan.

    policy: with its priority classes resolved. guards: what settings add; None for only what the policy says.
    placement: how much is asked of landings. scheduler: what is known of the cluster's schedulers.
    memory: kept by the caller from one evaluation to the next.
    failed: told of a strategy that raises (profile, strategy, error), whereupon the others go on; None lets it raise.
    began: told of each strategy (profile, strategy) just before it is asked.
    """
    record = Record()
    run = decide(snapshot, policy, guards, placement, scheduler, record, memory, failed, began)
    plan = record.plan(snapshot.now)
    run.close()
    return plan


def decide(
    snapshot: Snapshot,
    policy: Policy,
    guards: Guards | None,
    placement: PlacementMode,
    scheduler: SchedulerConfig,
    record: Record,
    memory: Memory | None = None,
    failed: Failed | None = None,
    began: Began | None = None,
) -> Run:
    """Run the strategies, writing everything into the record; return the run as it ended."""
    memory = memory or Memory()
    world = World(snapshot, memory.facts)
    singles = Singles(guards, world)
    landings = Landings(snapshot, placement, scheduler, memory.buckets, surged=singles.surged)
    run = Run(world, policy, guards, placement, landings, record, singles)
    few = len(run.nodes) < _FEWEST_NODES
    if few and not policy.single_node:
        record.note(f"{len(run.nodes)} Ready nodes within the policy's nodeSelector, at least {_FEWEST_NODES} are needed")
        return run
    keepers = {}
    broken = set()
    for profile, use in policy.uses():
        strategy = STRATEGIES.get(use.name)
        if strategy is None or strategy.keeps is None:
            continue
        try:
            keepers[profile.name, use.name] = strategy.keeps(RunView(run, profile, use.name), use.args)
        except BrokenInvariant:
            raise
        except Exception as error:
            if failed is None:
                raise
            failed(profile.name, use.name, error)
            broken.add((profile.name, use.name))
    for profile, use in policy.uses():
        if (profile.name, use.name) in broken:
            continue
        strategy = STRATEGIES.get(use.name)
        if strategy is None:
            raise BrokenInvariant(f"the policy names {use.name}, which no module of the strategies is")
        if few and strategy.extension_point == "balance":
            record.note(f"{use.name}: skipped, fewer than {_FEWEST_NODES} Ready nodes")
        else:
            if began is not None:
                began(profile.name, use.name)
            try:
                respected = [keeper for (_, name), keeper in keepers.items() if name in _before(use.name)]
                strategy.propose(RunView(run, profile, use.name, respected), use.args)
            except BrokenInvariant:
                raise
            except Exception as error:
                if failed is None:
                    raise
                failed(profile.name, use.name, error)
    return run


def _before(name: str) -> tuple[str, ...]:
    """Return the strategies that come before this one in PRECEDENCE; none for one that is not in it."""
    return PRECEDENCE[: PRECEDENCE.index(name)] if name in PRECEDENCE else ()
