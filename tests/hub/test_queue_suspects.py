"""What a leader that died was at: told by its Lease, held alone by the next, and cleared by a good end."""

from __future__ import annotations

import pytest

from boatyard.engine.kube_queue import KubeQueue
from boatyard.model.errors import Unavailable
from boatyard.resources.reconciling import Result
from tests.support.desks import NOW, SPEC, Alone, KubeDesk


async def test_suspects_come_with_their_attempts_and_are_cleared_by_a_good_end(
    desk: KubeDesk,
) -> None:
    await desk.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    await desk.caught_up()
    leader = Alone(suspects={("Order", "c-1"): 2})
    heir = KubeQueue(view=desk.view, results=desk.results, leader=leader, now=NOW)
    (lease,) = await heir.take(9, now=NOW)
    assert lease.attempts == 3
    assert leader.told == [{("Order", "c-1"): 3}]
    await heir.finish(lease, Result(look_again=NOW), attempts=0, now=NOW)
    (lease,) = await heir.take(9, now=NOW)
    assert lease.attempts == 1


async def test_of_suspects_one_is_held_and_announced_at_a_time(desk: KubeDesk) -> None:
    """Leaders that die of something else, one after the other, must not set aside what they never began."""
    for number in range(3):
        await desk.book.put(f"c-{number}", tenant="acme", spec=SPEC, now=NOW)
    await desk.caught_up()
    suspects = {("Order", "c-0"): 2, ("Order", "c-1"): 2}
    leader = Alone(suspects=suspects)
    heir = KubeQueue(view=desk.view, results=desk.results, leader=leader, now=NOW)
    taken = []
    while leases := await heir.take(9, now=NOW):
        taken.append([(lease.id, lease.attempts) for lease in leases])
        for lease in leases:
            await heir.finish(lease, Result(), attempts=0, now=NOW)
    assert sorted(taken) == [[("c-0", 3)], [("c-1", 3)], [("c-2", 1)]]
    for told in leader.told:
        assert [count for count in told.values() if count > 2] in ([3], [])


async def test_only_what_is_held_for_long_is_told_with_a_renewal(desk: KubeDesk) -> None:
    await desk.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    lease = await desk.take("c-1")
    assert desk.queue.lasting() == {}
    assert desk.queue.lasting() == {("Order", "c-1"): 1}
    await desk.queue.finish(lease, Result(look_again=NOW), attempts=0, now=NOW)
    assert desk.queue.lasting() == {}


async def test_a_leader_that_cannot_announce_its_work_does_not_begin_it(desk: KubeDesk) -> None:
    await desk.book.put("c-1", tenant="acme", spec=SPEC, now=NOW)
    await desk.caught_up()

    class Silenced(Alone):
        silenced = True

        async def begin(self, held: object) -> None:
            if self.silenced:
                raise Unavailable("the lease cannot be written")

    leader = Silenced()
    heir = KubeQueue(view=desk.view, results=desk.results, leader=leader, now=NOW)
    with pytest.raises(Unavailable):
        await heir.take(9, now=NOW)
    leader.silenced = False
    assert [one.id for one in await heir.take(9, now=NOW)] == ["c-1"]
