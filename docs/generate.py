"""Write the generated parts of the documentation: ``python -m docs.generate``, or ``scripts/docs``.

A part stands between ``<!-- generated: NAME -->`` and ``<!-- end -->`` in a page. What is generated comes from the program
itself, so it cannot say anything else. With ``--check`` nothing is written; a test does the same.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import yaml
from prometheus_client.core import Metric

from docs.advice import ALERTS, ANSWERS, ENDINGS, NOTICES, PASSED, REFUSALS
from docs.argument_tables import arguments_table, table
from docs.commands import commands
from rebalancer.eligibility.arguments import DefaultEvictorArgs
from rebalancer.eligibility.objection import SENTENCES
from rebalancer.placement.landings import landing_weights, nodes_to_score
from rebalancer.policy import policy_variables
from rebalancer.policy.v1alpha2 import TopLevel
from rebalancer.settings import reference_rows
from rebalancer.strategies.catalogue import STRATEGIES
from rebalancer.web.metrics import Metrics

DOCS = Path(__file__).parent
ROOT = DOCS.parent
_PART = re.compile(r"(<!-- generated: ([a-z0-9 -]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def pages() -> Iterator[Path]:
    """Yield every page with generated parts."""
    for path in sorted(DOCS.rglob("*.md")):
        if _PART.search(path.read_text()):
            yield path


def page(path: Path) -> str:
    """Return a page as it should be."""
    return _PART.sub(lambda found: found[1] + "\n" + PARTS[found[2]]() + "\n" + found[3], path.read_text())


def main(arguments: list[str]) -> int:
    """Write what differs, or with ``--check`` name it."""
    check = "--check" in arguments
    different = [path for path in pages() if page(path) != path.read_text()]
    for path in different:
        sys.stdout.write(f"{path.relative_to(ROOT)}: {'not as generated' if check else 'written'}\n")
        if not check:
            path.write_text(page(path))
    return 1 if check and different else 0


def slug(name: str) -> str:
    """Return the file name of a strategy's page: LowNodeUtilization gives low-node-utilization."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


def strategy(name: str) -> str:
    """Return what a strategy's model says: where it is enabled, what wakes it, its arguments."""
    found = STRATEGIES[name]
    wakes = ", ".join(f"`{kind}`" for kind in sorted(found.runs_on))
    head = f"Enabled under `plugins.{found.extension_point}.enabled`. What can wake it: {wakes}.\n"
    return f"{head}\n{arguments_table(found.args)}"


def strategies() -> str:
    """Return the table of all strategies."""
    rows = (
        (f"[{name}]({slug(name)}.md)", f"`{found.extension_point}`", ", ".join(f"`{kind}`" for kind in sorted(found.runs_on)))
        for name, found in STRATEGIES.items()
    )
    return table(("strategy", "extension point", "what wakes it"), rows)


def settings() -> str:
    """Return the tables of all settings, group by group."""
    parts: list[str] = []
    rows = list(reference_rows())
    for title in dict.fromkeys(row.title for row in rows):
        group = [row for row in rows if row.title == title]
        cells = (
            (
                f"`{row.name}`",
                row.type + (f" ({row.unit})" if row.unit else ""),
                f"`{row.default}`" if row.default else "",
                row.description,
            )
            for row in group
        )
        parts.append(f"### {title}\n\n" + table(("variable", "type", "default", "meaning"), cells))
    return "\n".join(parts)


def refusals() -> str:
    """Return the tables of all refusals: code, sentence, what to do."""
    advised = {code for group in REFUSALS.values() for code in group}
    if advised != SENTENCES.keys():
        raise SystemExit(f"docs/advice.py does not fit the codes: {sorted(advised ^ SENTENCES.keys())}")
    parts = []
    for title, group in REFUSALS.items():
        rows = ((f'<a id="{code}"></a>`{code}`', _sentence(code), advice) for code, advice in group.items())
        parts.append(f"### {title}\n\n" + table(("code", "sentence", "what to do"), rows))
    return "\n".join(parts)


def _sentence(code: str) -> str:
    return re.sub(r"\{\d\}", "…", SENTENCES[code])


def coded(codes: Mapping[str, tuple[str, str]], head: str, *, anchors: bool = False) -> str:
    """Return a table of codes with what they mean and what to do."""
    rows = (
        (f'<a id="{code}"></a>`{code}`' if anchors else f"`{code}`", meaning, todo) for code, (meaning, todo) in codes.items()
    )
    return table((head, "meaning", "what to do"), rows)


def alerts() -> str:
    """Return the alerts, each under a heading that an alert's link can name."""
    if not ALERTS:
        return "The chart has no alerts yet.\n"
    return "\n".join(f"### {name}\n\n{meaning}\n\nWhat to do: {todo}\n" for name, (meaning, todo) in ALERTS.items())


