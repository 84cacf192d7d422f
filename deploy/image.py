"""The image without an engine: rules that its Dockerfile has to keep, and its build stage run in a clean directory.

``python -m deploy.image`` does what the build stage does, on this machine, and says how large the result is and how long it
takes to start. The commands are those of the Dockerfile itself, with the paths of the image moved into the directory.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
TARGET = "/opt/rebalancer"
_PIPED = re.compile(r"\b(curl|wget)\b[^|&;]*\|\s*(sudo\s+)?\w*sh\b")
_WANTED_LABELS = ("title", "description", "licenses", "version", "revision")
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. stage: counts from 0. name: in capitals. text: the rest, continuation lines joined."""

    stage: int
    name: str
    text: str


def instructions(dockerfile: str) -> Iterator[Instruction]:
    """Yield the instructions of a Dockerfile; those before the first FROM belong to stage -1."""
    stage = -1
    kept = "\n".join(line for line in dockerfile.splitlines() if not line.lstrip().startswith("#"))
    for line in re.sub(r"\\\n", " ", kept).splitlines():
        if line.strip():
            name, _, text = line.strip().partition(" ")
            stage += name.upper() == "FROM"
            yield Instruction(stage, name.upper(), " ".join(text.split()))


def complaints(dockerfile: str) -> Iterator[str]:
    """Yield what a Dockerfile does that an image of ours must not do, as sentences."""
    found = list(instructions(dockerfile))
    arguments = dict(each.text.partition("=")[::2] for each in found if each.name == "ARG")
    last = max(each.stage for each in found)
    end = [each for each in found if each.stage == last]
    if last < 1:
        yield "one stage: what builds is shipped, too"
    for each in found:
        if each.name == "FROM":
            image = re.sub(r"\$\{?(\w+)\}?", lambda match: arguments.get(match[1], ""), each.text.split()[0])
            if ":" not in image or image.endswith(":latest"):
                yield f"FROM {image}: a tag that moves without a word"
        if each.name == "ADD":
            yield "ADD: fetches and unpacks; COPY does what is seen"
        if each.name == "RUN" and _PIPED.search(each.text):
            yield f"RUN {each.text}: what is fetched is run unseen"
        if each.name == "RUN" and "pip install" in each.text and " -c " not in each.text:
            yield f"RUN {each.text}: versions are not pinned"
        if each.name == "COPY" and each.text.split()[0] in (".", "./"):
            yield "COPY .: takes along whatever lies about"
        if each.name in ("ENV", "ARG") and re.search(r"(?i)(password|secret|token)\w*=\S", each.text):
            yield f"{each.name} {each.text}: a secret in a layer"
    users = [each.text for each in end if each.name == "USER"]
    if not users or not re.fullmatch(r"[1-9]\d*(:[1-9]\d*)?", users[-1]):
        yield "USER: has to be a number other than 0, so that a cluster can see that it is not root"
    for name in ("ENTRYPOINT", "CMD"):
        if any(each.name == name and not each.text.startswith("[") for each in end):
            yield f"{name}: in shell form, signals do not reach the program"
    if not any(each.name == "ENTRYPOINT" for each in end):
        yield "ENTRYPOINT: missing"
    if not any(each.name == "RUN" and "compileall" in each.text for each in found if each.stage < last):
        yield "no bytecode is compiled: each start would compile anew, as the root file system is read-only"
    labels = " ".join(each.text for each in end if each.name == "LABEL")
    for label in _WANTED_LABELS:
        if f"org.opencontainers.image.{label}=" not in labels:
            yield f"LABEL org.opencontainers.image.{label}: missing"


def build(dockerfile: str, folder: Path) -> Path:
    """Do what the first stage does in a directory, and return where the program then is. Raises CalledProcessError."""
    source, target = folder / "src", folder / "target"
    source.mkdir(parents=True)
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    for each in instructions(dockerfile):
        if each.stage != 0:
            continue
        if each.name == "ENV":
            environment |= dict(part.split("=", 1) for part in each.text.split())
        elif each.name == "COPY":
            *names, _ = each.text.split()
            for name in names:
                _copy(ROOT / name, source / name)
        elif each.name == "RUN":
            command = each.text.replace(TARGET, str(target)).replace("python -m", f"{sys.executable} -m")
            subprocess.run(["sh", "-ec", command], cwd=source, env=environment, check=True, stdout=subprocess.DEVNULL)
    return target


def size_bytes(folder: Path) -> int:
    """Return the size of all files below a directory."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def seconds(command: Sequence[str], **environment: str) -> float:
    """Return the least processor time of several runs of a command, started from a directory that has nothing to do with it."""
    taken = []
    for _ in range(_ATTEMPTS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, cwd="/", env={"PATH": os.environ["PATH"], **environment}, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(taken)


def figures(target: Path) -> Iterator[str]:
    """Yield how large an installation is and how long it takes to start, as lines."""
    python = str(target / "bin" / "python")
    packages = next(target.glob("lib/python*/site-packages"))
    yield f"installed: {size_bytes(target) / 1e6:.1f} MB, of which bytecode {_bytecode(target) / 1e6:.1f} MB"
    for package in sorted(packages.iterdir(), key=size_bytes, reverse=True)[:6]:
        yield f"  {package.name}: {size_bytes(package) / 1e6:.1f} MB"
    service = [python, "-c", "import rebalancer.service.life, rebalancer.service.parts, rebalancer.cli.controller"]
    yield "processor time of a start:"
    yield f"  rebalancer version: {seconds([str(target / 'bin' / 'rebalancer'), 'version']):.2f} s"
    yield f"  everything that `run` imports: {seconds(service):.2f} s"
    nowhere = str(target.parent / "no-bytecode")
    yield f"  the same without bytecode: {seconds(service, PYTHONPYCACHEPREFIX=nowhere, PYTHONDONTWRITEBYTECODE='1'):.2f} s"


def main() -> None:
    """Build in a temporary directory and print figures."""
    with tempfile.TemporaryDirectory() as name:
        target = build((ROOT / "Dockerfile").read_text(), Path(name))
        sys.stdout.writelines(f"{line}\n" for line in figures(target))


def _bytecode(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.pyc"))


def _copy(source: Path, target: Path) -> None:
    """Copy a file or a directory as the build context has it: without caches."""
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


if __name__ == "__main__":
    main()
