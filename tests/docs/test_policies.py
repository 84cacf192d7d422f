"""Every policy in the documentation loads, and can be evaluated."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

import rebalancer
from docs.generate import slug
from rebalancer.errors import PolicyError
from rebalancer.policy import load
from rebalancer.strategies.catalogue import STRATEGIES
from tests.docs.pages import DOCS, ROOT, all_blocks, blocks

EXAMPLES = DOCS / "examples"
SCHEDULER = "KubeSchedulerConfiguration"
NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)


def policies() -> Iterator[Any]:
    """Yield every policy of the pages and the examples."""
    for block in all_blocks("yaml"):
        if yaml.safe_load(block.text)["kind"] != SCHEDULER:
            yield pytest.param(block.text, id=str(block))
    for path in sorted(EXAMPLES.glob("*policy*.yaml")):
        if not path.name.startswith("wrong-"):
            yield pytest.param(path.read_text(), id=str(path.relative_to(ROOT)))


@pytest.mark.parametrize("text", list(policies()))
def test_a_policy_loads_and_decides_about_the_example_cluster(text: str) -> None:
    """Each block of YAML in the pages is a whole policy that a reader can copy."""
    loaded = load(text, source="documentation")
    assert loaded.converted == ("v1alpha1" in text)
    objects = json.loads((EXAMPLES / "cluster.json").read_text())["items"]
    plan = rebalancer.evaluate(objects, loaded.policy, now=NOW)
    assert plan.evaluated_at == NOW.timestamp()


def shown(strategy: str, kind: str) -> str:
    """Return the one document of a kind on a strategy's page."""
    page = DOCS / "strategies" / f"{slug(strategy)}.md"
    (text,) = [each.text for each in blocks(page) if each.language == "yaml" and yaml.safe_load(each.text)["kind"] == kind]
    return text


@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_a_strategys_page_shows_a_policy_that_enables_it(strategy: str) -> None:
    """And that writes no warnings: an example is not to teach what is odd."""
    loaded = load(shown(strategy, "DeschedulerPolicy"), source="documentation")
    assert strategy in {use.name for _, use in loaded.policy.uses()}
    assert loaded.warnings == ()


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("wrong-*.yaml")), ids=lambda path: path.name)
def test_a_policy_that_is_shown_as_wrong_is(path: Path) -> None:
    """Its mistakes are shown by a command in the pages."""
    with pytest.raises(PolicyError):
        load(path.read_text(), source=path.name)


@pytest.mark.parametrize(
    ("scheduler", "moved", "codes"),
    [
        pytest.param(None, [], {"scheduler-spreads", "daemon-set"}, id="a-scheduler-that-spreads"),
        pytest.param(SCHEDULER, ["shop/web-6d4f-6"], {"daemon-set"}, id="the-scheduler-of-the-page"),
    ],
)
def test_packing_needs_the_scheduler_that_its_page_shows(scheduler: str | None, moved: list[str], codes: set[str]) -> None:
    """One replica is alone on the new node: it is packed only where the scheduler packs."""
    objects = json.loads((EXAMPLES / "cluster.json").read_text())["items"]
    for each in objects:
        if each["metadata"]["name"] == "web-6d4f-6":
            each["spec"]["nodeName"] = "worker-c"
    config = yaml.safe_load(shown("HighNodeUtilization", scheduler)) if scheduler else None
    policy = load(shown("HighNodeUtilization", "DeschedulerPolicy"), source="documentation").policy
    plan = rebalancer.evaluate(objects, policy, now=NOW, scheduler=config)
    assert [each.pod for each in plan.approved] == moved
    assert {each.code for each in plan.refused} == codes


def test_the_example_cluster_shows_what_the_pages_say() -> None:
    """Two replicas of web leave the busy nodes for the new one, and a budget holds the two of cart."""
    objects = json.loads((EXAMPLES / "cluster.json").read_text())["items"]
    policy = yaml.safe_load((EXAMPLES / "policy.yaml").read_text())
    plan = rebalancer.evaluate(objects, policy, now=NOW)
    assert [(each.pod, each.node, dict(each.landings)) for each in plan.approved] == [
        ("shop/web-6d4f-3", "worker-a", {"worker-c": 1.0}),
        ("shop/web-6d4f-6", "worker-b", {"worker-c": 1.0}),
    ]
    assert {(each.pod, each.code) for each in plan.refused} == {
        ("shop/cart-6d4f-1", "budget"),
        ("shop/cart-6d4f-2", "budget"),
    }
