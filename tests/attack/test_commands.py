"""The program as a process under bad input: a sentence, the right exit code, never a traceback.

Exit code 2 for what a user wrote, 1 for what happened at run time. The texts themselves are attacked in ``test_texts``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import yaml

from tests.attack.test_texts import TEXTS
from tests.builders import a_document, a_node, pods

pytestmark = pytest.mark.e2e
PROGRAM = [sys.executable, "-m", "rebalancer"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a good dump and a good policy, and bad ones of every kind."""
    (tmp_path / "dump.json").write_text(json.dumps({"kind": "List", "items": [a_node("n1"), a_node("n2"), *pods(4, "n1")]}))
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(a_document({"RemoveDuplicates": {}})))
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "garbage").write_bytes(TEXTS["random bytes"])
    (tmp_path / "bomb").write_bytes(TEXTS["a bomb of aliases"])
    (tmp_path / "deep").write_bytes(TEXTS["deep YAML"])
    mistakes = a_document({"RemoveDuplicates": {"namespace": {}}, "LowNodeUtilization": {"thresholds": {"Pods": 20}}})
    mistakes["profiles"][0]["plugins"]["balance"]["enabled"].append("RemoveDuplicate")
    (tmp_path / "mistakes").write_text(yaml.safe_dump({**mistakes, "maxNoOfPodsToEvictTotl": "x"}))
    (tmp_path / "folder").mkdir()
    return tmp_path


def run(
    folder: Path, *arguments: str, environment: Mapping[str, str] | None = None, stdin: bytes | None = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run the program in the folder until it ends."""
    variables = {**os.environ, "HOME": str(folder), **(environment or {})}
    return subprocess.run([*PROGRAM, *arguments], cwd=folder, env=variables, input=stdin, capture_output=True, timeout=60)


def said(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return what was written to standard error, after a look that it is no traceback."""
    text = done.stderr.decode()
    assert "Traceback" not in text
    assert "Traceback" not in done.stdout.decode()
    return text


BAD = ("absent", "empty", "garbage", "bomb", "deep", "folder")
PLAN = ("plan", "--from", "dump.json", "--policy", "policy.yaml")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        *((("plan", "--from", "dump.json", "--policy", name), name) for name in BAD),
        *((("plan", "--from", name, "--policy", "policy.yaml"), name) for name in BAD),
        *(((*PLAN, "--scheduler", name), name) for name in BAD),
        *(((*PLAN, "--now", moment), "--now") for moment in ("", "noon", "2026-01-01", "2026-01-01T00:00:00", "1e400")),
        (("plan", "--from", "policy.yaml", "--policy", "policy.yaml"), "--policy"),
        (("plan", "--from", "dump.json", "--policy", "dump.json"), "DeschedulerPolicy"),
        ((*PLAN, "--scheduler", "policy.yaml"), "KubeSchedulerConfiguration"),
        ((*PLAN, "--placement", "fitt"), "'fit'"),
        ((*PLAN, "--output", "jsn"), "'json'"),
        (("plan", "--form", "dump.json"), "--from"),
        (("plna",), "'plan'"),
        (("explain", "ns1/app-n1-9", "--from", "dump.json", "--policy", "policy.yaml"), "ns1/app-n1-"),
        (("place", "--from", "dump.json", "--pod", "ns1/app-n1-9"), "ns1/app-n1-"),
        (("place", "--from", "dump.json", "--pod", "dump.json"), "one Pod"),
        (("policy", "check", "folder"), "directory"),
        (("policy", "convert", "garbage"), "UTF-8"),
    ],
    ids=lambda value: " ".join(value)[-60:] if isinstance(value, tuple) else "",
)  # fmt: skip
def test_bad_input_of_a_command_is_a_sentence(folder: Path, arguments: Sequence[str], words: str) -> None:
    """Exit code 2, the input is named, and nothing is written to standard output."""
    done = run(folder, *arguments)
    assert words in said(done)
    assert (done.returncode, done.stdout) == (2, b"")


def test_every_mistake_of_a_policy_comes_at_once(folder: Path) -> None:
    """Path, expectation and nearest name, for each of five mistakes in one answer."""
    text = said(run(folder, "policy", "check", "mistakes"))
    assert "5 mistakes" in text
    for words in (
        "maxNoOfPodsToEvictTotl: is not known here (did you mean 'maxNoOfPodsToEvictTotal'?)",
        "args.namespace: is not known here (did you mean 'namespaces'?)",
        "thresholds.Pods",
        "targetThresholds",
        "(did you mean 'RemoveDuplicates'?)",
    ):
        assert words in text


