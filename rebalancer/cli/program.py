"""All commands together, and what becomes of their errors. What a command needs it imports itself, when it runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer
from typer.exceptions import TyperException

from rebalancer import __version__
from rebalancer.cli import controller, demo, offline, policy, sim
from rebalancer.errors import InputError, KubeForbidden, RebalancerError

DONE, FAILED, BAD_INPUT = 0, 1, 2

app = typer.Typer(
    name="rebalancer",
    help="Event-driven rebalancer for Kubernetes: proves where a pod would land before it is moved.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=False)
def _common() -> None:
    """Event-driven rebalancer for Kubernetes: proves where a pod would land before it is moved."""


@app.command()
def version() -> None:
    """Print the version."""
    print(__version__)


controller.register(app)
offline.register(app)
app.add_typer(policy.app, name="policy")
demo.register(app)
sim.register(app)


def program(arguments: Sequence[str]) -> int:
    """Run a command and return the exit code; errors that were foreseen are printed as sentences."""
    command = typer.main.get_command(app)
    try:
        code = command.main(list(arguments), prog_name="rebalancer", standalone_mode=False)
    except typer.Abort:
        return FAILED
    except TyperException as error:
        print(error.format_message(), file=sys.stderr)
        return BAD_INPUT
    except InputError as error:
        print(error, file=sys.stderr)
        return BAD_INPUT
    except KubeForbidden as error:
        print(f"not permitted to {error.verb} {error.resource}: {error}", file=sys.stderr)
        return FAILED
    except (RebalancerError, OSError) as error:
        print(error, file=sys.stderr)
        return FAILED
    return code if isinstance(code, int) else DONE
