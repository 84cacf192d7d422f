"""Hot reload: a good policy is taken over with its difference, a bad one is told and the good one stays."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rebalancer.control.happenings import Noticed
from rebalancer.control.pulse import Pulses
from rebalancer.policy import load
from rebalancer.service.evaluation import InForce
from rebalancer.service.policy_watch import PolicyWatch
from tests.control.virtual import Heard, VirtualClock
from tests.service.process import POLICY

pytestmark = pytest.mark.looptime


class Watched:
    """A file, and the watch on it."""

    def __init__(self, folder: Path) -> None:
        """Begin with a good policy."""
        self.file = folder / "policy.yaml"
        self.file.write_text(POLICY)
        self.in_force = InForce(load(POLICY, source="test").policy)
        self.heard = Heard()
        self.taken: list[str] = []
        clock = VirtualClock()
        self.watch = PolicyWatch(
            self.file,
            self.in_force,
            clock,
            Pulses(clock),
            self.heard,
            check_seconds=5.0,
            taken_over=lambda policy, words: self.taken.append(words),
        )

    @property
    def codes(self) -> list[str]:
        """What was told."""
        return [each.code for each in self.heard.of(Noticed)]


async def test_a_good_new_version_is_taken_over_with_its_difference(tmp_path: Path) -> None:
    """Within one check the new policy is in force, and what changed is told by path and value."""
    watched = Watched(tmp_path)
    serving = asyncio.create_task(watched.watch.serve())
    await asyncio.sleep(1)
    watched.file.write_text(POLICY.replace("cpu: 20", "cpu: 30"))
    await asyncio.sleep(5)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    assert watched.codes == ["policy-changed"]
    assert "20 -> 30" in watched.heard.of(Noticed)[0].text
    assert watched.in_force.policy == load(watched.file.read_text(), source="test").policy
    assert len(watched.taken) == 1


@pytest.mark.parametrize("text", ["", "kind: Nonsense", "profiles: [", POLICY.replace("thresholds", "treshholds")], ids=repr)
async def test_a_bad_new_version_is_told_once_and_the_good_one_stays(tmp_path: Path, text: str) -> None:
    """What cannot be used changes nothing; it is told when it appears, not at every check."""
    watched = Watched(tmp_path)
    before = watched.in_force.policy
    watched.file.write_text(text)
    for _ in range(3):
        watched.watch.look()
    assert watched.codes == ["policy-rejected"]
    assert watched.in_force.policy is before
    assert watched.taken == []


async def test_a_good_version_after_a_bad_one_is_taken_over(tmp_path: Path) -> None:
    """A mistake can be corrected without a restart."""
    watched = Watched(tmp_path)
    watched.file.write_text("kind: Nonsense")
    watched.watch.look()
    watched.file.write_text(POLICY.replace("cpu: 50", "cpu: 60"))
    watched.watch.look()
    assert watched.codes == ["policy-rejected", "policy-changed"]


async def test_a_file_that_is_gone_for_a_moment_changes_nothing(tmp_path: Path) -> None:
    """A mounted ConfigMap is exchanged by links: a look in between must not lose the policy."""
    watched = Watched(tmp_path)
    watched.file.unlink()
    watched.watch.look()
    assert watched.codes == ["policy-unreadable"]
    watched.file.write_text(POLICY)
    watched.watch.look()
    assert watched.taken == []


async def test_a_change_that_means_the_same_is_no_change(tmp_path: Path) -> None:
    """A comment is not worth a run."""
    watched = Watched(tmp_path)
    watched.file.write_text(POLICY + "\n# a comment\n")
    watched.watch.look()
    assert watched.codes == []
    assert watched.taken == []
