"""Scenarios beside the journeys: a refusal, a lost wake-up, a worker that is stopped for longer than its lease."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from boatyard.model.errors import Unavailable
from boatyard.model.generated.osac import Hub
from boatyard.proof.end_state import find_differences
from boatyard.proof.environment import ProofEnvironment, is_failed, is_gone, is_ready
from boatyard.proof.evidence import list_effects
from boatyard.proof.journeys import CREATE, Baseline, ClusterLife, JourneyResult, find_remains
from boatyard.proof.kill_points import KillPoint

RunScenario = Callable[[ProofEnvironment, str, Baseline], Awaitable[JourneyResult]]


@dataclass(frozen=True)
class Scenario:
    """`life` is the undisturbed life it is compared with; without one, a creation alone."""

    run: RunScenario
    life: ClusterLife | None = None


async def run_refused(
    environment: ProofEnvironment, cluster_id: str, baseline: Baseline
) -> JourneyResult:
    """A refused call is not repeated: neither when the order becomes due again nor by another worker."""
    result = JourneyResult()
    await environment.twin.call("twin.set_mood", order_id=cluster_id, step="names", mood="refused")
    await environment.tenant.order(cluster_id)
    await environment.wait_until(cluster_id, is_failed)
    calls_before = await _count_calls(environment, cluster_id)
    for round_number in range(3):
        if round_number == 1:
            await environment.kill_all()
        await environment.ensure_worker()
        await environment.make_due("Order", cluster_id)
        await environment.wait_until(cluster_id, is_failed)
    calls_after = await _count_calls(environment, cluster_id)
    result.add_differences(
        "refused",
        [
            f"{key} was refused and asked for {calls_after[key] - count} times more"
            for key, count in calls_before.items()
            if calls_after[key] != count
        ],
    )
    await environment.tenant.delete(cluster_id)
    await environment.wait_until(cluster_id, is_gone)
    result.add_differences(
        "refused", find_remains(await environment.read_end_after_delete(cluster_id))
    )
    result.add_differences("refused", await environment.find_breaches())
    return result


async def _count_calls(environment: ProofEnvironment, cluster_id: str) -> dict[str, int]:
    """How often each DNS record of the cluster has been asked for, by key."""
    twin_effects = await list_effects(environment.twin, f"{cluster_id}/")
    return {effect.key: effect.calls for effect in twin_effects if effect.kind == "record"}


async def run_lost_hint(
    environment: ProofEnvironment, cluster_id: str, baseline: Baseline
) -> JourneyResult:
    """A worker that receives no notifications still finds all due work, by polling."""
    result = JourneyResult()
    await environment.stop_all()
    await environment.start_worker(ignores_notifications=True)
    await environment.tenant.order(cluster_id)
    await environment.wait_until(cluster_id, is_ready)
    expected = baseline.find_end(CREATE)
    end = await environment.read_settled_end(cluster_id, expected)
    result.add_differences("lost-hint", find_differences(expected, end))
    await environment.tenant.delete(cluster_id)
    await environment.wait_until(cluster_id, is_gone)
    result.add_differences(
        "lost-hint", find_remains(await environment.read_end_after_delete(cluster_id))
    )
    await environment.stop_all()
    result.add_differences("lost-hint", await environment.find_breaches())
    return result


def make_stopped_worker(*targets: KillPoint) -> Scenario:
    """A worker is stopped for longer than its lease, a second one finishes, the first resumes: its write is refused.

    The targets are just before a write, or after an effect that is not recorded yet.
    """

    async def run(
        environment: ProofEnvironment, cluster_id: str, baseline: Baseline
    ) -> JourneyResult:
        result = JourneyResult()
        for number, target in enumerate(targets):
            await _run_late_write(environment, f"{cluster_id}-{number}", target, baseline, result)
            if result.differences:
                return result
        result.add_differences("stopped-worker", await environment.find_breaches())
        return result

    return Scenario(run)


async def _run_late_write(
    environment: ProofEnvironment,
    cluster_id: str,
    target: KillPoint,
    baseline: Baseline,
    result: JourneyResult,
) -> None:
    where = f"stopped-worker, stopped {target}"
    async with _StoppedWorker(environment, cluster_id, target) as paused_worker:
        await environment.wait_until(cluster_id, is_ready)
        expected = baseline.find_end(CREATE)
        result.add_differences(
            where,
            find_differences(expected, await environment.read_settled_end(cluster_id, expected)),
        )
        await paused_worker.resume()
        try:
            await environment.wait_until(cluster_id, is_ready)
        except Unavailable as error:
            result.add_differences(f"{where}, after it woke", [str(error)])
            return
        late_differences = find_differences(
            expected, await environment.read_settled_end(cluster_id, expected)
        )
        result.add_differences(f"{where}, after it woke", late_differences)
    result.killed.append(("stopped-worker", target))
    await environment.tenant.delete(cluster_id)
    await environment.wait_until(cluster_id, is_gone)
    result.add_differences(where, find_remains(await environment.read_end_after_delete(cluster_id)))


def make_late_effect(*targets: KillPoint) -> Scenario:
    """A worker is stopped just before an effect and resumes when the cluster has been deleted.

    What it then still creates is found and removed by the sweep.
    """

    async def run(
        environment: ProofEnvironment, cluster_id: str, baseline: Baseline
    ) -> JourneyResult:
        result = JourneyResult()
        for number, target in enumerate(targets):
            where = f"late-effect, stopped {target}"
            run_cluster_id = f"{cluster_id}-{number}"
            async with _StoppedWorker(environment, run_cluster_id, target) as paused_worker:
                await environment.wait_until(run_cluster_id, is_ready)
                await environment.tenant.delete(run_cluster_id)
                await environment.wait_until(run_cluster_id, is_gone)
                await paused_worker.resume()
            result.killed.append(("late-effect", target))
            await _wait_until_swept(environment, run_cluster_id)
            result.add_differences(
                where, find_remains(await environment.read_end_after_delete(run_cluster_id))
            )
        result.add_differences("late-effect", await environment.find_breaches())
        return result

    return Scenario(run)


async def _wait_until_swept(environment: ProofEnvironment, cluster_id: str) -> None:
    """Makes every hub due again and again until nothing is held; in production that happens every half minute."""
    try:
        async with asyncio.timeout(environment.timings.timeout_seconds):
            while (await environment.read_end_state(cluster_id)).held:
                for hub in (await environment.ledger.documents.list(Hub)).items:
                    await environment.make_due("Hub", hub.id)
                await asyncio.sleep(0.05)
    except TimeoutError:
        return  # the comparison reports what is left
    await environment.wait_until(cluster_id, is_gone)


class _StoppedWorker:
    """A worker that stops itself (SIGSTOP) at the target, and a second one that takes over."""

    def __init__(self, environment: ProofEnvironment, cluster_id: str, target: KillPoint) -> None:
        self._environment = environment
        self._cluster_id = cluster_id
        self._target = target

    async def __aenter__(self) -> _StoppedWorker:
        environment = self._environment
        await environment.stop_all()
        self._stopped_worker = await environment.start_short_lease_worker()
        await self._stopped_worker.set_target(self._target, signal.SIGSTOP)
        await environment.tenant.order(self._cluster_id)
        try:
            async with asyncio.timeout(environment.timings.timeout_seconds):
                await self._stopped_worker.reached.wait()
        except TimeoutError as error:
            raise Unavailable(f"no worker came to {self._target}") from error
        await environment.start_worker()
        return self

    async def resume(self) -> None:
        """Resumes the stopped worker, lets it finish its pass, and waits for its end."""
        self._stopped_worker.signal(signal.SIGCONT)
        await self._stopped_worker.stop()

    async def __aexit__(self, *_: object) -> None:
        if not self._stopped_worker.ended.is_set():
            self._stopped_worker.kill()
            await self._stopped_worker.stop()


SIMULATED_SCENARIOS: Mapping[str, Sequence[Scenario]] = {
    "refused": [Scenario(run_refused)],
    "lost-hint": [Scenario(run_lost_hint)],
    "stopped-worker": [
        make_stopped_worker(
            KillPoint("after:effect:inventory.ensure_held host/compute-0"),
            KillPoint("after:effect:platform.ensure_cluster cluster"),
            KillPoint("after:effect:platform.ensure_node node/compute-1"),
            KillPoint("before:commit:Replace Order, Due Cluster", 2),
        )
    ],
    "late-effect": [
        make_late_effect(
            KillPoint("before:effect:inventory.ensure_held host/compute-0"),
            KillPoint("before:effect:l2.ensure_network l2"),
            KillPoint("before:effect:dns.ensure_record api-name"),
        )
    ],
}
