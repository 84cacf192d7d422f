"""The two ports through which a dry run goes: one asks nobody, the other asks the server to try."""

from __future__ import annotations

from rebalancer.control.ports import EvictionPort, Reply, Reported, Surged
from rebalancer.model.answer import Accepted
from rebalancer.model.plan import Approval


class OnlyReport:
    """Sends nothing: every eviction is reported as one that would have gone out."""

    async def evict(self, approval: Approval) -> Reply:
        """Report."""
        if approval.rollout:
            return Reported(f"{approval.pod} would have been replaced by a rollout of Deployment {approval.rollout}")
        return Reported(f"{approval.pod} would have been evicted from {approval.node}")


class ServerTries:
    """Sends every eviction with ``dryRun=All``: budgets, admission and RBAC are tried for real, and nothing goes."""

    def __init__(self, port: EvictionPort) -> None:
        """Try through a port that sends with ``dryRun=All``."""
        self._port = port

    async def evict(self, approval: Approval) -> Reply:
        """Try, and report what would have been accepted."""
        answer = await self._port.evict(approval)
        return Reported(answer.message) if isinstance(answer, Accepted | Surged) else answer
