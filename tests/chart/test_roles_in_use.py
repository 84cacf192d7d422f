"""The program at work with the rendered roles: everything works, nothing granted is unused, one right less is named (H7).

The embedded cluster decides by RBAC and writes down what was asked for. Real time passes here, fractions of a second each.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest

from rebalancer.control.happenings import Noticed, RunEnded
from rebalancer.kube.config import find_access
from rebalancer.kube.reflector import Reflector
from rebalancer.kube.resources import RESOURCES, Resource
from rebalancer.kube.transport import Transport
from rebalancer.model.change import Listed, Report, Unavailable
from rebalancer.sim.cluster import EmbeddedCluster
from rebalancer.sim.faults import Fault, Trouble
from tests.chart.operating import (
    ACCOUNT,
    TOKEN,
    Operation,
    furnish,
    furnish_single,
    install,
    prepared,
    quiet_cluster,
    run_one,
    run_until,
)
from tests.chart.rendering import rules

pytestmark = pytest.mark.e2e
LISTS = {("list", each.rbac_name) for each in RESOURCES}


def used(cluster: EmbeddedCluster) -> set[tuple[str, str]]:
    """Return what the program asked for, as (verb, resource as people write it); what everybody may read is left out."""
    asked = cluster.access.asked_by(ACCOUNT)
    return {(verb, f"{what}.{group}" if group else what) for verb, group, what in asked if not what.startswith("/")}


def granted(values: dict[str, Any]) -> set[tuple[str, str]]:
    """Return what the chart grants, names left out; lists apart, which are used where a server does not stream them."""
    return {(verb, resource) for verb, resource, _ in rules(values)} - LISTS


def ended(operation: Operation) -> bool:
    """Say whether a run has ended."""
    return any(isinstance(each, RunEnded) for each in operation.heard)


async def with_token(port: int) -> None:
    """Ask for the status as somebody from outside would: under another name, with a token."""
    headers = {"Host": "rebalancer", "Authorization": f"Bearer {TOKEN}"}
    async with aiohttp.ClientSession(headers=headers) as client, client.get(f"http://127.0.0.1:{port}/status") as reply:
        # The account is known, and may not: both reviews were made.
        assert reply.status == 403


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({}, id="defaults"),
        pytest.param({"settings": {"dryRun": "plan"}}, id="dry-run-that-only-reports"),
        pytest.param({"settings": {"dryRun": "server"}}, id="dry-run-on-the-server"),
        pytest.param({"settings": {"events": False}}, id="no-events"),
        pytest.param({"settings": {"leaderElection": False}}, id="no-election"),
        pytest.param({"settings": {"metricsNeedToken": True}}, id="metrics-with-token"),
        pytest.param({"rbac": {"tokenReviews": True}}, id="status-with-token"),
        pytest.param({"settings": {"singleReplica": "surge"}}, id="replacement-first"),
        pytest.param({"settings": {"singleReplica": "surge", "dryRun": "server"}}, id="replacement-first-on-the-server"),
        pytest.param({"kind": "CronJob"}, id="cronjob"),
        pytest.param({"kind": "Job", "settings": {"dryRun": "plan"}}, id="job-that-only-reports"),
    ],
)
async def test_everything_works_and_nothing_granted_is_unused(values: dict[str, Any], tmp_path: Path) -> None:
    """A run from first list to end; with the defaults, an eviction is answered "later" twice so that its Event repeats."""
    async with quiet_cluster() as cluster:
        install(cluster, values)
        furnish(cluster)
        if values.get("settings", {}).get("singleReplica") == "surge":
            furnish_single(cluster)
        if not values:
            cluster.faults.add(Fault(Trouble.THROTTLED, "/eviction", "POST", times=2, retry_after_seconds=0))
        operation = await prepared(cluster, values, tmp_path, evictionFailureEventNotification=True)
        if values.get("kind", "Deployment") == "Deployment":
            tokens = granted(values) & {("create", "tokenreviews.authentication.k8s.io")}
            await run_until(operation, ended, then=with_token if tokens else None)
        else:
            await run_one(operation)
        if values.get("settings", {}).get("dryRun") == "plan":
            assert operation.answers() == ["Reported"]
        elif values.get("settings", {}).get("dryRun") == "server":
            assert "Reported" in operation.answers()
        else:
            assert "Accepted" in operation.answers()
        assert "forbidden" not in operation.words()
        assert used(cluster) == granted(values) - ({("patch", "events.events.k8s.io")} if values else set())


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda each: each.rbac_name)
async def test_lists_are_used_where_the_server_does_not_stream_them(resource: Resource, tmp_path: Path) -> None:
    """Kubernetes 1.33 has streamed lists off: then each kind is listed, with the right to, and without it that is said."""
    for without in (None, ("list", resource.rbac_name)):
        reports: asyncio.Queue[Report] = asyncio.Queue()
        async with quiet_cluster() as cluster:
            install(cluster, {}, without)
            access = find_access(kubeconfig=str(cluster.kubeconfig(tmp_path / "kubeconfig", TOKEN)), environment={})
            transport = Transport(access)
            reflector = Reflector(transport, resource, bytes, reports.put, random=Random(1), streamed=False)
            following = asyncio.create_task(reflector.run())
            async with asyncio.timeout(10):
                first = await reports.get()
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            await transport.close()
        if without is None:
            assert isinstance(first, Listed)
        else:
            assert isinstance(first, Unavailable)
            assert f"cannot list {resource.rbac_name}" in first.reason


@pytest.mark.parametrize(("verb", "resource"), sorted(granted({})), ids=lambda part: part)
async def test_a_right_less_is_named(verb: str, resource: str, tmp_path: Path) -> None:
    """Whatever is taken away, an operator reads which verb on which resource is missing; and it is the only complaint."""
    short = resource.partition(".")[0]

    def named(operation: Operation) -> bool:
        """Say whether one line names both."""
        lines = operation.words().splitlines()
        return any("forbidden" in line and f" {verb} " in line and short in line for line in lines)

    async with quiet_cluster() as cluster:
        install(cluster, {}, (verb, resource))
        furnish(cluster)
        if (verb, short) == ("patch", "events"):
            cluster.faults.add(Fault(Trouble.THROTTLED, "/eviction", "POST", times=2, retry_after_seconds=0))
        operation = await prepared(cluster, {}, tmp_path, evictionFailureEventNotification=True)
        await run_until(operation, named)
        assert named(operation), operation.words()
        others = [(other, what) for other, what in sorted(granted({})) if (other, what) != (verb, resource)]
        assert not [each for each in others if f"cannot {each[0]} {each[1]}:" in operation.words()]


@pytest.mark.parametrize("resource", [each for each in RESOURCES if each.required], ids=lambda each: each.rbac_name)
async def test_what_it_cannot_do_without_fails_readiness(resource: Resource, tmp_path: Path) -> None:
    """A 403 on one of the kinds that decide is in /readyz by its name, and nothing is evicted."""
    told: list[tuple[int, str]] = []

    async def ask(port: int) -> None:
        async with aiohttp.ClientSession() as client, client.get(f"http://127.0.0.1:{port}/readyz") as reply:
            told.append((reply.status, await reply.text()))

    def refused(operation: Operation) -> bool:
        return any(isinstance(each, Noticed) and each.code == "cannot-be-read" for each in operation.heard)

    async with quiet_cluster() as cluster:
        install(cluster, {}, ("watch", resource.rbac_name))
        furnish(cluster)
        operation = await prepared(cluster, {}, tmp_path)
        await run_until(operation, refused, then=ask)
    ((status, text),) = told
    assert status == 503
    assert f"watch {resource.rbac_name}" in text
    assert operation.answers() == []


async def test_a_missing_right_to_restart_a_rollout_is_named(tmp_path: Path) -> None:
    """settings.singleReplica=surge patches Deployments; without the right the answer says so."""
    values = {"settings": {"singleReplica": "surge"}}
    async with quiet_cluster() as cluster:
        install(cluster, values, ("patch", "deployments.apps"))
        furnish(cluster)
        furnish_single(cluster)
        operation = await prepared(cluster, values, tmp_path)
        await run_until(operation, lambda each: "Forbidden" in each.answers())
    assert 'cannot patch resource "deployments" in API group "apps"' in operation.words()
