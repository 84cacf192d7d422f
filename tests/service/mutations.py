"""Take one protection after the other out of the code: each time the tests must fail.

    python -m tests.service.mutations

Each mutation is made in a copy of the sources; every one of the tests named with it is run against that copy, and has to fail.
The same protections are left out of a service put together through its composition root in ``tests/histories/test_mutants.py``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_COPIED = ("rebalancer", "tests", "pyproject.toml")
HISTORIES, STORIES = "tests/histories/test_histories.py", "tests/histories/test_stories.py"


@dataclass(frozen=True, slots=True)
class Mutation:
    """One protection less. old, new: text in a file. tests: each of them must fail."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


MUTATIONS = (
    Mutation(
        "the ledger spends nothing",
        "rebalancer/control/evictor.py",
        "self._ledger.spend(pod, newest)",
        "pass",
        ("tests/control/test_evictor.py", HISTORIES),
    ),
    Mutation(
        "leadership is not asked for",
        "rebalancer/control/gate.py",
        "if self._election is not None:\n            if not self._election.leading:",
        "if False:\n            if not self._election.leading:",
        ("tests/control/test_gate.py", HISTORIES),
    ),
    Mutation(
        "the lease need not outlast a request",
        "rebalancer/control/leadership.py",
        "return self.leading and self.remaining_seconds() > seconds",
        "return True",
        ("tests/control/test_leadership.py", STORIES),
    ),
    Mutation(
        "evictions carry no precondition",
        "rebalancer/kube/eviction.py",
        '{"preconditions": {"uid": uid}}',
        "{}",
        (HISTORIES,),
    ),
    Mutation(
        "nothing is checked again before a request",
        "rebalancer/control/recheck.py",
        "    before, now = _find(then, approval), _find(newest, approval)\n",
        "    return None\n    before, now = _find(then, approval), _find(newest, approval)\n",
        ("tests/control/test_evictor.py", HISTORIES),
    ),
    Mutation(
        "an account that was not written does not matter",
        "rebalancer/control/evictor.py",
        'if written != "written" or reason',
        "if reason",
        ("tests/control/test_evictor.py", HISTORIES),
    ),
    Mutation(
        "the minute is not counted",
        "rebalancer/control/rate.py",
        "        if self.wait_seconds(now) != 0.0:\n            return False\n",
        "        return True\n",
        ("tests/control/test_rate.py", HISTORIES),
    ),
    Mutation(
        "caps are not held over looks",
        "rebalancer/control/caps.py",
        "    return used >= cap.limit(",
        "    return False and used >= cap.limit(",
        ("tests/control/test_evictor.py",),
    ),
    Mutation(
        "windows are not asked for",
        "rebalancer/control/gate.py",
        "return self.windows.closed_because(self._clock.now(), profile)",
        "return None",
        ("tests/control/test_evictor.py", STORIES),
    ),
    Mutation(
        "windows never close",
        "rebalancer/control/windows.py",
        "if group and not any(window.is_open(now) for window in group):",
        "if False and not any(window.is_open(now) for window in group):",
        ("tests/control/test_windows.py", HISTORIES, STORIES),
    ),
    Mutation(
        "a stale cache does not matter",
        "rebalancer/control/gate.py",
        "if unfresh := self._source.unfresh():",
        "if unfresh := ():",
        ("tests/control/test_gate.py", "tests/control/test_evictor.py", HISTORIES),
    ),
    Mutation(
        "the debounce has no maximum",
        "rebalancer/control/debounce.py",
        "due = min(self._last_at + self._quiet_seconds, self._first_at + self._maximum_seconds)",
        "due = self._last_at + self._quiet_seconds",
        ("tests/control/test_debounce.py",),
    ),
)


def unnoticed_by(mutation: Mutation, copy: Path) -> list[str]:
    """Return the tests that pass although the protection is gone."""
    file = copy / mutation.file
    text = file.read_text()
    if text.count(mutation.old) != 1:
        raise SystemExit(f"{mutation.name}: {mutation.file} does not hold the text once")
    file.write_text(text.replace(mutation.old, mutation.new))
    try:
        return [tests for tests in mutation.tests if _pass(tests, mutation, copy)]
    finally:
        file.write_text(text)


def _pass(tests: str, mutation: Mutation, copy: Path) -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider", tests]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{mutation.name}: pytest ended with {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode == 0


def main() -> int:
    """Try every mutation; return how many some of their tests did not notice."""
    unnoticed = 0
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        copy = Path(folder)
        for name in _COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / name, copy)
        for mutation in MUTATIONS:
            blind = unnoticed_by(mutation, copy)
            unnoticed += bool(blind)
            said = f"NOT NOTICED by {', '.join(blind)}" if blind else f"noticed by {', '.join(mutation.tests)}"
            print(f"{mutation.name}: {said}", flush=True)
    return unnoticed


if __name__ == "__main__":
    sys.exit(main())
