"""Restart a Deployment's rollout, so that the replacement starts before the old pod goes."""

from __future__ import annotations

from rebalancer.errors import KubeError
from rebalancer.kube.transport import NotSent, Transport
from rebalancer.model.answer import Accepted, Answer, Forbidden, Gone, Invalid, Replaced, Throttled, Unknown

SURGE_ANNOTATION = "rebalancer.io/surged-for"
_REASON = "rebalancer.io/reason"


class RolloutApi:
    """Patches the pod template of Deployments. timeout_seconds: for one request. dry_run: the server changes nothing."""

    def __init__(self, transport: Transport, *, timeout_seconds: float, dry_run: bool = False) -> None:
        self._transport = transport
        self._timeout_seconds = timeout_seconds
        self._dry_run = dry_run

    async def restart(self, namespace: str, name: str, uid: str, pod_uid: str, reason: str) -> Answer:
        """Start a rollout if the Deployment still has this uid. Never raises for what the server or the network does.

        pod_uid: of the pod to be replaced; the same one twice changes the template once, so a request that comes late, or from
        somebody else too, does no more. reason: for the Deployment's annotations.
        """
        template = {"metadata": {"annotations": {SURGE_ANNOTATION: pod_uid}}}
        try:
            reply = await self._transport.request(
                "PATCH",
                f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}",
                query={"dryRun": "All"} if self._dry_run else None,
                body={"metadata": {"uid": uid, "annotations": {_REASON: reason}}, "spec": {"template": template}},
                content_type="application/merge-patch+json",
                timeout_seconds=self._timeout_seconds,
            )
        except NotSent as error:
            return Throttled(str(error))
        except KubeError as error:
            return Unknown(str(error))
        words = reply.words()
        if reply.ok:
            return Accepted()
        if reply.status == 404:
            return Gone(words)
        if reply.status == 409:
            return Replaced(words)
        if reply.status in (401, 403):
            return Forbidden(words)
        if reply.status == 429:
            return Throttled(words, reply.retry_after_seconds)
        return Invalid(words) if 400 <= reply.status < 500 else Unknown(words)
