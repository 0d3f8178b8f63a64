"""A worker that dies before or after any write and any effect of a rest, a backup or a restore: another goes on.

The process itself is killed by `boatyard prove`; here it is the worker, on stepped time, at every place in turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from boatyard.model.generated.boatyard import Backup, BackupState
from boatyard.model.generated.osac import ClusterState
from boatyard.model.outcome import Outcome
from boatyard.platforms.port import RestMode
from boatyard.resources.backups.reconciler import BackupReconciler
from tests.support.simulated import lifecycle
from tests.support.simulated.environment import SimulatedEnvironment
from tests.support.simulated.kube_environment import SimulatedKubeEnvironment
from tests.support.simulated.twin import no_effect, no_write
from tests.support.soak import SOAKING

MOST_PLACES = 200

Kind = tuple[int, str]  # of a place to die: the stage of the life, and what is done there


class WorkerDied(BaseException):
    """No `except Exception` of ours may stop it: the worker is gone."""


class Deaths:
    """Runs stage after stage of a life in which one worker dies at the n-th place, or at the first of a kind."""

    def __init__(self, environment: SimulatedEnvironment) -> None:
        self._environment = environment
        self._left = 0
        self._kind: Kind | None = None
        self._stage = 0
        self.kinds: set[Kind] = set()  # of the places that were passed
        self.died = False

    def arm(self, *, place: int = 0, kind: Kind | None = None) -> None:
        self._left, self._kind, self._stage, self.died = place, kind, 0, False

    async def run(self, until: Callable[[], Awaitable[bool]]) -> None:
        environment, ledger = self._environment, self._environment.ledger
        self._stage += 1
        environment.on_effect = lambda point, key: self._pass(point)
        ledger._on_write = lambda text: self._pass("write")
        environment.on_hub_write = lambda: self._pass("hub write")
        try:
            await environment.run(until)
            return
        except WorkerDied:
            self.died = True
        finally:
            environment.on_effect = no_effect
            ledger._on_write = None
            environment.on_hub_write = no_write
        await environment.replace_worker("heir")
        await environment.run(until)

    def _pass(self, what: str) -> None:
        if self.died:
            return
        kind = (self._stage, what)
        self.kinds.add(kind)
        self._left -= 1
        if self._left == 0 or kind == self._kind:
            raise WorkerDied


async def at_every_place(
    environment: SimulatedEnvironment, life: Callable[[Deaths], Awaitable[None]]
) -> int:
    """Lives the life again and again, each time with a death one place later; how many there were."""
    deaths = Deaths(environment)
    for place in range(1, MOST_PLACES):
        deaths.arm(place=place)
        await life(deaths)
        if not deaths.died:
            return place - 1
    raise AssertionError("there is no end to the places")


async def at_each_kind(
    environment: SimulatedEnvironment, life: Callable[[Deaths], Awaitable[None]]
) -> int:
    """Lives the life with a death at each stage's first write, write to the hub and effect of each name."""
    deaths = Deaths(environment)
    await life(deaths)  # nobody dies
    count = 0
    for kind in sorted(deaths.kinds):
        deaths.arm(kind=kind)
        await life(deaths)
        count += deaths.died
    return count


async def _ready(environment: SimulatedEnvironment) -> str:
    web = await environment.order("web", sizes={"compute": 1})
    await environment.run_to(web, ClusterState.READY)
    await lifecycle.write(environment, web, "a shop")
    return web


def _is(
    environment: SimulatedEnvironment, cluster_id: str, state: ClusterState
) -> Callable[[], Awaitable[bool]]:
    async def reached() -> bool:
        cluster = await environment.cluster(cluster_id)
        seen = cluster.status.observed_generation == cluster.metadata.generation
        return seen and cluster.status.state == state

    return reached


