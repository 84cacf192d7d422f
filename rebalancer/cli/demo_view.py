"""What the demo shows: lines about what happens, and bars of how full the nodes are; on a terminal live, else line by line."""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from rebalancer.control.happenings import (
    Asked,
    Happening,
    LimitReached,
    Looked,
    Noticed,
    Passed,
    RunEnded,
    RunStarted,
    Settled,
    TriggerSeen,
)
from rebalancer.control.ports import Surged
from rebalancer.model.answer import Accepted

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

_BAR = 40
_LINES = 16
# Without a happening for so long after a run, the demo is over: longer than debounce and node settle time together.
_QUIET_SECONDS = 5.0

Shares = Mapping[str, float]


def line_of(happening: Happening) -> str | None:
    """Return a line about a happening; None where it is not worth one here."""
    match happening:
        case TriggerSeen(trigger):
            return f"trigger   {trigger.kind} {trigger.subject} ({trigger.detail})"
        case RunStarted(number, batch):
            waited = f"{batch.waited_seconds:.1f} s of debounce"
            return f"run {number}     {len(batch.triggers)} trigger(s) after {waited}"
        case Looked():
            plan = happening.plan
            counts: dict[str, int] = {}
            for node in plan.nodes:
                counts[node.verdict] = counts.get(node.verdict, 0) + 1
            nodes = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
            cluster = f"{happening.pod_count} pods on {happening.node_count} nodes ({nodes})"
            return f"look {happening.look}    {cluster}: {len(plan.approved)} to move, in {1000 * happening.seconds:.0f} ms"
        case Asked():
            approval = happening.approval
            if isinstance(happening.answer, Accepted):
                return f"evict     {approval.pod} from {approval.node}: {approval.strategy}, {approval.reason}"
            if isinstance(happening.answer, Surged):
                return f"surge     {approval.pod} from {approval.node}: {approval.strategy}, {approval.why}"
            return f"not now   {approval.pod}: {type(happening.answer).__name__} {happening.answer.message}"
        case Settled():
            if happening.outcome != "ready":
                return f"settled   {happening.approval.pod}: {happening.outcome}"
            as_expected = {True: ", as expected", False: ", not as expected", None: ""}[happening.expected]
            where = f"{happening.replacement} on {happening.landed}"
            return f"landed    {where}, Ready after {happening.ready_seconds or 0:.1f} s{as_expected}"
        case RunEnded():
            return f"run {happening.number}     ended: {happening.accepted} evicted, {happening.reason}"
        case Passed():
            return f"pass      {happening.approval.pod}: {happening.reason}"
        case LimitReached():
            return f"limit     {happening.limit}"
        case Noticed() if happening.loud:
            return f"notice    {happening.text}"
        case _:
            return None


def bar(share: float) -> str:
    """Return a bar of a node's requested cpu."""
    filled = min(_BAR, round(share * _BAR / 100))
    return "█" * filled + "·" * (_BAR - filled)


def spread(shares: Shares) -> str:
    """Say how evenly the nodes are filled."""
    values = list(shares.values()) or [0.0]
    return f"{min(values):.0f} % to {max(values):.0f} %, standard deviation {statistics.pstdev(values):.1f}"


class View:
    """Shows the demo. shares: how full the nodes are now."""

    def __init__(self, console: Console, shares: Callable[[], Shares]) -> None:
        """Show on this console; live where it is a terminal."""
        self._console = console
        self._shares = shares
        self._lines: deque[str] = deque(maxlen=_LINES)
        self._began_at = time.monotonic()
        self._live: Live | None = None
        self.before: Shares = {}
        self.after: Shares = {}
        self._runs_before = 0
        self._last_at = time.monotonic()
        self.evicted = 0
        self.landed = 0
        self.as_expected = 0
        self.ended: list[RunEnded] = []

    def __enter__(self) -> View:
        if self._console.is_terminal:
            from rich.live import Live

            self._live = Live(console=self._console, get_renderable=self._picture, refresh_per_second=8, screen=False)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def __call__(self, happening: Happening) -> None:
        """Show a happening."""
        match happening:
            case Asked() if isinstance(happening.answer, Accepted):
                self.evicted += 1
            case Settled() if happening.outcome == "ready":
                self.landed += 1
                self.as_expected += bool(happening.expected)
            case RunEnded():
                self.ended.append(happening)
            case _:
                pass
        line = line_of(happening)
        if line is not None:
            self._last_at = time.monotonic()
            self.say(line)

    def begin_counting(self) -> None:
        """Count from here on: the nodes join now."""
        self._runs_before = len(self.ended)
        self.evicted = self.landed = self.as_expected = 0

    def settled_down(self) -> bool:
        """Say whether there was a run since the nodes joined, and nothing has happened for a while since it ended."""
        return len(self.ended) > self._runs_before and time.monotonic() - self._last_at > _QUIET_SECONDS

    def summary(self) -> None:
        """Print what it came to."""
        self._bars("before the nodes joined", self.before)
        self._bars("afterwards", self.after)
        expected = f"{self.as_expected} of them where they were expected"
        self._console.print(f"{self.evicted} evictions, {self.landed} replacements Ready, {expected}.")
        self._console.print(f"spread of requested cpu over all nodes, before: {spread(self._with_joined())}", soft_wrap=True)
        self._console.print(f"                                         after: {spread(self.after)}", soft_wrap=True)

    def _with_joined(self) -> Shares:
        return {**dict.fromkeys(self.after, 0.0), **self.before}

    def say(self, line: str) -> None:
        """Show a line."""
        stamped = f"{time.monotonic() - self._began_at:5.1f} s  {line}"
        self._lines.append(stamped)
        if self._live is None:
            print(stamped, flush=True)

    def _bars(self, title: str, shares: Shares) -> None:
        """Print every node's bar."""
        self._console.print(f"{title}: cpu requested {spread(shares)}", highlight=False)
        for name, share in shares.items():
            self._console.print(f"  {name}  {bar(share)} {share:5.1f} %", highlight=False)

    def _picture(self) -> RenderableType:
        from rich.columns import Columns
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 1))
        for name, share in self._shares().items():
            before = self.before.get(name)
            change = "joined" if before is None and self.before else "" if before is None else f"{share - before:+5.1f}"
            colour = "green" if share < 20 else "red" if share > 70 else "cyan"
            table.add_row(name, Text(bar(share), style=colour), f"{share:5.1f} %", change)
        counts = Text(f"evicted {self.evicted}   landed {self.landed}   as expected {self.as_expected}", style="bold")
        lines = Text(
            "\n".join(line[: max(40, self._console.width - 2)] for line in self._lines), no_wrap=True, overflow="ellipsis"
        )
        return Group(Columns([table]), counts, lines)
