"""The default evictor, selectors and nodeFit once more, straight from their description, on plain dicts.

Slow and literal on purpose: it shares nothing with the product but the input. It decides as the product does without placement
(the policy's own nodeFit aside), with the faults F11, F12, F14 to F18, F21, F36 and F37 mended. It knows no limits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

Object = Mapping[str, Any]
ANNOTATION = "descheduler.alpha.kubernetes.io/"
CRITICAL = 2_000_000_000
FINISHED = ("Succeeded", "Failed")
DEFAULT_PROTECTIONS = {
    "PodsWithLocalStorage",
    "DaemonSetPods",
    "SystemCriticalPods",
    "FailedBarePods",
    "PodsWithSafeToEvictFalse",
    "PodsWithDoNotDisrupt",
}


def meta(obj: Object) -> Object:
    """Return the metadata."""
    found: Object = obj.get("metadata") or {}
    return found


def key(pod: Object) -> str:
    """Return namespace and name."""
    return f"{meta(pod)['namespace']}/{meta(pod)['name']}"


def at(text: str) -> float:
    """Return a time in seconds."""
    return datetime.fromisoformat(text).timestamp()


def expression(labels: Mapping[str, str], item: Object) -> bool:
    """Judge one expression of a label or node selector."""
    name, operator, values = item["key"], item["operator"], item.get("values") or []
    value = labels.get(name)
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    if value is None or not re.fullmatch(r"-?\d+", value):
        return False
    return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])


def selects(selector: Object | None, labels: Mapping[str, str]) -> bool:
    """Judge a label selector; null selects nothing, the empty one everything."""
    if selector is None:
        return False
    return all(labels.get(name) == value for name, value in (selector.get("matchLabels") or {}).items()) and all(
        expression(labels, item) for item in selector.get("matchExpressions") or []
    )


def text_selects(selector: str, labels: Mapping[str, str]) -> bool:
    """Judge a selector written as ``a=b,c=d``."""
    return all(labels.get(part.partition("=")[0]) == part.partition("=")[2] for part in selector.split(",") if part)


def node_term(term: Object, node: Object) -> bool:
    """Judge one term of a node selector; one without requirements matches nothing."""
    labels, fields = meta(node).get("labels") or {}, {"metadata.name": meta(node)["name"]}
    wanted, named = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not wanted and not named:
        return False
    return all(expression(labels, item) for item in wanted) and all(expression(fields, item) for item in named)


def required_match(pod: Object, node: Object) -> bool:
    """Judge nodeSelector and required node affinity (F18: both)."""
    labels = meta(node).get("labels") or {}
    if any(labels.get(name) != value for name, value in (pod["spec"].get("nodeSelector") or {}).items()):
        return False
    required = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    return required is None or any(node_term(term, node) for term in required["nodeSelectorTerms"])


def preferred_weight(pod: Object, node: Object) -> int:
    """Add up the weights of matching preferred terms."""
    terms = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get("preferredDuringSchedulingIgnoredDuringExecution")
    return sum(each["weight"] for each in terms or () if node_term(each["preference"], node))


def tolerates(pod: Object, taint: Object) -> bool:
    """Judge the pod's tolerations against one taint."""
    for each in pod["spec"].get("tolerations") or ():
        if each.get("effect") and each["effect"] != taint["effect"]:
            continue
        if each.get("key") and each["key"] != taint["key"]:
            continue
        if each.get("operator") == "Exists" or (each.get("key") and each.get("value", "") == taint.get("value", "")):
            return True
    return False


def quantity(text: str, unit: str) -> float:
    """Return a quantity, cpu in thousandths."""
    number, suffix = re.fullmatch(r"([\d.]+)([A-Za-z]*)", str(text)).groups()  # type: ignore[union-attr]
    factor = {"": 1, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}[suffix]
    return float(number) * factor * (1000 if unit == "cpu" else 1)


def requests(pod: Object) -> dict[str, float]:
    """Sum what a pod requests: containers and sidecars, or the largest init step."""
    spec = pod["spec"]
    total: dict[str, float] = {"pods": 1}

    def of(container: Object) -> dict[str, float]:
        given = (container.get("resources") or {}).get("requests") or {}
        return {name: quantity(value, name) for name, value in given.items()}

    for container in spec["containers"]:
        for name, amount in of(container).items():
            total[name] = total.get(name, 0) + amount
    sidecars: dict[str, float] = {}
    largest: dict[str, float] = {}
    for container in spec.get("initContainers") or ():
        step = of(container)
        if container.get("restartPolicy") == "Always":
            for name, amount in step.items():
                total[name] = total.get(name, 0) + amount
                sidecars[name] = sidecars.get(name, 0) + amount
            step = {}
        for name in {*step, *sidecars}:
            largest[name] = max(largest.get(name, 0), step.get(name, 0) + sidecars.get(name, 0))
    for name, amount in largest.items():
        total[name] = max(total.get(name, 0), amount)
    return total


