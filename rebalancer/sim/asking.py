"""Questions that are posted and answered at once: who am I, may I, is this token good.

Source: https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access
"""

from __future__ import annotations

from typing import Any

from rebalancer.sim.access import Access, Ask, Tokens, User
from rebalancer.sim.binding import bind
from rebalancer.sim.bodies import body_of
from rebalancer.sim.kinds import Kind
from rebalancer.sim.registry import Registry
from rebalancer.sim.requests import Answer, Request, json_answer
from rebalancer.sim.routing import Route


def answer(registry: Registry, tokens: Tokens, access: Access, user: User, kind: Kind, asked: Route, request: Request) -> Answer:
    """Answer a question. Raises ApiProblem."""
    value = dict(body_of(request, kind.kind) or {})
    spec = dict(value.get("spec") or {})
    if kind.kind == "Binding":
        metadata = value.get("metadata") or {}
        bind(registry, asked.namespace or "", metadata.get("name", ""), value)
        return json_answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)
    if kind.kind == "SelfSubjectReview":
        status: dict[str, Any] = {"userInfo": _user_info(user)}
    elif kind.kind == "TokenReview":
        found = tokens.user_of_token(spec.get("token", ""))
        status = {"authenticated": True, "user": _user_info(found)} if found else {"error": "[invalid bearer token]"}
    elif kind.kind == "SelfSubjectRulesReview":
        status = _rules(access, user, spec.get("namespace", ""))
    else:
        who = user
        if not kind.kind.startswith("Self"):
            who = User(spec.get("user", ""), frozenset(spec.get("groups") or ()))
        status = _verdict(access, who, spec)
    body = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": {}, "spec": spec, "status": status}
    if kind.kind == "SelfSubjectReview":
        del body["spec"]
        body["metadata"] = {"creationTimestamp": registry.now()}
    return json_answer(body, 201)


def _user_info(user: User) -> dict[str, Any]:
    info: dict[str, Any] = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    return {**info, "groups": sorted(user.groups)}


def _verdict(access: Access, user: User, spec: dict[str, Any]) -> dict[str, Any]:
    if path := spec.get("nonResourceAttributes"):
        ask = Ask(path.get("verb", ""), path=path.get("path", ""))
    else:
        wanted = spec.get("resourceAttributes") or {}
        resource = wanted.get("resource", "")
        if wanted.get("subresource"):
            resource = f"{resource}/{wanted['subresource']}"
        ask = Ask(wanted.get("verb", ""), wanted.get("group", ""), resource, wanted.get("namespace", ""), wanted.get("name", ""))
    allowed = access.allows(user, ask)
    return {"allowed": True} if allowed else {"allowed": False}


def _rules(access: Access, user: User, namespace: str) -> dict[str, Any]:
    resources = []
    if "system:masters" in user.groups:
        resources.append({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]})
    for rule in access.rules(user, namespace):
        if rule.get("resources"):
            names = ("verbs", "apiGroups", "resources", "resourceNames")
            resources.append({name: rule[name] for name in names if rule.get(name)})
    return {"resourceRules": resources, "nonResourceRules": [], "incomplete": False}
