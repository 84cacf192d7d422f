"""A value with a misspelt key or of a wrong form is refused before anything is rendered."""

from __future__ import annotations

import json
from typing import Any

import pytest
from helm_python import HelmError, lint

from deploy.generate import CHART
from tests.chart.rendering import objects


@pytest.mark.parametrize(
    ("values", "named"),
    [
        pytest.param({"replica": 2}, "replica", id="top-level"),
        pytest.param({"settings": {"capNodes": 3}}, "capNodes", id="setting"),
        pytest.param({"settings": {"cap_node": 3}}, "cap_node", id="setting-in-snake-case"),
        pytest.param({"image": {"repo": "x"}}, "repo", id="image"),
        pytest.param({"cmdOptions": {"dryrun": True}}, "dryrun", id="flag"),
        pytest.param({"leaderElection": {"leaseDurations": "15s"}}, "leaseDurations", id="leader-election"),
        pytest.param({"serviceMonitor": {"enable": True}}, "enable", id="service-monitor"),
        pytest.param({"policyVariables": {"STRATEGY__REMOVE_DUPLICATE__NAMESPACES": {}}}, "REMOVE_DUPLICATE_", id="variable"),
        pytest.param({"securityContext": {"runAsNonroot": True}}, "runAsNonroot", id="security"),
        pytest.param({"resources": {"limit": {}}}, "limit", id="resources"),
        pytest.param({"livenessProbe": {"periodSecond": 1}}, "periodSecond", id="probe"),
        pytest.param({"networkPolicy": {"ports": [1]}}, "ports", id="network-policy"),
        pytest.param({"kind": "DaemonSet"}, "kind", id="kind"),
        pytest.param({"settings": {"dryRun": "yes"}}, "dryRun", id="choice"),
        pytest.param({"settings": {"capTotal": "10 percent"}}, "capTotal", id="cap"),
        pytest.param({"settings": {"tickSeconds": "5m"}}, "tickSeconds", id="seconds"),
        pytest.param({"settings": {"leaderElection": "perhaps"}}, "leaderElection", id="switch"),
        pytest.param({"settings": {"listenPort": 0}}, "listenPort", id="port-that-probes-cannot-find"),
        pytest.param({"deschedulingInterval": "five"}, "deschedulingInterval", id="interval"),
        pytest.param({"schedule": "every two minutes"}, "schedule", id="schedule"),
        pytest.param({"replicas": -1}, "replicas", id="replicas"),
        pytest.param({"deschedulerPolicy": "profiles: []"}, "deschedulerPolicy", id="policy-as-text"),
        pytest.param({"deschedulerPolicyAPIVersion": "descheduler/v1beta1"}, "deschedulerPolicyAPIVersion", id="policy-version"),
    ],
)
def test_a_mistake_in_the_values_is_refused_by_name(values: dict[str, Any], named: str) -> None:
    """The message names what is wrong, so that it is found among a hundred keys."""
    with pytest.raises(HelmError, match=named):
        objects(values)


def test_objects_of_the_schema_know_all_their_keys() -> None:
    """Every object with named keys is closed: a new group of values cannot be left open by mistake."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    named = [schema, *schema["properties"].values()]
    assert all(each["additionalProperties"] is False for each in named if "properties" in each)


def test_the_chart_passes_helms_own_linter() -> None:
    """Strictly: what Helm only recommends counts, but for an icon, which would be an address outside."""
    found = lint(str(CHART), strict=False)
    messages = [str(message) for message in found.get("messages", [])]
    assert [message for message in messages if "icon" not in message] == []