class Reference:
    """One cluster, one profile of a policy."""

    def __init__(self, objects: Iterable[Object], policy: Object, now: float) -> None:
        """Sort the objects by kind and read the first profile."""
        objects = list(objects)
        self.now = now
        self.of = {kind: [each for each in objects if each["kind"] == kind] for kind in {each["kind"] for each in objects}}
        self.pods = sorted(self.of.get("Pod", []), key=lambda pod: meta(pod)["uid"])
        self.namespaces = {meta(each)["name"]: meta(each).get("labels") or {} for each in self.of.get("Namespace", [])}
        self.nodes = [
            node
            for node in sorted(self.of.get("Node", []), key=lambda node: str(meta(node)["name"]))
            if all(each["status"] == "True" for each in node["status"].get("conditions") or () if each["type"] == "Ready")
            and text_selects(policy.get("nodeSelector", ""), meta(node).get("labels") or {})
        ]
        (profile,) = policy["profiles"]
        self.args = {each["name"]: each.get("args") or {} for each in profile["pluginConfig"]}
        self.enabled = profile["plugins"].get("deschedule", {}).get("enabled", [])
        self.evictor = self.args.get("DefaultEvictor", {})
        self.gone: set[str] = set()

    def on(self, node: Object) -> list[Object]:
        """Return the pods on a node that have not been evicted."""
        name = meta(node)["name"]
        return [pod for pod in self.pods if pod["spec"].get("nodeName") == name and meta(pod)["uid"] not in self.gone]

    def threshold(self) -> int | None:
        """Return the priority from which on pods stay."""
        given = self.evictor.get("priorityThreshold") or {}
        if given.get("name"):
            return int(next(each["value"] for each in self.of["PriorityClass"] if meta(each)["name"] == given["name"]))
        value = given.get("value")
        return None if value is None else int(value)

    def protections(self) -> set[str]:
        """Return the protections that hold."""
        given = self.evictor.get("podProtections") or {}
        return (DEFAULT_PROTECTIONS - set(given.get("defaultDisabled") or ())) | set(given.get("extraEnabled") or ())

    def evictable(self, pod: Object) -> bool:
        """Apply the filter stage."""
        notes, owners = meta(pod).get("annotations") or {}, meta(pod).get("ownerReferences") or []
        source = notes.get("kubernetes.io/config.source")
        if "kubernetes.io/config.mirror" in notes or (source is not None and source != "api"):
            return False
        if any(owner["kind"] == "Node" for owner in owners) or meta(pod).get("deletionTimestamp"):
            return False
        if notes.get(f"{ANNOTATION}evict") in ("true", ""):
            return True
        if notes.get(f"{ANNOTATION}evict") == "false":
            return False
        if self.evictor.get("noEvictionPolicy") == "Mandatory" and f"{ANNOTATION}prefer-no-eviction" in notes:
            return False
        return not any(holds(pod) for name, holds in RULES.items() if name in self.protections()) and self._by_settings(pod)

    def _by_settings(self, pod: Object) -> bool:
        priority, threshold = pod["spec"].get("priority"), self.threshold()
        if priority is not None and threshold is not None and priority >= threshold:
            return False
        protections, owners = self.protections(), meta(pod).get("ownerReferences") or []
        if "FailedBarePods" not in protections and not owners and pod["status"].get("phase") != "Failed":
            return False
        if "PodsWithoutPDB" in protections and not any(
            meta(each)["namespace"] == meta(pod)["namespace"]
            and selects(each["spec"].get("selector"), meta(pod).get("labels") or {})
            for each in self.of.get("PodDisruptionBudget", [])
        ):
            return False
        selector = self.evictor.get("labelSelector")
        if selector is not None and not selects(selector, meta(pod).get("labels") or {}):
            return False
        least = self.evictor.get("minReplicas", 0)
        if least > 1 and len(owners) == 1:
            return bool(sum(ready(each) for each in self.pods if owned_by(each, owners[0]["uid"])) >= least)
        return True

    def allowed(self, pod: Object) -> bool:
        """Apply both stages of the evictor."""
        selector = self.evictor.get("namespaceLabelSelector")
        labels = self.namespaces.get(meta(pod)["namespace"], {})
        return self.evictable(pod) and (selector is None or selects(selector, labels))

    def in_scope(self, pod: Object, args: Object) -> bool:
        """Judge a strategy's namespaces and labelSelector."""
        names, namespace = args.get("namespaces") or {}, meta(pod)["namespace"]
        if names.get("include") and namespace not in names["include"]:
            return False
        if namespace in (names.get("exclude") or ()):
            return False
        selector = args.get("labelSelector")
        return selector is None or selects(selector, meta(pod).get("labels") or {})

    def fits(self, pod: Object, node: Object) -> bool:
        """Apply upstream's nodeFit for one node."""
        if meta(node)["name"] == pod["spec"].get("nodeName") or node["spec"].get("unschedulable"):
            return False
        repelled = any(
            taint["effect"] in ("NoSchedule", "NoExecute") and not tolerates(pod, taint)
            for taint in node["spec"].get("taints") or ()
        )
        if repelled or not required_match(pod, node):
            return False
        there = [each for each in self.on(node) if each["status"].get("phase") not in FINISHED]
        if any(self.forbids(pod, term, each) for term in anti_terms(pod) for each in there):
            return False
        offered = {name: quantity(value, name) for name, value in node["status"]["allocatable"].items()}
        used: dict[str, float] = {}
        for each in there:
            for name, amount in requests(each).items():
                used[name] = used.get(name, 0) + amount
        return all(amount == 0 or used.get(name, 0) + amount <= offered.get(name, 0) for name, amount in requests(pod).items())

    def forbids(self, pod: Object, term: Object, other: Object) -> bool:
        """Tell whether a term of the pod selects the other (F17: told apart by UID, namespaceSelector counts)."""
        if meta(pod)["uid"] == meta(other)["uid"] or meta(other).get("deletionTimestamp"):
            return False
        names, spaces, namespace = term.get("namespaces"), term.get("namespaceSelector"), meta(other)["namespace"]
        near = namespace in (names or ()) or (spaces is not None and selects(spaces, self.namespaces.get(namespace, {})))
        if not names and spaces is None:
            near = namespace == meta(pod)["namespace"]
        return near and selects(term.get("labelSelector"), meta(other).get("labels") or {})

    def take(self, pod: Object) -> bool:
        """Evict a pod that may go."""
        if meta(pod)["uid"] in self.gone or not self.allowed(pod):
            return False
        self.gone.add(meta(pod)["uid"])
        return True

    def all_on(self) -> list[Object]:
        """Return the pods of all listed nodes."""
        return [pod for node in self.nodes for pod in self.on(node)]


