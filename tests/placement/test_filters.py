"""Which nodes a pod cannot go to, and why, in kube-scheduler's words."""

from __future__ import annotations

from typing import Any

import pytest

from tests.placement.builders import a_node, a_pod, a_taint, a_term, apart, near, on_nodes, placed

ZONE = "topology.kubernetes.io/zone"


def test_cordoned_node_is_unschedulable() -> None:
    """A cordon keeps pods away."""
    assert placed([a_node("n1", cordoned=True), a_node("n2")], a_pod("p")).filtered == {"n1": "node(s) were unschedulable"}


def test_cordon_is_tolerated_like_its_taint() -> None:
    """A toleration of the cordon's taint admits to a cordoned node."""
    tolerations = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
    assert placed([a_node("n1", cordoned=True)], a_pod("p", tolerations=tolerations)).node == "n1"


@pytest.mark.parametrize(
    ("taint", "toleration", "fits"),
    [
        pytest.param(a_taint("a"), None, False, id="NoSchedule keeps away"),
        pytest.param(a_taint("a", "NoExecute"), None, False, id="NoExecute keeps away"),
        pytest.param(a_taint("a", "PreferNoSchedule"), None, True, id="PreferNoSchedule does not"),
        pytest.param(a_taint("a", value="1"), {"key": "a", "value": "1"}, True, id="equal value tolerates"),
        pytest.param(a_taint("a", value="1"), {"key": "a", "value": "2"}, False, id="other value does not"),
        pytest.param(a_taint("a", value="1"), {"operator": "Exists"}, True, id="no key tolerates everything"),
        pytest.param(a_taint("a"), {"key": "a", "operator": "Exists", "effect": "NoExecute"}, False, id="other effect does not"),
        pytest.param(a_taint("a", value="7"), {"key": "a", "operator": "Gt", "value": "6"}, True, id="Gt above"),
        pytest.param(a_taint("a", value="6"), {"key": "a", "operator": "Gt", "value": "6"}, False, id="Gt at"),
    ],
)
def test_taints(taint: dict[str, Any], toleration: dict[str, Any] | None, fits: bool) -> None:
    """A taint that keeps pods away needs a toleration of its key, value and effect."""
    placement = placed([a_node("n1", taints=[taint])], a_pod("p", tolerations=[toleration] if toleration else []))
    assert placement.filtered == ({} if fits else {"n1": "node(s) had untolerated taint(s)"})


@pytest.mark.parametrize(
    ("expression", "nodes"),
    [
        ({"key": "disk", "operator": "In", "values": ["ssd", "nvme"]}, {"n1"}),
        ({"key": "disk", "operator": "NotIn", "values": ["ssd"]}, {"n2", "n3"}),
        ({"key": "disk", "operator": "Exists"}, {"n1", "n2"}),
        ({"key": "disk", "operator": "DoesNotExist"}, {"n3"}),
        ({"key": "size", "operator": "Gt", "values": ["5"]}, {"n2"}),
        ({"key": "size", "operator": "Lt", "values": ["6"]}, {"n1"}),
        ({"key": "absent", "operator": "Exists"}, set()),
    ],
)
def test_required_node_affinity(expression: dict[str, Any], nodes: set[str]) -> None:
    """Every operator on node labels admits exactly the nodes that meet it."""
    objects = [a_node("n1", labels={"disk": "ssd", "size": "5"}), a_node("n2", labels={"disk": "hdd", "size": "6"}), a_node("n3")]
    placement = placed(objects, a_pod("p", affinity=on_nodes(expression)))
    assert set(placement.tied) == nodes
    assert set(placement.filtered.values()) <= {"node(s) didn't match Pod's node affinity/selector"}


def test_terms_are_alternatives_and_node_selector_is_added() -> None:
    """One of the affinity's terms must hold, and the nodeSelector too."""
    objects = [
        a_node("n1", labels={"a": "1", "s": "x"}),
        a_node("n2", labels={"b": "1", "s": "x"}),
        a_node("n3", labels={"a": "1"}),
    ]
    affinity = on_nodes({"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"})
    assert placed(objects, a_pod("p", affinity=affinity, nodeSelector={"s": "x"})).tied == ("n1", "n2")


@pytest.mark.parametrize(("operator", "nodes"), [("In", ("n2",)), ("NotIn", ("n1",))])
def test_affinity_may_name_nodes(operator: str, nodes: tuple[str, ...]) -> None:
    """matchFields on metadata.name pins (as the DaemonSet controller does) or excludes; a pin puts all others out at once."""
    fields = [{"key": "metadata.name", "operator": operator, "values": ["n2"]}]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    placement = placed([a_node("n1"), a_node("n2")], a_pod("p", affinity=affinity))
    assert placement.tied == nodes
    reasons = {
        "In": "node(s) didn't satisfy plugin(s) [NodeAffinity]",
        "NotIn": "node(s) didn't match Pod's node affinity/selector",
    }
    assert set(placement.filtered.values()) == {reasons[operator]}


