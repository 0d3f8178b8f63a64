"""What a leader that died was at: told by its Lease, held alone by the next, and cleared by a good end."""

from __future__ import annotations

import pytest

from boatyard.engine.kube_queue import KubeQueue
from boatyard.model.errors import Unavailable
from boatyard.resources.reconciler import ReconcileResult
from tests.contracts.order_books import NOW, SPEC, KubeBookHarness, UnchallengedLeader


async def test_suspects_come_with_their_attempts_and_are_cleared_by_a_good_end(
    harness: KubeBookHarness,
) -> None:
    await harness.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    await harness.caught_up()
    leader = UnchallengedLeader(suspects={("Order", "c-1"): 2})
    heir = KubeQueue(view=harness.view, results=harness.results, leader=leader, now=NOW)
    (lease,) = await heir.take(9, now=NOW)
    assert lease.attempts == 3
    assert leader.told == [{("Order", "c-1"): 3}]
    await heir.finish(lease, ReconcileResult(look_again=NOW), attempts=0, now=NOW)
    (lease,) = await heir.take(9, now=NOW)
    assert lease.attempts == 1


async def test_of_suspects_one_is_held_and_announced_at_a_time(harness: KubeBookHarness) -> None:
    """Leaders that die of something else, one after the other, must not set aside what they never began."""
    for number in range(3):
        await harness.book.put(f"c-{number}", tenant="acme", spec=SPEC, now=NOW)
    await harness.caught_up()
    suspects = {("Order", "c-0"): 2, ("Order", "c-1"): 2}
    leader = UnchallengedLeader(suspects=suspects)
    heir = KubeQueue(view=harness.view, results=harness.results, leader=leader, now=NOW)
    taken = []
    while leases := await heir.take(9, now=NOW):
        taken.append([(lease.id, lease.attempts) for lease in leases])
        for lease in leases:
            await heir.finish(lease, ReconcileResult(), attempts=0, now=NOW)
    assert sorted(taken) == [[("c-0", 3)], [("c-1", 3)], [("c-2", 1)]]
    for told in leader.told:
        assert [count for count in told.values() if count > 2] in ([3], [])


async def test_only_what_is_held_for_long_is_told_with_a_renewal(harness: KubeBookHarness) -> None:
    await harness.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    lease = await harness.take("c-1")
    assert harness.queue.list_long_running_work() == {}
    assert harness.queue.list_long_running_work() == {("Order", "c-1"): 1}
    await harness.queue.finish(lease, ReconcileResult(look_again=NOW), attempts=0, now=NOW)
    assert harness.queue.list_long_running_work() == {}


async def test_a_leader_that_cannot_announce_its_work_does_not_begin_it(
    harness: KubeBookHarness,
) -> None:
    await harness.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    await harness.caught_up()

    class Silenced(UnchallengedLeader):
        silenced = True

        async def announce_work(self, held: object) -> None:
            if self.silenced:
                raise Unavailable("the lease cannot be written")

    leader = Silenced()
    heir = KubeQueue(view=harness.view, results=harness.results, leader=leader, now=NOW)
    with pytest.raises(Unavailable):
        await heir.take(9, now=NOW)
    leader.silenced = False
    assert [one.id for one in await heir.take(9, now=NOW)] == ["c-1"]
