"""One small text in a ConfigMap, so that it outlives the process."""

from __future__ import annotations

from typing import Any

import msgspec

from rebalancer.errors import KubeUnavailable
from rebalancer.kube.reply import Reply
from rebalancer.kube.transport import Transport

KEY = "state"


class _Metadata(msgspec.Struct, frozen=True):
    resourceVersion: str = ""  # noqa: N815 (the API's own name)


class _ConfigMap(msgspec.Struct, frozen=True):
    metadata: _Metadata
    data: dict[str, str] | None = None


_CONFIG_MAP = msgspec.json.Decoder(_ConfigMap)


class StateApi:
    """One key of one ConfigMap; its other keys are left alone. timeout_seconds: for one request."""

    def __init__(self, transport: Transport, namespace: str, name: str, *, timeout_seconds: float, key: str = KEY) -> None:
        self._transport = transport
        self._namespace = namespace
        self._name = name
        self._key = key
        self._timeout_seconds = timeout_seconds
        self._collection = f"/api/v1/namespaces/{namespace}/configmaps"

    async def read(self) -> tuple[str, str]:
        """Return the text and its version, both empty where there is no ConfigMap yet. Raises KubeError."""
        reply = await self._transport.request("GET", f"{self._collection}/{self._name}", timeout_seconds=self._timeout_seconds)
        if reply.status == 404:
            return "", ""
        found = self._decoded(reply.require("get", "configmaps"))
        return (found.data or {}).get(self._key, ""), found.metadata.resourceVersion

    async def write(self, text: str, version: str) -> str | None:
        """Write the text and return the new version; None where somebody else wrote since. Raises KubeError.

        version: of the text that was read; empty creates the ConfigMap.
        """
        metadata: dict[str, Any] = {"name": self._name, "namespace": self._namespace}
        body: dict[str, Any] = {"data": {self._key: text}}
        if version:
            reply = await self._transport.request(
                "PATCH",
                f"{self._collection}/{self._name}",
                body=body | {"metadata": {"resourceVersion": version}},
                content_type="application/merge-patch+json",
                timeout_seconds=self._timeout_seconds,
            )
            if reply.status in (404, 409):
                return None
            return self._decoded(reply.require("patch", "configmaps")).metadata.resourceVersion
        reply = await self._transport.request(
            "POST",
            self._collection,
            body={"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata} | body,
            timeout_seconds=self._timeout_seconds,
        )
        if reply.status == 409:
            return None
        return self._decoded(reply.require("create", "configmaps")).metadata.resourceVersion

    def _decoded(self, reply: Reply) -> _ConfigMap:
        try:
            return _CONFIG_MAP.decode(reply.body)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise KubeUnavailable(f"the ConfigMap {self._namespace}/{self._name} cannot be read: {error}") from error
