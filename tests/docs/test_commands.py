"""Every command of the documentation runs, and what is shown of its output is what it prints.

Blocks of ``sh`` run as one script. In blocks of ``console`` a line with ``$`` is a command, and what follows its output; ``...``
stands for any lines. Commands run in a folder that has the repository's folders and the files of ``docs/examples``. kubectl, helm
and curl are stood in for (``stand_ins``); what takes long or sets things up is listed here with the test that runs it.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, Block, all_blocks
from tests.docs.stand_ins import STAND_INS

SHELL_WORDS = {"export", "until", "kill"}
PROGRAMS = {"rebalancer", *STAND_INS}

# Blocks that are no others than this one command, and where it is tried.
ELSEWHERE = {
    "scripts/demo": "test_the_demo_ends_by_itself_and_shows_an_improvement",
    "scripts/test": "test_the_command_that_runs_the_tests_names_them_all",
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to run commands in, with the programs that they call in ``bin``."""
    folder = tmp_path_factory.mktemp("reader")
    for name in ("docs", "deploy", "scripts", "benchmarks"):
        (folder / name).symlink_to(ROOT / name)
    for path in (DOCS / "examples").iterdir():
        shutil.copy(path, folder / path.name)
    (folder / "bin").mkdir()
    for name in PROGRAMS:
        module = "rebalancer" if name == "rebalancer" else f"tests.docs.stand_ins {name}"
        script = folder / "bin" / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return folder


def run(script: str, folder: Path) -> tuple[int, str]:
    """Run a script as a reader would; return the exit code and everything printed."""
    environment = {
        "PATH": f"{folder / 'bin'}:/usr/bin:/bin",
        "HOME": str(folder),
        "PYTHONPATH": str(ROOT),
        "LC_ALL": "C.UTF-8",
    }
    environment |= {name: os.environ[name] for name in ("COVERAGE_PROCESS_START",) if name in os.environ}
    done = subprocess.run(
        ["sh", "-eu", "-c", script],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=110,
        check=False,
    )
    return done.returncode, done.stdout


def scripts() -> list[Block]:
    """Return the blocks that are scripts, those that are tried elsewhere left out."""
    return [block for block in all_blocks("sh") if block.text.strip() not in ELSEWHERE]


@pytest.mark.e2e
@pytest.mark.parametrize("block", scripts(), ids=str)
def test_a_script_runs(block: Block, workspace: Path) -> None:
    """From its first line to its last, without a failure."""
    code, printed = run(block.text, workspace)
    assert code == 0, printed


@pytest.mark.parametrize("block", all_blocks("sh", "console"), ids=str)
def test_only_programs_that_are_tried_are_called(block: Block) -> None:
    """A command that no test could run would be an unchecked promise."""
    if block.text.strip() in ELSEWHERE:
        assert ELSEWHERE[block.text.strip()] in globals()
        return
    lines = block.text.splitlines() if block.language == "sh" else [command for command, _ in commands(block)]
    for line in lines:
        for part in line.split(" | "):
            word = part.split()[0]
            assert word in PROGRAMS | SHELL_WORDS or "=" in word, f"{block}: {part}"


def commands(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Yield each command of a console with the lines shown after it."""
    command, shown = "", list[str]()
    for line in block.text.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, shown
            command, shown = line[2:], []
        else:
            shown.append(line.rstrip())
    yield command, shown


def matches(shown: list[str], printed: list[str]) -> bool:
    """Tell whether the lines are those shown; ``...`` stands for any number of lines."""
    if not shown:
        return not printed
    if shown[0] == "...":
        return any(matches(shown[1:], printed[start:]) for start in range(len(printed) + 1))
    return bool(printed) and shown[0] == printed[0] and matches(shown[1:], printed[1:])


@pytest.mark.e2e
@pytest.mark.parametrize("block", all_blocks("console"), ids=str)
def test_a_command_prints_what_is_shown(block: Block, workspace: Path) -> None:
    """Line by line; the exit code is 0 unless the block says otherwise (``exit=2``)."""
    expected = next((int(each.removeprefix("exit=")) for each in block.attributes if each.startswith("exit=")), 0)
    for command, shown in commands(block):
        code, printed = run(command, workspace)
        assert code == expected, printed
        lines = [line.rstrip() for line in printed.splitlines()]
        assert matches(shown, lines), f"{block}: $ {command}\n{printed}"


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        pytest.param(["a"], ["a"], True, id="equal"),
        pytest.param(["a"], ["b"], False, id="different"),
        pytest.param(["a"], ["a", "b"], False, id="more-printed"),
        pytest.param(["a", "b"], ["a"], False, id="less-printed"),
        pytest.param(["...", "b"], ["a", "a", "b"], True, id="begins-with-any"),
        pytest.param(["a", "..."], ["a"], True, id="any-may-be-none"),
        pytest.param(["...", "b", "..."], ["a", "c"], False, id="any-hides-nothing-shown"),
    ],
)
def test_output_is_compared_line_by_line(shown: list[str], printed: list[str], expected: bool) -> None:
    """The comparison itself is no weaker than it looks."""
    assert matches(shown, printed) is expected


@pytest.mark.parametrize("block", all_blocks("python"), ids=str)
def test_an_example_of_the_library_runs(
    block: Block, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the folder of the examples; it prints something."""
    monkeypatch.chdir(DOCS / "examples")
    exec(compile(block.text, str(block), "exec"), {"__name__": "__example__"})
    assert "worker-c" in capsys.readouterr().out


@pytest.mark.e2e
@pytest.mark.slow
def test_the_demo_ends_by_itself_and_shows_an_improvement(workspace: Path) -> None:
    """The one command that runs the main job: nodes join, pods move, the spread of requests falls."""
    code, printed = run("rebalancer demo", workspace)
    assert code == 0, printed
    assert "evictions" in printed


def test_the_command_that_runs_the_tests_names_them_all() -> None:
    """It hands everything to pytest, which is running this very test."""
    script = ROOT / "scripts" / "test"
    assert os.access(script, os.X_OK)
    assert script.read_text().splitlines()[-1].startswith("exec .venv/bin/python -m pytest")
    assert os.access(ROOT / "scripts" / "demo", os.X_OK)
    assert (ROOT / "scripts" / "demo").read_text().splitlines()[-1] == 'exec .venv/bin/rebalancer demo "$@"'
