"""A policy from environment variables alone, for those who mount no file.

``REBALANCER_STRATEGIES`` names the strategies, ``REBALANCER_STRATEGY__<NAME>__<ARG>`` their arguments (and those of
``DEFAULT_EVICTOR``), ``REBALANCER_POLICY__<KEY>`` the keys of the whole. Maps and lists are JSON. An empty value counts as
not set. The variables become a v1alpha2 document and are read as strictly as one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from rebalancer.eligibility.arguments import DefaultEvictorArgs
from rebalancer.errors import Mistake, PolicyError
from rebalancer.model.selector import LabelSelector
from rebalancer.parse.arguments import Arguments
from rebalancer.parse.spelling import nearest_name
from rebalancer.policy.policy import API_VERSION, KIND
from rebalancer.policy.reading import Loaded, load
from rebalancer.policy.v1alpha2 import EVICTOR, TopLevel
from rebalancer.strategies.arguments import CATALOGUE

STRATEGIES = "REBALANCER_STRATEGIES"
_STRATEGY = "REBALANCER_STRATEGY__"
_POLICY = "REBALANCER_POLICY__"
_SOURCE = "environment"
_PLUGIN_CONFIG = re.compile(r"profiles\[0\]\.pluginConfig\[(\d+)\]\.args(?:\.([A-Za-z]+))?")
_TOP_LEVEL = re.compile(r"([A-Za-z]+)")
_ENABLED = re.compile(r"profiles\[0\]\.plugins\.[a-z]+(\.enabled\[\d+\])?")


def is_policy_variable(name: str) -> bool:
    """Tell whether a variable is about the policy, and so is none of the settings."""
    return name == STRATEGIES or name.startswith((_STRATEGY, _POLICY))


def policy_variables() -> tuple[str, ...]:
    """Return every variable that a policy can be made of."""
    names = [STRATEGIES, *(f"{_POLICY}{name.upper()}" for name in TopLevel.model_fields)]
    for plugin, model in _models().items():
        names += [f"{_STRATEGY}{_snake(plugin)}__{name.upper()}" for name in model.model_fields]
    return tuple(names)


def nearest_policy_variable(name: str) -> str | None:
    """Return the variable that a misspelt one most likely stood for, judged part by part."""
    if name.startswith(_POLICY):
        key = nearest_name(name.removeprefix(_POLICY), [field.upper() for field in TopLevel.model_fields])
        return _POLICY + key if key else None
    plugin, _, argument = name.removeprefix(_STRATEGY).partition("__")
    models = {_snake(plugin): model for plugin, model in _models().items()}
    near = nearest_name(plugin, models)
    key = nearest_name(argument, [field.upper() for field in models[near].model_fields]) if near else None
    return f"{_STRATEGY}{near}__{key}" if key else None


def from_environment(environ: Mapping[str, str]) -> Loaded | None:
    """Return the policy that the variables describe, or None where there is none among them.

    Raises PolicyError with every mistake at once, each under the name of its variable.
    """
    given = {name: value for name, value in sorted(environ.items()) if is_policy_variable(name) and value.strip()}
    if not given:
        return None
    mistakes: list[Mistake] = []
    arguments: dict[str, dict[str, Any]] = {}
    document: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND}
    plugins = {_snake(plugin): plugin for plugin in _models()}
    top = {field.upper(): field for field in TopLevel.model_fields}
    for name, value in given.items():
        if name == STRATEGIES:
            continue
        if name.startswith(_POLICY):
            field = top.get(name.removeprefix(_POLICY))
            if field is not None:
                document[str(TopLevel.model_fields[field].alias)] = _value(TopLevel, field, value)
                continue
        else:
            plugin_name, _, argument = name.removeprefix(_STRATEGY).partition("__")
            plugin = plugins.get(plugin_name)
            model = _models()[plugin] if plugin else None
            if plugin and model and argument.lower() in model.model_fields and argument.isupper():
                alias = str(model.model_fields[argument.lower()].alias)
                arguments.setdefault(plugin, {})[alias] = _value(model, argument.lower(), value)
                continue
        mistakes.append(Mistake(name, "is not a variable of a policy", nearest_policy_variable(name)))
    enabled = _enabled(given.get(STRATEGIES, ""), mistakes)
    config = [{"name": name, "args": arguments.get(name, {})} for name in dict.fromkeys((*enabled, *arguments))]
    places = {point: [name for name in enabled if point in CATALOGUE[name].extension_points] for point in _points()}
    plugins_section = {point: {"enabled": names} for point, names in places.items() if names}
    document["profiles"] = [{"name": "default", "pluginConfig": config, "plugins": plugins_section}]
    configured = [str(item["name"]) for item in config]
    try:
        loaded = load(document, source=_SOURCE)
    except PolicyError as error:
        mistakes += [_renamed(mistake, configured) for mistake in error.mistakes]
        raise PolicyError(_SOURCE, mistakes) from error
    if mistakes:
        raise PolicyError(_SOURCE, mistakes)
    return Loaded(loaded.policy, tuple(_renamed_text(warning, configured) for warning in loaded.warnings))


def _enabled(text: str, mistakes: list[Mistake]) -> list[str]:
    """Return the strategies named in a list, separated by commas or as JSON."""
    names = _list(text)
    if not names:
        mistakes.append(Mistake(STRATEGIES, "must name at least one strategy, as in RemoveDuplicates,LowNodeUtilization"))
    mistakes += [
        Mistake(STRATEGIES, f"{name!r} is not a strategy", nearest_name(name, CATALOGUE))
        for name in names
        if name not in CATALOGUE
    ]
    return [name for name in dict.fromkeys(names) if name in CATALOGUE]


def _list(text: str) -> list[str]:
    if text.lstrip().startswith("["):
        try:
            return [str(item) for item in json.loads(text)]
        except (ValueError, RecursionError):
            return [text]
    return [item.strip() for item in text.split(",") if item.strip()]


def _value(model: type[Arguments], field: str, text: str) -> Any:
    """Return the plain value of a variable: the text itself where a text is wanted, else what it is as JSON."""
    default = model.model_fields[field].default
    if isinstance(default, str | LabelSelector) and default is not None:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        # Left as text: what reads it says what it should have been.
        return text


def _renamed(mistake: Mistake, configured: list[str]) -> Mistake:
    return Mistake(_renamed_text(mistake.path, configured), mistake.expected, mistake.nearest)


def _renamed_text(text: str, configured: list[str]) -> str:
    """Put the name of a variable in the place of the path that begins a text."""
    if found := _PLUGIN_CONFIG.match(text):
        plugin = configured[int(found[1])]
        field = _field(_models()[plugin], found[2])
        return f"{_STRATEGY}{_snake(plugin)}{'__' + field if field else ''}{text[found.end() :]}"
    if found := _ENABLED.match(text):
        return STRATEGIES + text[found.end() :]
    if (found := _TOP_LEVEL.match(text)) and (field := _field(TopLevel, found[1])):
        return f"{_POLICY}{field}{text[found.end() :]}"
    return text


def _field(model: type[Arguments], alias: str | None) -> str | None:
    return next((name.upper() for name, field in model.model_fields.items() if field.alias == alias), None)


def _models() -> dict[str, type[Arguments]]:
    return {EVICTOR: DefaultEvictorArgs, **{name: entry.args for name, entry in CATALOGUE.items()}}


def _points() -> tuple[str, ...]:
    return ("deschedule", "balance")


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()
