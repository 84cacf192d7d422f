"""Topology spread constraints: hard ones as a filter, soft and built-in ones as a score."""

from __future__ import annotations

from typing import Any

import pytest

from tests.placement.builders import Document, a_node, a_pod, a_spread, a_taint, on_nodes, placed

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
WEB = {"app": "web"}
FULL = "node(s) didn't match pod topology spread constraints"


def zones(**pods: int) -> list[Document]:
    """Return one node per zone, n-<zone>, with so many web pods."""
    objects: list[Document] = []
    for zone, count in pods.items():
        objects.append(a_node(f"n-{zone}", labels={ZONE: zone}))
        objects += [a_pod(f"web-{zone}-{number}", on=f"n-{zone}", labels=WEB) for number in range(count)]
    return objects


def web(**more: Any) -> Document:
    """Return one more web pod with a hard zone constraint."""
    return a_pod("p", labels=WEB, topologySpreadConstraints=[a_spread("web", ZONE, **more)])


@pytest.mark.parametrize(("skew", "fits"), [(1, {"n-b"}), (2, {"n-a", "n-b"})])
def test_skew_counts_the_pod_itself(skew: int, fits: set[str]) -> None:
    """A domain may exceed the emptiest by the skew, the new pod included."""
    placement = placed(zones(a=1, b=0), web(skew=skew))
    assert set(placement.landings) | set(placement.scores) == fits
    assert all(reason == FULL for reason in placement.filtered.values())


def test_pod_that_its_own_selector_does_not_mean_adds_nothing() -> None:
    """Where the constraint means other pods, the new pod is not counted."""
    pod = a_pod("p", topologySpreadConstraints=[a_spread("web", ZONE)])
    assert not placed(zones(a=1, b=0), pod).filtered
    assert set(placed(zones(a=2, b=0), pod).filtered) == {"n-a"}


@pytest.mark.parametrize(("minimum", "fits"), [(2, True), (3, False)])
def test_too_few_domains_count_as_an_empty_one(minimum: int, fits: bool) -> None:
    """While there are fewer domains than minDomains, the lowest count is taken to be 0."""
    assert (placed(zones(a=1, b=1), web(minDomains=minimum)).node is not None) is fits


def test_node_without_the_label_is_out() -> None:
    """A node without the topology key of a hard constraint is refused with a reason of its own, and is no domain."""
    placement = placed([*zones(a=1), a_node("bare")], web())
    assert placement.filtered == {"bare": f"{FULL} (missing required label)"}


@pytest.mark.parametrize(("policy", "fits"), [({}, True), ({"nodeAffinityPolicy": "Ignore"}, False)])
def test_nodes_that_the_affinity_rules_out(policy: dict[str, str], fits: bool) -> None:
    """Nodes that the pod's affinity rules out are no domains, unless the policy says to ignore affinity."""
    objects = zones(a=1, b=1, c=0)
    affinity = on_nodes({"key": ZONE, "operator": "In", "values": ["a", "b"]})
    pod = a_pod("p", labels=WEB, affinity=affinity, topologySpreadConstraints=[a_spread("web", ZONE, **policy)])
    assert (placed(objects, pod).node is not None) is fits


@pytest.mark.parametrize(("policy", "fits"), [({}, False), ({"nodeTaintsPolicy": "Honor"}, True)])
def test_nodes_that_a_taint_rules_out(policy: dict[str, str], fits: bool) -> None:
    """Tainted nodes are domains like others, unless the policy says to honour taints (B5, B11)."""
    objects = [*zones(a=1), a_node("n-b", labels={ZONE: "b"}, taints=[a_taint("x")])]
    assert (placed(objects, web(**policy)).node is not None) is fits


def test_terminating_pods_are_not_counted() -> None:
    """Pods on their way out do not count, although they still hold their room."""
    objects = [*zones(a=1, b=0), a_pod("old", on="n-b", labels=WEB, deleted=True)]
    assert placed(objects, web()).tied == ("n-b",)


