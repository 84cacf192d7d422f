"""kube-scheduler's filters once more, node by node and pod by pod on plain dicts: which nodes could take a pod.

Sources: https://kubernetes.io/docs/concepts/scheduling-eviction/ and the pages on taints, affinity and topology spread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.attack.reference import FINISHED, Object, meta, quantity, requests, required_match, selects, tolerates

HARD = "requiredDuringSchedulingIgnoredDuringExecution"


class Filters:
    """One cluster and one pod that is to be placed in it."""

    def __init__(self, objects: Iterable[Object], pod: Object) -> None:
        """Sort out nodes, the pods that hold room on them, and namespaces."""
        objects = list(objects)
        self.pod = pod
        self.nodes = {meta(each)["name"]: each for each in objects if each["kind"] == "Node"}
        self.spaces = {meta(each)["name"]: meta(each).get("labels") or {} for each in objects if each["kind"] == "Namespace"}
        self.on: dict[str, list[Object]] = {name: [] for name in self.nodes}
        for each in objects:
            if each["kind"] == "Pod" and each["status"].get("phase") not in FINISHED and each["spec"].get("nodeName") in self.on:
                self.on[each["spec"]["nodeName"]].append(each)

    def feasible(self) -> set[str]:
        """Return the nodes that pass every filter."""
        checks = (self.open_to, self.has_room, self.has_ports, self.is_spread, self.is_liked, self.is_apart)
        return {name for name, node in self.nodes.items() if all(check(node) for check in checks)}

    def open_to(self, node: Object) -> bool:
        """Judge cordon, taints, node selector and node affinity."""
        cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
        if node["spec"].get("unschedulable") and not tolerates(self.pod, cordon):
            return False
        return not self.repelled(node) and required_match(self.pod, node)

    def repelled(self, node: Object) -> bool:
        """Tell whether a taint keeps the pod away."""
        taints = node["spec"].get("taints") or ()
        return any(each["effect"] != "PreferNoSchedule" and not tolerates(self.pod, each) for each in taints)

    def has_room(self, node: Object) -> bool:
        """Judge resources and pod slots."""
        offered = {name: quantity(value, name) for name, value in node["status"]["allocatable"].items()}
        used: dict[str, float] = {}
        for each in self.on[meta(node)["name"]]:
            for name, amount in requests(each).items():
                used[name] = used.get(name, 0) + amount
        wanted = requests(self.pod).items()
        return all(not amount or used.get(name, 0) + amount <= offered.get(name, 0) + 1e-6 for name, amount in wanted)

    def has_ports(self, node: Object) -> bool:
        """Judge host ports: the same number and protocol clash unless both name different addresses."""
        taken = [port for each in self.on[meta(node)["name"]] for port in ports(each)]
        return not any(
            mine[1:] == other[1:] and (mine[0] == other[0] or "0.0.0.0" in (mine[0], other[0]))
            for mine in ports(self.pod)
            for other in taken
        )

    def is_spread(self, node: Object) -> bool:
        """Judge hard topology spread constraints."""
        rules = [
            each
            for each in self.pod["spec"].get("topologySpreadConstraints") or ()
            if each["whenUnsatisfiable"] == "DoNotSchedule"
        ]
        keys = [rule["topologyKey"] for rule in rules]
        if not all(key in labels(node) for key in keys):
            return False
        return all(self._skew(rule, keys, labels(node)[rule["topologyKey"]]) <= rule["maxSkew"] for rule in rules)

    def _skew(self, rule: Object, keys: list[str], domain: str) -> int:
        counts: dict[str, int] = {}
        for name, node in self.nodes.items():
            if not all(key in labels(node) for key in keys):
                continue
            if rule.get("nodeAffinityPolicy", "Honor") == "Honor" and not required_match(self.pod, node):
                continue
            if rule.get("nodeTaintsPolicy", "Ignore") == "Honor" and self.repelled(node):
                continue
            value = labels(node)[rule["topologyKey"]]
            counts[value] = counts.get(value, 0) + sum(
                self._is_counted(rule, each) and not meta(each).get("deletionTimestamp") for each in self.on[name]
            )
        least = min(counts.values(), default=0) if len(counts) >= rule.get("minDomains", 1) else 0
        return counts.get(domain, 0) + self._is_counted(rule, self.pod) - least

    def _is_counted(self, rule: Object, other: Object) -> bool:
        own = labels(self.pod)
        same = all(labels(other).get(key) == own[key] for key in rule.get("matchLabelKeys") or () if key in own)
        return space(other) == space(self.pod) and same and selects(rule.get("labelSelector"), labels(other))

    def is_liked(self, node: Object) -> bool:
        """Judge the pod's required affinity: in each term's domain is a pod that all terms select, or it would be the first."""
        wanted = terms(self.pod, "podAffinity")
        friends = [each for each in self._others() if all(self._selects(term, self.pod, each[1]) for term in wanted)]
        counted = any(term["topologyKey"] in labels(there) for term in wanted for there, _ in friends)
        first = not counted and all(self._selects(term, self.pod, self.pod) for term in wanted)
        for term in wanted:
            value = labels(node).get(term["topologyKey"])
            if value is None:
                return False
            if not first and not any(labels(there).get(term["topologyKey"]) == value for there, _ in friends):
                return False
        return True

    def is_apart(self, node: Object) -> bool:
        """Judge required anti-affinity in both directions."""
        for there, other in self._others():
            pairs = [(term, self.pod, other) for term in terms(self.pod, "podAntiAffinity")]
            pairs += [(term, other, self.pod) for term in terms(other, "podAntiAffinity")]
            for term, holder, target in pairs:
                value = labels(node).get(term["topologyKey"])
                if value is not None and labels(there).get(term["topologyKey"]) == value and self._selects(term, holder, target):
                    return False
        return True

    def _others(self) -> Iterator[tuple[Object, Object]]:
        for name, pods in self.on.items():
            for each in pods:
                yield self.nodes[name], each

    def _selects(self, term: Object, holder: Object, target: Object) -> bool:
        names, spaces = term.get("namespaces"), term.get("namespaceSelector")
        near = space(target) in (names or ()) or (spaces is not None and selects(spaces, self.spaces.get(space(target), {})))
        if not names and spaces is None:
            near = space(target) == space(holder)
        return near and selects(term.get("labelSelector"), labels(target))


def labels(obj: Object) -> Mapping[str, str]:
    """Return the labels."""
    found: Mapping[str, str] = meta(obj).get("labels") or {}
    return found


def space(pod: Object) -> str:
    """Return the namespace."""
    return str(meta(pod).get("namespace") or "default")


def terms(pod: Object, kind: str) -> list[Object]:
    """Return required terms of affinity or anti-affinity."""
    return list(((pod["spec"].get("affinity") or {}).get(kind) or {}).get(HARD) or ())


def ports(pod: Object) -> list[tuple[str, str, Any]]:
    """Return address, protocol and number of each host port."""
    return [
        (port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"])
        for container in pod["spec"]["containers"]
        for port in container.get("ports") or ()
        if port.get("hostPort")
    ]