async def test_a_death_at_any_place_of_a_rest(environment: SimulatedEnvironment) -> None:
    environment.freeze_for = timedelta(minutes=2)
    environment.worker = environment.make_worker()
    web = await _ready(environment)
    before = await environment.held(web)

    async def stopped() -> bool:
        return await lifecycle.rest_of(environment, web) == RestMode.STOPPED

    async def life(deaths: Deaths) -> None:
        await lifecycle.hibernate(environment, web)
        await deaths.run(_is(environment, web, ClusterState.HIBERNATED))
        await deaths.run(stopped)
        await lifecycle.resume(environment, web)
        await deaths.run(_is(environment, web, ClusterState.READY))
        assert await environment.held(web) == before
        assert (await lifecycle.seen(environment, web))["contents"] == "a shop"
        assert await lifecycle.rest_of(environment, web) == RestMode.AWAKE

    # The longest of these lives; on a Kubernetes hub it takes five times as long.
    short = isinstance(environment, SimulatedKubeEnvironment) and not SOAKING
    assert await (at_each_kind if short else at_every_place)(environment, life) > 10


async def test_a_death_at_any_place_of_a_backup(environment: SimulatedEnvironment) -> None:
    web = await _ready(environment)
    names = iter(range(MOST_PLACES))

    async def life(deaths: Deaths) -> None:
        copy = await lifecycle.back_up(environment, web, f"copy-{next(names)}")

        async def taken() -> bool:
            return (await lifecycle.backup_of(environment, copy)).status.state == BackupState.READY

        async def gone() -> bool:
            return await environment.ledger.documents.get(Backup, copy) is None

        await deaths.run(taken)
        assert list((await environment.held())["backup"]) == [f"{copy}/backup"]
        await lifecycle.delete_backup(environment, copy)
        await deaths.run(gone)
        assert "backup" not in await environment.held()

    assert await at_every_place(environment, life) >= 8


async def test_a_death_at_any_place_of_a_restore(environment: SimulatedEnvironment) -> None:
    web = await _ready(environment)
    copy = await lifecycle.back_up(environment, web, "before")
    await lifecycle.run_until_backed_up(environment, copy)
    requests = iter(range(MOST_PLACES))

    async def life(deaths: Deaths) -> None:
        await lifecycle.write(environment, web, "a mess")
        request = f"request-{next(requests)}"
        await lifecycle.restore(environment, web, copy, request)
        await deaths.run(_is(environment, web, ClusterState.READY))
        assert (await lifecycle.seen(environment, web))["contents"] == "a shop"
        assert (await environment.cluster(web)).status.restored == request
        await lifecycle.write(environment, web, "a bigger shop")
        await environment.run(within=timedelta(minutes=2))
        assert (await lifecycle.seen(environment, web))["contents"] == "a bigger shop", (
            "it happened once"
        )
        await lifecycle.write(environment, web, "a shop")

    assert await at_every_place(environment, life) >= 6


async def test_a_key_that_is_only_remembered_would_be_found(
    environment: SimulatedEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted bug: whoever takes over makes up another key, and a second copy."""
    used: Counter[str] = Counter()

    async def act(self: BackupReconciler, backup: Backup, *, released: bool) -> Outcome:
        keys = self.__dict__.setdefault("keys", {})
        if backup.id not in keys:
            used[backup.id] += 1
            keys[backup.id] = f"{backup.id}/backup" + "-again" * (used[backup.id] - 1)
        platform = (await self._drivers_for(backup.status.hub)).platform
        if released:
            return await platform.release_backup(keys[backup.id])
        return await platform.ensure_backup(keys[backup.id], f"{backup.spec.cluster}/cluster")

    monkeypatch.setattr(BackupReconciler, "_call_platform", act)
    with pytest.raises(AssertionError, match="-again"):
        await test_a_death_at_any_place_of_a_backup(environment)
    # Tidied up, for what looks at every environment at the end.
    for thing in list(environment.world.state.things()):
        if thing.kind == "backup" and thing.key.endswith("-again"):
            environment.world.state.remove(thing, environment.clock.now().timestamp())
