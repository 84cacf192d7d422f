"""The binding of a pod to a node, as a scheduler asks for it.

Source: kubernetes/kubernetes pkg/registry/core/pod/storage/storage.go BindingREST
"""

from __future__ import annotations

from typing import Any

from rebalancer.sim.history import Object
from rebalancer.sim.kinds import POD
from rebalancer.sim.problems import conflict
from rebalancer.sim.registry import Registry


def bind(registry: Registry, namespace: str, name: str, binding: dict[str, Any]) -> Object:
    """Set a pod's node and its PodScheduled condition. Raises ApiProblem."""
    pod = registry.get(POD, namespace, name)
    metadata = pod["metadata"]
    wanted = (binding.get("metadata") or {}).get("uid")
    if wanted and wanted != metadata["uid"]:
        why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {metadata['uid']}"
        raise conflict(POD, name, why)
    if metadata.get("deletionTimestamp"):
        raise conflict(POD, name, f"pod {name} is being deleted, cannot be assigned to a host")
    node = (binding.get("target") or {}).get("name", "")
    if pod["spec"].get("nodeName"):
        raise conflict(POD, name, f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"')
    status = pod.get("status", {})
    condition = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": registry.now(),
    }
    conditions = [item for item in status.get("conditions", ()) if item["type"] != "PodScheduled"]
    bound = {
        **pod,
        "metadata": dict(metadata),
        "spec": {**pod["spec"], "nodeName": node},
        "status": {**status, "conditions": [*conditions, condition]},
    }
    return registry.store.put(POD.storage, bound)
