"""Finding the API server: every place that is looked at, and every mistake in words."""

from __future__ import annotations

import base64
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from rebalancer.errors import KubeConfigError
from rebalancer.kube.config import Access, find_access, from_kubeconfig
from rebalancer.kube.credentials import ExecPlugin, TokenFile
from tests.kube.scripted import Clock


def a_kubeconfig(path: Path, *, user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, **more: Any) -> Path:
    """A kubeconfig with one context, ``c``."""
    document = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "apps"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://example.test:6443/"} | (cluster or {})}],
        "users": [{"name": "u", "user": user or {}}],
    } | more
    path.write_text(yaml.safe_dump(document))
    return path


def access(path: Path | str, context: str | None = None) -> Access:
    """Read a kubeconfig with a clean environment."""
    return from_kubeconfig(str(path), context, environment={}, clock=Clock(), wall_clock=Clock())


async def test_a_kubeconfig_gives_server_namespace_and_token(tmp_path: Path):
    """The slash at the end of the server is dropped, a newline in the token too."""
    found = access(a_kubeconfig(tmp_path / "config", user={"token": "secret\n"}))
    assert (found.server, found.namespace) == ("https://example.test:6443", "apps")
    assert await found.credentials.authorization() == "Bearer secret"


async def test_of_several_files_the_first_to_name_something_wins(tmp_path: Path):
    """As kubectl merges them, and a file that does not exist is left out."""
    first = a_kubeconfig(tmp_path / "one", user={"token": "first"})
    second = a_kubeconfig(tmp_path / "two", user={"token": "second"}, **{"current-context": "d"})
    joined = os.pathsep.join([str(first), str(tmp_path / "none"), str(second)])
    assert await access(joined).credentials.authorization() == "Bearer first"


def test_relative_paths_start_at_their_file(tmp_path: Path):
    """Certificates lie beside the kubeconfig that names them; data wins over a path."""
    data = base64.b64encode(b"PEM").decode()
    found = access(
        a_kubeconfig(
            tmp_path / "config",
            cluster={"certificate-authority": "ca.crt", "tls-server-name": "kubernetes", "insecure-skip-tls-verify": True},
            user={"client-certificate-data": data, "client-certificate": "x", "client-key": "key.pem"},
        )
    )
    assert (found.ca, found.certificate, found.key) == (tmp_path / "ca.crt", b"PEM", tmp_path / "key.pem")
    assert (found.server_name, found.verify) == ("kubernetes", False)


async def test_basic_authentication_is_understood(tmp_path: Path):
    """Old clusters still have it."""
    found = access(a_kubeconfig(tmp_path / "config", user={"username": "me", "password": "it"}))
    assert await found.credentials.authorization() == "Basic " + base64.b64encode(b"me:it").decode()


@pytest.mark.parametrize(
    ("content", "context", "words"),
    [
        pytest.param("a: [", None, "is not YAML", id="not-yaml"),
        pytest.param("- 1", None, "is not a kubeconfig", id="a-list"),
        pytest.param("", None, "no current-context", id="empty"),
        pytest.param("current-context: d", None, "no context 'd' (there is: none)", id="context-missing"),
        pytest.param(
            "contexts: [{name: c, context: {cluster: k}}]", "c", "names the cluster 'k', which is not there", id="cluster-missing"
        ),
        pytest.param(
            "contexts: [{name: c, context: {cluster: k}}]\nclusters: [{name: k, cluster: {server: 'x:1'}}]",
            "c",
            "no usable server URL",
            id="server-without-scheme",
        ),
        pytest.param(
            "contexts: [{name: c, context: {cluster: k, user: u}}]\nclusters: [{name: k, cluster: {server: 'https://x'}}]",
            "c",
            "names the user 'u', which is not there",
            id="user-missing",
        ),
        pytest.param(
            "contexts: [{name: c, context: {cluster: k, user: u}}]\nclusters: [{name: k, cluster: {server: 'https://x'}}]\n"
            "users: [{name: u, user: {auth-provider: {name: azure}}}]",
            "c",
            "the auth provider 'azure' is not supported",
            id="auth-provider-unknown",
        ),
        pytest.param("contexts: [{context: {}}]", None, "an entry of contexts has no name", id="entry-without-name"),
    ],
)
def test_mistakes_in_a_kubeconfig_are_said_in_words(tmp_path: Path, content: str, context: str | None, words: str):
    """The file and what is wrong in it, never a traceback."""
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(KubeConfigError) as caught:
        access(path, context)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