@pytest.mark.parametrize(
    ("variables", "names"),
    [
        ({"REBALANCER_TIKC_SECONDS": "3"}, ["REBALANCER_TIKC_SECONDS", "REBALANCER_TICK_SECONDS"]),
        ({"REBALANCER_TICK_SECONDS": "soon", "REBALANCER_CAP_NODE": "-1"}, ["REBALANCER_TICK_SECONDS", "REBALANCER_CAP_NODE"]),
        ({"REBALANCER_TICK_SECONDS": "nan"}, ["REBALANCER_TICK_SECONDS"]),
        ({"REBALANCER_TICK_SECONDS": "1e999"}, ["REBALANCER_TICK_SECONDS"]),
        ({"REBALANCER_LISTEN_PORT": "99999"}, ["REBALANCER_LISTEN_PORT"]),
        ({"REBALANCER_CAP_TOTAL": "9" * 5000}, ["REBALANCER_CAP_TOTAL"]),
        ({"REBALANCER_DRY_RUN": "maybe"}, ["REBALANCER_DRY_RUN"]),
        ({"REBALANCER_WINDOWS": "[" * 3000}, ["REBALANCER_WINDOWS"]),
        ({"REBALANCER_STRATEGIES": "RemoveDuplicate"}, ["REBALANCER_STRATEGIES", "RemoveDuplicates"]),
        (
            {"REBALANCER_STRATEGIES": "RemoveDuplicates", "REBALANCER_STRATEGY__REMOVE_DUPLICATES__NAMESPACE": "{}"},
            ["REBALANCER_STRATEGY__REMOVE_DUPLICATES__NAMESPACES"],
        ),
        (
            {"REBALANCER_POLICY_FILE": "policy.yaml", "REBALANCER_STRATEGIES": "RemoveDuplicates"},
            ["REBALANCER_POLICY_FILE", "REBALANCER_STRATEGIES"],
        ),
        ({}, ["REBALANCER_POLICY_FILE"]),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)  # fmt: skip
def test_a_wrong_variable_stops_the_start(folder: Path, variables: dict[str, str], names: list[str]) -> None:
    """Exit code 2 before anything is asked of a cluster; the variable is named, and the nearest one where it is misspelt."""
    done = run(folder, "run", environment={"REBALANCER_KUBECONFIG": "absent", **variables})
    text = said(done)
    assert done.returncode == 2
    for name in names:
        assert name in text


@pytest.mark.parametrize(
    "arguments", [PLAN, (*PLAN, "--output", "json"), ("policy", "check", "policy.yaml"), ("version",)], ids=" ".join
)
def test_a_closed_or_full_output_ends_it_quietly(folder: Path, arguments: Sequence[str]) -> None:
    """A reader that has gone, an output that was never open, a disk that is full: no traceback, and a failure where one is."""
    reading, writing = os.pipe()
    os.close(reading)
    for output in (writing, os.open("/dev/full", os.O_WRONLY)):
        done = subprocess.run([*PROGRAM, *arguments], cwd=folder, stdout=output, stderr=subprocess.PIPE, timeout=60)
        os.close(output)
        assert b"Traceback" not in done.stderr
        assert b"Exception ignored" not in done.stderr
        assert done.returncode == 1
    command = " ".join([*PROGRAM, *arguments])
    closed = subprocess.run(["sh", "-c", f"{command} >&- <&-"], cwd=folder, stderr=subprocess.PIPE, timeout=60)
    assert b"Traceback" not in closed.stderr


@pytest.mark.parametrize("command", [("plan", "--from", "-", "--policy", "policy.yaml"), ("policy", "check", "-")], ids=" ".join)
def test_standard_input_that_is_closed_is_named(folder: Path, command: Sequence[str]) -> None:
    """There is nothing to read: exit code 2."""
    line = " ".join([*PROGRAM, *command])
    done = subprocess.run(["sh", "-c", f"{line} <&-"], cwd=folder, capture_output=True, timeout=60)
    assert "standard input is closed" in said(done)
    assert done.returncode == 2


@pytest.mark.parametrize(
    "arguments", [("plan", "--from", "-", "--policy", "policy.yaml"), ("policy", "check", "-")], ids=" ".join
)
def test_an_interrupt_ends_it_quietly(folder: Path, arguments: Sequence[str]) -> None:
    """Ctrl-C while it waits for input: exit code 130, as shells expect, and no traceback."""
    process = subprocess.Popen(
        [*PROGRAM, *arguments], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    waiting = Path(f"/proc/{process.pid}/wchan")
    while process.poll() is None and "pipe" not in waiting.read_text():
        pass
    process.send_signal(signal.SIGINT)
    with process.stdin, process.stdout, process.stderr:
        process.wait(timeout=30)
        text = process.stderr.read().decode()
    assert (process.returncode, text.strip()) == (130, "")


def test_names_cannot_write_to_the_terminal(folder: Path) -> None:
    """Escape sequences and markup in a dump are shown harmlessly: a name that no server would accept takes its pod out."""
    names = ["\x1b[31mred", "\u202eright", "[/b]", "[bold]x"]
    evil = [{**each, "metadata": {**each["metadata"], "name": name}} for each, name in zip(pods(4, "n1"), names, strict=True)]
    (folder / "evil.json").write_text(json.dumps([a_node("n1"), a_node("n2"), *evil]))
    done = run(folder, "plan", "--from", "evil.json", "--policy", "policy.yaml")
    text = said(done) + done.stdout.decode()
    assert done.returncode == 0
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[bold]x" in text
