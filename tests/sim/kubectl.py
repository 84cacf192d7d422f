"""Runs kubectl against an embedded cluster."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Output:
    """What a kubectl command said. code: its exit code."""

    code: int
    out: str
    err: str

    @property
    def all(self) -> str:
        """Standard output and standard error."""
        return self.out + self.err


def programs() -> list[str]:
    """Return every kubectl that can be found: the pinned one of the environment, then others on the PATH."""
    own = Path(sys.executable).parent / "kubectl"
    found = [str(own)] if own.exists() else []
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        program = shutil.which("kubectl", path=folder)
        if program and os.path.realpath(program) not in map(os.path.realpath, found):
            found.append(program)
    return found


class Kubectl:
    """One kubectl with one kubeconfig."""

    def __init__(self, program: str, kubeconfig: Path, home: Path) -> None:
        self._program = program
        self._environment = {"KUBECONFIG": str(kubeconfig), "HOME": str(home), "PATH": os.environ.get("PATH", "")}

    async def __call__(self, *arguments: str, stdin: str = "", seconds: float = 40.0, **environment: str) -> Output:
        """Run one command to its end."""
        process = await asyncio.create_subprocess_exec(
            self._program,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**self._environment, **environment},
        )
        async with asyncio.timeout(seconds):
            out, err = await process.communicate(stdin.encode())
        return Output(process.returncode or 0, out.decode(), err.decode())

    async def ok(self, *arguments: str, stdin: str = "", **environment: str) -> str:
        """Run a command that must succeed and return its standard output."""
        output = await self(*arguments, stdin=stdin, **environment)
        assert output.code == 0, f"kubectl {' '.join(arguments)}: {output.all}"
        return output.out

    async def fails(self, *arguments: str, stdin: str = "") -> str:
        """Run a command that must fail and return everything it said."""
        output = await self(*arguments, stdin=stdin)
        assert output.code != 0, f"kubectl {' '.join(arguments)} succeeded: {output.all}"
        return output.all
