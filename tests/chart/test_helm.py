"""Helm itself installs, upgrades and uninstalls on the embedded cluster: the commands of the notes do what they say."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from helm_python import Chart, Config

from deploy.generate import CHART
from rebalancer.sim.cluster import EmbeddedCluster
from tests.chart.operating import quiet_cluster
from tests.chart.rendering import values_of

pytestmark = pytest.mark.e2e
RBAC = "rbac.authorization.k8s.io"
KINDS = (
    "secrets",
    "configmaps",
    "serviceaccounts",
    "services",
    "deployments.apps",
    "cronjobs.batch",
    "poddisruptionbudgets.policy",
    f"clusterroles.{RBAC}",
    f"clusterrolebindings.{RBAC}",
    f"roles.{RBAC}",
    f"rolebindings.{RBAC}",
)


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    """A cluster that only stores."""
    async with quiet_cluster() as found:
        yield found


async def helm(cluster: EmbeddedCluster, folder: Path, work: Callable[[Config], Any]) -> Any:
    """Let Helm work on a cluster, in a thread: it waits for answers."""
    text = cluster.kubeconfig(folder / "kubeconfig").read_text()
    return await asyncio.to_thread(lambda: work(Config(namespace="kube-system", kubeconfig_content=text)))


def variables(cluster: EmbeddedCluster) -> dict[str, str]:
    """Return the variables of the Deployment that is installed."""
    found = cluster.store.get("deployments.apps", "kube-system", "rebalancer")
    assert found is not None
    return {each["name"]: each["value"] for each in found["spec"]["template"]["spec"]["containers"][0]["env"]}


def may_evict(cluster: EmbeddedCluster) -> bool:
    """Say whether the ClusterRole that is installed lets pods be evicted."""
    role = cluster.store.get("clusterroles.rbac.authorization.k8s.io", "", "rebalancer")
    assert role is not None
    return any("pods/eviction" in rule["resources"] for rule in role["rules"])


async def test_a_dry_run_first_and_then_for_real(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    """`--reuse-values --set settings.dryRun=off` ends a dry run, and `plan` begins one, roles included; other values stay."""
    chart = Chart.load(str(CHART))
    dry = {"settings": {"dryRun": "plan", "capTotal": 7}}
    await helm(cluster, tmp_path, lambda config: config.install(chart, "rebalancer", dry))
    assert (variables(cluster)["REBALANCER_DRY_RUN"], may_evict(cluster)) == ("plan", False)

    real = {"settings": {"dryRun": "off"}}
    await helm(cluster, tmp_path, lambda config: config.upgrade(chart, "rebalancer", real, reuse_values=True))
    assert (variables(cluster)["REBALANCER_DRY_RUN"], may_evict(cluster)) == ("off", True)
    assert variables(cluster)["REBALANCER_CAP_TOTAL"] == "7"

    again = {"settings": {"dryRun": "plan"}}
    await helm(cluster, tmp_path, lambda config: config.upgrade(chart, "rebalancer", again, reuse_values=True))
    assert (variables(cluster)["REBALANCER_DRY_RUN"], may_evict(cluster)) == ("plan", False)


async def test_uninstalling_leaves_nothing_behind(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    """Whatever the chart can create goes with its release."""
    before = everything(cluster)
    values = {"replicas": 2, "service": {"enabled": True}, "grafanaDashboard": {"enabled": True}}
    chart = Chart.load(str(CHART))
    await helm(cluster, tmp_path, lambda config: config.install(chart, "rebalancer", values))
    assert len(everything(cluster) - before) > 8
    await helm(cluster, tmp_path, lambda config: config.uninstall("rebalancer"))
    assert everything(cluster) == before


def everything(cluster: EmbeddedCluster) -> set[tuple[str, str, str]]:
    """Return (resource, namespace, name) of all that is stored, Events left out."""
    return {
        (kind, each["metadata"].get("namespace", ""), each["metadata"]["name"])
        for kind in KINDS
        for each in cluster.store.objects(kind)
    }


async def test_a_release_of_the_descheduler_becomes_one_of_ours(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    """`helm upgrade --reuse-values` over the descheduler's chart: its schedule and policy stay, its program goes."""
    old = tmp_path / "descheduler"
    shutil.copytree(CHART, old, ignore=shutil.ignore_patterns("templates", "values.schema.json", "defaults.yaml", "dashboards"))
    (old / "Chart.yaml").write_text("apiVersion: v2\nname: descheduler\nversion: 0.36.0\n")
    (old / "templates").mkdir()
    cronjob = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "descheduler", "namespace": "kube-system"},
        "spec": {
            "schedule": "*/2 * * * *",
            "jobTemplate": {
                "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "descheduler", "image": "d"}]}}}
            },
        },
    }
    (old / "templates" / "cronjob.yaml").write_text(yaml.safe_dump(cronjob))
    (old / "values.yaml").write_text(yaml.safe_dump(values_of("upstream-0.36-values.yaml")))
    own = {"schedule": "0 3 * * *", "cmdOptions": {"v": 4}}
    await helm(cluster, tmp_path, lambda config: config.install(Chart.load(str(old)), "descheduler", own))

    chart = Chart.load(str(CHART))
    release = await helm(cluster, tmp_path, lambda config: config.upgrade(chart, "descheduler", {}, reuse_values=True))
    (found,) = cluster.store.objects("cronjobs.batch")
    (container,) = found["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert found["metadata"]["name"] == "descheduler-rebalancer"
    assert found["spec"]["schedule"] == "0 3 * * *"
    assert container["image"].startswith("rebalancer/rebalancer:")
    assert container["args"] == ["once"]
    given = {each["name"]: each["value"] for each in container["env"]}
    assert (given["REBALANCER_LOG_LEVEL"], given["REBALANCER_CAP_TOTAL"]) == ("debug", "20")
    assert "The values are those of another chart" in release["notes"]
