"""Values of the descheduler's chart: each key is mapped, or answered with a warning in the notes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from helm_python import Chart

from deploy.generate import CHART
from deploy.schema import FLAGS
from rebalancer.settings import load_settings
from tests.chart.rendering import container, environment, notes, objects, pod_template, values_of

Reused = Callable[[dict[str, Any]], Chart]


def warnings(values: dict[str, Any]) -> str:
    """Return the warnings among the notes, empty where there are none."""
    return notes(values).partition("\nWarnings\n")[2]


@pytest.mark.parametrize(
    ("values", "variable", "expected"),
    [
        pytest.param({"deschedulingInterval": "1h30m"}, "TICK_SECONDS", "5400", id="interval"),
        pytest.param({"deschedulingInterval": "1h", "settings": {"tickSeconds": 60}}, "TICK_SECONDS", "60", id="own-name-wins"),
        pytest.param({"cmdOptions": {"descheduling-interval": "90s"}}, "TICK_SECONDS", "90", id="interval-flag"),
        pytest.param({"leaderElection": {"enabled": False}}, "LEADER_ELECTION", "false", id="no-election"),
        pytest.param({"leaderElection": {"leaseDuration": "137s"}}, "LEASE_DURATION_SECONDS", "137", id="duration"),
        pytest.param({"leaderElection": {"renewDeadline": "1m47s"}}, "LEASE_RENEW_SECONDS", "107", id="renewal"),
        pytest.param({"leaderElection": {"retryPeriod": "500ms"}}, "LEASE_RETRY_SECONDS", "0.5", id="retry"),
        pytest.param({"leaderElection": {"resourceName": "d"}}, "LEASE_NAME", "d", id="lease-name"),
        pytest.param({"leaderElection": {"resourceNamespace": "n"}}, "LEASE_NAMESPACE", "n", id="lease-namespace"),
        pytest.param({"cmdOptions": {"leader-elect": False}}, "LEADER_ELECTION", "false", id="election-flag"),
        pytest.param({"cmdOptions": {"dry-run": True}}, "DRY_RUN", "plan", id="dry-run"),
        pytest.param({"cmdOptions": {"dry-run": ""}}, "DRY_RUN", "plan", id="dry-run-without-value"),
        pytest.param({"cmdOptions": {"dry-run": "false"}}, "DRY_RUN", None, id="no-dry-run"),
        pytest.param({"cmdOptions": {"v": 3}}, "LOG_LEVEL", "info", id="verbosity"),
        pytest.param({"cmdOptions": {"v": "4"}}, "LOG_LEVEL", "debug", id="more-verbosity"),
        pytest.param({"cmdOptions": {"logging-format": "json"}}, "LOG_FORMAT", "json", id="json"),
        pytest.param({"cmdOptions": {"logging-format": "text"}}, "LOG_FORMAT", "console", id="text"),
        pytest.param({"cmdOptions": {"kubeconfig": "/k"}}, "KUBECONFIG", "/k", id="kubeconfig"),
        pytest.param({"cmdOptions": {"client-connection-kubeconfig": "/k"}}, "KUBECONFIG", "/k", id="new-kubeconfig"),
        pytest.param({"cmdOptions": {"bind-address": "127.0.0.1"}}, "LISTEN_ADDRESS", "127.0.0.1", id="address"),
        pytest.param({"cmdOptions": {"policy-config-file": "/p.yaml"}}, "POLICY_FILE", "/p.yaml", id="policy-file"),
        pytest.param(
            {"cmdOptions": {"feature-gates": "EvictionsInBackground=true"}}, "BACKGROUND_EVICTIONS", "true", id="feature-gate"
        ),
    ],
)
def test_a_value_that_has_a_setting_is_mapped_to_it(values: dict[str, Any], variable: str, expected: str | None) -> None:
    """Under upstream's name, in upstream's form, unless the setting itself is given."""
    assert environment(values).get(f"REBALANCER_{variable}") == expected


@pytest.mark.parametrize("file", ["upstream-0.36-values.yaml", "upstream-0.36-optional-values.yaml", "upstream-0.20-values.yaml"])
def test_values_of_the_descheduler_start_the_program(file: str) -> None:
    """What they become is read by the program without a mistake."""
    load_settings(environment(values_of(file)))


def test_the_defaults_of_upstream_are_answered() -> None:
    """What cannot mean here what it meant there is named; what can is not."""
    found = warnings(values_of("upstream-0.36-values.yaml"))
    assert [line.split()[1] for line in found.splitlines()] == ["image.repository", "command", "ports", "livenessProbe.httpGet"]


def test_the_descheduler_itself_is_never_started() -> None:
    """An upgrade that reuses values brings its image and command along; they are left, whatever registry they come from."""
    values = {"image": {"repository": "mirror.example/k8s/descheduler", "tag": "v0.36.0"}, "command": ["/bin/descheduler"]}
    assert "descheduler" not in container(values)["image"]
    assert "command" not in container(values)
    assert "mirror.example/k8s/descheduler" in warnings(values)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        pytest.param({"cronJobApiVersion": "batch/v1beta1"}, "cronJobApiVersion", id="cronjob-version"),
        pytest.param({"podSecurityPolicy": {"create": True}}, "podSecurityPolicy", id="pod-security-policy"),
        pytest.param({"serviceMonitor": {"enabled": True, "insecureSkipVerify": True}}, "insecureSkipVerify", id="tls"),
        pytest.param({"leaderElection": {"resourceLock": "endpoints"}}, "resourceLock", id="lock"),
        pytest.param({"suspend": True}, "suspend", id="suspended-deployment"),
        pytest.param({"kind": "CronJob", "service": {"enabled": True}}, "service", id="service-of-a-cronjob"),
        pytest.param({"deschedulingInterval": "0"}, "deschedulingInterval", id="one-shot"),
        pytest.param({"deschedulerPolicy": {"strategies": {}}}, "deschedulerPolicy.strategies", id="old-policy"),
        pytest.param({"deschedulerPolicy": {"tracing": {}}}, "tracing", id="tracing"),
        pytest.param({"cmdOptions": {"evict-local-storage-pods": True}}, "evict-local-storage-pods", id="local-storage"),
        pytest.param(
            {"cmdOptions": {"node-selector": "a=b"}, "policyVariables": {"STRATEGIES": "RemoveDuplicates"}},
            "node-selector",
            id="selector-without-document",
        ),
        pytest.param({"cmdOptions": {"feature-gates": "AllAlpha=true"}}, "feature-gates", id="feature-gate"),
        pytest.param({"leaderElection": {"enabled": False}}, "election is off", id="no-election"),
    ],
)
def test_a_value_without_a_meaning_here_is_named(values: dict[str, Any], named: str) -> None:
    """Nothing is dropped in silence, and without the value nothing is said."""
    assert named in warnings(values)
    assert named not in warnings({"kind": values.get("kind", "Deployment")})


MAPPED = {
    "bind-address",
    "client-connection-kubeconfig",
    "descheduling-interval",
    "dry-run",
    "kubeconfig",
    "leader-elect",
    "leader-elect-lease-duration",
    "leader-elect-renew-deadline",
    "leader-elect-resource-name",
    "leader-elect-resource-namespace",
    "leader-elect-retry-period",
    "logging-format",
    "max-pods-to-evict-per-node",
    "node-selector",
    "policy-config-file",
    "v",
}
TEXTS = {"logging-format": "json", "feature-gates": "AllAlpha=true", "bind-address": "::", "policy-config-file": "/p"}


@pytest.fixture
def reused(tmp_path: Path) -> Reused:
    """Return a way to get the chart as `helm upgrade --reuse-values` has it: its own defaults replaced by another chart's."""

    def with_values(values: dict[str, Any]) -> Chart:
        folder = tmp_path / "chart"
        shutil.copytree(CHART, folder)
        (folder / "values.yaml").write_text(yaml.safe_dump(values))
        return Chart.load(str(folder))

    return with_values


