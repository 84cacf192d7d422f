"""Texts that attack whoever reads them: policies and dumps as bytes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rebalancer.errors import DumpError, InputError, PolicyError
from rebalancer.parse.dump import read_dump
from rebalancer.policy import load

HEADER = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n"


def a_bomb(levels: int = 12) -> str:
    """Return YAML of a few lines whose aliases stand for thousands of millions of values."""
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{level}: &a{level} [{','.join([f'*a{level - 1}'] * 9)}]" for level in range(1, levels)]
    return "\n".join(lines) + f"\nprofiles: *a{levels - 1}\n"


TEXTS = {
    "a bomb of aliases": (HEADER + a_bomb()).encode(),
    "an alias to itself": (HEADER + "profiles: &a [*a]\n").encode(),
    "deep YAML": (HEADER + "profiles: " + "[" * 5000 + "]" * 5000).encode(),
    "deep JSON": b"[" * 200_000 + b"]" * 200_000,
    "deep blocks": (HEADER + "profiles:\n" + "".join(" " * depth + "-\n" for depth in range(3000))).encode(),
    "a NUL": (HEADER + "profiles: []\0\n").encode(),
    "Latin-1": (HEADER + "profiles: [é]\n").encode("latin-1"),
    "random bytes": bytes(range(255, 127, -1)) * 20,
    "a key twice": (HEADER + "profiles: []\nprofiles: []\n").encode(),
    "a list as key": (HEADER + "? [a]\n: b\n").encode(),
    "a map as key": (HEADER + "{a: b}: c\n").encode(),
    "a Python object": (HEADER + "profiles: !!python/object/apply:os.system [exit]\n").encode(),
    "a number of 5000 digits": (HEADER + "maxNoOfPodsToEvictTotal: " + "9" * 5000 + "\n").encode(),
    "an unfinished string": b'{"kind": "Pod", "metadata": {"name": "',
    "a huge exponent": (HEADER + "profiles: 1e999999999\n").encode(),
    "a date that does not exist": (HEADER + "profiles: 2026-99-99\n").encode(),
    "only spaces": b" \n\t\n",
    "a byte order mark alone": b"\xef\xbb\xbf",
}
READERS: dict[str, Callable[[bytes], object]] = {
    "policy": lambda text: load(text, source="p.yaml"),
    "dump": lambda text: read_dump(text, "d.yaml"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", TEXTS)
def test_a_text_that_cannot_be_used_is_refused_in_words(reader: str, name: str) -> None:
    """No hostile text hangs, crashes or passes: each is an InputError that names the source and at least one mistake."""
    with pytest.raises(InputError) as caught:
        READERS[reader](TEXTS[name])
    assert isinstance(caught.value, PolicyError if reader == "policy" else DumpError)
    assert caught.value.mistakes
    assert all(mistake.path and mistake.expected for mistake in caught.value.mistakes)
    assert str(caught.value).startswith({"policy": "p.yaml", "dump": "d.yaml"}[reader])


@pytest.mark.parametrize("name", ["a bomb of aliases", "an alias to itself", "a key twice"])
def test_the_place_in_a_policy_is_named_by_line(name: str) -> None:
    """What YAML itself permits and Kubernetes does not is reported with its line."""
    with pytest.raises(PolicyError) as caught:
        load(TEXTS[name], source="p.yaml")
    assert caught.value.mistakes[0].path.startswith("line ")


def test_anchors_of_ordinary_size_are_fine() -> None:
    """Anchors, aliases and merge keys are YAML like any other, an overridden key of a merge included."""
    text = (
        "x: &base {a: 1, b: 2}\n"
        "kind: Node\n"
        "metadata: {name: n1, labels: &labels {zone: a}}\n"
        "y: &more {<<: *base, b: 3}\n"
        "z: {<<: *more, b: 4}\n"
        "spec: {again: [*labels, *labels]}\n"
    )
    (node,) = read_dump(text.encode(), "d.yaml")
    assert node["z"] == {"a": 1, "b": 4}
    assert node["spec"]["again"] == [{"zone": "a"}] * 2


def test_timestamps_stay_texts() -> None:
    """A time in YAML is what the API server wrote, not a date of Python's."""
    (pod,) = read_dump(b"kind: Pod\nmetadata: {name: p, creationTimestamp: 2026-01-01T00:00:00Z}\n", "d.yaml")
    assert pod["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"
