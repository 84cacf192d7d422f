"""What the program consists of besides itself: every package that it needs at run time, with version and licence.

``python -m deploy.packages`` prints a CycloneDX document (https://cyclonedx.org/docs/1.6/json/). What the program itself needs
is read from pyproject.toml, all else from the metadata of what is installed; equal installations give equal documents.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rebalancer import __version__

PROGRAM = "rebalancer"
PROJECT = Path(__file__).parent.parent / "pyproject.toml"
# Trove classifiers and free texts of packages that do not state an SPDX expression yet.
_SPDX = {
    "apache": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license version 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd 3-clause": "BSD-3-Clause",
    "bsd 3-clause license": "BSD-3-Clause",
    "bsd license": "BSD-3-Clause",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
}


@dataclass(frozen=True, slots=True)
class Package:
    """One installed package. licence: an SPDX expression, empty where none can be made out. needs: names of others."""

    name: str
    version: str
    licence: str
    needs: tuple[str, ...]

    @property
    def purl(self) -> str:
        """Its package URL."""
        return f"pkg:pypi/{self.name}@{self.version}"


def packages() -> dict[str, Package]:
    """Return the program and all that it needs at run time, extras that are not asked for left out, by name."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    waiting = list(_needs(project["dependencies"], frozenset()))
    found = {PROGRAM: Package(PROGRAM, __version__, project["license"], tuple(sorted(name for name, _ in waiting)))}
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        wanted = waiting.pop()
        if wanted in seen:
            continue
        seen.add(wanted)
        name, extras = wanted
        try:
            installed = distribution(name)
        except PackageNotFoundError as error:
            raise PackageNotFoundError(f"{name} is needed and not installed") from error
        needs = list(_needs(installed.requires or (), extras))
        known = found[name].needs if name in found else ()
        names = tuple(sorted({*known, *(need for need, _ in needs)}))
        found[name] = Package(name, installed.version, licence(installed), names)
        waiting += needs
    return dict(sorted(found.items()))


def licence(installed: Distribution) -> str:
    """Return the licence that a package states, as an SPDX expression; empty where it states none that is known."""
    metadata = installed.metadata
    stated = [text for field in ("License-Expression", "License") for text in metadata.get_all(field) or ()]
    stated += [each.rsplit(" :: ", 1)[1] for each in metadata.get_all("Classifier") or () if each.startswith("License :: ")]
    for text in stated:
        words = " ".join(text.split())
        if not words or len(words) > 100:
            # Some put the whole text there.
            continue
        if spdx := _SPDX.get(re.sub(r"[,\"']|^the ", "", words.lower())):
            return spdx
        try:
            return canonicalize_license_expression(words)
        except InvalidLicenseExpression:
            continue
    return ""


def document(found: Iterable[Package]) -> dict[str, Any]:
    """Return the bill of materials. Its serial number follows from what it says."""
    parts = sorted(found, key=lambda package: package.name)
    (root,) = [each for each in parts if each.name == PROGRAM]
    body: dict[str, Any] = {
        "metadata": {"component": _component(root, "application")},
        "components": [_component(each, "library") for each in parts if each is not root],
        "dependencies": [
            {"ref": each.purl, "dependsOn": [other.purl for other in parts if other.name in each.needs]} for each in parts
        ],
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    head = {"bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": f"urn:uuid:{serial}", "version": 1}
    return head | body


def main() -> None:
    """Print the document."""
    json.dump(document(packages().values()), sys.stdout, indent=2, ensure_ascii=False)


def _needs(requirements: Iterable[str], extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    for line in requirements:
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield canonicalize_name(requirement.name), frozenset(requirement.extras)


def _component(package: Package, kind: str) -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": kind,
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        "purl": package.purl,
    }
    if package.licence:
        component["licenses"] = [{"expression": package.licence}]
    return component


if __name__ == "__main__":
    main()
