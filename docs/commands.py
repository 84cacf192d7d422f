"""The reference of all commands, from the program's own help."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from docs.argument_tables import table
from rebalancer.cli.program import app


def commands() -> str:
    """Return a section for each command: what it does, its arguments and options."""
    return "\n".join(_section(name, command) for name, command in leaves(typer.main.get_command(app), "rebalancer"))


def leaves(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield every command that does something, by its whole name; a group has commands of its own."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name, command
        return
    for inner_name in sorted(inner):
        yield from leaves(inner[inner_name], f"{name} {inner_name}")


def _section(name: str, command: Any) -> str:
    text = f"### {name}\n\n{(command.help or '').strip()}\n"
    rows = [
        (_spelling(parameter), _default(parameter), parameter.help or "")
        for parameter in command.params
        if "--help" not in parameter.opts
    ]
    return text + ("\n" + table(("argument", "default", "meaning"), rows) if rows else "")


def _spelling(parameter: Any) -> str:
    if not parameter.opts[0].startswith("-"):
        return f"`{parameter.metavar or parameter.name.upper()}`"
    value = f" {parameter.metavar}" if parameter.metavar else ""
    return ", ".join(f"`{name}{value}`" for name in (*parameter.opts, *parameter.secondary_opts))


def _default(parameter: Any) -> str:
    default = parameter.default
    if parameter.required:
        return "required"
    if default is None or default is False or not str(default):
        return ""
    return f"`{getattr(default, 'value', default)}`"
