"""Where the API server is and how it is reached: in-cluster, or a kubeconfig and one of its contexts.

Enters: environment, files. Leaves: Access, or a KubeConfigError in words. Files are merged as kubectl does it:
https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/#merging-kubeconfig-files
"""

from __future__ import annotations

import base64
import binascii
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

import yaml
from kubernetes_asyncio.config.kube_config import KubeConfigLoader

from rebalancer.errors import KubeConfigError
from rebalancer.kube.credentials import AuthProvider, Credentials, ExecPlugin, Fixed, TokenFile

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

Pem: TypeAlias = Path | bytes
"""A file that may be rotated, or its content."""


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach one API server.

    server: URL without a slash at the end. ca: None means the system's authorities.
    certificate, key: of the client, from files or the kubeconfig. verify: False accepts any certificate.
    strict: X.509 is checked as strictly as Python 3.13 does (``False`` for old in-house authorities).
    server_name: the name expected in the certificate, where it is not the host's. proxy: URL, or None.
    namespace: the one to use where none is said. source: where all this was found, in words.
    """

    server: str
    credentials: Credentials
    source: str
    ca: Pem | None = None
    certificate: Pem | None = None
    key: Pem | None = None
    verify: bool = True
    strict: bool = True
    server_name: str | None = None
    proxy: str | None = None
    namespace: str = "default"


def find_access(
    *,
    kubeconfig: str | None = None,
    context: str | None = None,
    environment: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
    clock: Callable[[], float] = time.monotonic,
    wall_clock: Callable[[], float] = time.time,
) -> Access:
    """Return the way to the API server: a kubeconfig that was named, KUBECONFIG, the pod's service account, ~/.kube/config.

    kubeconfig: path, or several with the system's separator. context: None means the current one.
    Raises KubeConfigError that says what was looked for.
    """
    named = kubeconfig or environment.get("KUBECONFIG")
    if named:
        return from_kubeconfig(named, context, environment=environment, clock=clock, wall_clock=wall_clock)
    if environment.get("KUBERNETES_SERVICE_HOST") and context is None:
        return in_cluster(environment, service_account, clock)
    default = Path(environment.get("HOME") or Path.home()) / ".kube" / "config"
    if default.exists():
        return from_kubeconfig(str(default), context, environment=environment, clock=clock, wall_clock=wall_clock)
    raise KubeConfigError(
        f"no cluster to talk to: no kubeconfig was named, KUBECONFIG is not set, {default} does not exist, "
        "and this process does not run in a pod (KUBERNETES_SERVICE_HOST is not set)"
    )


def in_cluster(environment: Mapping[str, str], service_account: Path, clock: Callable[[], float]) -> Access:
    """Return the way that a pod has: its service account's token and authority. Raises KubeConfigError."""
    host = environment.get("KUBERNETES_SERVICE_HOST", "")
    port = environment.get("KUBERNETES_SERVICE_PORT", "443") or "443"
    if not host:
        raise KubeConfigError("this process does not run in a pod: KUBERNETES_SERVICE_HOST is not set")
    for name in ("token", "ca.crt"):
        if not (service_account / name).is_file():
            raise KubeConfigError(f"{service_account / name} does not exist: is automountServiceAccountToken off?")
    try:
        namespace = (service_account / "namespace").read_text().strip()
    except OSError:
        namespace = ""
    server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    return Access(
        server=server,
        credentials=TokenFile(service_account / "token", clock),
        source=f"the pod's service account in {service_account}",
        ca=service_account / "ca.crt",
        proxy=_environment_proxy(server, environment),
        namespace=namespace or "default",
    )


@dataclass(frozen=True, slots=True)
class _Entry:
    """One named entry, and the directory that its relative paths start from."""

    name: str
    body: Mapping[str, Any]
    base: Path

    def path(self, key: str) -> Path | None:
        value = self.body.get(key)
        return self.base / os.path.expanduser(str(value)) if value else None

    def pem(self, key: str) -> Pem | None:
        data = self.body.get(f"{key}-data")
        if data:
            try:
                return base64.b64decode(str(data), validate=False)
            except (binascii.Error, ValueError) as error:
                raise KubeConfigError(f"{self.name}: {key}-data is not base64") from error
        return self.path(key)


