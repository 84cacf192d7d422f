"""Broken kubeconfigs: each is answered by a sentence that names the file or the entry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from rebalancer.errors import KubeConfigError
from rebalancer.kube.config import find_access

EXEC = {"command": "echo", "apiVersion": "client.authentication.k8s.io/v1"}


def a_kubeconfig(*, server: Any = "https://127.0.0.1:1", user: Any = None, cluster: Any = None, **top: Any) -> str:
    """Return a kubeconfig with one of everything."""
    return yaml.safe_dump(
        {
            "current-context": "c",
            "clusters": [{"name": "k", "cluster": {"server": server, **(cluster or {})}}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "users": [{"name": "u", "user": user or {}}],
            **top,
        }
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("", "no current-context", id="empty"),
        pytest.param("- a", "not a kubeconfig", id="a list"),
        pytest.param("hello", "not a kubeconfig", id="a word"),
        pytest.param("a: \0", "not YAML", id="a NUL"),
        pytest.param("a: é".encode("latin-1"), "not YAML", id="Latin-1"),
        pytest.param(bytes(range(128, 256)), "not YAML", id="garbage"),
        pytest.param("a: " + "[" * 5000, "nested too deeply", id="deep"),
        pytest.param(a_kubeconfig(**{"current-context": "x"}), "no context 'x'", id="unknown context"),
        pytest.param(a_kubeconfig(clusters=None), "cluster 'k', which is not there", id="no clusters"),
        pytest.param(a_kubeconfig(clusters={"a": 1}), "not a kubeconfig", id="clusters as a map"),
        pytest.param(a_kubeconfig(users=[5]), "entry of users", id="a number as user"),
        pytest.param(a_kubeconfig(users=[]), "user 'u', which is not there", id="no users"),
        *(
            pytest.param(a_kubeconfig(server=server), "no usable server URL", id=f"server {server!r}")
            for server in ("", "hello", 5, "https://", "https://[::1", "https://h:99999", "https://a b", "ftp://h", "//h")
        ),
        *(
            pytest.param(a_kubeconfig(cluster={"proxy-url": proxy}), "no usable proxy-url", id=f"proxy {proxy!r}")
            for proxy in ("junk", "socks5://127.0.0.1:1080", "http://")
        ),
        pytest.param(a_kubeconfig(user={"auth-provider": {"name": "azure"}}), "'azure' is not supported", id="auth provider"),
        pytest.param(
            a_kubeconfig(user={"exec": {"command": "x"}}), "needs a command and an apiVersion", id="exec without version"
        ),
        pytest.param(a_kubeconfig(user={"exec": {**EXEC, "args": "hi"}}), "args of exec", id="exec args"),
        pytest.param(a_kubeconfig(user={"exec": {**EXEC, "env": [{"x": 1}]}}), "env of exec", id="exec env without a name"),
        pytest.param(a_kubeconfig(user={"exec": {**EXEC, "env": "abc"}}), "env of exec", id="exec env as text"),
        pytest.param(
            a_kubeconfig(user={"exec": {**EXEC, "provideClusterInfo": True}}, cluster={"certificate-authority": "/nowhere/ca"}),
            "/nowhere/ca cannot be read",
            id="exec and a missing authority",
        ),
    ],
)
def test_a_broken_kubeconfig_is_a_sentence(text: str | bytes, words: str, tmp_path: Path) -> None:
    """Nothing but KubeConfigError leaves, and it says what is wrong where."""
    path = tmp_path / "config"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(KubeConfigError, match=words) as caught:
        find_access(kubeconfig=str(path), environment={})
    assert str(tmp_path) in str(caught.value)


def test_a_proxy_variable_that_is_no_url_is_named(tmp_path: Path) -> None:
    """The environment's proxy is checked like the kubeconfig's."""
    path = tmp_path / "config"
    path.write_text(a_kubeconfig())
    with pytest.raises(KubeConfigError, match="HTTPS_PROXY"):
        find_access(kubeconfig=str(path), environment={"HTTPS_PROXY": "junk"})
