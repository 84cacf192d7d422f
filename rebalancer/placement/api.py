"""Where kube-scheduler would put one pod: the answer in one call, as a value and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rebalancer.model.pod import Pod
from rebalancer.model.snapshot import Snapshot
from rebalancer.placement.profile import DEFAULT, SchedulerConfig
from rebalancer.placement.view import PlacementView


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one pod would go.

    node: the best, the first by name where several are; None where none fits. tied: all that are equally good.
    landings: node to probability.
    scores, plugin_scores: of the nodes that fit; empty unless there are two, for then nothing is scored.
    filtered: node to why it is out. message: what kube-scheduler would write about these.
    unpredictable: why scores cannot be relied upon.
    """

    node: str | None
    tied: tuple[str, ...]
    landings: Mapping[str, float]
    scores: Mapping[str, int]
    plugin_scores: Mapping[str, Mapping[str, int]]
    filtered: Mapping[str, str]
    message: str
    unpredictable: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; ``unpredictable`` and ``message`` stand in it only where there is something to say."""
        document: dict[str, Any] = {
            "node": self.node,
            "tied": list(self.tied),
            "landings": dict(self.landings),
            "scores": dict(self.scores),
            "pluginScores": {node: dict(plugins) for node, plugins in self.plugin_scores.items()},
            "filtered": dict(self.filtered),
        }
        if self.node is None:
            document["message"] = self.message
        if self.unpredictable is not None:
            document["unpredictable"] = self.unpredictable
        return document


def place(snapshot: Snapshot, pod: Pod, config: SchedulerConfig = DEFAULT) -> Placement:
    """Say where kube-scheduler would put a pod now. A pod of the same uid that waits in the snapshot is taken to be this one."""
    view = PlacementView(snapshot, config, reserve=False)
    for other in snapshot.unplaced:
        node = other.nominated_node
        if node is not None and node in snapshot.nodes and _comes_first(other, pod):
            view.add(other, node)
    prediction = view.place(pod)
    return Placement(
        node=prediction.node,
        tied=prediction.tied,
        landings=prediction.landings,
        scores=prediction.scores,
        plugin_scores=prediction.plugin_scores,
        filtered=prediction.filtered,
        message=prediction.message,
        unpredictable=prediction.unpredictable,
    )


def _comes_first(other: Pod, pod: Pod) -> bool:
    """Say whether the room that preemption has made for the other is denied to the pod."""
    if other.uid == pod.uid or other.node is not None or other.finished or other.terminating:
        return False
    return (other.shape.priority or 0) >= (pod.shape.priority or 0)
