"""Equal input, equal output, byte for byte: in another order, in another process, with other hash seeds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Decides on recorded scenarios and prints one digest for each; argument: the seed that shuffles objects.
PROGRAM = """
import gzip, hashlib, json, random, sys
from datetime import datetime
from pathlib import Path
import rebalancer
shuffle = random.Random(int(sys.argv[1])).shuffle
for path in sorted(Path("tests/conformance/upstream").glob("*.gz"))[::6]:
    case = json.loads(gzip.decompress(path.read_bytes()))
    objects = case["objects"]
    shuffle(objects)
    for mode in ("required", "fit", "off"):
        moment = datetime.fromisoformat(case["evaluatedAt"])
        plan = rebalancer.evaluate(objects, case["policy"], now=moment, placement=mode)
        print(path.name, mode, hashlib.sha256(json.dumps(plan.to_dict()).encode()).hexdigest())
for path in sorted(Path("tests/conformance/scheduler/cases").glob("*.gz"))[::6]:
    case = json.loads(gzip.decompress(path.read_bytes()))
    objects = case["objects"]
    shuffle(objects)
    placement = rebalancer.place(objects, {"kind": "Pod", **case["pod"]})
    print(path.name, hashlib.sha256(json.dumps(placement.to_dict()).encode()).hexdigest())
"""


def digests(hash_seed: str, order_seed: str) -> list[str]:
    """Return what the program prints in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, order_seed],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def reference() -> list[str]:
    """Return the digests of one process."""
    found = digests("0", "0")
    assert len(found) > 150
    return found


@pytest.mark.parametrize(("hash_seed", "order_seed"), [("1", "0"), ("4242", "7"), ("random", "99")])
def test_neither_the_order_of_objects_nor_the_hash_seed_changes_a_byte(
    hash_seed: str, order_seed: str, reference: list[str]
) -> None:
    """Plans and placements of recorded clusters are the same in every process."""
    assert digests(hash_seed, order_seed) == reference
