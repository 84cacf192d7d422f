"""The runbook has an entry for whatever the program may say."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
import yaml
from prometheus_client import generate_latest

from docs.advice import ALERTS, ANSWERS, ENDINGS, NOTICES, PASSED, REFUSALS
from rebalancer.control.ports import Reply
from rebalancer.eligibility.objection import SENTENCES
from rebalancer.web.metrics import Metrics
from tests.docs.pages import DOCS, ROOT, anchors

RUNBOOK = DOCS / "runbook.md"
TEMPLATES = ROOT / "deploy" / "chart"


def first_words(*functions: str) -> set[str]:
    """Return the constant first arguments of all calls of functions, or methods, of these names in the program's source."""
    found: set[str] = set()
    for path in sorted((ROOT / "rebalancer").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(ast.Name(name) | ast.Attribute(attr=name), [ast.Constant(str(word)), *_]) if name in functions:
                    found.add(word)
    return found


def test_every_refusal_has_an_entry_and_no_entry_is_about_nothing() -> None:
    """A refusal without advice leaves its reader alone."""
    advised = [code for group in REFUSALS.values() for code in group]
    assert sorted(advised) == sorted(SENTENCES)
    assert set(SENTENCES) <= set(anchors(RUNBOOK))


def test_every_answer_of_the_server_has_an_entry() -> None:
    """All kinds of answers, and what takes the place of one in a dry run and in a rollout."""
    assert set(ANSWERS) == {kind.__name__ for kind in get_args(Reply)}


def test_every_remark_has_an_entry() -> None:
    """Codes are written where something is noticed, or told once."""
    assert set(NOTICES) == first_words("Noticed", "_tell_once")


def test_every_reason_to_pass_an_approved_pod_over_has_an_entry() -> None:
    """Those of the last look, and those of the evictor itself."""
    source = ast.parse((ROOT / "rebalancer" / "control" / "evictor.py").read_text())
    (drop,) = [node for node in ast.walk(source) if isinstance(node, ast.FunctionDef) and node.name == "_drop"]
    own = {
        node.value.elts[0].value: node.value.elts[1]
        for node in ast.walk(drop)
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) and isinstance(node.value.elts[0], ast.Constant)
    }
    # An empty reason means that it was told already.
    told = {code for code, reason in own.items() if not (isinstance(reason, ast.Constant) and reason.value == "")}
    assert set(PASSED) == told | first_words("Doubt") | {"budgets-several"}


def test_every_ending_of_a_run_has_an_entry() -> None:
    """Those that end a run; ``changed`` only makes it look again."""
    assert set(ENDINGS) == first_words("Outcome") - {"changed"}


def alerts() -> set[str]:
    """Return the names of the chart's alerts."""
    found: set[str] = set()
    for path in sorted([*TEMPLATES.rglob("*.yaml"), *TEMPLATES.rglob("*.tpl")]):
        found |= set(re.findall(r"^\s*-? ?alert: ([A-Za-z]+)\s*$", path.read_text(), re.MULTILINE))
    return found


def test_every_alert_has_a_heading_of_its_own() -> None:
    """Under the name that the alert's link appends, in small letters."""
    assert set(ALERTS) == alerts()
    assert {alert.lower() for alert in ALERTS} <= set(anchors(RUNBOOK))


def test_remarks_that_alerts_look_at_are_counted_from_nought() -> None:
    """A counter that first appears with a count has not increased, as Prometheus sees it, and no alert would come of it."""
    rules = (TEMPLATES / "templates" / "prometheusrule.yaml").read_text()
    codes = {code for group in re.findall(r'code=~?"([a-z|-]+)"', rules) for code in group.split("|")}
    assert codes <= set(NOTICES)
    exposed = generate_latest(Metrics(descheduler_names=False).registry).decode()
    for code in codes:
        assert f'rebalancer_noticed_total{{code="{code}"}} 0.0' in exposed


@pytest.mark.parametrize("path", ["rebalancer/control/settle.py"])
def test_every_outcome_of_a_move_has_an_entry(path: str) -> None:
    """As the settling writes them."""
    text = (ROOT / path).read_text()
    outcomes = set(re.findall(r'_finish\(move, "([a-z-]+)"', text)) | set(re.findall(r'"(timeout)" if move.going else "', text))
    section = RUNBOOK.read_text().partition("## How a move ends")[2].partition("\n## ")[0]
    assert outcomes | {"not-evicted"} == set(re.findall(r"^\| `([a-z-]+)` \|", section, re.MULTILINE))


def reasons_to_wait() -> Iterator[str]:
    """Yield the fixed words of the reasons of the gate, the caches, the windows and the pauses."""
    for module in ("control/gate.py", "control/pause.py", "control/windows.py", "cache/freshness.py"):
        for node in ast.walk(ast.parse((ROOT / "rebalancer" / module).read_text())):
            match node:
                case ast.Return(ast.Constant(str(text))):
                    yield text
                case ast.Return(ast.JoinedStr(parts)) | ast.Call(ast.Attribute(attr="append"), [ast.JoinedStr(parts)]):
                    yield " ".join(str(part.value).strip() for part in parts if isinstance(part, ast.Constant))


def test_every_reason_to_wait_has_an_entry() -> None:
    """Each long word of a reason stands in the section about waiting."""
    section = RUNBOOK.read_text().partition("## waiting")[2].partition("\n## ")[0]
    reasons = list(reasons_to_wait())
    assert len(reasons) > 8
    for reason in reasons:
        words = [word for word in re.findall(r"[a-zA-Z-]{5,}", reason) if word not in ("because", "sooner", "request")]
        known = [word for word in words if word in section]
        assert len(known) * 2 >= len(words), reason


def logged_events() -> set[str]:
    """Return the events of all log lines that are not named by a code of their own."""
    found: set[str] = set()
    for module in ("service/logs.py", "cli/controller.py"):
        for node in ast.walk(ast.parse((ROOT / "rebalancer" / module).read_text())):
            match node:
                case ast.Call(ast.Attribute(attr="debug" | "info" | "warning"), [first, *_]) | ast.Call(
                    ast.Name("write"), [first, *_]
                ):
                    found |= {
                        part.value for part in ast.walk(first) if isinstance(part, ast.Constant) and isinstance(part.value, str)
                    }
    return found


def test_every_event_of_the_log_is_listed() -> None:
    """On the page about metrics and logs, in the table of events."""
    section = (DOCS / "metrics.md").read_text().partition("## Logs")[2]
    listed = {event for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE) for event in re.findall(r"`([^`]+)`", row)}
    assert logged_events() == listed


def test_exit_codes_are_those_of_the_program() -> None:
    """Done, failed, bad input."""
    text = Path(ROOT / "rebalancer" / "cli" / "program.py").read_text()
    assert "DONE, FAILED, BAD_INPUT = 0, 1, 2" in text
    section = RUNBOOK.read_text().partition("## Exit codes")[2]
    assert re.findall(r"^\| (\d) \|", section, re.MULTILINE) == ["0", "1", "2"]


def test_the_annotation_that_pauses_is_the_one_that_is_read() -> None:
    """As in the first aid."""
    from rebalancer.control.pause import PAUSE_ANNOTATION

    assert f"annotate lease descheduler {PAUSE_ANNOTATION}=true" in RUNBOOK.read_text()
    rules = yaml.safe_load((ROOT / "deploy" / "chart" / "values.yaml").read_text())
    assert rules["settings"]["leaseName"] is None
