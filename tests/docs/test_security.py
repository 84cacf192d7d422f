"""The security page says what the chart grants, feature by feature."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chart.rendering import rules
from tests.docs.pages import DOCS

EVICTION = {("create", "pods/eviction", "")}
EVENTS = {("create", "events.events.k8s.io", ""), ("patch", "events.events.k8s.io", "")}
LEASE = {
    ("create", "leases.coordination.k8s.io", ""),
    ("get", "leases.coordination.k8s.io", "descheduler"),
    ("update", "leases.coordination.k8s.io", "descheduler"),
}
STATE = {("create", "configmaps", ""), ("get", "configmaps", "rebalancer-state"), ("patch", "configmaps", "rebalancer-state")}
REVIEWS = {
    ("create", "tokenreviews.authentication.k8s.io", ""),
    ("create", "subjectaccessreviews.authorization.k8s.io", ""),
}


@pytest.mark.parametrize(
    ("values", "less", "more", "row"),
    [
        pytest.param(
            {"settings": {"dryRun": "plan"}},
            EVICTION | EVENTS | LEASE | STATE,
            set(),
            "| `settings.dryRun=plan` | − `pods/eviction`, Events, Lease, ConfigMap |",
            id="plan",
        ),
        pytest.param(
            {"settings": {"dryRun": "server"}},
            EVENTS | STATE,
            set(),
            "| `settings.dryRun=server` | − Events, ConfigMap |",
            id="server",
        ),
        pytest.param({"settings": {"events": False}}, EVENTS, set(), "| `settings.events=false` | − Events |", id="no-events"),
        pytest.param(
            {"settings": {"leaderElection": False}},
            LEASE,
            set(),
            "| `settings.leaderElection=false` | − Lease |",
            id="no-election",
        ),
        pytest.param(
            {"settings": {"singleReplica": "surge"}},
            set(),
            {("patch", "deployments.apps", "")},
            "| `settings.singleReplica=surge` | + `patch` on `deployments.apps` |",
            id="surge",
        ),
        pytest.param({"rbac": {"tokenReviews": True}}, set(), REVIEWS, "| `rbac.tokenReviews=true`,", id="reviews"),
        pytest.param(
            {"settings": {"metricsNeedToken": True}},
            set(),
            REVIEWS,
            "`settings.metricsNeedToken=true` | + `create`",
            id="metrics",
        ),
    ],
)
def test_a_feature_grants_what_the_page_says(
    values: dict[str, Any], less: set[tuple[str, str, str]], more: set[tuple[str, str, str]], row: str
) -> None:
    """Compared with the role as installed, which the page shows whole."""
    installed, found = rules({}), rules(values)
    assert installed - found == less
    assert found - installed == more
    assert row in (DOCS / "security.md").read_text()