def from_kubeconfig(
    paths: str,
    context: str | None = None,
    *,
    environment: Mapping[str, str] = os.environ,
    clock: Callable[[], float] = time.monotonic,
    wall_clock: Callable[[], float] = time.time,
) -> Access:
    """Return the way that a kubeconfig describes. Of several files the first to name something wins. Raises KubeConfigError."""
    current, entries = _merge(paths)
    chosen = context or current
    if not chosen:
        raise KubeConfigError(f"{paths}: there is no current-context, and no context was named")
    found = entries["contexts"].get(chosen)
    if found is None:
        known = ", ".join(sorted(entries["contexts"])) or "none"
        raise KubeConfigError(f"{paths}: there is no context {chosen!r} (there is: {known})")
    cluster_name, user_name = str(found.body.get("cluster") or ""), str(found.body.get("user") or "")
    cluster = entries["clusters"].get(cluster_name)
    if cluster is None:
        raise KubeConfigError(f"{paths}: context {chosen!r} names the cluster {cluster_name!r}, which is not there")
    server = str(cluster.body.get("server") or "").rstrip("/")
    if not _is_usable(server):
        raise KubeConfigError(f"{paths}: cluster {cluster_name!r} has no usable server URL ({server!r})")
    user = entries["users"].get(user_name, _Entry(user_name, {}, Path()))
    if user_name and user_name not in entries["users"]:
        raise KubeConfigError(f"{paths}: context {chosen!r} names the user {user_name!r}, which is not there")
    proxy = str(cluster.body.get("proxy-url") or "")
    if proxy and not _is_usable(proxy):
        raise KubeConfigError(
            f"{paths}: cluster {cluster_name!r} has no usable proxy-url ({proxy!r}): http and https are supported"
        )
    return Access(
        server=server,
        credentials=_credentials(user, cluster, clock, wall_clock),
        source=f"context {chosen!r} of {paths}",
        ca=cluster.pem("certificate-authority"),
        certificate=user.pem("client-certificate"),
        key=user.pem("client-key"),
        verify=not cluster.body.get("insecure-skip-tls-verify"),
        server_name=str(cluster.body["tls-server-name"]) if cluster.body.get("tls-server-name") else None,
        proxy=proxy or _environment_proxy(server, environment),
        namespace=str(found.body.get("namespace") or "default"),
    )


