"""All commands together, and what becomes of their errors. What a command needs it imports itself, when it runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

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
    _open_streams()
    command = typer.main.get_command(app)
    try:
        code = command.main(list(arguments), prog_name="rebalancer", standalone_mode=False)
        sys.stdout.flush()
    except typer.Abort:
        return FAILED
    except BrokenPipeError:
        # Whoever read the output has had enough; nothing may complain about it at the end of the process either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
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
    except RebalancerError as error:
        print(error, file=sys.stderr)
        return FAILED
    except OSError as error:
        print(f"{error.filename or 'the output cannot be written'}: {error.strerror or error}", file=sys.stderr)
        return FAILED
    return code if isinstance(code, int) else DONE


def _open_streams() -> None:
    """Replace streams that the caller closed, and let no character fail that the terminal's encoding does not have."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - for as long as the process lives
        elif isinstance(stream := getattr(sys, name), TextIOWrapper):
            stream.reconfigure(errors="replace")
