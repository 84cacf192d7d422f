"""A kubeconfig that leads kubectl and other clients to the embedded cluster."""

from __future__ import annotations

import yaml


def kubeconfig(url: str, token: str, name: str = "embedded") -> str:
    """Return the text of a kubeconfig for a server and a bearer token.

    The token is also in the server's address, because kubectl sends none over plain HTTP.
    """
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": f"{url}/as/{token}"}}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}],
        "current-context": name,
    }
    return yaml.safe_dump(document, sort_keys=False)
