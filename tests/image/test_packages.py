"""What the program consists of: few packages, each under a licence that lets everybody use and ship it, each listed."""

from __future__ import annotations

import json
import re
import tomllib

import pytest

from deploy.image import ROOT
from deploy.packages import Package, document, packages

# Licences that neither forbid a use nor reach over to the program; MPL-2.0 asks for its own files only.
ALLOWED = {
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "MIT",
    "MPL-2.0",
    "PSF-2.0",
    "Unlicense",
    "Zlib",
    "CC0-1.0",
}
# numpy's wheels carry the runtime of GCC; its exception lets programs of any licence use it.
EXCEPTIONS = {"GPL-3.0-or-later WITH GCC-exception-3.1", "GPL-3.0-only WITH GCC-exception-3.1"}


def terms(licence: str) -> set[str]:
    """Return the licences that an expression is made of."""
    return {term.strip(" ()") for term in re.split(r"\bAND\b|\bOR\b", licence)}


@pytest.mark.parametrize("package", packages().values(), ids=lambda package: package.name)
def test_every_package_has_a_licence_that_is_allowed(package: Package) -> None:
    """Its metadata states one, and each term of it is on the list."""
    assert package.licence, f"{package.name} {package.version} states no licence that is known"
    assert terms(package.licence) <= ALLOWED | EXCEPTIONS


def test_every_dependency_is_justified() -> None:
    """Each package that the project names is in the table of the decision about dependencies."""
    adr = (ROOT / "docs" / "adr" / "0002-dependencies.md").read_text().lower()
    assert [name for name in packages()["rebalancer"].needs if not re.search(rf"\b{name.replace('-', '[-_]')}\b", adr)] == []


def test_the_dependencies_of_a_release_are_pinned() -> None:
    """Every package that gets into the image has one version in constraints.txt."""
    pinned = {
        line.split("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    assert [name for name in packages() if name != "rebalancer" and name not in pinned] == []


def test_what_the_program_imports_it_names() -> None:
    """A package that only another happens to bring along may be gone with that one's next version."""
    from importlib.metadata import packages_distributions

    imported = set()
    for path in (ROOT / "rebalancer").rglob("*.py"):
        imported |= set(re.findall(r"^\s*(?:from|import) (\w+)", path.read_text(), flags=re.MULTILINE))
    providers = packages_distributions()
    needed = {name.lower().replace("_", "-") for module in imported for name in providers.get(module, ())} - {"rebalancer"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = " ".join(project["optional-dependencies"]["otel"])
    # pydantic and pydantic-core are one thing in two packages; their versions are tied to each other.
    assert {name for name in needed if name not in extras} - {"pydantic-core"} <= set(packages()["rebalancer"].needs)


def test_the_bill_of_materials_lists_every_package_once() -> None:
    """With version, licence, package URL, and who needs whom; the program itself is what the document is about."""
    found = packages()
    made = document(found.values())
    assert (made["bomFormat"], made["specVersion"], made["version"]) == ("CycloneDX", "1.6", 1)
    assert made["metadata"]["component"]["name"] == "rebalancer"
    names = [each["name"] for each in made["components"]]
    assert names == sorted(set(found) - {"rebalancer"})
    assert all(each["purl"] == each["bom-ref"] == f"pkg:pypi/{each['name']}@{each['version']}" for each in made["components"])
    assert all(each["licenses"][0]["expression"] for each in made["components"])
    known = {each["bom-ref"] for each in made["components"]} | {made["metadata"]["component"]["bom-ref"]}
    assert {each["ref"] for each in made["dependencies"]} == known
    assert all(set(each["dependsOn"]) <= known for each in made["dependencies"])


def test_equal_packages_give_equal_documents() -> None:
    """Neither time nor chance is in it; another version is another document."""
    one = Package("rebalancer", "1", "Apache-2.0", ("a",))
    two = Package("a", "1", "MIT", ())
    assert json.dumps(document([one, two])) == json.dumps(document([two, one]))
    other = Package("a", "2", "MIT", ())
    assert document([one, two])["serialNumber"] != document([one, other])["serialNumber"]
