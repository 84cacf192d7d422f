"""Single cells of the tables that kubectl prints: a pod's state, a node's, containers, selectors.

Source: kubernetes/kubernetes pkg/printers/internalversion/printers.go
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rebalancer.parse.selector_text import text_of_selector
from rebalancer.sim.history import Object
from rebalancer.sim.moments import moment_of, short_age
from rebalancer.sim.selecting import owned_selector

_ROLE = "node-role.kubernetes.io/"
_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def pod_state(pod: Object, now: datetime) -> tuple[str, str, str]:
    """Return the cells Ready, Restarts and Status of a pod."""
    status = pod.get("status", {})
    statuses = status.get("containerStatuses", ())
    total = len(pod["spec"].get("containers", ()))
    ready = sum(bool(item.get("ready")) for item in statuses)
    restarts = sum(item.get("restartCount", 0) for item in statuses)
    reason = status.get("reason") or status.get("phase") or "Unknown"
    ended: str | None = None
    for item in reversed(statuses):
        waiting = item.get("state", {}).get("waiting") or {}
        terminated = item.get("state", {}).get("terminated") or {}
        if waiting.get("reason"):
            reason = waiting["reason"]
        elif terminated:
            reason = terminated.get("reason") or f"ExitCode:{terminated.get('exitCode', 0)}"
        finished = (item.get("lastState", {}).get("terminated") or {}).get("finishedAt")
        ended = max(filter(None, (ended, finished)), default=None)
    if pod["metadata"].get("deletionTimestamp"):
        reason = "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    shown = str(restarts)
    if restarts and ended:
        shown = f"{restarts} ({short_age((now - moment_of(ended)).total_seconds())} ago)"
    return f"{ready}/{total}", shown, str(reason)


def node_status(node: Object) -> str:
    """Return the cell Status of a node."""
    conditions = node.get("status", {}).get("conditions", ())
    ready = next((item for item in conditions if item["type"] == "Ready"), None)
    words = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if node.get("spec", {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def node_roles(node: Object) -> str:
    """Return the cell Roles of a node."""
    labels = node["metadata"].get("labels") or {}
    roles = {name.removeprefix(_ROLE) for name in labels if name.startswith(_ROLE)}
    return ",".join(sorted(filter(None, roles))) or "<none>"


def node_address(node: Object, kind: str) -> str:
    """Return an address of a node."""
    addresses = node.get("status", {}).get("addresses", ())
    return next((str(item["address"]) for item in addresses if item["type"] == kind), "<none>")


def containers(workload: Object) -> tuple[str, str]:
    """Return the cells Containers and Images of a workload."""
    found = workload["spec"].get("template", {}).get("spec", {}).get("containers") or ()
    return ",".join(item["name"] for item in found), ",".join(item.get("image", "") for item in found)


def selector(workload: Object) -> str:
    """Return the cell Selector of a workload."""
    document = workload["spec"].get("selector")
    if workload.get("kind") == "ReplicationController":
        return pairs(document)
    found = owned_selector(document)
    return (text_of_selector(found) if found else "") or "<none>"


def pairs(labels: Mapping[str, str] | None) -> str:
    """Return labels as ``a=b,c=d``."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or "<none>"


def access_modes(spec: Mapping[str, Any]) -> str:
    """Return the cell Access Modes of a volume or claim."""
    return ",".join(_MODES.get(mode, mode) for mode in spec.get("accessModes", ()))


def duration(status: Mapping[str, Any], now: datetime) -> str:
    """Return the cell Duration of a job."""
    if "startTime" not in status:
        return ""
    end = moment_of(status["completionTime"]) if "completionTime" in status else now
    return short_age((end - moment_of(status["startTime"])).total_seconds())
