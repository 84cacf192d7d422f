"""Pods from bytes: effective requests, defaults, sharing, and malformed objects."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.errors import ParseError
from rebalancer.model.pod import Phase, Pod, QosClass
from rebalancer.model.resources import Resources
from rebalancer.parse.interning import Interner
from rebalancer.parse.objects import parse_objects
from rebalancer.parse.pod import parse_pod

GI = 2**30


def document(**spec: Any) -> dict[str, Any]:
    """Return a pod as the server would give it, with one container unless the spec says otherwise."""
    return {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
        "status": {},
    }


def parsed(pod: dict[str, Any], interner: Interner | None = None) -> Pod:
    """Parse a dict."""
    return parse_pod(orjson.dumps(pod), interner or Interner())


def container(name: str = "c", restart: str | None = None, **requests: str) -> dict[str, Any]:
    """Return a container with requests; underscores in resource names stand for hyphens."""
    result: dict[str, Any] = {
        "name": name,
        "resources": {"requests": {key.replace("_", "-"): value for key, value in requests.items()}},
    }
    return {**result, "restartPolicy": restart} if restart else result


@pytest.mark.parametrize(
    ("spec", "cpu", "memory"),
    [
        pytest.param(
            {"containers": [container(cpu="100m"), container("d", cpu="200m", memory="1Gi")]}, 300, GI, id="containers add up"
        ),
        pytest.param(
            {"containers": [container(cpu="100m")], "initContainers": [container("i", cpu="500m")]},
            500,
            0,
            id="an init container can be larger",
        ),
        pytest.param(
            {"containers": [container(cpu="100m")], "initContainers": [container("i", cpu="50m"), container("j", cpu="60m")]},
            100,
            0,
            id="init containers run one after the other",
        ),
        pytest.param(
            {"containers": [container(cpu="100m")], "initContainers": [container("s", "Always", cpu="200m")]},
            300,
            0,
            id="a sidecar adds",
        ),
        pytest.param(
            {
                "containers": [container(cpu="100m")],
                "initContainers": [container("s", "Always", cpu="200m"), container("i", cpu="400m")],
            },
            600,
            0,
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param(
            {
                "containers": [container(cpu="100m")],
                "initContainers": [container("i", cpu="400m"), container("s", "Always", cpu="200m")],
            },
            400,
            0,
            id="an init container runs without the sidecars after it",
        ),
        pytest.param(
            {"containers": [container(cpu="100m")], "overhead": {"cpu": "250m", "memory": "1Gi"}}, 350, GI, id="overhead adds"
        ),
        pytest.param(
            {"containers": [container(cpu="100m", memory="1Gi")], "resources": {"requests": {"cpu": "2"}}},
            2000,
            GI,
            id="pod-level requests replace",
        ),
        pytest.param(
            {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]},
            1000,
            GI,
            id="a limit alone is a request",
        ),
        pytest.param({}, 0, 0, id="nothing asked for"),
    ],
)
def test_effective_requests_are_those_of_kube_scheduler(spec: dict[str, Any], cpu: int, memory: int) -> None:
    """Containers, sidecars, init steps, overhead and pod-level resources count as the scheduler counts them."""
    requests = parsed(document(**spec)).shape.requests
    assert (requests.cpu_millicores, requests.memory_bytes, requests.pods) == (cpu, memory, 1)


@pytest.mark.parametrize(
    ("status", "conditions", "cpu"),
    [
        pytest.param({"resources": {"requests": {"cpu": "500m"}}}, [], 500, id="still larger on the node than wanted"),
        pytest.param({"resources": {"requests": {"cpu": "50m"}}}, [], 100, id="wanted larger than given"),
        pytest.param({"allocatedResources": {"cpu": "700m"}}, [], 700, id="allocated"),
        pytest.param(
            {"resources": {"requests": {"cpu": "50m"}}},
            [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
            50,
            id="an infeasible resize does not count",
        ),
    ],
)
def test_a_resized_pod_counts_what_it_holds(status: dict[str, Any], conditions: list[dict[str, Any]], cpu: int) -> None:
    """While a resize is going on, the larger of spec and status counts, unless the node cannot grant it."""
    pod = document(containers=[container(cpu="100m")])
    pod["status"] = {"containerStatuses": [{"name": "c", **status}], "conditions": conditions}
    assert parsed(pod).shape.requests.cpu_millicores == cpu


def test_extended_resources_are_kept_by_name() -> None:
    """What is neither cpu, memory nor storage stays under its name, in pieces."""
    pod = document(containers=[{"name": "c", "resources": {"requests": {"example.com/gpu": "2", "hugepages-2Mi": "4Mi"}}}])
    assert parsed(pod).shape.requests == Resources(pods=1, scalars={"example.com/gpu": 2, "hugepages-2Mi": 4 * 2**20})


def test_scoring_assumes_something_of_containers_without_requests() -> None:
    """kube-scheduler's scores take 100m and 200Mi for each container that names none, and nothing for one that asks for zero."""
    pod = document(containers=[container(), container("d", cpu="0", memory="0"), container("e", cpu="1")])
    shape = parsed(pod).shape
    assert (shape.nonzero_cpu_millicores, shape.nonzero_memory_bytes) == (1100, 400 * 2**20)


