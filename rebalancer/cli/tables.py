"""Plans and placements as tables for a person at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rebalancer.model.plan import Plan
from rebalancer.placement.api import Placement

SHOWN = 40


def consoles() -> tuple[Console, Console]:
    """Return the consoles of standard output and standard error; wide where nobody looks, so that no line is cut."""
    width = None if sys.stdout.isatty() else 200
    return (
        Console(width=width, highlight=False, markup=False, emoji=False),
        Console(stderr=True, width=width, highlight=False, markup=False, emoji=False),
    )


def landings_text(landings: Mapping[str, float], most: int = 3) -> str:
    """Return landings as ``n1 60 %, n2 40 %``, the likeliest first."""
    ordered = sorted(landings.items(), key=lambda item: (-item[1], item[0]))
    text = ", ".join(f"{node} {weight:.0%}" for node, weight in ordered[:most])
    return text + (f" and {len(ordered) - most} more" if len(ordered) > most else "")


def print_plan(plan: Plan) -> None:
    """Print a plan: how nodes were seen, what goes and why, what stays and why."""
    out, err = consoles()
    for note in plan.notes:
        err.print(Text(f"note: {note}"), soft_wrap=True)
    if plan.nodes:
        table = Table("node", "strategy", "seen as", "requested", title="Nodes", title_justify="left")
        for node in plan.nodes:
            shares = ", ".join(f"{name} {share:.1f} %" for name, share in sorted(node.usage_percent.items()))
            table.add_row(node.node, node.strategy, node.verdict, shares)
        out.print(table)
    if plan.approved:
        table = Table(
            "pod", "node", "strategy", "why", "lands on", title=f"To be moved: {len(plan.approved)}", title_justify="left"
        )
        for each in plan.approved:
            table.add_row(each.pod, each.node, each.strategy, each.why, landings_text(each.landings) or "-")
        out.print(table)
    else:
        out.print("Nothing would be moved.")
    if plan.refused:
        total = sum(plan.refused_counts.values()) or len(plan.refused)
        table = Table("pod", "node", "strategy", "code", "why not", title=f"Considered and kept: {total}", title_justify="left")
        for refusal in plan.refused[:SHOWN]:
            table.add_row(refusal.pod, refusal.node, refusal.strategy, refusal.code, refusal.reason)
        out.print(table)
        if total > SHOWN:
            counts = ", ".join(f"{code} {count}" for code, count in sorted(plan.refused_counts.items()))
            out.print(f"… and {total - SHOWN} more; by code: {counts}")


def print_placement(placement: Placement) -> None:
    """Print where a pod would go: the nodes by score, and why the others cannot take it."""
    out, _ = consoles()
    result = placement.to_dict()
    if result["node"] is None:
        out.print("No node can take the pod.")
    else:
        tied = result["tied"]
        out.print(
            f"The pod goes to {result['node']}"
            + (f", or to one of {len(tied)} equal nodes: {', '.join(tied)}" if len(tied) > 1 else "")
        )
    if result["scores"]:
        plugins = sorted({name for scores in result["pluginScores"].values() for name in scores})
        table = Table("node", "chance", "score", *plugins, title="Nodes that can take it", title_justify="left")
        for node, score in sorted(result["scores"].items(), key=lambda item: (-item[1], item[0])):
            row = result["pluginScores"].get(node, {})
            table.add_row(
                node, f"{result['landings'].get(node, 0.0):.0%}", str(score), *(str(row.get(name, "")) for name in plugins)
            )
        out.print(table)
    if result["filtered"]:
        table = Table("node", "why not", title="Nodes that cannot", title_justify="left")
        for node, reason in sorted(result["filtered"].items()):
            table.add_row(node, reason)
        out.print(table)
