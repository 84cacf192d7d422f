"""The commands ``rebalancer policy``: check a policy, convert an old one, say in words what it will do.

A file or the environment enters, text leaves. Nothing here talks to a cluster, so named priority classes stay names.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from rebalancer.cli.reading import STANDARD_INPUT, read_input
from rebalancer.errors import InputError, Mistake, PolicyError
from rebalancer.policy import Loaded, describe, from_environment, load, named_priority_classes

app = typer.Typer(help="Check, convert and explain policies.", no_args_is_help=True)

_BAD_INPUT = 2

File = Annotated[
    str | None,
    typer.Argument(
        help="A DeschedulerPolicy (v1alpha2 or v1alpha1), or a ConfigMap that holds one; - for standard input. "
        "Without it the REBALANCER_* variables are taken.",
        show_default=False,
    ),
]
Packs = Annotated[bool, typer.Option("--scheduler-packs", help="kube-scheduler is configured with MostAllocated.")]


@app.command()
def check(file: File = None, scheduler_packs: Packs = False) -> None:
    """Say whether a policy is right; if so, what it will do, and what is odd about it. Exit code 2 where it is wrong."""
    loaded = _loaded(file)
    for warning in loaded.warnings:
        print(f"warning: {warning}")
    for name in sorted(named_priority_classes(loaded.policy)):
        print(f"note: the priority class {name!r} is looked up in the cluster when the policy is used")
    for line in describe(loaded.policy, scheduler_packs=scheduler_packs):
        print(line)
    print(f"{file or 'environment'}: the policy is valid")


@app.command()
def convert(file: File = None) -> None:
    """Print a policy as descheduler/v1alpha2; warnings about changed meanings go to standard error."""
    loaded = _loaded(file)
    for warning in loaded.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    print(loaded.policy.to_yaml(), end="")


@app.command(name="describe")
def describe_policy(file: File = None, scheduler_packs: Packs = False) -> None:
    """Say in plain words what a policy will do."""
    for line in describe(_loaded(file).policy, scheduler_packs=scheduler_packs):
        print(line)


def _loaded(file: str | None) -> Loaded:
    """Return the policy, or say everything that is wrong with it and end with the exit code for bad input."""
    try:
        return _read(file)
    except InputError as error:
        print(error, file=sys.stderr)
        raise typer.Exit(_BAD_INPUT) from error


def _read(file: str | None) -> Loaded:
    if file is None:
        made = from_environment(os.environ)
        if made is None:
            raise PolicyError("environment", [Mistake("FILE", "is required where no REBALANCER_STRATEGIES is set")])
        return made
    return load(read_input(file), source="standard input" if file == STANDARD_INPUT else file)