def test_pod_that_names_its_node_goes_nowhere_else() -> None:
    """A nodeName of a pod that is not there yet is the only choice, if it fits."""
    placement = placed([a_node("n1"), a_node("n2")], a_pod("p", on="n2"))
    assert placement.tied == ("n2",)
    assert placement.filtered == {"n1": "node(s) didn't match the requested node name"}


@pytest.mark.parametrize(
    ("requests", "reason"),
    [
        pytest.param({"cpu": "1"}, None, id="cpu exactly"),
        pytest.param({"cpu": "1001m"}, "Insufficient cpu", id="cpu one too many"),
        pytest.param({"memory": "1Gi"}, None, id="memory exactly"),
        pytest.param({"memory": "1025Mi"}, "Insufficient memory", id="memory too much"),
        pytest.param({"ephemeral-storage": "1Gi"}, "Insufficient ephemeral-storage", id="storage that the node lacks"),
        pytest.param({"example.com/gpu": "1"}, None, id="extended resource exactly"),
        pytest.param({"example.com/gpu": "2"}, "Insufficient example.com/gpu", id="extended resource too many"),
        pytest.param({"example.com/other": "1"}, "Insufficient example.com/other", id="extended resource unknown to the node"),
        pytest.param({"hugepages-2Mi": "4Mi"}, "Insufficient hugepages-2Mi", id="huge pages"),
        pytest.param({"cpu": "2", "memory": "2Gi"}, "Insufficient cpu, Insufficient memory", id="both"),
        pytest.param({}, None, id="nothing requested"),
    ],
)
def test_room(requests: dict[str, str], reason: str | None) -> None:
    """What is free is what is allocatable less what bound pods that have not finished request."""
    node = a_node("n1", "4", "4Gi", extra={"example.com/gpu": "2", "hugepages-2Mi": "2Mi"})
    there = [
        a_pod("a", "2", "2Gi", on="n1", requests={"example.com/gpu": "1"}),
        a_pod("b", "1", "1Gi", on="n1", deleted=True),
        a_pod("c", "1", "1Gi", on="n1", phase="Succeeded"),
        a_pod("d", "1", "1Gi", on="n1", phase="Failed"),
    ]
    assert placed([node, *there], a_pod("p", requests=requests)).filtered.get("n1") == reason


@pytest.mark.parametrize(("slots", "reason"), [("1", "Too many pods"), ("2", None)])
def test_slots(slots: str, reason: str | None) -> None:
    """A node takes no more pods than it has slots, even pods that request nothing."""
    assert placed([a_node("n1", pods=slots), a_pod("a", on="n1")], a_pod("p")).filtered.get("n1") == reason