def metrics() -> str:
    """Return the table of all metrics but those of the process itself, which every exporter has."""
    rows = []
    for family, labels in _families():
        if not family.name.startswith("process_"):
            name = family.name + ("_total" if family.type == "counter" else "")
            rows.append((f"`{name}`", family.type, ", ".join(f"`{label}`" for label in labels), family.documentation))
    rows += [(f"`{name}`", "gauge", "", about) for name, about in watched_gauges()]
    return table(("metric", "type", "labels", "meaning"), sorted(rows))


def metric_names() -> set[str]:
    """Return every name under which a sample can stand in ``/metrics``, and the names of whole histograms."""
    names = {name for name, _ in watched_gauges()}
    for family, _ in _families():
        suffixes = {"counter": ("_total", "_created"), "histogram": ("", "_bucket", "_count", "_sum", "_created")}
        names |= {family.name + suffix for suffix in suffixes.get(family.type, ("",))}
    return names


def _families() -> Iterator[tuple[Metric, tuple[str, ...]]]:
    """Yield each metric with its labels: those of its first sample, or where it has none yet, as it was declared."""
    made = Metrics(descheduler_names=True)
    declared: dict[str, tuple[str, ...]] = {}
    for each in [*vars(made).values(), *(vars(made.compatible).values() if made.compatible else ())]:
        name, labels = getattr(each, "_name", None), getattr(each, "_labelnames", None)
        if name is not None and labels is not None:
            declared[name] = tuple(labels)
    for family in made.registry.collect():
        sample = next(iter(family.samples), None)
        found = tuple(label for label in sample.labels if label != "le") if sample is not None else declared.get(family.name, ())
        yield family, found or declared.get(family.name, ())


def watched_gauges() -> Iterator[tuple[str, str]]:
    """Yield the gauges that the service adds to the metrics: name and meaning, as they stand in its source."""
    source = ast.parse((ROOT / "rebalancer" / "service" / "parts.py").read_text())
    for call in ast.walk(source):
        match call:
            case ast.Call(ast.Attribute(attr="watch"), [ast.Constant(str(name)), ast.Constant(str(about)), _]):
                yield name, about


def sampling() -> str:
    """Return how likely a pod is to land on one of a few new, empty nodes."""
    rows = []
    for nodes in (50, 100, 200, 500, 1000, 2000, 5000):
        sampled = nodes_to_score(nodes)
        shares = [_share_of_new(nodes, new, sampled) for new in (1, 2, 4, 10, 50) if new < nodes]
        rows.append((f"{nodes:,}", f"{sampled:,}", *(f"{share:.0%}" for share in shares), *[""] * (5 - len(shares))))
    return table(("nodes", "scored", "1 new", "2 new", "4 new", "10 new", "50 new"), rows)


def _share_of_new(nodes: int, new: int, sampled: int) -> float:
    scores = np.array([100] * new + [50] * (nodes - new))
    return float(landing_weights(scores, sampled)[:new].sum())


def roles() -> str:
    """Return what the installed program may do, from the manifests."""
    rows = []
    for document in yaml.safe_load_all((ROOT / "deploy" / "manifests" / "deployment.yaml").read_text()):
        if document["kind"] in ("ClusterRole", "Role"):
            where = "whole cluster" if document["kind"] == "ClusterRole" else f"namespace {document['metadata']['namespace']}"
            for rule in document["rules"]:
                group = rule["apiGroups"][0] or "core"
                named = f" (only {', '.join(rule['resourceNames'])})" if "resourceNames" in rule else ""
                rows.append((where, group, ", ".join(rule["resources"]) + named, ", ".join(rule["verbs"])))
    return table(("where", "API group", "resources", "verbs"), rows)


PARTS: dict[str, Callable[[], str]] = {
    "strategies": strategies,
    "settings": settings,
    "evictor": lambda: arguments_table(DefaultEvictorArgs),
    "policy": lambda: arguments_table(TopLevel),
    "policy variables": lambda: "```text\n" + "\n".join(policy_variables()) + "\n```\n",
    "refusals": refusals,
    "passed": lambda: coded(PASSED, "code"),
    "notices": lambda: coded(NOTICES, "line", anchors=True),
    "answers": lambda: coded(ANSWERS, "answer"),
    "endings": lambda: coded(ENDINGS, "ending"),
    "alerts": alerts,
    "metrics": metrics,
    "sampling": sampling,
    "roles": roles,
    "commands": commands,
    **{f"strategy {slug(name)}": partial(strategy, name) for name in STRATEGIES},
}
"""Every generated part by its name."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
