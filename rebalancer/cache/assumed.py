"""Evictions that were accepted and not seen yet: their pods count as terminating until the watch says so, or for a time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rebalancer.model.pod import Pod


@dataclass(slots=True)
class _Assumption:
    watched: Pod
    deleted_at: float
    expires_at: float


class Assumptions:
    """The evictions taken for granted, by the uid of their pods."""

    def __init__(self) -> None:
        """Start without any."""
        self._by_uid: dict[str, _Assumption] = {}

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._by_uid)

    def take(self, pod: Pod, deleted_at: float, expires_at: float) -> Pod:
        """Assume that a pod is on its way out; return it as it is shown from now on.

        deleted_at: seconds since the epoch. expires_at: monotonic seconds, when the watch should have said so.
        """
        self._by_uid[pod.uid] = _Assumption(pod, deleted_at, expires_at)
        return replace(pod, deleted_at=deleted_at)

    def shown(self, pod: Pod) -> Pod:
        """Return how a pod that the watch reports is shown; the assumption ends once the watch says the same."""
        assumption = self._by_uid.get(pod.uid)
        if assumption is None:
            return pod
        if pod.terminating or pod.finished:
            del self._by_uid[pod.uid]
            return pod
        assumption.watched = pod
        return replace(pod, deleted_at=assumption.deleted_at)

    def watched(self, pod: Pod) -> Pod:
        """Return a pod that is shown as the watch reported it."""
        assumption = self._by_uid.get(pod.uid)
        return pod if assumption is None else assumption.watched

    def all_watched(self) -> list[Pod]:
        """Return every pod with an assumption as the watch reported it."""
        return [assumption.watched for assumption in self._by_uid.values()]

    def drop(self, uid: str) -> Pod | None:
        """End an assumption; return the pod as the watch reported it, None where nothing was assumed."""
        assumption = self._by_uid.pop(uid, None)
        return assumption.watched if assumption else None

    def expire(self, now: float) -> list[Pod]:
        """End the assumptions whose time has passed; return their pods as the watch reported them. now: monotonic seconds."""
        late = [uid for uid, assumption in self._by_uid.items() if assumption.expires_at <= now]
        return [self._by_uid.pop(uid).watched for uid in late]
