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
from boatyard.platforms.port import Rest
from boatyard.resources.backups.reconciler import BackupReconciler
from tests.support import resting
from tests.support.kube_yard import KubeYard
from tests.support.soak import SOAKING
from tests.support.stage import no_effect, no_write
from tests.support.yard import Yard

MOST_PLACES = 200

Kind = tuple[int, str]  # of a place to die: the stage of the life, and what is done there


class Died(BaseException):
    """No `except Exception` of ours may stop it: the worker is gone."""


class Deaths:
    """Runs stage after stage of a life in which one worker dies at the n-th place, or at the first of a kind."""

    def __init__(self, yard: Yard) -> None:
        self._yard = yard
        self._left = 0
        self._kind: Kind | None = None
        self._stage = 0
        self.kinds: set[Kind] = set()  # of the places that were passed
        self.died = False

    def arm(self, *, place: int = 0, kind: Kind | None = None) -> None:
        self._left, self._kind, self._stage, self.died = place, kind, 0, False

    async def run(self, until: Callable[[], Awaitable[bool]]) -> None:
        yard, ledger = self._yard, self._yard.ledger
        self._stage += 1
        yard.on_effect = lambda point, key: self._pass(point)
        ledger._on_write = lambda text: self._pass("write")
        yard.on_hub_write = lambda: self._pass("hub write")
        try:
            await yard.run(until)
            return
        except Died:
            self.died = True
        finally:
            yard.on_effect = no_effect
            ledger._on_write = None
            yard.on_hub_write = no_write
        await yard.replace_worker("heir")
        await yard.run(until)

    def _pass(self, what: str) -> None:
        if self.died:
            return
        kind = (self._stage, what)
        self.kinds.add(kind)
        self._left -= 1
        if self._left == 0 or kind == self._kind:
            raise Died


async def at_every_place(yard: Yard, life: Callable[[Deaths], Awaitable[None]]) -> int:
    """Lives the life again and again, each time with a death one place later; how many there were."""
    deaths = Deaths(yard)
    for place in range(1, MOST_PLACES):
        deaths.arm(place=place)
        await life(deaths)
        if not deaths.died:
            return place - 1
    raise AssertionError("there is no end to the places")


async def at_each_kind(yard: Yard, life: Callable[[Deaths], Awaitable[None]]) -> int:
    """Lives the life with a death at each stage's first write, write to the hub and effect of each name."""
    deaths = Deaths(yard)
    await life(deaths)  # nobody dies
    count = 0
    for kind in sorted(deaths.kinds):
        deaths.arm(kind=kind)
        await life(deaths)
        count += deaths.died
    return count


async def _ready(yard: Yard) -> str:
    web = await yard.order("web", sizes={"compute": 1})
    await yard.run_to(web, ClusterState.READY)
    await resting.write(yard, web, "a shop")
    return web


def _is(yard: Yard, cluster_id: str, state: ClusterState) -> Callable[[], Awaitable[bool]]:
    async def reached() -> bool:
        cluster = await yard.cluster(cluster_id)
        seen = cluster.status.observed_generation == cluster.metadata.generation
        return seen and cluster.status.state == state

    return reached


async def test_a_death_at_any_place_of_a_rest(yard: Yard) -> None:
    yard.freeze_for = timedelta(minutes=2)
    yard.worker = yard.make_worker()
    web = await _ready(yard)
    before = await yard.held(web)

    async def stopped() -> bool:
        return await resting.rest_of(yard, web) == Rest.STOPPED

    async def life(deaths: Deaths) -> None:
        await resting.hibernate(yard, web)
        await deaths.run(_is(yard, web, ClusterState.HIBERNATED))
        await deaths.run(stopped)
        await resting.resume(yard, web)
        await deaths.run(_is(yard, web, ClusterState.READY))
        assert await yard.held(web) == before
        assert (await resting.seen(yard, web))["contents"] == "a shop"
        assert await resting.rest_of(yard, web) == Rest.AWAKE

    # The longest of these lives; on a Kubernetes hub it takes five times as long.
    short = isinstance(yard, KubeYard) and not SOAKING
    assert await (at_each_kind if short else at_every_place)(yard, life) > 10


async def test_a_death_at_any_place_of_a_backup(yard: Yard) -> None:
    web = await _ready(yard)
    names = iter(range(MOST_PLACES))

    async def life(deaths: Deaths) -> None:
        copy = await resting.back_up(yard, web, f"copy-{next(names)}")

        async def taken() -> bool:
            return (await resting.backup_of(yard, copy)).status.state == BackupState.READY

        async def gone() -> bool:
            return await yard.ledger.documents.get(Backup, copy) is None

        await deaths.run(taken)
        assert list((await yard.held())["backup"]) == [f"{copy}/backup"]
        await resting.delete_backup(yard, copy)
        await deaths.run(gone)
        assert "backup" not in await yard.held()

    assert await at_every_place(yard, life) >= 8


async def test_a_death_at_any_place_of_a_restore(yard: Yard) -> None:
    web = await _ready(yard)
    copy = await resting.back_up(yard, web, "before")
    await resting.run_until_backed_up(yard, copy)
    requests = iter(range(MOST_PLACES))

    async def life(deaths: Deaths) -> None:
        await resting.write(yard, web, "a mess")
        request = f"request-{next(requests)}"
        await resting.restore(yard, web, copy, request)
        await deaths.run(_is(yard, web, ClusterState.READY))
        assert (await resting.seen(yard, web))["contents"] == "a shop"
        assert (await yard.cluster(web)).status.restored == request
        await resting.write(yard, web, "a bigger shop")
        await yard.run(within=timedelta(minutes=2))
        assert (await resting.seen(yard, web))["contents"] == "a bigger shop", "it happened once"
        await resting.write(yard, web, "a shop")

    assert await at_every_place(yard, life) >= 6


async def test_a_key_that_is_only_remembered_would_be_found(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
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

    monkeypatch.setattr(BackupReconciler, "_act", act)
    with pytest.raises(AssertionError, match="-again"):
        await test_a_death_at_any_place_of_a_backup(yard)
    # Tidied up, for what looks at every yard at the end.
    for thing in list(yard.world.state.things()):
        if thing.kind == "backup" and thing.key.endswith("-again"):
            yard.world.state.remove(thing, yard.clock.now().timestamp())
