"""The program as it is typed: commands, exit codes, what is printed. What commands decide is tested where it is decided."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rebalancer.cli.program import program

ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("REBALANCER_", "KUBE"))}


def run(*arguments: str, timeout: float = 60.0, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the program as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "rebalancer", *arguments],
        env={**ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.mark.parametrize("command", ["run", "once", "plan", "explain", "place", "policy", "demo", "sim"])
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command has help, and asking for it succeeds."""
    assert program([command, "--help"]) == 0
    assert "Usage" in capsys.readouterr().out


def test_an_unknown_command_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    """A command that does not exist ends with 2 and says so."""
    assert program(["rnu"]) == 2
    assert "rnu" in capsys.readouterr().err


def test_a_wrong_choice_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    """A dry run that does not exist ends with 2 and names those that do."""
    assert program(["run", "--dry-run", "maybe"]) == 2
    assert "plan" in capsys.readouterr().err


def test_settings_are_checked_before_anything_else(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelt variable stops the start with the nearest name, every mistake at once."""
    monkeypatch.setenv("REBALANCER_TIKC_SECONDS", "1")
    monkeypatch.setenv("REBALANCER_CAP_NODE", "many")
    assert program(["run"]) == 2
    text = capsys.readouterr().err
    assert "REBALANCER_TICK_SECONDS" in text
    assert "REBALANCER_CAP_NODE" in text


def test_without_a_policy_it_does_not_start(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither file nor variables: refuse, and say what would be right."""
    assert program(["once"]) == 2
    assert "REBALANCER_POLICY_FILE" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["", "nonsense: true\n", "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofile: []\n"], ids=repr
)
def test_an_unusable_policy_is_bad_input(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Empty, something else, or with an unknown key: exit code 2, and the file is named."""
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    assert program(["once", "--policy", str(file)]) == 2
    assert str(file) in capsys.readouterr().err


def test_offline_commands_do_not_load_the_client() -> None:
    """Whoever plans on a dump does not pay for the Kubernetes client."""
    code = (
        "import sys; from rebalancer.cli.program import program;"
        "program(['policy', 'check', '--help']); program(['plan', '--help']);"
        "sys.exit(any(name.startswith('kubernetes_asyncio') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


@pytest.mark.e2e
@pytest.mark.slow
def test_the_demo_ends_by_itself_with_a_summary() -> None:
    """Without a terminal it prints plain lines: triggers, moves with reasons, bars, and what it came to; within 50 s."""
    began = time.monotonic()
    done = run("demo", timeout=60.0)
    took = time.monotonic() - began
    assert done.returncode == 0, done.stderr
    assert took < 50
    text = done.stdout
    assert "\x1b" not in text
    for words in ("trigger   node-joined node-18", "s of debounce", "evict     shop/", "over-used", "landed    shop/"):
        assert words in text
    found = re.search(r"(\d+) evictions, (\d+) replacements Ready, (\d+) of them where they were expected", text)
    assert found is not None
    assert int(found[1]) == int(found[2]) > 5
    before, after = (float(share) for share in re.findall(r"standard deviation ([\d.]+)", text)[-2:])
    assert after < before / 2
    assert len(re.findall(r"^  node-\d\d  [█·]{40}", text, re.MULTILINE)) == 17 + 20


@pytest.mark.e2e
def test_the_embedded_cluster_can_be_used_by_others(tmp_path: Path) -> None:
    """``sim`` writes a kubeconfig, lets nodes join, and ends on a signal."""
    kubeconfig = tmp_path / "kubeconfig"
    command = [sys.executable, "-m", "rebalancer", "sim", "--nodes", "2", "--join", "1", "--kubeconfig", str(kubeconfig)]
    process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        assert "serves 2 nodes and 0 pods" in lines[0]
        assert f"export KUBECONFIG={kubeconfig}" in lines[1]
        assert "joins" in lines[2]
        assert asyncio.run(count_nodes(kubeconfig)) == 3
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.communicate()
    assert not kubeconfig.exists()


async def count_nodes(kubeconfig: Path) -> int:
    """Return how many nodes a cluster lists."""
    import json

    from rebalancer.kube.config import from_kubeconfig
    from rebalancer.kube.transport import Transport

    transport = Transport(from_kubeconfig(str(kubeconfig)))
    try:
        reply = await transport.request("GET", "/api/v1/nodes", timeout_seconds=5.0)
    finally:
        await transport.close()
    return len(json.loads(reply.body)["items"])


@pytest.mark.e2e
def test_a_port_that_is_taken_is_a_sentence() -> None:
    """``sim`` on a port in use ends with 1 and names it."""
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run("sim", "--port", str(port))
    assert done.returncode == 1
    assert f"127.0.0.1:{port} cannot be listened on" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_node_to_be_like_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A node joins in the likeness of one that exists."""
    dump = tmp_path / "dump.json"
    dump.write_text('{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n7"}, "spec": {}, "status": {}}')
    assert program(["sim", "--from", str(dump), "--join", "1", "--like", "n1"]) == 2
    assert "n1" in capsys.readouterr().err
