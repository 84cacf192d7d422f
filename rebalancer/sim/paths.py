"""Paths that are no resources: discovery, versions, health, OpenAPI."""

from __future__ import annotations

from rebalancer.sim import discovery, metrics, openapi
from rebalancer.sim.requests import Answer, Form, Request, aggregated_answer, json_answer, text_answer

_HEALTH = frozenset({"healthz", "livez", "readyz"})


class PathAnswers:
    """Answers what is asked on a path that is no resource.

    address: what ``/api`` tells clients to connect to. metrics: whether the metrics API is there.
    """

    def __init__(self, *, metrics: bool = False) -> None:
        self.address = "127.0.0.1:443"
        self.metrics = metrics

    def answer(self, request: Request) -> Answer:
        """Return the answer; 404 for a path that is not known."""
        parts = [part for part in request.path.split("/") if part]
        match parts:
            case []:
                return json_answer({"paths": ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/readyz", "/version"]})
            case ["version"]:
                return json_answer(discovery.VERSION)
            case [health, *_] if health in _HEALTH:
                return text_answer("ok")
            case ["api"]:
                if _wants_aggregated(request):
                    return aggregated_answer(discovery.aggregated(core=True))
                return json_answer(discovery.core_versions(self.address))
            case ["apis"]:
                if _wants_aggregated(request):
                    found_groups = discovery.aggregated(core=False)
                    if self.metrics:
                        found_groups["items"].append(metrics.AGGREGATED)
                    return aggregated_answer(found_groups)
                listed = discovery.group_list()
                if self.metrics:
                    listed["groups"].append(metrics.API_GROUP)
                return json_answer(listed)
            case ["apis", metrics.GROUP, metrics.VERSION] if self.metrics:
                return json_answer(metrics.RESOURCES)
            case ["openapi", "v3"]:
                return Answer(200, openapi.index())
            case ["openapi", "v3", *rest]:
                body = openapi.document("/".join(rest))
                return text_answer("404 page not found\n", 404) if body is None else Answer(200, body)
            case ["api", version]:
                found = discovery.resource_list("", version)
            case ["apis", group]:
                found = discovery.group_named(group)
            case ["apis", group, version]:
                found = discovery.resource_list(group, version)
            case _:
                found = None
        return text_answer("404 page not found\n", 404) if found is None else json_answer(found)


def _wants_aggregated(request: Request) -> bool:
    return request.form is Form.AGGREGATED