def _is_usable(url: str) -> bool:
    """Tell whether a URL has a scheme that is spoken here, a host, and a port that exists."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and not set(url) & set(" \t\r\n")
    except ValueError:
        return False


def _merge(paths: str) -> tuple[str, dict[str, dict[str, _Entry]]]:
    current = ""
    entries: dict[str, dict[str, _Entry]] = {"clusters": {}, "contexts": {}, "users": {}}
    files = [Path(os.path.expanduser(each)) for each in paths.split(os.pathsep) if each]
    existing = [path for path in files if path.exists()]
    if not existing:
        raise KubeConfigError(f"no kubeconfig: {' and '.join(map(str, files)) or 'no path'} does not exist")
    for path in existing:
        document = _document(path)
        current = current or str(document.get("current-context") or "")
        for section, inner in (("clusters", "cluster"), ("contexts", "context"), ("users", "user")):
            for item in document.get(section) or ():
                if not isinstance(item, Mapping) or not item.get("name") or not isinstance(item.get(inner) or {}, Mapping):
                    raise KubeConfigError(f"{path}: an entry of {section} has no name or no {inner}")
                name = str(item["name"])
                entry = _Entry(f"{path}: {inner} {name!r}", item.get(inner) or {}, path.parent.absolute())
                entries[section].setdefault(name, entry)
    return current, entries


def _document(path: Path) -> Mapping[str, Any]:
    try:
        document = yaml.safe_load(path.read_bytes())
    except OSError as error:
        raise KubeConfigError(f"{path} cannot be read: {error.strerror or error}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise KubeConfigError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    except RecursionError:
        raise KubeConfigError(f"{path} is nested too deeply") from None
    if document is None:
        return {}
    if not isinstance(document, Mapping) or not all(
        isinstance(document.get(section) or [], list) for section in ("clusters", "contexts", "users")
    ):
        raise KubeConfigError(f"{path} is not a kubeconfig")
    return document


def _credentials(user: _Entry, cluster: _Entry, clock: Callable[[], float], wall_clock: Callable[[], float]) -> Credentials:
    body = user.body
    if isinstance(provider := body.get("auth-provider"), Mapping):
        return _auth_provider(user, provider, clock)
    if isinstance(plugin := body.get("exec"), Mapping):
        return _exec_plugin(user, plugin, cluster, wall_clock)
    if token_file := user.path("tokenFile"):
        return TokenFile(token_file, clock)
    if token := str(body.get("token") or "").strip():
        return Fixed(f"Bearer {token}")
    if body.get("username") and body.get("password") is not None:
        pair = f"{body['username']}:{body['password']}".encode()
        return Fixed(f"Basic {base64.b64encode(pair).decode()}")
    return Fixed(None)


def _exec_plugin(user: _Entry, plugin: Mapping[str, Any], cluster: _Entry, wall_clock: Callable[[], float]) -> ExecPlugin:
    command, version = str(plugin.get("command") or ""), str(plugin.get("apiVersion") or "")
    if not command or not version:
        raise KubeConfigError(f"{user.name}: exec needs a command and an apiVersion")
    if os.sep in command:  # a path is relative to the kubeconfig, a bare name is looked up in PATH
        command = str(user.base / command)
    arguments, variables = plugin.get("args") or [], plugin.get("env") or []
    if not isinstance(arguments, list):
        raise KubeConfigError(f"{user.name}: args of exec must be a list")
    if not isinstance(variables, list) or not all(isinstance(each, Mapping) and each.get("name") for each in variables):
        raise KubeConfigError(f"{user.name}: env of exec must be a list of name and value")
    environment = {str(each["name"]): str(each.get("value") or "") for each in variables}
    described: dict[str, Any] | None = None
    if plugin.get("provideClusterInfo"):
        ca = cluster.pem("certificate-authority")
        described = {"server": cluster.body.get("server")}
        if ca is not None:
            try:
                content = ca if isinstance(ca, bytes) else ca.read_bytes()
            except OSError as error:
                raise KubeConfigError(f"{cluster.name}: {ca!s} cannot be read: {error.strerror or error}") from error
            described["certificate-authority-data"] = base64.b64encode(content).decode()
        for key in ("insecure-skip-tls-verify", "tls-server-name", "proxy-url"):
            if cluster.body.get(key):
                described[key] = cluster.body[key]
    return ExecPlugin([command, *map(str, arguments)], environment, version, described, wall_clock)


def _auth_provider(user: _Entry, provider: Mapping[str, Any], clock: Callable[[], float]) -> AuthProvider:
    name = provider.get("name")
    if name not in ("oidc", "gcp"):
        raise KubeConfigError(f"{user.name}: the auth provider {name!r} is not supported (oidc and gcp are)")
    # The loader knows one user of one cluster, and no file: what it renews stays in memory.
    loader = KubeConfigLoader(
        {
            "current-context": "it",
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            "clusters": [{"name": "it", "cluster": {"server": "https://unused"}}],
            "users": [{"name": "it", "user": dict(user.body)}],
        }
    )
    return AuthProvider(loader.load_gcp_token if name == "gcp" else loader._load_oid_token, clock)


def _environment_proxy(server: str, environment: Mapping[str, str]) -> str | None:
    """Return the proxy that HTTPS_PROXY and NO_PROXY prescribe for a server. Raises KubeConfigError for an unusable one."""
    if environment is not os.environ:
        lowered = {name.lower(): value for name, value in environment.items()}
        proxies = {name.removesuffix("_proxy"): value for name, value in lowered.items() if name.endswith("_proxy") and value}
    else:
        proxies = getproxies_environment()
    parts = urlsplit(server)
    if not parts.hostname or proxy_bypass_environment(parts.hostname, proxies):
        return None
    proxy = proxies.get(parts.scheme)
    if proxy and not _is_usable(proxy):
        raise KubeConfigError(f"{parts.scheme.upper()}_PROXY names no usable proxy ({proxy!r}): http and https are supported")
    return proxy
