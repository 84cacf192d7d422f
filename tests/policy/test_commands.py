"""The commands `rebalancer policy check|convert|describe`: exit codes and what goes where."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from rebalancer.cli.policy import app
from tests.policy.documents import DATA, a_policy, a_profile, loaded

RUN = CliRunner()


@pytest.fixture(autouse=True)
def no_policy_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep variables of the machine out of the tests."""
    for name in ("REBALANCER_STRATEGIES", "REBALANCER_POLICY_FILE"):
        monkeypatch.delenv(name, raising=False)


def test_check_says_valid_and_what_the_policy_does() -> None:
    """A right policy ends with 0, in words."""
    result = RUN.invoke(app, ["check", str(DATA / "chart-default.yaml")])
    assert result.exit_code == 0
    assert "LowNodeUtilization: nodes at or below 20 %" in result.stdout
    assert result.stdout.rstrip().endswith("the policy is valid")


def test_check_reports_every_mistake_and_ends_with_2(tmp_path: Path) -> None:
    """Bad input is exit code 2, all of it on standard error."""
    file = tmp_path / "policy.yaml"
    file.write_text(yaml.safe_dump(a_policy(a_profile("RemoveDuplicates"), nodeselector="a", maxNoOfPodsToEvictTotal=-1)))
    result = RUN.invoke(app, ["check", str(file)])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "2 mistakes" in result.stderr
    assert "did you mean 'nodeSelector'?" in result.stderr


def test_check_tells_which_priority_classes_are_looked_up_later(tmp_path: Path) -> None:
    """Without a cluster a named class stays a name."""
    file = tmp_path / "policy.yaml"
    file.write_text(yaml.safe_dump(a_policy(a_profile("RemoveDuplicates", evictor={"priorityThreshold": {"name": "c1"}}))))
    assert "the priority class 'c1' is looked up" in RUN.invoke(app, ["check", str(file)]).stdout


@pytest.mark.parametrize("name", ["first-form-configmap.yaml", "last-form.yaml"])
def test_convert_prints_todays_document_and_warns_on_standard_error(name: str) -> None:
    """Standard output can be put into a file as it is."""
    result = RUN.invoke(app, ["convert", str(DATA / name)])
    assert result.exit_code == 0
    assert yaml.safe_load(result.stdout)["apiVersion"] == "descheduler/v1alpha2"
    assert loaded(result.stdout).policy == loaded((DATA / name).read_bytes()).policy
    assert result.stderr.count("warning: ") == len(loaded((DATA / name).read_bytes()).warnings)


def test_convert_reads_standard_input() -> None:
    """A hyphen stands for standard input."""
    result = RUN.invoke(app, ["convert", "-"], input=(DATA / "last-form.yaml").read_text())
    assert result.exit_code == 0
    assert loaded(result.stdout).policy.max_per_node == 5


def test_describe_warns_of_what_fights(tmp_path: Path) -> None:
    """The conflict is gone once the scheduler is said to pack."""
    file = tmp_path / "policy.yaml"
    file.write_text(yaml.safe_dump(a_policy(a_profile("HighNodeUtilization"))))
    assert "Warning: HighNodeUtilization empties nodes" in RUN.invoke(app, ["describe", str(file)]).stdout
    assert "Warning" not in RUN.invoke(app, ["describe", str(file), "--scheduler-packs"]).stdout


def test_without_a_file_the_variables_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same commands work for a policy from the environment; with neither there is a mistake."""
    assert RUN.invoke(app, ["check"]).exit_code == 2
    monkeypatch.setenv("REBALANCER_STRATEGIES", "RemoveDuplicates")
    result = RUN.invoke(app, ["check"])
    assert result.exit_code == 0
    assert "environment: the policy is valid" in result.stdout


def test_a_file_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    """The message names the file and the reason."""
    result = RUN.invoke(app, ["check", str(tmp_path / "none.yaml")])
    assert result.exit_code == 2
    assert "none.yaml" in result.stderr
    assert "cannot be read" in result.stderr
