"""Who asks, and whether they may: bearer tokens, RBAC from the stored Role objects, and a record of what was asked.

Sources: https://kubernetes.io/docs/reference/access-authn-authz/rbac/ and
https://kubernetes.io/docs/reference/access-authn-authz/authentication/
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson

from rebalancer.sim.history import Object
from rebalancer.sim.moments import Clock
from rebalancer.sim.problems import ApiProblem, forbidden, unauthorized
from rebalancer.sim.routing import Route
from rebalancer.sim.store import Store

_RBAC = "rbac.authorization.k8s.io"
_MASTERS = "system:masters"
_AUTHENTICATED = "system:authenticated"
_OPEN_PATHS = ("/healthz", "/livez", "/readyz", "/version")
_SELF_ASKED = frozenset({"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"})
_DISCOVERY = ("/api", "/apis", "/openapi", "/healthz", "/livez", "/readyz", "/version")


@dataclass(frozen=True, slots=True)
class User:
    """Who asks. name, uid, groups: as a TokenReview would say."""

    name: str
    groups: frozenset[str] = frozenset()
    uid: str = ""


ADMIN = User("admin", frozenset({_MASTERS, _AUTHENTICATED}))
WEAK = User("weak", frozenset({_AUTHENTICATED}))
ANONYMOUS = User("system:anonymous", frozenset({"system:unauthenticated"}))


@dataclass(frozen=True, slots=True)
class Ask:
    """One thing that may be allowed: a verb on a resource (``pods/eviction``), or on a path that is no resource."""

    verb: str
    group: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


def ask_of(route: Route) -> Ask:
    """Return what a request needs permission for."""
    if not route.resource_path:
        return Ask(route.verb, path=route.path)
    resource = f"{route.plural}/{route.subresource}" if route.subresource else route.plural
    namespace = (route.namespace or "") if route.plural != "namespaces" else route.name or route.namespace or ""
    return Ask(route.verb, route.group, resource, namespace, route.name)


class Tokens:
    """Bearer tokens and whom they stand for. ServiceAccount tokens expire."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._users: dict[str, tuple[User, datetime | None]] = {"admin-token": (ADMIN, None), "weak-token": (WEAK, None)}

    def user_of(self, header: str) -> User:
        """Return who sends an Authorization header. Raises ApiProblem 401."""
        if not header:
            return ANONYMOUS
        scheme, _, token = header.partition(" ")
        user = self.user_of_token(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise unauthorized()
        return user

    def user_of_token(self, token: str) -> User | None:
        """Return whom a token stands for, or None."""
        found = self._users.get(token)
        if found is None or (found[1] is not None and found[1] <= self._clock()):
            return None
        return found[0]

    def add(self, token: str, user: User) -> None:
        """Let a token stand for a user, for ever."""
        self._users[token] = (user, None)

    def revoke(self, token: str) -> None:
        """Forget a token; requests with it are answered 401."""
        self._users.pop(token, None)

    def issue(self, namespace: str, account: Object, seconds: int, nonce: str) -> tuple[str, datetime]:
        """Return a new token for a ServiceAccount and when it ends. It has the outer form of a JWT."""
        name, uid = account["metadata"]["name"], account["metadata"]["uid"]
        end = self._clock() + timedelta(seconds=seconds)
        subject = f"system:serviceaccount:{namespace}:{name}"
        claims = {"sub": subject, "exp": int(end.timestamp()), "jti": nonce, "aud": ["https://kubernetes.default.svc"]}
        parts = (orjson.dumps({"alg": "RS256"}), orjson.dumps(claims), nonce.encode())
        token = ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
        groups = frozenset({"system:serviceaccounts", f"system:serviceaccounts:{namespace}", _AUTHENTICATED})
        self._users[token] = (User(subject, groups, uid), end)
        return token, end


class Access:
    """Decides by RBAC. asked: how often each user asked for what, for tests of a chart's Role."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.asked: Counter[tuple[str, str, str, str]] = Counter()

    def check(self, user: User, route: Route) -> None:
        """Raise ApiProblem 403 unless the user may do what a request asks."""
        ask = ask_of(route)
        self.asked[user.name, ask.verb, ask.group, ask.resource or ask.path] += 1
        if not self.allows(user, ask):
            raise refusal(user, ask)

    def acting_as(self, user: User, name: str, groups: tuple[str, ...]) -> User:
        """Return whom a user impersonates; itself where no name is given. Raises ApiProblem 403."""
        if not name:
            return user
        ask = Ask("impersonate", resource="users", name=name)
        if not self.allows(user, ask):
            raise refusal(user, ask)
        implied = {_AUTHENTICATED}
        if name.startswith("system:serviceaccount:"):
            namespace = name.split(":")[2]
            implied |= {"system:serviceaccounts", f"system:serviceaccounts:{namespace}"}
        return User(name, frozenset({*groups, *implied}))

    def asked_by(self, user: str) -> set[tuple[str, str, str]]:
        """Return every (verb, group, resource or path) that a user has asked for."""
        return {(verb, group, what) for name, verb, group, what in self.asked if name == user}

    def allows(self, user: User, ask: Ask) -> bool:
        """Say whether a user may."""
        if _MASTERS in user.groups:
            return True
        if ask.path and any(ask.path.startswith(path) for path in _OPEN_PATHS):
            return True
        if _AUTHENTICATED in user.groups:
            if ask.path and ask.verb == "get" and any(ask.path == path or ask.path.startswith(path + "/") for path in _DISCOVERY):
                return True
            if ask.resource in _SELF_ASKED and ask.verb == "create":
                return True
        return any(_grants(rule, ask) for rule in self.rules(user, ask.namespace))

    def rules(self, user: User, namespace: str) -> Iterable[Mapping[str, Any]]:
        """Yield the rules that hold for a user in a namespace (empty: cluster-wide)."""
        for binding in self._store.objects(f"clusterrolebindings.{_RBAC}"):
            if _binds(binding, user):
                yield from self._role_rules(binding, "")
        if namespace:
            for binding in self._store.objects(f"rolebindings.{_RBAC}", namespace):
                if _binds(binding, user):
                    yield from self._role_rules(binding, namespace)

    def _role_rules(self, binding: Object, namespace: str) -> Iterable[Mapping[str, Any]]:
        reference = binding["roleRef"]
        if reference.get("kind") == "ClusterRole":
            role = self._store.get(f"clusterroles.{_RBAC}", "", reference["name"])
        else:
            role = self._store.get(f"roles.{_RBAC}", namespace, reference["name"])
        return (role or {}).get("rules") or ()


def refusal(user: User, ask: Ask) -> ApiProblem:
    """Return the 403 for something that a user may not do."""
    if ask.path:
        why = f'User "{user.name}" cannot {ask.verb} path "{ask.path}"'
        return ApiProblem(403, f"forbidden: {why}", "Forbidden", {})
    scope = f' in the namespace "{ask.namespace}"' if ask.namespace else " at the cluster scope"
    why = f'User "{user.name}" cannot {ask.verb} resource "{ask.resource}" in API group "{ask.group}"{scope}'
    return forbidden(ask.group, ask.resource.partition("/")[0], ask.name, why)


def _binds(binding: Object, user: User) -> bool:
    for subject in binding.get("subjects") or ():
        kind, name = subject.get("kind"), subject.get("name", "")
        if (kind == "User" and name == user.name) or (kind == "Group" and name in user.groups):
            return True
        if kind == "ServiceAccount":
            namespace = subject.get("namespace") or binding["metadata"].get("namespace", "")
            if user.name == f"system:serviceaccount:{namespace}:{name}":
                return True
    return False


def _grants(rule: Mapping[str, Any], ask: Ask) -> bool:
    if not _has(rule.get("verbs"), ask.verb):
        return False
    if ask.path:
        paths = rule.get("nonResourceURLs") or ()
        return any(path in {"*", ask.path} or (path.endswith("*") and ask.path.startswith(path[:-1])) for path in paths)
    if not _has(rule.get("apiGroups"), ask.group):
        return False
    resources = rule.get("resources") or ()
    subresource = ask.resource.partition("/")[2]
    if not (_has(resources, ask.resource) or (subresource and f"*/{subresource}" in resources)):
        return False
    names = rule.get("resourceNames")
    return not names or ask.name in names


def _has(values: Any, wanted: str) -> bool:
    return bool(values) and ("*" in values or wanted in values)
