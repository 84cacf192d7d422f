"""Ask the API server to evict one pod, and turn whatever it says into an answer.

Source: https://github.com/kubernetes/kubernetes/blob/v1.36.0/pkg/registry/core/pod/storage/eviction.go
"""

from __future__ import annotations

from typing import Any

from rebalancer.errors import KubeError
from rebalancer.kube.reply import Reply
from rebalancer.kube.transport import NotSent, Transport
from rebalancer.model.answer import (
    Accepted,
    Answer,
    BudgetForbidden,
    Forbidden,
    Gone,
    HeldByBudget,
    InBackground,
    Invalid,
    Replaced,
    Throttled,
    Unknown,
    Unsupported,
)

REQUESTED_BY = "sigs.k8s.io/descheduler"
"""Dashboards and admission webhooks of descheduler users look for this value."""

_BACKGROUND = "Eviction triggered evacuation"
_TWO_BUDGETS = "more than one PodDisruptionBudget"
_NO_SUCH_API = "could not find the requested resource"
_BUDGET_CONFLICT = "couldn't update PodDisruptionBudget"
_WEBHOOK_FAILED = "failed calling webhook"


class EvictionApi:
    """Sends evictions.

    timeout_seconds: for one request. requested_by: written into the eviction's annotations.
    grace_seconds: None leaves it to the pod. dry_run: the server goes through everything, and nothing goes.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        timeout_seconds: float,
        requested_by: str = REQUESTED_BY,
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        self._transport = transport
        self._timeout_seconds = timeout_seconds
        self._requested_by = requested_by
        self._grace_seconds = grace_seconds
        self._dry_run = dry_run

    async def evict(self, namespace: str, name: str, uid: str, reason: str, *, in_background: bool = False) -> Answer:
        """Ask for a pod to go, if it still has this uid. Never raises for what the server or the network does.

        reason: for the eviction's annotations. in_background: the pod says that somebody else carries its evictions out.
        """
        body = self.body(namespace, name, uid, reason)
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
        try:
            reply = await self._transport.request("POST", path, body=body, timeout_seconds=self._timeout_seconds)
        except NotSent as error:
            return Throttled(str(error))
        except KubeError as error:
            return Unknown(str(error))
        return answer(reply, in_background=in_background)

    def body(self, namespace: str, name: str, uid: str, reason: str) -> dict[str, Any]:
        """Return the Eviction that is sent."""
        options: dict[str, Any] = {"preconditions": {"uid": uid}}
        if self._grace_seconds is not None:
            options["gracePeriodSeconds"] = self._grace_seconds
        if self._dry_run:
            options["dryRun"] = ["All"]
        return {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "annotations": {"requested-by": self._requested_by, "reason": reason},
            },
            "deleteOptions": options,
        }


def answer(reply: Reply, *, in_background: bool = False) -> Answer:
    """Turn the reply to an eviction into an answer."""
    words, detail, status = reply.words(), reply.detail, reply.status
    if reply.ok:
        return Accepted()
    if status == 429:
        if in_background and _BACKGROUND in words:
            return InBackground(words)
        if detail and detail.has_cause("DisruptionBudget"):
            causes = detail.details.causes if detail.details else None
            return HeldByBudget("; ".join(cause.message for cause in causes or () if cause.message), reply.retry_after_seconds)
        return Throttled(words, reply.retry_after_seconds)
    if status == 404:
        return Unsupported(words) if _NO_SUCH_API in words or detail is None else Gone(words)
    if status == 409:
        return Replaced(words)
    if status == 403:
        if detail and detail.has_cause("NamespaceTerminating"):
            return Gone(words)
        about_budget = detail is not None and detail.details is not None and detail.details.kind == "poddisruptionbudget"
        return BudgetForbidden(words) if about_budget else Forbidden(words)
    if status == 401:
        return Forbidden(words)
    if status == 405:
        return Unsupported(words)
    if 400 <= status < 500 and status != 408:
        return Invalid(words)
    if _TWO_BUDGETS in words:
        return Unsupported(words)
    if _BUDGET_CONFLICT in words:
        return HeldByBudget(words, reply.retry_after_seconds)
    if _WEBHOOK_FAILED in words:
        return Throttled(words, reply.retry_after_seconds)
    return Unknown(words)
