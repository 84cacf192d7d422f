"""``plan --from`` on real objects: every recorded cluster loads with its policy, and the plan is the library's."""

from __future__ import annotations

import gzip
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

import rebalancer
from rebalancer.cli.program import program

RECORDED = sorted((Path(__file__).parent.parent / "conformance" / "upstream").glob("*.json.gz"))


def written(recorded: Path, folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Write a scenario's objects as a List and its policy beside them; return it and the arguments that plan it."""
    scenario = json.loads(gzip.decompress(recorded.read_bytes()))
    dump, policy = folder / "dump.json", folder / "policy.json"
    dump.write_bytes(orjson.dumps({"apiVersion": "v1", "kind": "List", "items": scenario["objects"]}))
    policy.write_bytes(orjson.dumps(scenario["policy"]))
    return scenario, ["plan", "--from", str(dump), "--policy", str(policy), "--now", scenario["evaluatedAt"]]


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_a_recorded_cluster_loads_with_its_policy(
    recorded: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The command ends well, and what it prints as JSON is what the library decides on the same objects."""
    scenario, arguments = written(recorded, tmp_path)
    assert program([*arguments, "--placement", "off", "--output", "json"]) == 0
    printed = orjson.loads(capfdbinary.readouterr().out)
    now = datetime.fromisoformat(scenario["evaluatedAt"])
    assert printed == rebalancer.evaluate(scenario["objects"], scenario["policy"], now=now, placement="off").to_dict()


@pytest.mark.parametrize("recorded", RECORDED[::25], ids=lambda path: path.name.removesuffix(".json.gz"))
def test_a_table_names_every_pod_that_would_go(recorded: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """The table is for people: each approved pod stands in it with its strategy."""
    scenario, arguments = written(recorded, tmp_path)
    assert program([*arguments, "--placement", "off"]) == 0
    text = capfdbinary.readouterr().out.decode()
    now = datetime.fromisoformat(scenario["evaluatedAt"])
    for approval in rebalancer.evaluate(scenario["objects"], scenario["policy"], now=now, placement="off").approved:
        assert any(approval.pod in line and approval.strategy in line for line in text.splitlines()), approval.pod
