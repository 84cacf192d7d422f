"""Six Deschedule strategies once more, straight from their description, on plain dicts; see ``reference``."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tests.attack.reference import (
    ANNOTATION,
    FINISHED,
    Object,
    Reference,
    anti_terms,
    at,
    key,
    meta,
    preferred_weight,
    required_match,
    tolerates,
)


def statuses(pod: Object, init: bool) -> list[Object]:
    """Return container statuses, those of init containers too where they count."""
    status = pod["status"]
    return [*(status.get("containerStatuses") or ()), *((status.get("initContainerStatuses") or ()) if init else ())]


def reasons(pod: Object, init: bool) -> set[str]:
    """Return what containers wait for or ended with."""
    states = [each.get("state") or {} for each in statuses(pod, init)]
    found = {(state.get(kind) or {}).get("reason") for state in states for kind in ("waiting", "terminated")}
    return {reason for reason in found if reason}


def codes(pod: Object, init: bool) -> set[int]:
    """Return the exit codes of containers that ended."""
    ends = [(each.get("state") or {}).get("terminated") for each in statuses(pod, init)]
    return {end.get("exitCode", 0) for end in ends if end}


def pod_life_time(cluster: Reference, args: Object) -> list[Object]:
    """Choose by age (strictly greater), states, exit codes, owner kinds."""
    init, most = args.get("includingInitContainers", False), args.get("maxPodLifeTimeSeconds")

    def wanted(pod: Object) -> bool:
        age = max(0.0, cluster.now - at(meta(pod)["creationTimestamp"]))
        if most is not None and not age > most:
            return False
        status, states = pod["status"], set(args.get("states") or ())
        if states and not states & {status.get("phase"), status.get("reason"), *reasons(pod, init)}:
            return False
        if args.get("exitCodes") and not codes(pod, init) & set(args["exitCodes"]):
            return False
        kinds, chosen = {owner["kind"] for owner in meta(pod).get("ownerReferences") or ()}, args.get("ownerKinds") or {}
        if chosen.get("include") and not kinds & set(chosen["include"]):
            return False
        return not kinds & set(chosen.get("exclude") or ())

    return [pod for pod in cluster.all_on() if cluster.in_scope(pod, args) and wanted(pod) and cluster.take(pod)]


def failed(cluster: Reference, args: Object) -> list[Object]:
    """Choose failed pods by reason, exit code and age."""
    init = args.get("includingInitContainers", False)

    def wanted(pod: Object) -> bool:
        if pod["status"].get("phase") != "Failed":
            return False
        if max(0.0, cluster.now - at(meta(pod)["creationTimestamp"])) < args.get("minPodLifetimeSeconds", 3600):
            return False
        if args.get("reasons") and not {pod["status"].get("reason"), *reasons(pod, init)} & set(args["reasons"]):
            return False
        if args.get("exitCodes") and not codes(pod, init) & set(args["exitCodes"]):
            return False
        return not {owner["kind"] for owner in meta(pod).get("ownerReferences") or ()} & set(args.get("excludeOwnerKinds") or ())

    return [pod for pod in cluster.all_on() if cluster.in_scope(pod, args) and wanted(pod) and cluster.take(pod)]


def restarts(cluster: Reference, args: Object) -> list[Object]:
    """Choose by restarts (at or over the threshold) and states."""
    init, states = args.get("includingInitContainers", False), set(args.get("states") or ())

    def wanted(pod: Object) -> bool:
        if sum(each.get("restartCount", 0) for each in statuses(pod, init)) < args["podRestartThreshold"]:
            return False
        waiting = {((each.get("state") or {}).get("waiting") or {}).get("reason") for each in statuses(pod, init)}
        return not states or bool(states & {pod["status"].get("phase"), *waiting})

    return [pod for pod in cluster.all_on() if cluster.in_scope(pod, args) and wanted(pod) and cluster.take(pod)]


def taints(cluster: Reference, args: Object) -> list[Object]:
    """Choose what does not tolerate a NoSchedule taint (PreferNoSchedule too where asked; F36)."""
    effects = {"NoSchedule", *(["PreferNoSchedule"] if args.get("includePreferNoSchedule") else ())}

    def listed(taint: Object, names: Iterable[str]) -> bool:
        return any(name in (taint["key"], f"{taint['key']}={taint.get('value', '')}") for name in names)

    def counts(taint: Object) -> bool:
        if taint["effect"] not in effects:
            return False
        if args.get("includedTaints"):
            return listed(taint, args["includedTaints"])
        return not taint["key"].startswith("node.kubernetes.io/") and not listed(taint, args.get("excludedTaints") or ())

    return [
        pod
        for node in cluster.nodes
        for pod in cluster.on(node)
        if pod["status"].get("phase") not in FINISHED
        and cluster.in_scope(pod, args)
        and any(counts(taint) and not tolerates(pod, taint) for taint in node["spec"].get("taints") or ())
        and cluster.take(pod)
    ]


def node_affinity(cluster: Reference, args: Object) -> list[Object]:
    """Choose what its node does not match any more, or what another node that it fits suits better (F12)."""
    demanded = cluster.evictor.get("nodeFit") is not False
    found = []
    for kind in args["nodeAffinityType"]:
        for node in cluster.nodes:
            for pod in sorted(cluster.on(node), key=rank):
                if pod["status"].get("phase") in FINISHED or not cluster.in_scope(pod, args):
                    continue
                if kind.startswith("required"):
                    others = cluster.nodes if not required_match(pod, node) else []
                else:
                    here = preferred_weight(pod, node)
                    others = [each for each in cluster.nodes if preferred_weight(pod, each) > here]
                if (any(cluster.fits(pod, each) for each in others) if demanded else others) and cluster.take(pod):
                    found.append(pod)
    return found


def rank(pod: Object) -> tuple[object, ...]:
    """Return the order in which pods of a node are given up: priority, quality of service, who would rather stay, name."""
    priority = pod["spec"].get("priority")
    quality = ("BestEffort", "Burstable", "Guaranteed").index(pod["status"]["qosClass"])
    spared = f"{ANNOTATION}prefer-no-eviction" in (meta(pod).get("annotations") or {})
    return (priority is not None, priority or 0, quality, spared, meta(pod)["namespace"], meta(pod)["name"])


def anti_affinity(cluster: Reference, args: Object) -> list[Object]:
    """Choose the holders of broken rules, node by node, the lowest priority first (K11); what is gone breaks nothing."""
    found = []

    def domain(node: Object, topology_key: str) -> tuple[str, str]:
        value = (meta(node).get("labels") or {}).get(topology_key)
        return ("node", meta(node)["name"]) if value is None else ("value", value)

    def scoped(node: Object) -> list[Object]:
        return [pod for pod in cluster.on(node) if pod["status"].get("phase") not in FINISHED and cluster.in_scope(pod, args)]

    for node in cluster.nodes:
        for pod in sorted(scoped(node), key=rank):
            broken = any(
                cluster.forbids(pod, term, other)
                for term in anti_terms(pod)
                for near in cluster.nodes
                if domain(near, term["topologyKey"]) == domain(node, term["topologyKey"])
                for other in scoped(near)
            )
            if broken and cluster.take(pod):
                found.append(pod)
    return found


STRATEGIES: dict[str, Callable[[Reference, Object], list[Object]]] = {
    "PodLifeTime": pod_life_time,
    "RemoveFailedPods": failed,
    "RemovePodsHavingTooManyRestarts": restarts,
    "RemovePodsViolatingNodeTaints": taints,
    "RemovePodsViolatingNodeAffinity": node_affinity,
    "RemovePodsViolatingInterPodAntiAffinity": anti_affinity,
}


def decided(cluster: Reference) -> set[tuple[str, str]]:
    """Return what the enabled strategies evict, in order, each pod once: pod and strategy."""
    if len(cluster.nodes) < 2:
        return set()
    return {(key(pod), name) for name in cluster.enabled for pod in STRATEGIES[name](cluster, cluster.args.get(name, {}))}
