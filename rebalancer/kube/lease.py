"""Read and write one Lease with optimistic concurrency. Who holds it and for how long is decided elsewhere."""

from __future__ import annotations

from math import ceil
from typing import Any

import msgspec

from rebalancer.errors import KubeUnavailable
from rebalancer.kube.moment import micro_time, read_time
from rebalancer.kube.reply import Reply
from rebalancer.kube.transport import Transport
from rebalancer.model.lease import LeaseRecord


class _Spec(msgspec.Struct, frozen=True):
    holderIdentity: str | None = None  # noqa: N815
    leaseDurationSeconds: float | None = None  # noqa: N815
    acquireTime: str | None = None  # noqa: N815
    renewTime: str | None = None  # noqa: N815
    leaseTransitions: int | None = None  # noqa: N815


class _Lease(msgspec.Struct, frozen=True):
    metadata: dict[str, Any]
    spec: _Spec = _Spec()


_LEASE = msgspec.json.Decoder(_Lease)


class LeaseApi:
    """One Lease.

    timeout_seconds: for one request; it has to be well below what the election allows for a renewal.
    """

    def __init__(self, transport: Transport, namespace: str, name: str, *, timeout_seconds: float) -> None:
        self._transport = transport
        self._namespace = namespace
        self._name = name
        self._timeout_seconds = timeout_seconds
        self._metadata: dict[str, Any] = {}
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"

    async def read(self) -> LeaseRecord | None:
        """Return the Lease, None where there is none. Raises KubeError."""
        reply = await self._request("GET", f"{self._collection}/{self._name}", None)
        return None if reply.status == 404 else self._record(reply.require("get", "leases.coordination.k8s.io"))

    async def write(self, record: LeaseRecord) -> LeaseRecord | None:
        """Create the Lease (empty version) or replace it if it still has this version; None where somebody else was faster.

        Raises KubeError; the write may have happened then.
        """
        metadata: dict[str, Any] = {"name": self._name, "namespace": self._namespace}
        if record.version:
            # Labels and owners that others have put there stay.
            if self._metadata.get("resourceVersion") == record.version:
                metadata = {key: value for key, value in self._metadata.items() if key != "managedFields"} | metadata
            metadata["resourceVersion"] = record.version
        metadata["annotations"] = dict(record.annotations)
        spec: dict[str, Any] = {
            "holderIdentity": record.holder,
            # A whole number of seconds, rounded up: nobody may think that it has run out before its holder does.
            "leaseDurationSeconds": max(1, ceil(record.duration_seconds)),
            "leaseTransitions": record.transitions,
        }
        if record.acquired_at:
            spec["acquireTime"] = micro_time(record.acquired_at)
        if record.renewed_at:
            spec["renewTime"] = micro_time(record.renewed_at)
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
        if record.version:
            reply = await self._request("PUT", f"{self._collection}/{self._name}", body)
            # Deleted in between: somebody else was faster, too.
            return None if reply.status in (404, 409) else self._record(reply.require("update", "leases.coordination.k8s.io"))
        reply = await self._request("POST", self._collection, body)
        return None if reply.status == 409 else self._record(reply.require("create", "leases.coordination.k8s.io"))

    async def release(self, record: LeaseRecord, now: float) -> LeaseRecord | None:
        """Give the Lease up at once, so that another replica need not wait. now: seconds since the epoch. Raises KubeError."""
        return await self.write(
            LeaseRecord("", 1.0, record.acquired_at, now, record.transitions, record.version, record.annotations)
        )

    async def _request(self, method: str, path: str, body: dict[str, Any] | None) -> Reply:
        return await self._transport.request(method, path, body=body, timeout_seconds=self._timeout_seconds)

    def _record(self, reply: Reply) -> LeaseRecord:
        try:
            lease = _LEASE.decode(reply.body)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise KubeUnavailable(f"the Lease {self._namespace}/{self._name} cannot be read: {error}") from error
        spec = lease.spec
        self._metadata = lease.metadata
        return LeaseRecord(
            holder=spec.holderIdentity or "",
            duration_seconds=spec.leaseDurationSeconds or 0.0,
            acquired_at=read_time(spec.acquireTime),
            renewed_at=read_time(spec.renewTime),
            transitions=spec.leaseTransitions or 0,
            version=str(lease.metadata.get("resourceVersion") or ""),
            annotations=lease.metadata.get("annotations") or {},
        )
