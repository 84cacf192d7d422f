"""The reference of all commands, from the program's own help."""

from __future__ import annotations

from collections.abc import Iterator

import click
import typer

from docs.argument_tables import table


def commands() -> str:
    """Return a section for each command: what it does, its arguments and options."""
    from rebalancer.cli.program import app

    return "\n".join(_section(name, command) for name, command in leaves(typer.main.get_command(app), "rebalancer"))


def leaves(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command that does something, by its whole name."""
    if isinstance(command, click.Group):
        for inner_name, inner in sorted(command.commands.items()):
            yield from leaves(inner, f"{name} {inner_name}")
    else:
        yield name, command


def _section(name: str, command: click.Command) -> str:
    text = f"### {name}\n\n{(command.help or '').strip()}\n"
    rows = [
        (_spelling(parameter), _default(parameter), getattr(parameter, "help", None) or "")
        for parameter in command.params
        if "--help" not in parameter.opts
    ]
    return text + ("\n" + table(("argument", "default", "meaning"), rows) if rows else "")


def _spelling(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Option):
        return ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    return f"`{parameter.metavar or (parameter.name or '').upper()}`"


def _default(parameter: click.Parameter) -> str:
    default = parameter.default
    if parameter.required:
        return "required"
    if default is None or default is False or not str(default):
        return ""
    return f"`{getattr(default, 'value', default)}`"