def ready(pod: Object) -> bool:
    """Tell whether a pod is live and ready (F16)."""
    conditions = pod["status"].get("conditions") or ()
    is_ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return is_ready and not meta(pod).get("deletionTimestamp") and pod["status"].get("phase") not in FINISHED


def owned_by(pod: Object, uid: str) -> bool:
    """Tell whether a pod has this owner."""
    return any(owner["uid"] == uid for owner in meta(pod).get("ownerReferences") or ())


def anti_terms(pod: Object) -> list[Object]:
    """Return the required anti-affinity terms."""
    terms = ((pod["spec"].get("affinity") or {}).get("podAntiAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    return list(terms or ())


RULES: dict[str, Callable[[Object], bool]] = {
    "PodsWithLocalStorage": lambda pod: any(
        "emptyDir" in each or "hostPath" in each for each in pod["spec"].get("volumes") or ()
    ),
    "DaemonSetPods": lambda pod: any(owner["kind"] == "DaemonSet" for owner in meta(pod).get("ownerReferences") or ()),
    "SystemCriticalPods": lambda pod: (pod["spec"].get("priority") or 0) >= CRITICAL,
    "FailedBarePods": lambda pod: not meta(pod).get("ownerReferences"),
    "PodsWithPVC": lambda pod: any("persistentVolumeClaim" in each for each in pod["spec"].get("volumes") or ()),
    "PodsWithResourceClaims": lambda pod: bool(pod["spec"].get("resourceClaims")),
    "PodsWithSafeToEvictFalse": lambda pod: (
        (meta(pod).get("annotations") or {}).get("cluster-autoscaler.kubernetes.io/safe-to-evict") == "false"
    ),
    "PodsWithDoNotDisrupt": lambda pod: (meta(pod).get("annotations") or {}).get("karpenter.sh/do-not-disrupt") == "true",
}