def over(below: Any, above: Any) -> Any:
    """Return values with others laid over them, as Helm does it: maps key by key, all else as a whole."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return {**below, **{key: over(below.get(key), value) for key, value in above.items()}}


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(values_of("upstream-0.36-values.yaml"), id="defaults"),
        pytest.param(over(values_of("upstream-0.36-values.yaml"), values_of("upstream-0.36-optional-values.yaml")), id="options"),
        pytest.param(values_of("upstream-0.20-values.yaml"), id="0.20"),
    ],
)
def test_a_release_of_the_descheduler_is_upgraded_with_its_values_alone(reused: Reused, values: dict[str, Any]) -> None:
    """Nothing of ours is in those values, and still what comes out is what our defaults under those values would give."""
    files = reused(values).render({}, name="rebalancer", namespace="kube-system")
    found = [each for path, text in sorted(files.items()) if path.endswith(".yaml") for each in yaml.safe_load_all(text) if each]
    assert found == objects(values)
    assert "The values are those of another chart" in files["rebalancer/templates/NOTES.txt"]


def test_what_was_switched_off_in_reused_values_stays_off(reused: Reused) -> None:
    """False, 0 and empty are values, not gaps."""
    off = {"serviceAccount": {"create": False, "name": "own"}, "rbac": {"create": False}, "settings": {"dryRun": "plan"}}
    files = reused(values_of("upstream-0.36-values.yaml")).render(off, name="rebalancer", namespace="kube-system")
    found = [each for path, text in files.items() if path.endswith(".yaml") for each in yaml.safe_load_all(text) if each]
    assert sorted(each["kind"] for each in found) == ["ConfigMap", "CronJob"]
    assert "DRY RUN" in files["rebalancer/templates/NOTES.txt"]


def test_what_null_takes_away_stays_away() -> None:
    """With our own values nothing is filled in."""
    spec = pod_template({"resources": None, "priorityClassName": None, "readinessProbe": None})["spec"]
    assert "priorityClassName" not in spec
    assert "resources" not in spec["containers"][0]
    assert "readinessProbe" not in spec["containers"][0]
    assert "ConfigMap rebalancer has to exist" in notes({"deschedulerPolicy": None})


@pytest.mark.parametrize("flag", FLAGS)
def test_each_flag_of_upstream_has_an_effect_or_an_answer(flag: str) -> None:
    """A flag changes what is rendered, or the notes say what to do instead."""
    value = "7s" if flag.endswith(("duration", "deadline", "period", "interval")) else TEXTS.get(flag, "9")
    values: dict[str, Any] = {"cmdOptions": {flag: False if flag == "leader-elect" else value}}
    if flag in MAPPED:
        assert objects(values) != objects({})
        assert flag not in warnings(values)
    else:
        assert f"cmdOptions.{flag} " in warnings(values)


def test_placing_the_pods_works_as_before() -> None:
    """Where and how the pods run is taken over key by key."""
    values = values_of("upstream-0.36-optional-values.yaml")
    spec = pod_template(values)["spec"]
    assert spec["hostUsers"] is False
    assert spec["automountServiceAccountToken"] is False
    for key in ("affinity", "topologySpreadConstraints", "tolerations", "imagePullSecrets", "initContainers"):
        assert spec[key] == values[key]
    assert values["extraServiceAccountVolumes"][0] in spec["volumes"]
    assert values["extraServiceAccountVolumeMounts"][0] in container(values)["volumeMounts"]
    plain = {"schedulerName": "s", "runtimeClassName": "r", "dnsConfig": {"options": [{"name": "ndots", "value": "1"}]}}
    assert plain.items() <= pod_template(plain)["spec"].items()
