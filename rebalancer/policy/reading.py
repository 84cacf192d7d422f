"""Policy documents of every version to one Policy: finds out what a document is and has it read.

Text or plain values enter, ``Loaded`` leaves. The versions themselves are in ``v1alpha1`` and ``v1alpha2``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rebalancer.errors import Mistake, PolicyError
from rebalancer.parse.arguments import shown
from rebalancer.parse.spelling import nearest_name
from rebalancer.policy.findings import Findings
from rebalancer.policy.policy import API_VERSION, KIND, Policy
from rebalancer.policy.text import values_of_text
from rebalancer.policy.v1alpha1 import read_v1alpha1
from rebalancer.policy.v1alpha2 import TOP_LEVEL_NAMES, read_v1alpha2

_OLD_API_VERSION = "descheduler/v1alpha1"


@dataclass(frozen=True, slots=True)
class Loaded:
    """A policy that was read.

    warnings: sentences about what is allowed but odd, deprecated, or means something else than it once did.
    converted: True where the document was of an older version.
    """

    policy: Policy
    warnings: tuple[str, ...] = ()
    converted: bool = False


def load(document: Mapping[str, Any] | str | bytes, *, source: str) -> Loaded:
    """Read a policy from a document: its text (YAML or JSON) or its plain values.

    A ConfigMap that holds one policy is read as that policy. source: what to call the document in messages.
    Raises PolicyError with every mistake at once; an empty document, or one that says nothing of what it is, is one.
    """
    values = values_of_text(document, source=source) if isinstance(document, str | bytes) else document
    if values is None or values == {}:
        raise PolicyError(source, [Mistake("document", "must be a DeschedulerPolicy, and is empty")])
    if not isinstance(values, Mapping):
        raise PolicyError(source, [Mistake("document", f"must be a map, not {shown(values)}")])
    findings = Findings()
    if values.get("kind") == "ConfigMap":
        values, source = _of_config_map(values, source)
        findings.warn("", f"the policy was taken out of a ConfigMap: {source}")
    version = _version(values, findings)
    read = {API_VERSION: read_v1alpha2, _OLD_API_VERSION: read_v1alpha1}.get(version or "")
    if read is None:
        # What can be said without knowing the version is said at once, too.
        findings.refuse_unknown(values, (*TOP_LEVEL_NAMES, "strategies"), "")
    policy = read(values, findings) if read else None
    if policy is None or findings.mistakes:
        raise PolicyError(source, findings.mistakes)
    return Loaded(policy, tuple(dict.fromkeys(findings.warnings)), converted=version == _OLD_API_VERSION)


def _version(values: Mapping[str, Any], findings: Findings) -> str | None:
    """Return the document's version where it is one that can be read; note what is wrong with its header."""
    kind, version = values.get("kind"), values.get("apiVersion")
    known = (API_VERSION, _OLD_API_VERSION)
    if kind != KIND:
        near = nearest_name(kind, (KIND,)) if isinstance(kind, str) else None
        findings.refuse("kind", f"must be {KIND}" + ("" if kind is None else f", not {shown(kind)}"), near)
    if version not in known:
        near = nearest_name(version, known) if isinstance(version, str) else None
        found = "" if version is None else f", not {shown(version)}"
        findings.refuse("apiVersion", f"must be {API_VERSION} (or {_OLD_API_VERSION}){found}", near)
        return None
    return str(version)


def _of_config_map(values: Mapping[str, Any], source: str) -> tuple[Mapping[str, Any], str]:
    """Return the one policy that a ConfigMap holds, and what to call it."""
    data = values.get("data")
    found = []
    for key, text in data.items() if isinstance(data, Mapping) else ():
        inner = values_of_text(text, source=f"{source}: data[{key}]") if isinstance(text, str) else None
        if isinstance(inner, Mapping) and inner.get("kind") == KIND:
            found.append((inner, f"{source}: data[{key}]"))
    if len(found) != 1:
        expected = f"a ConfigMap must hold one {KIND}, not {len(found)}"
        raise PolicyError(source, [Mistake("data", expected)])
    return found[0]
