"""Requests on resources, answered: who may, which rule, in which form.

What enters: a Request. What leaves: an Answer, or for a watch the open Watch. HTTP itself is in ``server``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import ClassVar

from rebalancer.sim import asking, metrics, subresources
from rebalancer.sim.access import Access, Tokens, User
from rebalancer.sim.applying import apply_object
from rebalancer.sim.bodies import body_of, delete_options, intent_of, patch_of
from rebalancer.sim.decoding import read_object
from rebalancer.sim.deletion import delete
from rebalancer.sim.event_views import shown, to_core
from rebalancer.sim.history import Object
from rebalancer.sim.kinds import Kind
from rebalancer.sim.listing import ListOptions, Page, list_objects, open_watch
from rebalancer.sim.patching import APPLY_YAML, check_media_type, patch_object
from rebalancer.sim.paths import PathAnswers
from rebalancer.sim.problems import ApiProblem, method_not_allowed, no_such_resource
from rebalancer.sim.registry import Registry
from rebalancer.sim.requests import Answer, Form, Request, json_answer, problem_answer, text_answer
from rebalancer.sim.routing import Route, route
from rebalancer.sim.tables import partial, table
from rebalancer.sim.watching import Watch


class Front:
    """The API server without its sockets.

    tokens, access: who is who and who may what. paths: answers for paths that are no resources.
    """

    def __init__(self, registry: Registry, tokens: Tokens, access: Access, paths: PathAnswers) -> None:
        self.registry = registry
        self.tokens = tokens
        self.access = access
        self.paths = paths

    def answer(self, request: Request) -> Answer | OpenWatch:
        """Answer a request. Never raises ApiProblem."""
        try:
            user = self.tokens.user_of(request.authorization)
            user = self.access.acting_as(user, request.impersonated_user, request.impersonated_groups)
            asked = route(request.method, request.path, request.query)
            self.access.check(user, asked)
            if not asked.resource_path:
                return self.paths.answer(request)
            if asked.group == metrics.GROUP and self.paths.metrics:
                return metrics.answer(self.registry, asked)
            return self._resource(user, asked, request)
        except ApiProblem as problem:
            return problem_answer(problem)

    def _resource(self, user: User, asked: Route, request: Request) -> Answer | OpenWatch:
        kind = asked.kind
        if not asked.served:
            return text_answer("404 page not found\n", 404)
        if kind is None:
            raise no_such_resource()
        if asked.subresource:
            if asked.subresource not in kind.subresources:
                raise no_such_resource()
            return subresources.answer(self.registry, self.tokens, kind, asked, request)
        if asked.verb not in kind.verbs:
            raise method_not_allowed(asked.verb, kind.plural)
        if kind.asked_only:
            return asking.answer(self.registry, self.tokens, self.access, user, kind, asked, request)
        if asked.verb == "watch":
            return self._watch(kind, asked, request)
        return self._VERBS[asked.verb](self, kind, asked, request)

    def _list(self, kind: Kind, asked: Route, request: Request) -> Answer:
        form = request.form
        page = list_objects(self.registry.store, kind, _space(kind, asked), ListOptions.of(request.query))
        return json_answer(self.listed(kind, page, form, request))

    def listed(self, kind: Kind, page: Page, form: Form, request: Request) -> Object:
        """Return the body of a list in the wanted form."""
        items = [shown(kind, obj) for obj in page.items]
        if form is Form.TABLE:
            include = request.query.get("includeObject", "Metadata")
            return table(kind, items, page.metadata, self.registry.clock(), include)
        if form is Form.METADATA:
            head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
            return {**head, "metadata": page.metadata, "items": [partial(obj) for obj in items]}
        bare = [{name: value for name, value in obj.items() if name not in {"kind", "apiVersion"}} for obj in items]
        return {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": page.metadata, "items": bare}

    def _watch(self, kind: Kind, asked: Route, request: Request) -> OpenWatch:
        form = request.form
        options = ListOptions.of(request.query)
        if asked.name:
            options = _only(options, asked.name)
        try:
            return OpenWatch(kind, options, form, request, open_watch(self.registry.store, kind, _space(kind, asked), options))
        except ApiProblem as problem:
            if problem.code != 410:
                raise
            return OpenWatch(kind, options, form, request, None, problem)

    def _get(self, kind: Kind, asked: Route, request: Request) -> Answer:
        form = request.form
        obj = shown(kind, self.registry.get(kind, asked.namespace or "", asked.name))
        return self._single(kind, obj, form, request)

    def _single(
        self, kind: Kind, obj: Object, form: Form, request: Request, status: int = 200, warnings: list[str] | None = None
    ) -> Answer:
        if form is Form.TABLE and obj.get("kind") != "Status":
            metadata = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
            include = request.query.get("includeObject", "Metadata")
            return json_answer(table(kind, [obj], metadata, self.registry.clock(), include), status, warnings)
        if form is Form.METADATA and obj.get("kind") != "Status":
            return json_answer(partial(obj), status, warnings)
        return json_answer(obj, status, warnings)

    def _create(self, kind: Kind, asked: Route, request: Request) -> Answer:
        if asked.name:
            raise method_not_allowed(asked.verb, kind.plural)
        form = request.form
        value = body_of(request, kind.kind)
        obj, warnings = read_object(kind, value, request.body, request.strictness)
        if kind.stored_as:
            obj = to_core(obj)
        obj = self.registry.create_read(kind, asked.namespace or "", obj, dry_run=request.dry_run, manager=request.manager)
        return self._single(kind, shown(kind, obj), form, request, 201, warnings)

    def _update(self, kind: Kind, asked: Route, request: Request) -> Answer:
        form = request.form
        value = body_of(request, kind.kind)
        obj, warnings = read_object(kind, value, request.body, request.strictness)
        if kind.stored_as:
            obj = to_core(obj)
        obj, created = self.registry.replace_read(kind, asked.namespace or "", asked.name, obj, dry_run=request.dry_run)
        return self._single(kind, shown(kind, obj), form, request, 201 if created else 200, warnings)

    def _patch(self, kind: Kind, asked: Route, request: Request) -> Answer:
        form = request.form
        media = request.content_type.partition(";")[0].strip()
        check_media_type(media)
        if media == APPLY_YAML:
            return self._apply(kind, asked, request)
        obj, warnings = patch_object(
            self.registry,
            kind,
            asked.namespace or "",
            asked.name,
            patch_of(request),
            media,
            dry_run=request.dry_run,
            strictness=request.strictness,
            manager=request.manager,
        )
        return self._single(kind, shown(kind, obj), form, request, 200, warnings)

    def _apply(self, kind: Kind, asked: Route, request: Request) -> Answer:
        obj, created, warnings = apply_object(
            self.registry,
            kind,
            asked.namespace or "",
            asked.name,
            intent_of(request),
            request.query.get("fieldManager", ""),
            force=request.query.get("force", "") in {"true", "1"},
            dry_run=request.dry_run,
            strictness=request.strictness,
        )
        return self._single(kind, obj, request.form, request, 201 if created else 200, warnings)

    def _delete(self, kind: Kind, asked: Route, request: Request) -> Answer:
        form = request.form
        deleted = delete(self.registry, kind, asked.namespace or "", asked.name, delete_options(request))
        return self._single(kind, shown(kind, deleted.body(kind)), form, request)

    def _delete_all(self, kind: Kind, asked: Route, request: Request) -> Answer:
        page = list_objects(self.registry.store, kind, _space(kind, asked), ListOptions.of(request.query))
        options = delete_options(request)
        for obj in page.items:
            metadata = obj["metadata"]
            delete(self.registry, kind, metadata.get("namespace", ""), metadata["name"], options)
        return json_answer(self.listed(kind, page, Form.WHOLE, request))

    _VERBS: ClassVar[Mapping[str, Callable[[Front, Kind, Route, Request], Answer]]] = MappingProxyType(
        {
            "list": _list,
            "get": _get,
            "create": _create,
            "update": _update,
            "patch": _patch,
            "delete": _delete,
            "deletecollection": _delete_all,
        }
    )


class OpenWatch:
    """An answer that goes on: a watch, or the reason why it ends at once."""

    def __init__(
        self,
        kind: Kind,
        options: ListOptions,
        form: Form,
        request: Request,
        watch: Watch | None,
        problem: ApiProblem | None = None,
    ) -> None:
        self.kind = kind
        self.options = options
        self.form = form
        self.request = request
        self.watch = watch
        self.problem = problem


def _space(kind: Kind, asked: Route) -> str | None:
    return asked.namespace if kind.namespaced else None


def _only(options: ListOptions, name: str) -> ListOptions:
    fields = f"{options.fields},metadata.name={name}" if options.fields else f"metadata.name={name}"
    return ListOptions(
        options.labels,
        fields,
        options.version,
        options.match,
        options.limit,
        options.token,
        options.watch,
        options.bookmarks,
        options.initial,
        options.timeout_seconds,
    )
