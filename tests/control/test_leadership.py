"""Election: expiry, takeover, release, fencing, faults. With real processes it is tested in tests/service."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from rebalancer.control.happenings import LeadershipChanged, Noticed
from rebalancer.control.leadership import Election, ElectionTimes
from rebalancer.control.pulse import Pulses
from rebalancer.errors import KubeForbidden, KubeUnavailable
from rebalancer.model.lease import LeaseRecord
from tests.control.virtual import Heard, VirtualClock

pytestmark = pytest.mark.looptime
TIMES = ElectionTimes(duration=15.0, renew=10.0, retry=2.0, request=3.0)


class LeaseStore:
    """One Lease with optimistic concurrency, as the API server keeps it."""

    def __init__(self) -> None:
        """Start without a Lease."""
        self.record: LeaseRecord | None = None
        self.version = 0

    def put(self, record: LeaseRecord) -> LeaseRecord:
        """Write without asking."""
        self.version += 1
        self.record = replace(record, version=str(self.version))
        return self.record


class LeaseClient:
    """One candidate's way to the store, with faults."""

    def __init__(self, store: LeaseStore) -> None:
        """Connect."""
        self.store = store
        self.cut = False
        self.hangs = False
        self.loses_replies = False
        self.forbidden = False
        self.writes: list[LeaseRecord] = []

    async def _weather(self) -> None:
        await asyncio.sleep(0.01)
        if self.hangs:
            await asyncio.sleep(3600)
        if self.cut:
            raise KubeUnavailable("cut off")
        if self.forbidden:
            raise KubeForbidden("cannot get leases", "get", "leases.coordination.k8s.io")

    async def read(self) -> LeaseRecord | None:
        """Return the Lease."""
        await self._weather()
        return self.store.record

    async def write(self, record: LeaseRecord) -> LeaseRecord | None:
        """Write if the version is the newest."""
        await self._weather()
        known = self.store.record.version if self.store.record else ""
        if record.version != known:
            return None
        written = self.store.put(record)
        self.writes.append(written)
        if self.loses_replies:
            raise KubeUnavailable("the reply was lost")
        return written


class Candidate:
    """An election with everything around it."""

    def __init__(self, store: LeaseStore, name: str, skew: float = 0.0) -> None:
        """Set up without starting."""
        self.clock = VirtualClock(skew=skew)
        self.client = LeaseClient(store)
        self.heard = Heard()
        self.election = Election(
            self.client, self.clock, self.heard, Pulses(self.clock), identity=name, times=TIMES, jitter=lambda: 0.5
        )
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Stand."""
        self.task = asyncio.create_task(self.election.serve())

    async def stop(self) -> None:
        """Cease without releasing: a killed process."""
        assert self.task is not None
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@pytest.fixture
def store() -> LeaseStore:
    """Return an empty store."""
    return LeaseStore()


async def test_the_first_candidate_leads_at_once_and_may_act_at_once(store: LeaseStore) -> None:
    """Where there never was a lease, nobody's requests have to be waited out."""
    one = Candidate(store, "one")
    one.start()
    await asyncio.sleep(0.1)
    assert one.election.leading
    assert one.election.acting_in() == 0
    assert one.election.outlasts(3.0)
    assert one.heard.of(LeadershipChanged)[0].leading
    await one.stop()


async def test_never_two_lead_and_a_dead_leader_is_followed_within_duration_and_five_seconds(store: LeaseStore) -> None:
    """A killed leader's lease runs out, then a standby takes over; at no moment do two believe that requests may start."""
    candidates = [Candidate(store, name, skew) for name, skew in (("one", 0.0), ("two", 9 * 3600.0), ("three", -5.0))]
    for candidate in candidates:
        candidate.start()
    await asyncio.sleep(5)
    leader = next(candidate for candidate in candidates if candidate.election.leading)
    await leader.stop()
    died_at = leader.clock.monotonic()
    followed_at = None
    while leader.clock.monotonic() < died_at + 60:
        await asyncio.sleep(0.05)
        able = [each for each in candidates if each.election.outlasts(TIMES.request) and not each.election.acting_in()]
        assert len(able) <= 1
        if followed_at is None and any(each.election.leading for each in candidates if each is not leader):
            followed_at = leader.clock.monotonic()
    assert followed_at is not None
    assert followed_at - died_at <= TIMES.duration + 5
    assert store.record is not None
    assert store.record.transitions == 1
    for candidate in candidates:
        if candidate is not leader:
            await candidate.stop()


async def test_a_release_hands_over_within_two_attempts(store: LeaseStore) -> None:
    """On shutdown the lease is given back, and the next one need not wait for anybody's requests."""
    one, two = Candidate(store, "one"), Candidate(store, "two")
    one.start()
    await asyncio.sleep(1)
    two.start()
    await asyncio.sleep(3)
    await one.stop()
    await one.election.release()
    assert not one.election.leading
    await asyncio.sleep(2 * TIMES.retry * 1.2)
    assert two.election.leading
    assert two.election.acting_in() == 0
    await two.stop()


