"""Situations that the journeys lack: a refusal, a lost hint, a worker that stands still past its lease."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from boatyard.model.errors import Unavailable
from boatyard.model.generated.osac import Hub
from boatyard.proof.compare import differences
from boatyard.proof.environment import Lane, is_failed, is_gone, is_ready
from boatyard.proof.evidence import effects
from boatyard.proof.journeys import CREATE, Baseline, Found, Life, nothing_left
from boatyard.proof.kill_points import Point

Course = Callable[[Lane, str, Baseline], Awaitable[Found]]


@dataclass(frozen=True)
class Scenario:
    """`life` is the one that it compares with, where that is not a creation alone."""

    run: Course
    life: Life | None = None


async def refused(lane: Lane, cluster_id: str, baseline: Baseline) -> Found:
    """What was refused is not asked again: not when poked, not by another worker."""
    found = Found()
    await lane.twin.call("twin.set_mood", order_id=cluster_id, step="names", mood="refused")
    await lane.tenant.order(cluster_id)
    await lane.reach(cluster_id, is_failed)
    asked = await _asked(lane, cluster_id)
    for again in range(3):
        if again == 1:
            await lane.kill_all()
        await lane.worker()
        await lane.poke("Order", cluster_id)
        await lane.reach(cluster_id, is_failed)
    now = await _asked(lane, cluster_id)
    found.differ(
        "refused",
        [
            f"{key} was refused and asked for {now[key] - times} times more"
            for key, times in asked.items()
            if now[key] != times
        ],
    )
    await lane.tenant.delete(cluster_id)
    await lane.reach(cluster_id, is_gone)
    found.differ("refused", nothing_left(await lane.bare_end(cluster_id)))
    found.differ("refused", await lane.breaches())
    return found


async def _asked(lane: Lane, cluster_id: str) -> dict[str, int]:
    found = await effects(lane.twin, f"{cluster_id}/")
    return {effect.key: effect.calls for effect in found if effect.kind == "record"}


async def lost_hint(lane: Lane, cluster_id: str, baseline: Baseline) -> Found:
    """A worker that no hint reaches finds everything that is due all the same."""
    found = Found()
    await lane.dismiss_all()
    await lane.hire(deaf=True)
    await lane.tenant.order(cluster_id)
    await lane.reach(cluster_id, is_ready)
    expected = baseline.end(CREATE)
    end = await lane.settled_end(cluster_id, expected)
    found.differ("lost-hint", differences(expected, end))
    await lane.tenant.delete(cluster_id)
    await lane.reach(cluster_id, is_gone)
    found.differ("lost-hint", nothing_left(await lane.bare_end(cluster_id)))
    await lane.dismiss_all()
    found.differ("lost-hint", await lane.breaches())
    return found


def stopped_worker(*targets: Point) -> Scenario:
    """The first worker stands still past its lease, the second finishes, the first wakes: its write is refused.

    The targets are on the verge of a write, or after an effect that is not written down yet.
    """

    async def run(lane: Lane, cluster_id: str, baseline: Baseline) -> Found:
        found = Found()
        for number, target in enumerate(targets):
            await _late_write(lane, f"{cluster_id}-{number}", target, baseline, found)
            if found.differences:
                return found
        found.differ("stopped-worker", await lane.breaches())
        return found

    return Scenario(run)


async def _late_write(
    lane: Lane, cluster_id: str, target: Point, baseline: Baseline, found: Found
) -> None:
    where = f"stopped-worker, stopped {target}"
    async with _standing_still(lane, cluster_id, target) as first:
        await lane.reach(cluster_id, is_ready)
        expected = baseline.end(CREATE)
        found.differ(where, differences(expected, await lane.settled_end(cluster_id, expected)))
        await first.wake()
        try:
            await lane.reach(cluster_id, is_ready)
        except Unavailable as error:
            found.differ(f"{where}, after it woke", [str(error)])
            return
        late = differences(expected, await lane.settled_end(cluster_id, expected))
        found.differ(f"{where}, after it woke", late)
    found.killed.append(("stopped-worker", target))
    await lane.tenant.delete(cluster_id)
    await lane.reach(cluster_id, is_gone)
    found.differ(where, nothing_left(await lane.bare_end(cluster_id)))


def late_effect(*targets: Point) -> Scenario:
    """As above on the verge of an effect, but the cluster has been deleted when the first wakes.

    What it still makes is swept up.
    """

    async def run(lane: Lane, cluster_id: str, baseline: Baseline) -> Found:
        found = Found()
        for number, target in enumerate(targets):
            where = f"late-effect, stopped {target}"
            id = f"{cluster_id}-{number}"
            async with _standing_still(lane, id, target) as first:
                await lane.reach(id, is_ready)
                await lane.tenant.delete(id)
                await lane.reach(id, is_gone)
                await first.wake()
            found.killed.append(("late-effect", target))
            await _swept(lane, id)
            found.differ(where, nothing_left(await lane.bare_end(id)))
        found.differ("late-effect", await lane.breaches())
        return found

    return Scenario(run)


async def _swept(lane: Lane, cluster_id: str) -> None:
    """Has every hub looked at, as happens by itself every half minute, until nothing more is held."""
    try:
        async with asyncio.timeout(lane.pace.patience):
            while (await lane.end_state(cluster_id)).held:
                for hub in (await lane.ledger.documents.list(Hub)).items:
                    await lane.poke("Hub", hub.id)
                await asyncio.sleep(0.05)
    except TimeoutError:
        return  # the comparison says what is left
    await lane.reach(cluster_id, is_gone)


class _standing_still:
    """A worker that stops itself at the target, while a second one takes over."""

    def __init__(self, lane: Lane, cluster_id: str, target: Point) -> None:
        self._lane = lane
        self._cluster_id = cluster_id
        self._target = target

    async def __aenter__(self) -> _standing_still:
        lane = self._lane
        await lane.dismiss_all()
        self._first = await lane.outsider()
        await self._first.begin(self._target, signal.SIGSTOP)
        await lane.tenant.order(self._cluster_id)
        try:
            async with asyncio.timeout(lane.pace.patience):
                await self._first.reached.wait()
        except TimeoutError as error:
            raise Unavailable(f"no worker came to {self._target}") from error
        await lane.hire()
        return self

    async def wake(self) -> None:
        """Lets it go on, finish what it was at, and end."""
        self._first.signal(signal.SIGCONT)
        await self._first.dismiss()

    async def __aexit__(self, *_: object) -> None:
        if not self._first.gone.is_set():
            self._first.kill()
            await self._first.dismiss()


SIMULATED: Mapping[str, Sequence[Scenario]] = {
    "refused": [Scenario(refused)],
    "lost-hint": [Scenario(lost_hint)],
    "stopped-worker": [
        stopped_worker(
            Point("after:effect:inventory.ensure_held host/compute-0"),
            Point("after:effect:platform.ensure_cluster cluster"),
            Point("after:effect:platform.ensure_node node/compute-1"),
            Point("before:commit:Replace Order, Due Cluster", 2),
        )
    ],
    "late-effect": [
        late_effect(
            Point("before:effect:inventory.ensure_held host/compute-0"),
            Point("before:effect:l2.ensure_network l2"),
            Point("before:effect:dns.ensure_record api-name"),
        )
    ],
}
