"""What hangs below an object: status, scale, eviction, binding, token, log, finalize."""

from __future__ import annotations

from typing import Any

from rebalancer.sim.access import Tokens
from rebalancer.sim.applying import apply_object
from rebalancer.sim.binding import bind
from rebalancer.sim.bodies import body_of, intent_of, patch_of
from rebalancer.sim.decoding import read_object, read_typed
from rebalancer.sim.eviction import evict
from rebalancer.sim.kinds import SUBRESOURCES, Kind
from rebalancer.sim.moments import stamp
from rebalancer.sim.patching import APPLY_YAML, check_media_type, patch_object
from rebalancer.sim.problems import method_not_allowed
from rebalancer.sim.registry import Registry
from rebalancer.sim.requests import Answer, Request, json_answer, text_answer
from rebalancer.sim.routing import Route
from rebalancer.sim.scaling import patch_scale, scale_of, set_scale

_DEFAULT_TOKEN_SECONDS = 3600
_MIN_TOKEN_SECONDS = 600


def answer(registry: Registry, tokens: Tokens, kind: Kind, asked: Route, request: Request) -> Answer:
    """Answer a request on a subresource. Raises ApiProblem."""
    if asked.verb not in SUBRESOURCES[asked.subresource].verbs:
        raise method_not_allowed(asked.verb, kind.plural)
    name, namespace = asked.name, asked.namespace or ""
    match asked.subresource:
        case "eviction":
            body = _eviction(request)
            return json_answer(evict(registry, namespace, name, body, request.dry_run), 201)
        case "binding":
            bind(registry, namespace, name, body_of(request, "Binding"))
            return json_answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)
        case "scale":
            return _scale(registry, kind, asked, request)
        case "token":
            return _token(registry, tokens, kind, asked, request)
        case "log":
            registry.get(kind, namespace, name)
            return text_answer("")
        case "finalize":
            obj, _ = read_object(kind, body_of(request, kind.kind), request.body, request.strictness)
            return json_answer(registry.replace_read(kind, namespace, name, obj, dry_run=request.dry_run)[0])
        case _:
            return _part(registry, kind, asked, request)


def _eviction(request: Request) -> dict[str, Any]:
    value = body_of(request, "Eviction")
    read, _ = read_typed("Eviction", "v1", "policy.v1.Eviction", value, request.strictness)
    return dict(read)


def _part(registry: Registry, kind: Kind, asked: Route, request: Request) -> Answer:
    """Status, and the parts of a pod that have their own path."""
    name, namespace = asked.name, asked.namespace or ""
    subresource = asked.subresource if asked.subresource == "status" else ""
    if asked.verb == "get":
        return json_answer(registry.get(kind, namespace, name))
    if asked.verb == "update":
        obj, warnings = read_object(kind, body_of(request, kind.kind), request.body, request.strictness)
        obj, _ = registry.replace_read(kind, namespace, name, obj, subresource=subresource, dry_run=request.dry_run)
        return json_answer(obj, 200, warnings)
    media = request.content_type.partition(";")[0].strip()
    check_media_type(media)
    if media == APPLY_YAML:
        obj, created, warnings = apply_object(
            registry,
            kind,
            namespace,
            name,
            intent_of(request),
            request.query.get("fieldManager", ""),
            force=request.query.get("force", "") in {"true", "1"},
            dry_run=request.dry_run,
            strictness=request.strictness,
            subresource=subresource,
        )
        return json_answer(obj, 201 if created else 200, warnings)
    obj, warnings = patch_object(
        registry,
        kind,
        namespace,
        name,
        patch_of(request),
        media,
        subresource=subresource,
        dry_run=request.dry_run,
        strictness=request.strictness,
        manager=request.manager,
    )
    return json_answer(obj, 200, warnings)


def _scale(registry: Registry, kind: Kind, asked: Route, request: Request) -> Answer:
    name, namespace = asked.name, asked.namespace or ""
    if asked.verb == "get":
        return json_answer(scale_of(registry.get(kind, namespace, name)))
    if asked.verb == "update":
        value = body_of(request, "Scale")
        scale, _ = read_typed("Scale", "v1", "autoscaling.v1.Scale", value)
        return json_answer(set_scale(registry, kind, namespace, name, scale, dry_run=request.dry_run, manager=request.manager))
    media = request.content_type.partition(";")[0].strip()
    check_media_type(media)
    patch = patch_of(request)
    return json_answer(
        patch_scale(registry, kind, namespace, name, patch, media, dry_run=request.dry_run, manager=request.manager)
    )


def _token(registry: Registry, tokens: Tokens, kind: Kind, asked: Route, request: Request) -> Answer:
    account = registry.get(kind, asked.namespace or "", asked.name)
    value = body_of(request, "TokenRequest") if request.body else {}
    spec = dict(value.get("spec") or {})
    seconds = max(int(spec.get("expirationSeconds") or _DEFAULT_TOKEN_SECONDS), _MIN_TOKEN_SECONDS)
    token, end = tokens.issue(asked.namespace or "", account, seconds, registry.identities.uid())
    spec["expirationSeconds"] = seconds
    spec.setdefault("audiences", ["https://kubernetes.default.svc"])
    body = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": asked.name, "namespace": asked.namespace, "creationTimestamp": registry.now()},
        "spec": spec,
        "status": {"token": token, "expirationTimestamp": stamp(end)},
    }
    return json_answer(body, 201)
