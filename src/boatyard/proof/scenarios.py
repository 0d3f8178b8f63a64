"""Scenarios beside the journeys: a refusal, a lost wake-up, a worker that is stopped for longer than its lease."""

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
    """`life` is the undisturbed life it is compared with; without one, a creation alone."""

    run: Course
    life: Life | None = None


async def refused(environment: Lane, cluster_id: str, baseline: Baseline) -> Found:
    """A refused call is not repeated: neither when the order becomes due again nor by another worker."""
    result = Found()
    await environment.twin.call("twin.set_mood", order_id=cluster_id, step="names", mood="refused")
    await environment.tenant.order(cluster_id)
    await environment.reach(cluster_id, is_failed)
    calls_before = await _asked(environment, cluster_id)
    for round_number in range(3):
        if round_number == 1:
            await environment.kill_all()
        await environment.worker()
        await environment.poke("Order", cluster_id)
        await environment.reach(cluster_id, is_failed)
    calls_after = await _asked(environment, cluster_id)
    result.differ(
        "refused",
        [
            f"{key} was refused and asked for {calls_after[key] - count} times more"
            for key, count in calls_before.items()
            if calls_after[key] != count
        ],
    )
    await environment.tenant.delete(cluster_id)
    await environment.reach(cluster_id, is_gone)
    result.differ("refused", nothing_left(await environment.bare_end(cluster_id)))
    result.differ("refused", await environment.breaches())
    return result


async def _asked(environment: Lane, cluster_id: str) -> dict[str, int]:
    """How often each DNS record of the cluster has been asked for, by key."""
    twin_effects = await effects(environment.twin, f"{cluster_id}/")
    return {effect.key: effect.calls for effect in twin_effects if effect.kind == "record"}


async def lost_hint(environment: Lane, cluster_id: str, baseline: Baseline) -> Found:
    """A worker that receives no notifications still finds all due work, by polling."""
    result = Found()
    await environment.dismiss_all()
    await environment.hire(deaf=True)
    await environment.tenant.order(cluster_id)
    await environment.reach(cluster_id, is_ready)
    expected = baseline.end(CREATE)
    end = await environment.settled_end(cluster_id, expected)
    result.differ("lost-hint", differences(expected, end))
    await environment.tenant.delete(cluster_id)
    await environment.reach(cluster_id, is_gone)
    result.differ("lost-hint", nothing_left(await environment.bare_end(cluster_id)))
    await environment.dismiss_all()
    result.differ("lost-hint", await environment.breaches())
    return result


def stopped_worker(*targets: Point) -> Scenario:
    """A worker is stopped for longer than its lease, a second one finishes, the first resumes: its write is refused.

    The targets are just before a write, or after an effect that is not recorded yet.
    """

    async def run(environment: Lane, cluster_id: str, baseline: Baseline) -> Found:
        result = Found()
        for number, target in enumerate(targets):
            await _late_write(environment, f"{cluster_id}-{number}", target, baseline, result)
            if result.differences:
                return result
        result.differ("stopped-worker", await environment.breaches())
        return result

    return Scenario(run)


async def _late_write(
    environment: Lane, cluster_id: str, target: Point, baseline: Baseline, result: Found
) -> None:
    where = f"stopped-worker, stopped {target}"
    async with _standing_still(environment, cluster_id, target) as paused_worker:
        await environment.reach(cluster_id, is_ready)
        expected = baseline.end(CREATE)
        result.differ(
            where, differences(expected, await environment.settled_end(cluster_id, expected))
        )
        await paused_worker.wake()
        try:
            await environment.reach(cluster_id, is_ready)
        except Unavailable as error:
            result.differ(f"{where}, after it woke", [str(error)])
            return
        late_differences = differences(
            expected, await environment.settled_end(cluster_id, expected)
        )
        result.differ(f"{where}, after it woke", late_differences)
    result.killed.append(("stopped-worker", target))
    await environment.tenant.delete(cluster_id)
    await environment.reach(cluster_id, is_gone)
    result.differ(where, nothing_left(await environment.bare_end(cluster_id)))


def late_effect(*targets: Point) -> Scenario:
    """A worker is stopped just before an effect and resumes when the cluster has been deleted.

    What it then still creates is found and removed by the sweep.
    """

    async def run(environment: Lane, cluster_id: str, baseline: Baseline) -> Found:
        result = Found()
        for number, target in enumerate(targets):
            where = f"late-effect, stopped {target}"
            run_cluster_id = f"{cluster_id}-{number}"
            async with _standing_still(environment, run_cluster_id, target) as paused_worker:
                await environment.reach(run_cluster_id, is_ready)
                await environment.tenant.delete(run_cluster_id)
                await environment.reach(run_cluster_id, is_gone)
                await paused_worker.wake()
            result.killed.append(("late-effect", target))
            await _swept(environment, run_cluster_id)
            result.differ(where, nothing_left(await environment.bare_end(run_cluster_id)))
        result.differ("late-effect", await environment.breaches())
        return result

    return Scenario(run)


async def _swept(environment: Lane, cluster_id: str) -> None:
    """Makes every hub due again and again until nothing is held; in production that happens every half minute."""
    try:
        async with asyncio.timeout(environment.pace.patience):
            while (await environment.end_state(cluster_id)).held:
                for hub in (await environment.ledger.documents.list(Hub)).items:
                    await environment.poke("Hub", hub.id)
                await asyncio.sleep(0.05)
    except TimeoutError:
        return  # the comparison reports what is left
    await environment.reach(cluster_id, is_gone)


class _standing_still:
    """A worker that stops itself (SIGSTOP) at the target, and a second one that takes over."""

    def __init__(self, environment: Lane, cluster_id: str, target: Point) -> None:
        self._lane = environment
        self._cluster_id = cluster_id
        self._target = target

    async def __aenter__(self) -> _standing_still:
        environment = self._lane
        await environment.dismiss_all()
        self._first = await environment.outsider()
        await self._first.begin(self._target, signal.SIGSTOP)
        await environment.tenant.order(self._cluster_id)
        try:
            async with asyncio.timeout(environment.pace.patience):
                await self._first.reached.wait()
        except TimeoutError as error:
            raise Unavailable(f"no worker came to {self._target}") from error
        await environment.hire()
        return self

    async def wake(self) -> None:
        """Resumes the stopped worker, lets it finish its pass, and waits for its end."""
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
