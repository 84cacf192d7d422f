"""One reply of the API server, and the only place where its status becomes an exception."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from rebalancer.errors import KubeError, KubeForbidden, KubeUnavailable, WatchExpired


class Cause(msgspec.Struct, frozen=True, gc=False):
    """One cause in a Status: a stable reason, and words."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, frozen=True, gc=False):
    """The details of a Status: the object it is about, its causes, and how long to wait."""

    kind: str = ""
    name: str = ""
    causes: list[Cause] | None = None
    retryAfterSeconds: float | None = None  # noqa: N815 (the API's own name)


class Status(msgspec.Struct, frozen=True, gc=False):
    """A ``meta/v1`` Status: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/."""

    kind: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: Details | None = None

    def has_cause(self, reason: str) -> bool:
        """Say whether a cause with this reason is given."""
        return self.details is not None and any(cause.reason == reason for cause in self.details.causes or ())


_STATUS = msgspec.json.Decoder(Status)


def decode_status(body: bytes | msgspec.Raw) -> Status | None:
    """Return the Status in a body; None where it is something else (a proxy's HTML page, say)."""
    try:
        status = _STATUS.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return status if status.kind == "Status" else None


@dataclass(frozen=True, slots=True)
class Reply:
    """Status, headers (their names in lower case) and body of one response."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    @property
    def ok(self) -> bool:
        """It is a success."""
        return 200 <= self.status <= 299

    @property
    def detail(self) -> Status | None:
        """The Status in the body, None where there is none."""
        return decode_status(self.body)

    @property
    def retry_after_seconds(self) -> float | None:
        """How long the server asks us to wait, from the header or the Status; None where it says nothing usable."""
        header = self.headers.get("retry-after", "").strip()
        if header.isascii() and header.isdigit():
            return float(header)
        detail = self.detail
        return detail.details.retryAfterSeconds if detail and detail.details else None

    def words(self) -> str:
        """Return what the server said in one line: the Status message, or the status code and the start of the body."""
        detail = self.detail
        if detail and detail.message:
            return detail.message
        start = " ".join(self.body[:200].decode(errors="replace").split())
        return f"HTTP {self.status}" + (f": {start}" if start else "")

    def require(self, verb: str, resource: str) -> Reply:
        """Return this reply if it is a success, and raise what it stands for otherwise.

        verb, resource: what was asked for, as a Role would name it (``list``, ``poddisruptionbudgets.policy``).
        Raises KubeForbidden (403), WatchExpired (410), KubeUnavailable (what invites a retry), KubeError (the rest).
        """
        if not self.ok:
            raise self.error(verb, resource)
        return self

    def error(self, verb: str, resource: str) -> KubeError:
        """Return the exception that a reply without success stands for."""
        words = f"cannot {verb} {resource}: {self.words()}"
        if self.status == 403:
            return KubeForbidden(words, verb, resource)
        if self.status == 410:
            return WatchExpired(words)
        if self.status in (401, 408, 425, 429) or self.status >= 500:
            return KubeUnavailable(words, self.retry_after_seconds)
        return KubeError(words)
