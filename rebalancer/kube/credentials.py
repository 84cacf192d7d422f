"""What proves to the API server who we are: a fixed secret, a token file that is rotated, an exec plugin, an auth provider.

The client library reads a token file once and never runs a plugin again
(https://github.com/tomplus/kubernetes_asyncio/issues/253); here every kind of credentials renews itself.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from rebalancer.errors import KubeConfigError

TOKEN_PERIOD_SECONDS = 60.0
"""How long a token read from a file is used before the file is read again; the kubelet rotates at 80 % of its life."""

PLUGIN_TIMEOUT_SECONDS = 60.0
EXPIRY_MARGIN_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A client certificate and its key, PEM."""

    certificate: bytes
    key: bytes


class Credentials(Protocol):
    """Proves who we are."""

    async def authorization(self) -> str | None:
        """Return the value of the Authorization header; None where none is sent. Raises KubeConfigError."""

    def forget(self) -> None:
        """Drop what is cached: the server refused it (401)."""

    def key_pair(self) -> KeyPair | None:
        """Return a client certificate that was obtained together with the token, if any."""


class Fixed:
    """A secret that never changes; None means anonymous, or a client certificate alone."""

    def __init__(self, header: str | None) -> None:
        self._header = header

    async def authorization(self) -> str | None:
        """Return the header."""
        return self._header

    def forget(self) -> None:
        """There is nothing to read again."""

    def key_pair(self) -> KeyPair | None:
        """Return None."""
        return None


class TokenFile:
    """A bearer token in a file that somebody rotates.

    path: of the file. clock: monotonic seconds.
    Where the file cannot be read for a moment, the last good token is used.
    """

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        self._path = path
        self._clock = clock
        self._token = ""
        self._read_at = float("-inf")

    async def authorization(self) -> str | None:
        """Return the header, from a file read at most a minute ago."""
        now = self._clock()
        if now - self._read_at >= TOKEN_PERIOD_SECONDS or not self._token:
            try:
                # A newline at the end is common, and a header must not contain it.
                token = self._path.read_text().strip()
            except (OSError, UnicodeDecodeError) as error:
                if not self._token:
                    raise KubeConfigError(f"the token file {self._path} cannot be read: {error}") from error
            else:
                if token:
                    self._token, self._read_at = token, now
                elif not self._token:
                    raise KubeConfigError(f"the token file {self._path} is empty")
        return f"Bearer {self._token}"

    def forget(self) -> None:
        """Read the file again before the next request."""
        self._read_at = float("-inf")

    def key_pair(self) -> KeyPair | None:
        """Return None."""
        return None


class ExecPlugin:
    """A program that prints an ExecCredential: https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins.

    wall_clock: seconds since the epoch, to compare with the expiry that the plugin names.
    A plugin that fails while its last token is still good is asked again next time.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        api_version: str,
        cluster: Mapping[str, Any] | None,
        wall_clock: Callable[[], float],
        timeout_seconds: float = PLUGIN_TIMEOUT_SECONDS,
    ) -> None:
        self._command = tuple(command)
        self._environment = dict(environment)
        self._api_version = api_version
        self._cluster = cluster
        self._wall_clock = wall_clock
        self._timeout_seconds = timeout_seconds
        self._header: str | None = None
        self._pair: KeyPair | None = None
        self._expires_at: float | None = None
        self._known = False
        self._running: asyncio.Lock = asyncio.Lock()

    async def authorization(self) -> str | None:
        """Return the header, running the program where nothing valid is known."""
        async with self._running:
            if not self._known or self._expires_within(EXPIRY_MARGIN_SECONDS):
                try:
                    self._take(await self._run())
                except KubeConfigError:
                    if not self._known or self._expires_within(0):
                        raise
        return self._header

    def forget(self) -> None:
        """Run the program before the next request."""
        self._known = False

    def key_pair(self) -> KeyPair | None:
        """Return the certificate that the program gave, if it gave one."""
        return self._pair

    def _expires_within(self, seconds: float) -> bool:
        return self._expires_at is not None and self._wall_clock() + seconds >= self._expires_at

    def _take(self, status: Mapping[str, Any]) -> None:
        token = status.get("token")
        certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
        if not token and not (certificate and key):
            raise KubeConfigError(f"the credential plugin {self._command[0]} gave neither a token nor a certificate with its key")
        expiry = status.get("expirationTimestamp")
        try:
            expires_at = None if not expiry else datetime.fromisoformat(str(expiry)).timestamp()
        except ValueError as error:
            raise KubeConfigError(f"the credential plugin {self._command[0]} gave {expiry!r} as a time") from error
        self._header = f"Bearer {str(token).strip()}" if token else None
        self._pair = KeyPair(str(certificate).encode(), str(key).encode()) if certificate and key else None
        self._expires_at = expires_at
        self._known = True

    async def _run(self) -> Mapping[str, Any]:
        name = self._command[0]
        spec: dict[str, Any] = {"interactive": False}
        if self._cluster is not None:
            spec["cluster"] = self._cluster
        information = {"apiVersion": self._api_version, "kind": "ExecCredential", "spec": spec}
        environment = {**os.environ, **self._environment, "KUBERNETES_EXEC_INFO": json.dumps(information)}
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise KubeConfigError(f"the credential plugin {name} cannot be started: {error}") from error
        try:
            async with asyncio.timeout(self._timeout_seconds):
                output, complaint = await process.communicate()
        except TimeoutError as error:
            raise KubeConfigError(f"the credential plugin {name} did not end within {self._timeout_seconds:g} s") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            said = complaint.decode(errors="replace").strip()
            raise KubeConfigError(f"the credential plugin {name} ended with {process.returncode}: {said}")
        try:
            document = json.loads(output)
            status = document["status"]
            version = document["apiVersion"]
        except (ValueError, KeyError, TypeError) as error:
            raise KubeConfigError(f"the credential plugin {name} did not print an ExecCredential") from error
        if version != self._api_version or not isinstance(status, dict):
            raise KubeConfigError(f"the credential plugin {name} printed a {version} credential, expected {self._api_version}")
        return status


class AuthProvider:
    """The ``auth-provider`` of a kubeconfig user (oidc, gcp), renewed by the client library's own loader.

    load: returns the header; it renews what has expired.
    """

    def __init__(self, load: Callable[[], Any], clock: Callable[[], float]) -> None:
        self._load = load
        self._clock = clock
        self._header: str | None = None
        self._loaded_at = float("-inf")

    async def authorization(self) -> str | None:
        """Return the header, checked for expiry at most a minute ago."""
        now = self._clock()
        if self._header is None or now - self._loaded_at >= TOKEN_PERIOD_SECONDS:
            try:
                self._header = str(await self._load())
            except asyncio.CancelledError:
                raise
            except Exception as error:  # the loader raises whatever its provider's library raises
                if self._header is None:
                    raise KubeConfigError(f"the auth provider gave no token: {error}") from error
            self._loaded_at = now
        return self._header

    def forget(self) -> None:
        """Ask the provider again before the next request."""
        self._loaded_at = float("-inf")

    def key_pair(self) -> KeyPair | None:
        """Return None."""
        return None