def test_siblings_share_one_shape() -> None:
    """Pods that differ in name, node and status only have the same shape object."""
    interner = Interner()
    first, second = document(containers=[container(cpu="1")]), document(containers=[container(cpu="1")])
    second["metadata"] = {**second["metadata"], "name": "q", "uid": "v"}
    second["spec"]["nodeName"] = "n1"
    second["status"] = {"phase": "Running"}
    assert parsed(first, interner).shape is parsed(second, interner).shape


@pytest.mark.parametrize("field", ["labels", "namespace", "ownerReferences", "annotations"])
def test_a_difference_that_matters_gives_another_shape(field: str) -> None:
    """Whatever a rule can look at is part of the shape."""
    value: Any = {
        "labels": {"a": "b"},
        "namespace": "other",
        "ownerReferences": [{"kind": "Job", "name": "j", "uid": "1", "controller": True}],
        "annotations": {"karpenter.sh/do-not-disrupt": "true"},
    }[field]
    interner = Interner()
    other = document()
    other["metadata"] = {**other["metadata"], field: value}
    assert parsed(document(), interner).shape is not parsed(other, interner).shape


def test_annotations_that_mean_nothing_here_are_dropped() -> None:
    """They would cost memory and split shapes."""
    pod = document()
    pod["metadata"]["annotations"] = {"kubectl.kubernetes.io/restartedAt": "x", "karpenter.sh/do-not-disrupt": "true"}
    assert parsed(pod).shape.annotations == {"karpenter.sh/do-not-disrupt": "true"}


def test_forgotten_shapes_free_their_memory() -> None:
    """A shape lives as long as a pod has it."""
    interner = Interner()
    pod = parsed(document(), interner)
    assert len(interner._shapes) == 1
    del pod
    assert len(interner._shapes) == 0


def test_missing_fields_get_the_servers_defaults() -> None:
    """A dump may hold objects that no server has completed."""
    pod = parsed({"kind": "Pod", "metadata": {"name": "p"}})
    assert (pod.phase, pod.node, pod.shape.scheduler_name, pod.shape.qos) == (
        Phase.PENDING,
        None,
        "default-scheduler",
        QosClass.BEST_EFFORT,
    )


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"spec": {"priority": "high"}}, "priority"),
        ({"spec": {"containers": [{"resources": {"requests": {"cpu": "1 core"}}}]}}, "cpu"),
        ({"spec": {"tolerations": [{"effect": "Sometimes"}]}}, "effect"),
        ({"status": {"phase": "Dancing"}}, "status.phase"),
        ({"metadata": {"name": "p", "labels": ["a"]}}, "p"),
        ({"metadata": {"name": ""}}, "metadata.name"),
        ({"metadata": {"name": "p", "creationTimestamp": "yesterday"}}, "creationTimestamp"),
        ({"metadata": {"name": "p", "creationTimestamp": "2026-01-01T00:00:00"}}, "time zone"),
        ({"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}}}, "nodeAffinity"),
    ],
)
def test_a_malformed_pod_is_an_error_that_names_the_field(change: dict[str, Any], named: str) -> None:
    """The message says which pod and which field."""
    with pytest.raises(ParseError, match=named):
        parsed({**document(), **change})


def test_one_malformed_object_does_not_take_the_others_down() -> None:
    """It becomes a problem in words."""
    broken = {**document(), "spec": {"priority": "high"}}
    other = {**document(), "metadata": {"name": "q", "namespace": "n"}}
    result = parse_objects([document(), broken, {"kind": "ConfigMap"}, {"kind": "PodList", "items": [other]}])
    assert [pod.name for pod in result.of("Pod")] == ["p", "q"]
    assert len(result.problems) == 1
    assert "Pod n/p" in result.problems[0]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "cpu", "key", "x"]), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(["containers", "affinity", "tolerations", "volumes", "priority", "overhead", "nodeName"]), json_values
    ),
    st.dictionaries(st.sampled_from(["phase", "conditions", "containerStatuses", "startTime"]), json_values),
)
def test_whatever_comes_is_a_pod_or_a_parse_error(spec: dict[str, Any], status: dict[str, Any]) -> None:
    """No input makes the parser raise anything else."""
    try:
        parse_pod(json.dumps({"kind": "Pod", "metadata": {"name": "p"}, "spec": spec, "status": status}).encode(), Interner())
    except ParseError:
        return