def test_without_any_cluster_it_says_where_it_looked(tmp_path: Path):
    """All four places are named."""
    with pytest.raises(KubeConfigError) as caught:
        find_access(environment={"HOME": str(tmp_path)})
    for place in (
        "no kubeconfig was named",
        "KUBECONFIG is not set",
        str(tmp_path / ".kube" / "config"),
        "KUBERNETES_SERVICE_HOST",
    ):
        assert place in str(caught.value)


def a_service_account(directory: Path) -> Path:
    """What a pod finds mounted."""
    for name, content in (("token", "pod-token\n"), ("ca.crt", "PEM"), ("namespace", "tools\n")):
        (directory / name).write_text(content)
    return directory


async def test_a_pod_uses_its_service_account(tmp_path: Path):
    """Address from the environment (IPv6 in brackets), token and authority from files."""
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    found = find_access(environment=environment, service_account=a_service_account(tmp_path), clock=Clock())
    assert (found.server, found.namespace, found.ca) == ("https://[fd00::1]:443", "tools", tmp_path / "ca.crt")
    assert await found.credentials.authorization() == "Bearer pod-token"


def test_a_pod_without_a_token_is_told_so(tmp_path: Path):
    """The usual reason is named."""
    with pytest.raises(KubeConfigError, match="automountServiceAccountToken"):
        find_access(environment={"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, service_account=tmp_path)


def test_a_kubeconfig_that_is_named_wins_over_the_pod(tmp_path: Path):
    """Somebody who names a file means it."""
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBECONFIG": str(a_kubeconfig(tmp_path / "config"))}
    assert find_access(environment=environment).server == "https://example.test:6443"


@pytest.mark.parametrize(
    ("environment", "proxy"),
    [
        pytest.param({"HTTPS_PROXY": "http://proxy:3128"}, "http://proxy:3128", id="used"),
        pytest.param({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": ".test"}, None, id="excepted"),
        pytest.param({"HTTP_PROXY": "http://proxy:3128"}, None, id="other-scheme"),
    ],
)
def test_the_environments_proxy_is_used(tmp_path: Path, environment: dict[str, str], proxy: str | None):
    """HTTPS_PROXY and NO_PROXY mean what they mean everywhere."""
    path = a_kubeconfig(tmp_path / "config")
    assert from_kubeconfig(str(path), environment=environment).proxy == proxy


async def test_a_token_file_is_read_again_after_a_minute(tmp_path: Path):
    """The kubelet rotates it; while it cannot be read, the last good token stays in use."""
    path, clock = tmp_path / "token", Clock()
    path.write_text("one")
    credentials = TokenFile(path, clock)
    assert await credentials.authorization() == "Bearer one"
    path.write_text("two")
    clock.now += 59.0
    assert await credentials.authorization() == "Bearer one"
    clock.now += 1.0
    assert await credentials.authorization() == "Bearer two"
    path.unlink()
    clock.now += 60.0
    assert await credentials.authorization() == "Bearer two"


async def test_a_token_file_that_is_empty_or_missing_is_an_error_at_first(tmp_path: Path):
    """There is nothing to go on with."""
    for content in (None, "\n"):
        path = tmp_path / "token"
        if content is not None:
            path.write_text(content)
        with pytest.raises(KubeConfigError, match="token file"):
            await TokenFile(path, Clock()).authorization()


PLUGIN = """
import json, os, pathlib, sys
count = pathlib.Path(sys.argv[1]); n = int(count.read_text() or 0) + 1; count.write_text(str(n))
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
if n == int(os.environ.get("FAIL_AT", 0)): sys.exit("no luck")
server = info["spec"].get("cluster", {}).get("server", "none")
print(json.dumps({"apiVersion": info["apiVersion"], "kind": "ExecCredential",
    "status": {"token": f"{server}-{n}", "expirationTimestamp": "1970-01-01T01:00:00Z"}}))
"""


def a_plugin(tmp_path: Path, clock: Clock, fail_at: int = 0) -> tuple[Access, Path]:
    """A kubeconfig whose user has a credential plugin that counts its calls."""
    script, count = tmp_path / "plugin.py", tmp_path / "count"
    script.write_text(PLUGIN)
    count.write_text("")
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": [str(script), str(count)],
        "env": [{"name": "FAIL_AT", "value": str(fail_at)}],
        "provideClusterInfo": True,
    }
    path = a_kubeconfig(tmp_path / "config", user={"exec": plugin}, cluster={"server": "https://s"})
    return from_kubeconfig(str(path), environment={}, clock=clock, wall_clock=clock), count


async def test_a_plugin_runs_again_before_its_token_expires(tmp_path: Path):
    """The client library runs it once; here a token that ends within a minute is renewed, and so is one that was refused."""
    clock = Clock(0.0)
    found, _ = a_plugin(tmp_path, clock)
    assert await found.credentials.authorization() == "Bearer https://s-1"
    clock.now = 3500.0
    assert await found.credentials.authorization() == "Bearer https://s-1"
    clock.now = 3545.0
    assert await found.credentials.authorization() == "Bearer https://s-2"
    clock.now = 10.0
    found.credentials.forget()
    assert await found.credentials.authorization() == "Bearer https://s-3"


async def test_a_plugin_that_fails_leaves_the_token_in_use_while_it_is_good(tmp_path: Path):
    """It fails for good only once the token has expired, in words with what it printed."""
    clock = Clock(0.0)
    found, _ = a_plugin(tmp_path, clock, fail_at=2)
    await found.credentials.authorization()
    clock.now = 3550.0
    assert await found.credentials.authorization() == "Bearer https://s-1"

    found, _ = a_plugin(tmp_path, clock, fail_at=1)
    with pytest.raises(KubeConfigError, match="no luck"):
        await found.credentials.authorization()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        pytest.param("print('{')", "did not print an ExecCredential", id="not-json"),
        pytest.param("import time; time.sleep(30)", "did not end within", id="hangs"),
        pytest.param('print(\'{"apiVersion": "v9", "status": {}}\')', "printed a v9 credential", id="other-version"),
        pytest.param('print(\'{"apiVersion": "v1", "status": {}}\')', "neither a token nor a certificate", id="nothing-useful"),
    ],
)
async def test_a_plugin_that_misbehaves_is_named(code: str, words: str):
    """Whatever it does, it ends in words and never hangs the program."""
    plugin = ExecPlugin([sys.executable, "-c", code], {}, "v1", None, Clock(), timeout_seconds=1.0)
    with pytest.raises(KubeConfigError, match=words):
        await plugin.authorization()


async def test_a_plugin_that_is_not_there_is_named():
    """A missing program is the most common mistake of all."""
    with pytest.raises(KubeConfigError, match="cannot be started"):
        await ExecPlugin(["/nowhere/plugin"], {}, "v1", None, Clock()).authorization()


async def test_a_plugin_may_give_a_certificate():
    """The certificate and its key are used for the connection."""
    body = '{"apiVersion": "v1", "status": {"clientCertificateData": "C", "clientKeyData": "K"}}'
    plugin = ExecPlugin([sys.executable, "-c", f"print('{body}')"], {}, "v1", None, Clock())
    assert await plugin.authorization() is None
    pair = plugin.key_pair()
    assert pair is not None
    assert (pair.certificate, pair.key) == (b"C", b"K")
