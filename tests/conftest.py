"""What every test gets: a clean environment, a failure where it leaves asyncio tasks behind, and a place for its figures."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, settings

settings.register_profile("ci", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("ci")

FIGURES = "figures"
"""The name under which a test records (``record_property``) what is to be printed although it passed."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures that tests recorded, each under the test's name; those of other processes (``-n 2``) as well."""
    recorded = {
        report.nodeid: [str(value) for name, value in report.user_properties if name == FIGURES]
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call"
    }
    if any(recorded.values()):
        terminalreporter.section("figures")
    for nodeid, figures in sorted(recorded.items()):
        for each in figures:
            terminalreporter.line(f"{nodeid}\n{each}\n")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the outer environment may steer a test."""
    for name in list(os.environ):
        if name.startswith(("REBALANCER_", "KUBE", "OTEL_")):
            monkeypatch.delenv(name)


@pytest_asyncio.fixture(autouse=True, loop_scope="function")
async def no_task_left_behind(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    """A test that leaves an asyncio task running has lost control of it."""
    before = asyncio.all_tasks()
    yield
    leftover = asyncio.all_tasks() - before - {asyncio.current_task()}
    for task in leftover:
        task.cancel()
    await asyncio.gather(*leftover, return_exceptions=True)
    assert not leftover, f"tasks left behind: {[task.get_name() for task in leftover]}"
