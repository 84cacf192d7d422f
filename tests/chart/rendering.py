"""Ways to render the chart and to find things in what comes out."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from helm_python import Chart

from deploy.generate import CHART, rendered

HERE = Path(__file__).parent


def values_of(name: str) -> dict[str, Any]:
    """Return the values (or the object) of a file beside the tests."""
    values: dict[str, Any] = yaml.safe_load((HERE / name).read_text())
    return values


def objects(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what the chart makes of values in kube-system, released as rebalancer."""
    found: list[dict[str, Any]] = json.loads(_rendered(json.dumps(values)))
    return found


@cache
def _rendered(values: str) -> str:
    """Render once for all tests that use the same values."""
    return json.dumps(rendered(json.loads(values)))


def of_kind(kind: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the objects of one kind."""
    return [found for found in objects(values) if found["kind"] == kind]


def only(kind: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return the one object of a kind."""
    (found,) = of_kind(kind, values)
    return found


def pod_template(values: dict[str, Any]) -> dict[str, Any]:
    """Return the pod template of whatever runs the program."""
    (found,) = [each for each in objects(values) if each["kind"] in ("Deployment", "CronJob", "Job")]
    spec = found["spec"]["jobTemplate"]["spec"] if found["kind"] == "CronJob" else found["spec"]
    return dict(spec["template"])


def container(values: dict[str, Any]) -> dict[str, Any]:
    """Return the program's container."""
    (found,) = pod_template(values)["spec"]["containers"]
    return dict(found)


def environment(values: dict[str, Any]) -> dict[str, str]:
    """Return the variables of the program's container."""
    return {item["name"]: item["value"] for item in container(values)["env"] if "value" in item}


def policy_text(values: dict[str, Any]) -> str:
    """Return the policy document in the ConfigMap."""
    (text,) = [found["data"]["policy.yaml"] for found in of_kind("ConfigMap", values) if "policy.yaml" in found["data"]]
    return str(text)


def notes(values: dict[str, Any]) -> str:
    """Return what Helm prints after the installation."""
    files = Chart.load(str(CHART)).render(values, name="rebalancer", namespace="kube-system")
    return str(files["rebalancer/templates/NOTES.txt"])


def rules(values: dict[str, Any]) -> set[tuple[str, str, str]]:
    """Return all that is granted, as (verb, resource as people write it, the object's name or empty)."""
    granted = set()
    for role in [*of_kind("ClusterRole", values), *of_kind("Role", values)]:
        for rule in role["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for verb in rule["verbs"]:
                        for name in rule.get("resourceNames", [""]):
                            granted.add((verb, f"{resource}.{group}" if group else resource, name))
    return granted
