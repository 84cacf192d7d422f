"""Ask the API server who somebody is and whether they may: for the status endpoint.

https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from rebalancer.errors import KubeUnavailable
from rebalancer.kube.transport import Transport


@dataclass(frozen=True, slots=True)
class User:
    """Who a token belongs to, as the API server says."""

    name: str
    uid: str = ""
    groups: Sequence[str] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)


class _User(msgspec.Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class _Status(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: _User = _User()
    allowed: bool = False
    denied: bool = False


class _Review(msgspec.Struct, frozen=True):
    status: _Status


_REVIEW = msgspec.json.Decoder(_Review)


class ReviewApi:
    """TokenReview and SubjectAccessReview. timeout_seconds: for one request."""

    def __init__(self, transport: Transport, *, timeout_seconds: float) -> None:
        self._transport = transport
        self._timeout_seconds = timeout_seconds

    async def user_of(self, token: str, audiences: Sequence[str] = ()) -> User | None:
        """Return whose token this is, None where it is nobody's. Raises KubeError."""
        spec: dict[str, Any] = {"token": token} | ({"audiences": list(audiences)} if audiences else {})
        status = await self._review("authentication.k8s.io", "TokenReview", "tokenreviews", spec)
        user = status.user
        if not status.authenticated:
            return None
        return User(user.username, user.uid, tuple(user.groups or ()), dict(user.extra or {}))

    async def may(self, user: User, verb: str, path: str) -> bool:
        """Say whether RBAC lets a user do something with a path that is no resource (``get``, ``/status``). Raises KubeError."""
        spec = {
            "user": user.name,
            "uid": user.uid,
            "groups": list(user.groups),
            "extra": {key: list(values) for key, values in user.extra.items()},
            "nonResourceAttributes": {"path": path, "verb": verb},
        }
        status = await self._review("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews", spec)
        return status.allowed and not status.denied

    async def _review(self, group: str, kind: str, plural: str, spec: dict[str, Any]) -> _Status:
        reply = await self._transport.request(
            "POST",
            f"/apis/{group}/v1/{plural}",
            body={"apiVersion": f"{group}/v1", "kind": kind, "spec": spec},
            timeout_seconds=self._timeout_seconds,
        )
        reply.require("create", f"{plural}.{group}")
        try:
            return _REVIEW.decode(reply.body).status
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise KubeUnavailable(f"the {kind} cannot be read: {error}") from error
