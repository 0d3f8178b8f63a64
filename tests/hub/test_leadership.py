"""One leads, another follows when it is gone, and nobody acts when it may no longer lead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from boatyard.kube.client import KubeClient
from boatyard.kube.kinds import LEASES
from boatyard.model.errors import LeaseLost, Unavailable
from boatyard.operator.leadership import WORK_ANNOTATION, ElectionTiming, Leadership
from tests.support.control_plane import ControlPlane
from tests.support.kube_hub.api_server import admin, hang_up, new_place, until

QUICK = ElectionTiming(duration=1.0, renew=0.1, retry=0.05, margin=0.2, careful_period=60.0)
AN_ORDER = ("Order", "c-1")


class AdjustableClock:
    """A monotonic clock that a test may set forward."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return asyncio.get_running_loop().time() + self.ahead


class LeaseCandidates:
    """Candidates for one Lease, each with a clock of its own."""

    def __init__(self, client: KubeClient, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    def candidate(
        self, identity: str, *, clock: AdjustableClock | None = None, timing: ElectionTiming = QUICK
    ) -> Leadership:
        return Leadership(
            self.client,
            namespace=self.namespace,
            name="boatyard-operator",
            identity=identity,
            now=lambda: datetime.now(UTC),
            timing=timing,
            clock=clock or AdjustableClock(),
        )

    async def lease(self) -> dict[str, Any]:
        return await self.client.get(LEASES, "boatyard-operator", self.namespace)

    async def holder(self) -> str:
        return str((await self.lease())["spec"]["holderIdentity"])


@pytest.fixture
async def lease_candidates(plane: ControlPlane) -> AsyncIterator[LeaseCandidates]:
    client = admin(plane, patience=0)
    _, system = await new_place(client)
    yield LeaseCandidates(client, system)
    await hang_up(client)


async def test_the_first_one_leads_and_the_second_waits(lease_candidates: LeaseCandidates) -> None:
    first, second = lease_candidates.candidate("one"), lease_candidates.candidate("two")
    await first.campaign()
    async with asyncio.TaskGroup() as tasks:
        keeping = tasks.create_task(first.renew_until_lost())
        waiting = tasks.create_task(second.campaign())
        await asyncio.sleep(2.5 * QUICK.duration)
        assert first.is_leader
        assert not second.is_leader
        assert not waiting.done()
        assert await lease_candidates.holder() == "one"
        keeping.cancel()
        waiting.cancel()


async def test_a_dead_leader_is_followed_after_its_lease_and_not_before(
    lease_candidates: LeaseCandidates,
) -> None:
    first, second = lease_candidates.candidate("one"), lease_candidates.candidate("two")
    await first.campaign()
    time = asyncio.get_running_loop().time
    died = time()
    await second.campaign()
    took = time() - died
    assert QUICK.duration - 0.1 <= took < QUICK.duration + 1.0
    assert not first.is_leader, "the dead one would know that it no longer leads"
    assert (await lease_candidates.lease())["spec"]["leaseTransitions"] == 2


async def test_a_leader_stops_before_another_may_begin(lease_candidates: LeaseCandidates) -> None:
    clock = AdjustableClock()
    first = lease_candidates.candidate("one", clock=clock)
    await first.campaign()
    first.check_leadership()
    clock.ahead = QUICK.duration - QUICK.margin
    with pytest.raises(LeaseLost):
        first.check_leadership()
    clock.ahead = 0.0
    with pytest.raises(LeaseLost):
        first.check_leadership()  # for good: some of its work may have stopped already


async def test_whoever_ends_in_good_order_is_followed_at_once(
    lease_candidates: LeaseCandidates,
) -> None:
    first, second = lease_candidates.candidate("one"), lease_candidates.candidate("two")
    await first.campaign()
    await first.release()
    time = asyncio.get_running_loop().time
    began = time()
    await second.campaign()
    assert time() - began < QUICK.duration / 2
    assert second.suspects == {}
    with pytest.raises(LeaseLost):
        first.check_leadership()


async def test_a_slow_api_server_does_not_cost_the_lead(
    lease_candidates: LeaseCandidates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each renewal takes half as long as a lease lasts: they do not wait for each other."""
    first = lease_candidates.candidate("one")
    await first.campaign()
    call = lease_candidates.client.call

    async def slow(*args: Any, **more: Any) -> Any:
        await asyncio.sleep(QUICK.duration / 2)
        return await call(*args, **more)

    monkeypatch.setattr(lease_candidates.client, "call", slow)
    async with asyncio.TaskGroup() as tasks:
        keeping = tasks.create_task(first.renew_until_lost())
        await asyncio.sleep(3 * QUICK.duration)
        first.check_leadership()
        keeping.cancel()


async def test_a_leader_whose_api_server_is_gone_stops_in_time(
    lease_candidates: LeaseCandidates, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lease_candidates.candidate("one")
    await first.campaign()

    async def away(*args: Any, **more: Any) -> Any:
        raise Unavailable("no answer")

    monkeypatch.setattr(lease_candidates.client, "call", away)
    time = asyncio.get_running_loop().time
    began = time()
    with pytest.raises(ExceptionGroup) as lost:
        await first.renew_until_lost()
    assert lost.group_contains(LeaseLost)
    assert time() - began < QUICK.duration
    monkeypatch.undo()
    await first.campaign()  # the Lease is still its own
    assert first.suspects == {}


async def test_a_lease_that_somebody_took_is_lost_at_the_next_renewal(
    lease_candidates: LeaseCandidates,
) -> None:
    first = lease_candidates.candidate(
        "one", timing=ElectionTiming(duration=60, renew=0.05, retry=0.05)
    )
    await first.campaign()
    theirs = {"spec": {"holderIdentity": "somebody"}}
    await lease_candidates.client.merge_patch(
        LEASES, "boatyard-operator", theirs, lease_candidates.namespace
    )
    with pytest.raises(ExceptionGroup) as lost:
        await first.renew_until_lost()
    assert lost.group_contains(LeaseLost)
    assert await lease_candidates.holder() == "somebody"


async def test_a_lease_that_was_removed_is_lost(lease_candidates: LeaseCandidates) -> None:
    first = lease_candidates.candidate(
        "one", timing=ElectionTiming(duration=60, renew=0.05, retry=0.05)
    )
    await first.campaign()
    await lease_candidates.client.delete(LEASES, "boatyard-operator", lease_candidates.namespace)
    with pytest.raises(ExceptionGroup) as lost:
        await first.renew_until_lost()
    assert lost.group_contains(LeaseLost)


async def test_what_a_dead_leader_was_at_is_suspect(lease_candidates: LeaseCandidates) -> None:
    first, second = lease_candidates.candidate("one"), lease_candidates.candidate("two")
    await first.campaign()
    first.set_long_running_work(lambda: {AN_ORDER: 1})
    async with asyncio.TaskGroup() as tasks:
        keeping = tasks.create_task(first.renew_until_lost())

        async def told() -> bool:
            return WORK_ANNOTATION in (
                (await lease_candidates.lease())["metadata"].get("annotations") or {}
            )

        await until(told, "the lease says what it is at")
        keeping.cancel()  # and dies
    await second.campaign()
    assert second.suspects == {AN_ORDER: 1}
    third = lease_candidates.candidate("three")
    await third.campaign()
    assert third.suspects == {AN_ORDER: 1}, "one that dies at once forgets nothing"


async def test_work_is_announced_only_after_a_death(lease_candidates: LeaseCandidates) -> None:
    first = lease_candidates.candidate("one")
    await first.campaign()
    version = (await lease_candidates.lease())["metadata"]["resourceVersion"]
    await first.announce_work({AN_ORDER: 1})
    assert (await lease_candidates.lease())["metadata"]["resourceVersion"] == version, "no request"
    clock = AdjustableClock()
    second = lease_candidates.candidate("two", clock=clock)
    await second.campaign()
    await second.announce_work({AN_ORDER: 1})
    third = lease_candidates.candidate("three")
    await third.campaign()
    assert third.suspects == {AN_ORDER: 1}
    clock.ahead = QUICK.careful_period
    await second.announce_work({AN_ORDER: 1})  # it has outlived its care: nothing is said any more


async def test_an_api_server_that_fails_is_not_asked_for_each_piece_of_work(
    lease_candidates: LeaseCandidates, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lease_candidates.candidate("one")
    await first.campaign()
    second = lease_candidates.candidate("two", timing=replace(QUICK, duration=3.0))
    await second.campaign()
    asked = 0

    async def away(*args: Any, **more: Any) -> Any:
        nonlocal asked
        asked += 1
        raise Unavailable("no answer")

    monkeypatch.setattr(lease_candidates.client, "call", away)
    for _ in range(5):
        with pytest.raises(Unavailable):
            await second.announce_work({AN_ORDER: 1})
    assert asked == 1
    monkeypatch.undo()
    async with asyncio.TaskGroup() as tasks:
        keeping = tasks.create_task(second.renew_until_lost())

        async def begun() -> bool:
            try:
                await second.announce_work({AN_ORDER: 1})
            except Unavailable:
                return False
            return True

        await until(begun, "a renewal that succeeds ends it")
        keeping.cancel()


async def test_an_announcement_without_the_lead_is_none(lease_candidates: LeaseCandidates) -> None:
    first, second = lease_candidates.candidate("one"), lease_candidates.candidate("two")
    await first.campaign()
    await second.campaign()
    third = lease_candidates.candidate("three")
    await third.campaign()
    with pytest.raises(LeaseLost):
        await second.announce_work({AN_ORDER: 1})


async def test_of_many_candidates_one_leads(lease_candidates: LeaseCandidates) -> None:
    candidates = [lease_candidates.candidate(f"number-{number}") for number in range(8)]
    campaigns = [asyncio.ensure_future(one.campaign()) for one in candidates]
    await asyncio.wait(campaigns, return_when=asyncio.FIRST_COMPLETED)
    assert sum(one.is_leader for one in candidates) == 1
    for campaign in campaigns:
        campaign.cancel()
    await asyncio.gather(*campaigns, return_exceptions=True)
