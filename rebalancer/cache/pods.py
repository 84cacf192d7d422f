"""Pods by name, by node and by owner; each change keeps every index right."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import fields
from operator import attrgetter

from rebalancer.model.pod import Pod

Bucket = tuple[Pod, ...]

NOWHERE = ""
"""The bucket of pods that have no node."""

_uid = attrgetter("uid")
_everything = attrgetter(*(field.name for field in fields(Pod)))


def alike(one: Pod, other: Pod) -> bool:
    """Say whether two pods are equal in every field. Their shapes are interned, so identity is equality there."""
    return bool(_everything(one) == _everything(other))


def owner_uid(pod: Pod) -> str:
    """Return the uid of the pod's owner; empty for a bare pod."""
    owner = pod.shape.owner
    return owner.uid if owner else ""


class PodTable:
    """All pods.

    by_name: namespace to name to pod. by_node: node name (NOWHERE: none) to pods in the order of uids.
    by_owner: owner uid to pods in the order of uids; bare pods are left out. Buckets are tuples and replaced on change.
    """

    __slots__ = ("by_name", "by_node", "by_owner", "count")

    def __init__(self) -> None:
        """Start without a pod."""
        self.by_name: dict[str, dict[str, Pod]] = {}
        self.by_node: dict[str, Bucket] = {}
        self.by_owner: dict[str, Bucket] = {}
        self.count = 0

    def __iter__(self) -> Iterator[Pod]:
        """Yield every pod, in no promised order."""
        for pods in self.by_name.values():
            yield from pods.values()

    def get(self, namespace: str, name: str) -> Pod | None:
        """Return a pod by name."""
        pods = self.by_name.get(namespace)
        return pods.get(name) if pods else None

    def put(self, pod: Pod) -> Pod | None:
        """Add a pod, or replace the one of its name; return the one that was there."""
        pods = self.by_name.get(pod.namespace)
        if pods is None:
            pods = self.by_name[pod.namespace] = {}
        old = pods.get(pod.name)
        pods[pod.name] = pod
        if old is None:
            self.count += 1
        _move(self.by_node, old, pod, None if old is None else old.node or NOWHERE, pod.node or NOWHERE)
        _move(self.by_owner, old, pod, (owner_uid(old) or None) if old else None, owner_uid(pod) or None)
        return old

    def remove(self, pod: Pod) -> None:
        """Take out a pod that is in the table."""
        pods = self.by_name[pod.namespace]
        del pods[pod.name]
        if not pods:
            del self.by_name[pod.namespace]
        self.count -= 1
        _move(self.by_node, pod, None, pod.node or NOWHERE, None)
        _move(self.by_owner, pod, None, owner_uid(pod) or None, None)


class PodTableBuilder:
    """Builds a table from many pods, faster than by putting one after another; equal buckets of an old table are kept."""

    def __init__(self) -> None:
        """Start without a pod."""
        self._table = PodTable()
        self._nodes: dict[str, list[Pod]] = {}
        self._owners: dict[str, list[Pod]] = {}

    def add(self, pod: Pod) -> None:
        """Add a pod; of two with one name, the later stays."""
        table = self._table
        pods = table.by_name.setdefault(pod.namespace, {})
        before = pods.get(pod.name)
        if before is not None:
            self._nodes[before.node or NOWHERE].remove(before)
            if owner := owner_uid(before):
                self._owners[owner].remove(before)
        else:
            table.count += 1
        pods[pod.name] = pod
        self._nodes.setdefault(pod.node or NOWHERE, []).append(pod)
        if owner := owner_uid(pod):
            self._owners.setdefault(owner, []).append(pod)

    def finish(self, old: PodTable) -> Iterator[PodTable | None]:
        """Sort the buckets, yielding None now and then; the table comes last."""
        for source, target, known in (
            (self._nodes, self._table.by_node, old.by_node),
            (self._owners, self._table.by_owner, old.by_owner),
        ):
            for number, (key, pods) in enumerate(source.items()):
                if not pods:
                    continue
                pods.sort(key=_uid)
                bucket, before = tuple(pods), known.get(key)
                target[key] = before if before == bucket else bucket
                if number % 200 == 199:
                    yield None
        yield self._table


def _move(index: dict[str, Bucket], old: Pod | None, new: Pod | None, old_key: str | None, new_key: str | None) -> None:
    """Take ``old`` out of its bucket and put ``new`` into its own; None for a key or a pod means there is none."""
    if old is not None and old_key is not None:
        bucket = index[old_key]
        place = bisect_left(bucket, old.uid, key=_uid)
        while bucket[place] is not old:
            place += 1
        if old_key == new_key and new is not None and new.uid == old.uid:
            index[old_key] = (*bucket[:place], new, *bucket[place + 1 :])
            return
        rest = bucket[:place] + bucket[place + 1 :]
        if rest:
            index[old_key] = rest
        else:
            del index[old_key]
    if new is not None and new_key is not None:
        bucket = index.get(new_key, ())
        place = bisect_left(bucket, new.uid, key=_uid)
        index[new_key] = (*bucket[:place], new, *bucket[place:])
