"""Where real load could be read, as a policy says it. Parsed and checked; nothing reads real load yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from rebalancer.parse.argument_types import choice
from rebalancer.parse.arguments import Arguments, refusal, shown

KUBERNETES_METRICS = "KubernetesMetrics"
PROMETHEUS = "Prometheus"


def _address(given: str) -> str:
    """Refuse an address that cannot be read; the scheme is not looked at, as upstream does not."""
    try:
        parts = urlsplit(given)
        _ = parts.port
    except ValueError as error:
        raise refusal(f"must be an address such as https://prometheus.example:9090, not {shown(given)}") from error
    if not given or any(character.isspace() for character in given):
        raise refusal(f"must be an address such as https://prometheus.example:9090, not {shown(given)}")
    return given


class SecretReference(Arguments):
    """The Secret that holds a token under the key prometheusAuthToken."""

    namespace: str = Field(min_length=1, description="Namespace of the Secret.")
    name: str = Field(min_length=1, description="Name of the Secret.")


class AuthToken(Arguments):
    """How to show who asks."""

    secret_reference: SecretReference = Field(description="The Secret with the token.")


class PrometheusProvider(Arguments):
    """A Prometheus server."""

    url: Annotated[str, AfterValidator(_address)] = Field(description="Address of the server.")
    auth_token: AuthToken | None = Field(None, description="A token; that of the service account where not given.")


class MetricsProvider(Arguments):
    """One source of real load."""

    source: Annotated[str, choice(KUBERNETES_METRICS, PROMETHEUS)] = Field(description="KubernetesMetrics or Prometheus.")
    prometheus: PrometheusProvider | None = Field(None, description="Needed where source is Prometheus.")

    def rules(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Refuse Prometheus without its address."""
        if self.source == PROMETHEUS and self.prometheus is None:
            yield ("source", "prometheus"), "prometheus is required where source is Prometheus"


class MetricsCollector(Arguments):
    """The old way to ask for the metrics server."""

    enabled: bool = Field(False, description="Deprecated: write a metricsProviders entry with source KubernetesMetrics.")
