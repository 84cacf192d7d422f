"""The cache: apply reports, give out facts and snapshots.

Used by one event loop. A snapshot may be read by another thread: nothing in it changes after it was made.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from rebalancer.cache.assumed import Assumptions
from rebalancer.cache.collector import WhileChanging, WhileFilling, freeze, paused
from rebalancer.cache.facts import node_facts, pod_facts
from rebalancer.cache.freshness import STALE_DISCONNECTED_SECONDS, STALE_SILENT_SECONDS, Freshness
from rebalancer.cache.pods import NOWHERE, PodTable, PodTableBuilder, alike
from rebalancer.cache.tables import Table, is_kept, key_of, views
from rebalancer.model.change import (
    Bookmark,
    Changed,
    Connected,
    Disconnected,
    Listed,
    Removed,
    Report,
    Skipped,
    Unavailable,
)
from rebalancer.model.node import Node
from rebalancer.model.pod import Pod
from rebalancer.model.snapshot import Snapshot
from rebalancer.model.trigger import Fact, FactKind
from rebalancer.parse.interning import Interner
from rebalancer.parse.objects import PARSERS

REQUIRED = frozenset({"Node", "Pod", "PodDisruptionBudget", "Namespace", "PriorityClass"})
"""Kinds without which nothing may be decided."""

_SLICE = 500


class Cache:
    """What the API server has.

    kinds: those that will be watched. clock: monotonic seconds. wall_clock: seconds since the epoch.
    disconnected_seconds, silent_seconds: from when on a kind is stale.
    """

    def __init__(
        self,
        *,
        kinds: Iterable[str] = tuple(PARSERS),
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        disconnected_seconds: float = STALE_DISCONNECTED_SECONDS,
        silent_seconds: float = STALE_SILENT_SECONDS,
    ) -> None:
        """Start empty, with nothing synced."""
        self.kinds = tuple(kinds)
        self.interner = Interner()
        self.freshness = Freshness(
            self.kinds,
            frozenset(self.kinds) - REQUIRED,
            clock,
            disconnected_seconds=disconnected_seconds,
            silent_seconds=silent_seconds,
        )
        self.generation = 0
        self._clock = clock
        self._wall_clock = wall_clock
        self._pods = PodTable()
        self._tables = {kind: Table(kind) for kind in PARSERS if kind != "Pod"}
        self._views = views(self._tables)
        self._assumed = Assumptions()
        self._filling = WhileFilling()
        self._changing = WhileChanging()
        self._placed: tuple[int, int, dict[str, tuple[Pod, ...]], tuple[Pod, ...]] | None = None
        self._pod_changes = 0

    # Taking over what the watches report

    def parser(self, kind: str) -> Callable[[bytes | msgspec.Raw], Any]:
        """Return the function that parses one object of a kind; one that has not changed becomes the value known already."""
        parse, interner = PARSERS[kind], self.interner
        if kind == "Pod":

            def parse_pod(raw: bytes | msgspec.Raw) -> Any:
                pod: Pod = parse(raw, interner)
                known = self.pod_named(pod.namespace, pod.name)
                if known is None:
                    if not self.freshness.synced("Pod"):
                        self._filling.count()
                    return pod
                return known if alike(known, pod) else pod

            return parse_pod
        values = self._tables[kind]

        def parse_other(raw: bytes | msgspec.Raw) -> Any:
            value = parse(raw, interner)
            known = values.values.get(key_of(kind, value))
            return known if known == value else value

        return parse_other

    async def receive(self, report: Report) -> tuple[Fact, ...]:
        """Take over one report; return what it meant. A whole list is taken over in slices and shows at once when done."""
        if type(report) is Changed or type(report) is Removed:
            return self.apply(report)
        if isinstance(report, Listed):
            return await self.replace(report.kind, report.objects, report.version)
        self.note(report)
        return ()

    def note(self, report: Report) -> None:
        """Take over a report that carries no object: how the connection is."""
        if isinstance(report, Bookmark):
            self.freshness.heard(report.kind, report.version)
        elif isinstance(report, Connected):
            self.freshness.connected(report.kind)
        elif isinstance(report, Disconnected):
            self.freshness.disconnected(report.kind, report.reason)
        elif isinstance(report, Unavailable):
            self.freshness.unavailable(report.kind, report.reason)
        elif isinstance(report, Skipped):
            self.freshness.heard(report.kind)

    def apply(self, change: Changed | Removed) -> tuple[Fact, ...]:
        """Take over one change; return what it meant."""
        kind = change.kind
        self.freshness.heard(kind, change.version)
        if kind == "Pod":
            if isinstance(change, Changed):
                return self._put_pod(change.value)
            return self._remove_pod(change)
        table = self._tables[kind]
        if isinstance(change, Changed):
            key = key_of(kind, change.value)
            if not is_kept(kind, change.value):
                return self._meaning(kind, table.remove(key), None)
            if table.values.get(key) is change.value:
                return ()
            return self._meaning(kind, table.put(key, change.value), change.value)
        return self._meaning(kind, table.remove((change.namespace, change.name)), None)

    async def replace(self, kind: str, objects: Sequence[Any], version: str = "") -> tuple[Fact, ...]:
        """Take over a whole list of one kind: what is not in it is gone. Of the first list the facts are left out.

        Gives the event loop its turn in between; until it is done, snapshots show what was there before.
        """
        first = not self.freshness.synced(kind) or kind in self.freshness.missing()
        facts: list[Fact] | None = None if first else []
        work = self._replace_pods(objects, facts) if kind == "Pod" else self._replace_others(kind, objects, facts)
        with paused():
            for _ in work:
                freeze()  # One collection after the last slice would have to visit all of it.
                await asyncio.sleep(0)
        self.freshness.listed(kind, version)
        return tuple(facts or ())

    def _replace_pods(self, pods: Sequence[Pod], facts: list[Fact] | None) -> Iterator[None]:
        """Build new indexes beside the old ones, and swap them in the last step."""
        old, builder = self._pods, PodTableBuilder()
        for number, pod in enumerate(pods):
            if facts is not None and (before := self.pod_named(pod.namespace, pod.name)) is not pod:
                facts += pod_facts(before, pod)
            builder.add(pod)
            if number % _SLICE == _SLICE - 1:
                yield
        new = PodTable()
        for table in builder.finish(old):
            if table is None:
                yield
            else:
                new = table
        for number, known in enumerate(old):
            if facts is not None and new.get(known.namespace, known.name) is None:
                facts += pod_facts(known, None)
            if number % _SLICE == _SLICE - 1:
                yield
        for pod in self._assumed.all_watched():
            listed = new.get(pod.namespace, pod.name)
            if listed is None or listed.uid != pod.uid:
                self._assumed.drop(pod.uid)
            else:
                new.put(self._assumed.shown(listed))
        self._pods = new
        self._changed_pods()

    def _replace_others(self, kind: str, objects: Sequence[Any], facts: list[Fact] | None) -> Iterator[None]:
        new = Table(kind)
        for number, value in enumerate(objects):
            if is_kept(kind, value):
                new.put(key_of(kind, value), value)
            if number % _SLICE == _SLICE - 1:
                yield
        values = new.values
        before = self._tables[kind].swap(new)
        self.generation += 1
        if facts is None:
            return
        for number, key in enumerate({**before, **values}):
            was, value = before.get(key), values.get(key)
            if was is not value:
                facts += self._meaning(kind, was, value)
            if number % _SLICE == _SLICE - 1:
                yield

    def _put_pod(self, pod: Pod) -> tuple[Fact, ...]:
        known = self._pods.get(pod.namespace, pod.name)
        if known is pod:
            return ()
        before = self._assumed.watched(known) if known is not None else None
        if known is not None and known.uid != pod.uid:
            self._assumed.drop(known.uid)
        if before is not pod:
            self._pods.put(self._assumed.shown(pod))
            self._changed_pods()
            self._changing.count()
        return pod_facts(before, pod)

    def _remove_pod(self, change: Removed) -> tuple[Fact, ...]:
        known = self._pods.get(change.namespace, change.name)
        if known is None or (change.uid and change.uid != known.uid):
            return ()
        self._assumed.drop(known.uid)
        self._pods.remove(known)
        self._changed_pods()
        return pod_facts(known, None)

    def _changed_pods(self) -> None:
        self._pod_changes += 1
        self.generation += 1

    def _meaning(self, kind: str, old: Any | None, new: Any | None) -> tuple[Fact, ...]:
        if old is None and new is None:
            return ()
        self.generation += 1
        if kind == "Node":
            return node_facts(old, new)
        value = old if new is None else new
        subject = "/".join(part for part in key_of(kind, value) if part)
        what = FactKind.BUDGET_CHANGED if kind == "PodDisruptionBudget" else FactKind.OTHER_CHANGED
        return (Fact(what, subject, getattr(value, "uid", ""), kind),)

    # Evictions taken for granted

    def assume_evicted(self, key: str, uid: str, timeout_seconds: float) -> None:
        """Show a pod (``namespace/name``) as terminating: its eviction was accepted (or may have been).

        timeout_seconds: how long the watch has to say the same before the pod is shown as it reports it again.
        """
        namespace, _, name = key.partition("/")
        pod = self._pods.get(namespace, name)
        if pod is None or pod.uid != uid or pod.terminating:
            return
        deleted_at = self._wall_clock() + pod.shape.grace_seconds
        self._pods.put(self._assumed.take(pod, deleted_at, self._clock() + timeout_seconds))
        self._changed_pods()

    def withdraw_assumption(self, uid: str) -> None:
        """Show a pod as the watch reports it: its eviction did not happen after all."""
        pod = self._assumed.drop(uid)
        if pod is not None:
            self._pods.put(pod)
            self._changed_pods()

    def _expire_assumptions(self) -> None:
        if len(self._assumed):
            for pod in self._assumed.expire(self._clock()):
                self._pods.put(pod)
                self._changed_pods()

    # Giving out

    def snapshot(self, now: float | None = None) -> Snapshot:
        """Return a frozen picture. now: seconds since the epoch, the wall clock's where it is left out.

        Buckets and views that have not changed since the last picture are the same objects in this one.
        """
        self._expire_assumptions()
        shown = {name: view.get() for name, view in self._views.items()}
        placed, unplaced = self._place(shown["nodes"])
        return Snapshot(
            now=self._wall_clock() if now is None else now,
            pods=placed,
            unplaced=unplaced,
            missing=self.freshness.missing(),
            **shown,
        )

    def _place(self, nodes: dict[str, Node]) -> tuple[dict[str, tuple[Pod, ...]], tuple[Pod, ...]]:
        node_changes = self._tables["Node"].changes
        if self._placed is not None and self._placed[:2] == (self._pod_changes, node_changes):
            return self._placed[2:]
        buckets = self._pods.by_node
        placed = {name: buckets.get(name, ()) for name in nodes}
        unplaced = buckets.get(NOWHERE, ())
        lost = [name for name in buckets if name not in placed and name != NOWHERE]
        if lost:
            unplaced = tuple(sorted((pod for name in (NOWHERE, *lost) for pod in buckets.get(name, ())), key=lambda pod: pod.uid))
        self._placed = (self._pod_changes, node_changes, placed, unplaced)
        return placed, unplaced

    def pod_named(self, namespace: str, name: str) -> Pod | None:
        """Return a pod as the watch last reported it, whatever is assumed; None where there is none."""
        pod = self._pods.get(namespace, name)
        return self._assumed.watched(pod) if pod is not None and len(self._assumed) else pod

    def pod(self, key: str) -> Pod | None:
        """Return a pod by ``namespace/name`` as the watch last reported it, whatever is assumed; None where there is none."""
        namespace, _, name = key.partition("/")
        return self.pod_named(namespace, name)

    def pods_of(self, owner_uid: str) -> tuple[Pod, ...]:
        """Return the pods of an owner, in the order of their uids."""
        return self._pods.by_owner.get(owner_uid, ())

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        """Return the pods on a node, in the order of their uids."""
        return self._pods.by_node.get(node, ())

    def pods_in(self, namespace: str) -> Iterator[Pod]:
        """Yield the pods of a namespace, in no promised order."""
        yield from self._pods.by_name.get(namespace, {}).values()

    def node(self, name: str) -> Node | None:
        """Return a node as it is now; None where there is none."""
        node: Node | None = self._tables["Node"].values.get(("", name))
        return node

    def count(self, kind: str) -> int:
        """Return how many objects of a kind are known."""
        return self._pods.count if kind == "Pod" else len(self._tables[kind].values)

    # How fresh it is

    def synced(self, kind: str) -> bool:
        """Say whether a kind has been listed, or is optional and cannot be."""
        return self.freshness.synced(kind)

    def all_synced(self) -> bool:
        """Say whether every kind is synced."""
        return all(self.freshness.synced(kind) for kind in self.kinds)

    def unfresh(self) -> tuple[str, ...]:
        """Name what is not synced or has gone stale, in words; empty when all is well."""
        return self.freshness.complaints()

    def heard_at(self, kind: str) -> float:
        """Return when something of a kind was last heard (monotonic seconds); minus infinity before the first."""
        return self.freshness.heard_at(kind)

    def reached(self, version: str) -> bool:
        """Say whether pods, nodes and budgets are known up to this resource version."""
        return all(
            _at_least(self.freshness.version(kind), version)
            for kind in ("Pod", "Node", "PodDisruptionBudget")
            if kind in self.kinds
        )


def _at_least(version: str, wanted: str) -> bool:
    """Compare resource versions: numbers where both are, equality otherwise."""
    if version.isascii() and version.isdigit() and wanted.isascii() and wanted.isdigit():
        return int(version) >= int(wanted)
    return version == wanted
