"""When the cache may be relied on: each kind listed, connected, and heard of lately."""

from __future__ import annotations

import pytest

from rebalancer.model.change import Bookmark, Connected, Disconnected, Skipped, Unavailable
from tests.cache.builders import Filled, a_pod


async def test_nothing_is_fresh_before_its_first_list():
    """Every kind that was not listed is named."""
    filled = Filled()
    assert not filled.cache.all_synced()
    assert "Pod: not listed yet" in filled.cache.unfresh()
    filled.cache.note(Disconnected("Pod", "connection refused"))
    assert "Pod: not listed yet (connection refused)" in filled.cache.unfresh()
    await filled.sync()
    assert filled.cache.all_synced()
    assert filled.cache.unfresh() == ()
    assert filled.cache.snapshot().missing == frozenset()


@pytest.mark.parametrize(
    ("seconds", "fresh"),
    [pytest.param(9.9, True, id="below"), pytest.param(10.0, False, id="at"), pytest.param(60.0, False, id="above")],
)
async def test_a_kind_goes_stale_ten_seconds_after_its_connection_broke(seconds: float, fresh: bool):
    """Attempts that fail do not start the time anew; a connection ends it, once it has stood for a moment."""
    filled = await Filled().sync()
    filled.cache.note(Disconnected("Pod", "reset"))
    filled.clock.now += 5.0
    filled.cache.note(Disconnected("Pod", "refused"))
    filled.clock.now += seconds - 5.0
    assert (filled.cache.unfresh() == ()) is fresh
    if not fresh:
        assert filled.cache.unfresh() == (f"Pod: disconnected for {seconds:.0f} s (refused)",)
    filled.cache.note(Connected("Pod"))
    filled.clock.now += 2.0
    assert filled.cache.unfresh() == ()


async def test_a_connection_that_ends_at_once_proves_nothing():
    """A watch that is taken up and answered with 410 brought no change: what is known is as old as before."""
    filled = await Filled().sync()
    filled.cache.note(Disconnected("Pod", "reset"))
    filled.clock.now += 9.0
    filled.cache.note(Connected("Pod"))
    filled.cache.note(Disconnected("Pod", "too old resource version"))
    assert filled.cache.unfresh() == ()
    filled.clock.now += 1.0
    assert filled.cache.unfresh() == ("Pod: disconnected for 10 s (too old resource version)",)
    filled.cache.note(Connected("Pod"))
    assert filled.cache.unfresh() == ("Pod: disconnected for 10 s (connected just now)",)
    filled.cache.note(Bookmark("Pod", "9"))
    assert filled.cache.unfresh() == ()


@pytest.mark.parametrize(("seconds", "fresh"), [pytest.param(89.9, True, id="below"), pytest.param(90.0, False, id="at")])
async def test_a_kind_goes_stale_after_ninety_silent_seconds(seconds: float, fresh: bool):
    """A connection that says nothing may be half-open."""
    filled = await Filled().sync()
    filled.clock.now += seconds
    for kind in filled.cache.kinds:
        if kind != "Pod":
            filled.cache.note(Bookmark(kind, "2"))
    assert (filled.cache.unfresh() == ()) is fresh


async def test_bookmarks_changes_and_skipped_objects_are_signs_of_life():
    """Whatever comes over the connection shows that it is there."""
    filled = await Filled().sync()
    for report in (Bookmark("Pod", "9"), Skipped("Pod", "Pod s/a: odd")):
        filled.clock.now += 89.0
        for kind in filled.cache.kinds:
            filled.cache.note(Bookmark(kind, "9") if kind != "Pod" else report)
        assert filled.cache.unfresh() == ()
    filled.clock.now += 89.0
    filled.put(a_pod("a"))
    filled.clock.now += 2.0
    assert not any(complaint.startswith("Pod:") for complaint in filled.cache.unfresh())


async def test_a_kind_that_may_be_missing_is_named_in_the_snapshot():
    """Without permission for storage classes one can work, without pods one cannot."""
    filled = await Filled().sync()
    filled.cache.note(Unavailable("StorageClass", "cannot list storageclasses.storage.k8s.io: forbidden"))
    assert filled.cache.unfresh() == ()
    assert filled.cache.snapshot().missing == {"StorageClass"}
    filled.cache.note(Unavailable("Pod", "cannot list pods: forbidden"))
    assert filled.cache.unfresh() == ("Pod: cannot list pods: forbidden",)


async def test_an_optional_kind_that_is_unavailable_from_the_start_counts_as_synced():
    """The controller does not wait for what it will never get."""
    filled = Filled()
    filled.cache.note(Unavailable("CSINode", "not served"))
    filled.cache.note(Unavailable("Node", "forbidden"))
    assert filled.cache.synced("CSINode")
    assert not filled.cache.synced("Node")


@pytest.mark.parametrize(
    ("pods", "nodes", "wanted", "reached"),
    [
        pytest.param("10", "10", "10", True, id="at"),
        pytest.param("9", "10", "10", False, id="one-below"),
        pytest.param("100", "99", "10", True, id="numbers-not-texts"),
        pytest.param("a", "a", "a", True, id="no-numbers"),
    ],
)
async def test_the_cache_knows_up_to_which_version_it_has_heard(pods: str, nodes: str, wanted: str, reached: bool):
    """A new leader waits until it has seen what was true when it took over."""
    filled = await Filled().sync()
    for kind, version in (("Pod", pods), ("Node", nodes), ("PodDisruptionBudget", nodes)):
        filled.cache.note(Bookmark(kind, version))
    assert filled.cache.reached(wanted) is reached
