"""The field table is that of the published schema."""

from __future__ import annotations

import json

import pytest

from rebalancer.sim.schema import DecodeProblem, Reading
from tests.sim.field_table import TARGET, build


def test_the_field_table_equals_the_published_schema() -> None:
    """``fields.json`` is what the generator makes of the pinned OpenAPI schema."""
    assert json.loads(TARGET.read_text()) == build()


def test_unknown_fields_are_named_by_path() -> None:
    """A field that no type has is left out and named, with the index of the list element."""
    reading = Reading()
    pod = reading.read("core.v1.Pod", {"spec": {"containers": [{"name": "c", "bogus": 1}]}, "other": 2})
    assert reading.unknown == ["spec.containers[0].bogus", "other"]
    assert pod["spec"]["containers"] == [{"name": "c", "resources": {}}]


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (
            {"spec": {"replicas": "3"}},
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            {"spec": {"template": {"spec": {"containers": {}}}}},
            "json: cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
        ),
    ],
    ids=["a text for a number", "an object for a list"],
)
def test_a_wrong_type_is_answered_in_the_decoders_words(value: dict[str, object], complaint: str) -> None:
    """The message names the struct, the path without indexes, and the Go type."""
    with pytest.raises(DecodeProblem) as caught:
        Reading().read("apps.v1.Deployment", value)
    assert str(caught.value) == complaint


def test_empty_optional_fields_are_left_out_and_fixed_ones_filled_in() -> None:
    """Null, empty lists, empty maps and false values without a pointer vanish; ``resources`` and conditions' times appear."""
    node = Reading().read("core.v1.Node", {"metadata": {"labels": {}}, "spec": {"taints": [], "unschedulable": False}})
    assert node["metadata"] == {}
    assert node["spec"] == {}
    assert node["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 0}}
