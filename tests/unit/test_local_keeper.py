"""The keeper's verbs where something else happens while they wait."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from boatyard.model.outcome import Done
from boatyard.platforms.drivers.local.backups import Backups
from boatyard.platforms.drivers.local.keeper import Keeper
from tests.unit.test_local_household import NODE
from tests.unit.test_local_records import record


async def test_a_node_whose_cluster_leaves_while_it_is_drained_is_gone(tmp_path: Path) -> None:
    keeper = Keeper(tmp_path, programs=cast(Any, None), node_backend=cast(Any, None))
    mine = keeper.records.save(record(nodes={NODE.key: NODE}))

    async def drain(node: object, *, late: bool) -> Done:
        keeper.records.remove(mine.slug)
        return Done()

    async def end_node(node: object) -> None:
        return

    house = SimpleNamespace(drain=drain, end_node=end_node)
    keeper._clusters[mine.slug] = cast(Any, house)
    assert await keeper.release_node(NODE.key, mine.key, NODE.slot) == Done()
    assert list(keeper.records) == []


async def test_a_lock_of_a_backup_lives_as_long_as_somebody_needs_it(tmp_path: Path) -> None:
    backups, inside, most = Backups(tmp_path), 0, 0

    async def one_after_another() -> None:
        nonlocal inside, most
        async with backups.get_lock("a"):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(one_after_another() for _ in range(5)))
    assert most == 1
    assert len(backups._locks) == 0