@pytest.mark.parametrize("fault", ["cut", "hangs"], ids=["every call fails", "every call hangs"])
async def test_a_leader_that_is_cut_off_stops_before_its_lease_ends(store: LeaseStore, fault: str) -> None:
    """Without a renewal it stops leading after the renew deadline, and begins no request that the lease would not outlast."""
    one, two = Candidate(store, "one"), Candidate(store, "two")
    one.start()
    await asyncio.sleep(1)
    two.start()
    await asyncio.sleep(3)
    setattr(one.client, fault, True)
    assert store.record is not None
    renewed_at = store.record.renewed_at
    while not two.election.leading:
        await asyncio.sleep(0.02)
        if one.election.outlasts(TIMES.request):
            assert one.clock.now() + TIMES.request <= renewed_at + TIMES.duration + 0.1
    assert not one.election.leading
    assert one.election.problem
    assert [each.leading for each in one.heard.of(LeadershipChanged)] == [True, False]
    assert two.election.acting_in() == pytest.approx(TIMES.request, abs=0.1)
    await one.stop()
    await two.stop()


async def test_a_lease_that_cannot_be_used_is_told_once(store: LeaseStore) -> None:
    """Who never becomes leader for want of a permission reads why, and does not read it at each attempt."""
    one = Candidate(store, "one")
    one.client.cut = True
    one.start()
    await asyncio.sleep(10)
    assert [each.code for each in one.heard.of(Noticed)] == ["lease-unusable"]
    one.client.cut = False
    await asyncio.sleep(3)
    assert one.election.leading
    await one.stop()


async def test_a_frozen_leader_knows_on_waking_that_it_no_longer_leads(store: LeaseStore) -> None:
    """After a freeze longer than the lease nothing may start, before any call to the server."""
    one = Candidate(store, "one")
    one.start()
    await asyncio.sleep(1)
    assert one.election.outlasts(TIMES.request)
    one.clock.frozen_for += 60.0
    assert not one.election.leading
    assert not one.election.outlasts(TIMES.request)
    await one.stop()


async def test_a_frozen_challenger_looks_again_before_it_takes_over(store: LeaseStore) -> None:
    """A challenger that slept through renewals does not take the lease on old observations."""
    one, two = Candidate(store, "one"), Candidate(store, "two")
    one.start()
    await asyncio.sleep(1)
    two.start()
    await asyncio.sleep(3)
    two.clock.frozen_for += 100.0
    await asyncio.sleep(10)
    assert one.election.leading
    assert not two.election.leading
    await one.stop()
    await two.stop()


async def test_a_lost_reply_does_not_make_two_leaders(store: LeaseStore) -> None:
    """A takeover whose reply is lost is found at the next look, and then its wait begins."""
    one = Candidate(store, "one")
    one.client.loses_replies = True
    one.start()
    await asyncio.sleep(0.5)
    assert store.record is not None
    assert store.record.holder == "one"
    assert not one.election.leading
    one.client.loses_replies = False
    await asyncio.sleep(3)
    assert one.election.leading
    await one.stop()


async def test_an_annotation_by_an_operator_costs_no_leadership(store: LeaseStore) -> None:
    """A write of somebody else to the lease is taken over at the next renewal, its annotations are kept."""
    one = Candidate(store, "one")
    one.start()
    await asyncio.sleep(1)
    assert store.record is not None
    store.put(replace(store.record, annotations={"rebalancer.io/paused": "true"}))
    await asyncio.sleep(3)
    assert one.election.leading
    assert one.election.record is not None
    assert one.election.record.annotations == {"rebalancer.io/paused": "true"}
    assert [each.leading for each in one.heard.of(LeadershipChanged)] == [True]
    await one.stop()


async def test_a_lease_that_somebody_deleted_is_waited_out_whole(store: LeaseStore) -> None:
    """Its holder may not know yet: whoever creates it anew waits for a whole lease and a request."""
    one, two = Candidate(store, "one"), Candidate(store, "two")
    one.start()
    await asyncio.sleep(1)
    two.start()
    await asyncio.sleep(3)
    await one.stop()
    store.record = None
    await asyncio.sleep(3)
    assert two.election.leading
    assert two.election.acting_in() == pytest.approx(TIMES.duration + TIMES.request, abs=3.1)
    await two.stop()


async def test_the_holders_own_duration_counts(store: LeaseStore) -> None:
    """A holder that promised an hour is waited for an hour, whatever our own setting."""
    now = VirtualClock().now()
    store.put(LeaseRecord("descheduler_x", 3600.0, now, now, 4))
    one = Candidate(store, "one")
    one.start()
    await asyncio.sleep(3500)
    assert not one.election.leading
    await asyncio.sleep(110)
    assert one.election.leading
    assert store.record is not None
    assert store.record.transitions == 5
    await one.stop()


async def test_a_lease_that_may_not_be_used_is_told_once_and_fails_readiness(store: LeaseStore) -> None:
    """Without the permission it can never lead: said in words, once, and for as long as it lasts."""
    one = Candidate(store, "one")
    one.client.forbidden = True
    one.start()
    await asyncio.sleep(10)
    assert [each.code for each in one.heard.of(Noticed)] == ["lease-unusable"]
    assert "leases" in one.election.denied
    one.client.forbidden = False
    await asyncio.sleep(3)
    assert one.election.leading
    assert one.election.denied == ""
    await one.stop()
