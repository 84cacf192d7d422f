"""Write what is generated in deploy/: the settings among the values, the schema, the table, the plain manifests, versions.

Run it after a change of the settings, the chart or the version: ``python -m deploy.generate``. A test fails until it was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from helm_python import Chart

from deploy.dashboard import dashboard
from deploy.schema import value_name, values_schema
from deploy.table import table
from rebalancer import __version__
from rebalancer.settings import SettingRow, reference_rows

DEPLOY = Path(__file__).parent
CHART = DEPLOY / "chart"

# What the chart sets although the program has the same default: how much it may evict is not to depend on a default elsewhere.
CHOSEN: dict[str, Any] = {
    "protectedNamespaces": ["kube-system"],
    "capNode": 3,
    "capTotal": 20,
    "evictionsPerMinute": 10,
    "maxInFlightPerWorkload": 1,
}
MANIFESTS: dict[str, dict[str, Any]] = {
    "deployment.yaml": {},
    "deployment-dry-run.yaml": {"settings": {"dryRun": "plan"}},
    "deployment-high-availability.yaml": {"replicas": 2},
    "cronjob.yaml": {"kind": "CronJob"},
    "job.yaml": {"kind": "Job"},
}
_WIDTH = 118
_ORDER = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ConfigMap"]


def outputs() -> Iterator[tuple[Path, str]]:
    """Yield every generated file with what it should hold."""
    values = _between((CHART / "values.yaml").read_text(), "  # settings: ", _settings())
    yield CHART / "values.yaml", values
    # What a template can read of it: Helm keeps values.yaml itself from them.
    yield CHART / "defaults.yaml", yaml.dump(yaml.safe_load(values), Dumper=_Readable, sort_keys=False, width=_WIDTH)
    yield CHART / "values.schema.json", json.dumps(values_schema(), indent=2, ensure_ascii=False) + "\n"
    yield CHART / "dashboards" / "rebalancer.json", dashboard()
    yield CHART / "README.md", _between((CHART / "README.md").read_text(), "<!-- values: ", table(values) + "\n")
    chart = (CHART / "Chart.yaml").read_text()
    chart = re.sub(r"^version: .*$", f"version: {__version__}", chart, flags=re.MULTILINE)
    yield CHART / "Chart.yaml", re.sub(r"^appVersion: .*$", f'appVersion: "{__version__}"', chart, flags=re.MULTILINE)


def manifests() -> Iterator[tuple[Path, str]]:
    """Yield the plain manifests, rendered from the chart as it is on disk."""
    for name, values in MANIFESTS.items():
        shown = f" with {json.dumps(values)}" if values else ""
        head = f"# Rendered from deploy/chart{shown} by deploy/generate.py: kubectl apply -f {name}\n"
        documents = sorted((_plain(document) for document in rendered(values)), key=_rank)
        yield DEPLOY / "manifests" / name, head + yaml.dump_all(documents, Dumper=_Readable, sort_keys=False, width=_WIDTH)


def rendered(values: dict[str, Any], *, name: str = "rebalancer", namespace: str = "kube-system") -> list[dict[str, Any]]:
    """Return the objects that the chart makes of values."""
    files = Chart.load(str(CHART)).render(values, name=name, namespace=namespace)
    return [
        document
        for path, text in sorted(files.items())
        if path.endswith(".yaml")
        for document in yaml.safe_load_all(text)
        if document is not None
    ]


def main() -> None:
    """Write everything that differs."""
    for made in (outputs, manifests):
        for path, text in made():
            if not path.exists() or path.read_text() != text:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)


class _Readable(yaml.SafeDumper):
    """Writes texts of several lines as such, and lists indented."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Readable.add_representer(str, _text)


def _settings() -> str:
    lines: list[str] = []
    title = ""
    for row in reference_rows():
        if row.title != title:
            title = row.title
            lines.append(f"\n  # {title}")
        lines += _setting(row)
    return "\n".join(lines).lstrip("\n") + "\n"


def _setting(row: SettingRow) -> Iterator[str]:
    default = f" Default: {row.default}." if row.default else ""
    words = f"-- {row.description}{default} (`{row.name}`)".split()
    line = "  #"
    for word in words:
        if len(line) + len(word) > _WIDTH:
            yield line
            line = "  #"
        line += f" {word}"
    yield line
    name = value_name(row.name)
    yield f"  {name}: {json.dumps(CHOSEN.get(name))}"


def _between(text: str, marker: str, content: str) -> str:
    """Put content between the line that begins with the marker and ``begin`` and the one with ``end``."""
    lines = text.splitlines(keepends=True)
    begin = next(number for number, line in enumerate(lines) if line.startswith(f"{marker}begin"))
    end = next(number for number, line in enumerate(lines) if line.startswith(f"{marker}end"))
    return "".join([*lines[: begin + 1], content, *lines[end:]])


def _plain(document: dict[str, Any]) -> dict[str, Any]:
    """Take away what only Helm wants: nobody may believe that it manages these objects."""
    labels = document["metadata"].get("labels", {})
    for label in ("helm.sh/chart", "app.kubernetes.io/managed-by"):
        labels.pop(label, None)
    return document


def _rank(document: dict[str, Any]) -> tuple[int, str]:
    kind = document["kind"]
    return (_ORDER.index(kind) if kind in _ORDER else len(_ORDER), kind)


if __name__ == "__main__":
    main()