def test_pods_of_other_namespaces_are_not_counted() -> None:
    """A constraint looks at its own namespace only."""
    objects = [*zones(a=0, b=0), a_pod("x", on="n-a", namespace="other", labels=WEB)]
    assert not placed(objects, web()).filtered


def test_match_label_keys_tell_revisions_apart() -> None:
    """Pods whose value of a matchLabelKeys label differs are not counted."""
    objects = [*zones(a=0, b=0), a_pod("x", on="n-a", labels={**WEB, "rev": "1"})]
    constraint = a_spread("web", ZONE, matchLabelKeys=["rev"])
    new, same = ({**WEB, "rev": revision} for revision in ("2", "1"))
    assert not placed(objects, a_pod("p", labels=new, topologySpreadConstraints=[constraint])).filtered
    assert set(placed(objects, a_pod("p", labels=same, topologySpreadConstraints=[constraint])).filtered) == {"n-a"}


def test_soft_constraint_prefers_the_emptier_domain() -> None:
    """A soft constraint scores 200 for the emptiest domain and less with every pod more."""
    pod = a_pod("p", labels=WEB, topologySpreadConstraints=[a_spread("web", ZONE, hard=False)])
    scores = {node: plugins["PodTopologySpread"] for node, plugins in placed(zones(a=2, b=1, c=0), pod).plugin_scores.items()}
    assert scores == {"n-a": 0, "n-b": 66, "n-c": 200}


def test_node_without_a_soft_key_scores_nothing() -> None:
    """With constraints of its own, a pod likes nodes without the label least of all."""
    pod = a_pod("p", labels=WEB, topologySpreadConstraints=[a_spread("web", ZONE, hard=False)])
    placement = placed([*zones(a=1, b=0), a_node("bare")], pod)
    assert placement.plugin_scores["bare"]["PodTopologySpread"] == 0


def a_selector(kind: str, name: str = "web") -> Document:
    """Return a workload or Service that selects the web pods."""
    labels = {"matchLabels": WEB} if kind in ("ReplicaSet", "StatefulSet") else WEB
    spec: Document = {"selector": labels}
    return {"kind": kind, "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}, "spec": spec}


@pytest.mark.parametrize(
    ("kind", "owner"),
    [
        ("Service", None),
        ("ReplicaSet", "ReplicaSet/web"),
        ("StatefulSet", "StatefulSet/web"),
        ("ReplicationController", "ReplicationController/web"),
    ],
)
def test_built_in_spread_takes_its_selector_from_services_and_controllers(kind: str, owner: str | None) -> None:
    """A pod without constraints is spread softly over hosts and zones by what its Services or its controller select."""
    objects = [*zones(a=1, b=0), a_selector(kind)]
    placement = placed(objects, a_pod("p", labels=WEB, owner=owner))
    assert placement.plugin_scores["n-b"]["PodTopologySpread"] == 200
    assert placement.plugin_scores["n-a"]["PodTopologySpread"] < 200


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(a_pod("p", labels=WEB), id="nothing selects it"),
        pytest.param(a_pod("p", labels=WEB, owner="Job/web"), id="a Job selects nothing"),
        pytest.param(a_pod("p", labels=WEB, topologySpreadConstraints=[a_spread("web", ZONE)]), id="hard constraints only"),
    ],
)
def test_without_soft_constraints_the_plugin_is_absent(pod: Document) -> None:
    """A plugin with nothing to score does not appear among the scores."""
    for plugins in placed(zones(a=0, b=0), pod).plugin_scores.values():
        assert "PodTopologySpread" not in plugins


def test_built_in_spread_scores_nodes_without_a_zone_by_host() -> None:
    """The built-in constraints do not demand a zone label."""
    objects = [a_node("n1"), a_node("n2"), a_selector("Service"), a_pod("x", on="n1", labels=WEB)]
    scores = placed(objects, a_pod("p", labels=WEB)).plugin_scores
    assert scores["n2"]["PodTopologySpread"] > scores["n1"]["PodTopologySpread"] > 0