@pytest.mark.parametrize(
    ("theirs", "ours", "free"),
    [
        pytest.param({"hostPort": 80}, {"hostPort": 80}, False, id="same port"),
        pytest.param({"hostPort": 80}, {"hostPort": 81}, True, id="other port"),
        pytest.param({"hostPort": 80, "protocol": "UDP"}, {"hostPort": 80}, True, id="other protocol"),
        pytest.param({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, True, id="other address"),
        pytest.param({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.1"}, False, id="same address"),
        pytest.param({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "0.0.0.0"}, False, id="every address"),
        pytest.param(
            {"hostPort": 80, "hostIP": "0.0.0.0"}, {"hostPort": 80, "hostIP": "10.0.0.1"}, False, id="taken on every address"
        ),
    ],
)
def test_host_ports(theirs: dict[str, Any], ours: dict[str, Any], free: bool) -> None:
    """A host port can be had once per protocol and address; 0.0.0.0 is every address."""
    there = a_pod("a", on="n1", ports=[{"containerPort": 1, **theirs}])
    placement = placed([a_node("n1"), there], a_pod("p", ports=[{"containerPort": 1, **ours}]))
    assert placement.filtered == ({} if free else {"n1": "node(s) didn't have free ports for the requested pod ports"})


def test_own_anti_affinity() -> None:
    """A pod keeps away from topology domains that hold a pod it forbids, terminating ones included."""
    objects = [
        a_node("n1", labels={ZONE: "a"}),
        a_node("n2", labels={ZONE: "a"}),
        a_node("n3", labels={ZONE: "b"}),
        a_node("n4"),
        a_pod("x", on="n1", labels={"app": "y"}, deleted=True),
    ]
    placement = placed(objects, a_pod("p", affinity=apart(a_term("y", ZONE))))
    assert placement.tied == ("n3", "n4")
    assert placement.filtered["n2"] == "node(s) didn't match pod anti-affinity rules"


def test_anti_affinity_of_existing_pods() -> None:
    """A pod that is already there keeps away what it forbids, although the new pod asks for nothing."""
    objects = [a_node("n1"), a_node("n2"), a_pod("x", on="n1", affinity=apart(a_term("y")))]
    placement = placed(objects, a_pod("p", labels={"app": "y"}))
    assert placement.filtered == {"n1": "node(s) didn't satisfy existing pods anti-affinity rules"}


@pytest.mark.parametrize(
    ("more", "away"),
    [
        pytest.param({}, False, id="own namespace only"),
        pytest.param({"namespaces": ["ns2"]}, True, id="namespace by name"),
        pytest.param({"namespaceSelector": {"matchLabels": {"team": "core"}}}, True, id="namespace by label (A9)"),
        pytest.param({"namespaceSelector": {"matchLabels": {"team": "other"}}}, False, id="other label"),
        pytest.param({"namespaceSelector": {}}, True, id="all namespaces"),
        pytest.param({"namespaceSelector": {}, "namespaces": ["ns9"]}, True, id="both are joined"),
    ],
)
def test_namespaces_of_terms(more: dict[str, Any], away: bool) -> None:
    """A term looks into its own namespace, into those it names, and into those whose labels it selects."""
    objects = [
        {"kind": "Namespace", "metadata": {"name": "ns2", "labels": {"team": "core"}}},
        a_node("n1"),
        a_node("n2"),
        a_pod("x", on="n1", namespace="ns2", labels={"app": "y"}),
    ]
    placement = placed(objects, a_pod("p", namespace="ns1", affinity=apart(a_term("y", **more))))
    assert ("n1" in placement.filtered) is away


def test_required_affinity() -> None:
    """A pod goes only where everything it wants near it is, by topology value; a node without the label never does."""
    objects = [
        a_node("n1", labels={ZONE: "a"}),
        a_node("n2", labels={ZONE: "b"}),
        a_node("n3"),
        a_pod("x", on="n1", labels={"app": "y"}),
    ]
    placement = placed(objects, a_pod("p", affinity=near(a_term("y", ZONE))))
    assert placement.tied == ("n1",)
    assert placement.filtered["n3"] == "node(s) didn't match pod affinity rules"


def test_pods_must_meet_all_affinity_terms_at_once() -> None:
    """Two terms are met by one pod that meets both, not by two pods that meet one each."""
    objects = [a_node("n1"), a_pod("x", on="n1", labels={"app": "y"}), a_pod("z", on="n1", labels={"app": "w"})]
    assert placed(objects, a_pod("p", affinity=near(a_term("y"), a_term("w")))).node is None


@pytest.mark.parametrize(("app", "node"), [("y", "n1"), ("z", None)])
def test_first_pod_of_a_group_may_go_anywhere(app: str, node: str | None) -> None:
    """Where no pod meets the terms, a pod that means itself by them is let in, and any other is not."""
    assert placed([a_node("n1")], a_pod("p", labels={"app": app}, affinity=near(a_term("y")))).node == node


def test_first_objection_counts() -> None:
    """A node's reason is the first in the order in which kube-scheduler asks."""
    node = a_node("n1", "1", cordoned=True, taints=[a_taint("a")])
    placement = placed([node], a_pod("p", "2", nodeSelector={"x": "y"}))
    assert placement.filtered == {"n1": "node(s) were unschedulable"}
    assert placement.message == "0/1 nodes are available: 1 node(s) were unschedulable."


def test_message_counts_every_lacking_resource() -> None:
    """A node that lacks two resources counts under both, and reasons are sorted as text."""
    placement = placed([a_node("n1", "1", "1Gi"), a_node("n2", "1")], a_pod("p", "2", "2Gi"))
    assert placement.message == "0/2 nodes are available: 1 Insufficient memory, 2 Insufficient cpu."


def test_no_nodes() -> None:
    """In an empty cluster a pod goes nowhere, and nothing is said about nodes."""
    placement = placed([], a_pod("p", "1", affinity=near(a_term("y"))))
    assert placement.to_dict() == {
        "node": None, "tied": [], "landings": {}, "scores": {}, "pluginScores": {}, "filtered": {},
        "message": "0/0 nodes are available",
    }  # fmt: skip
