"""What long-running processes do when something beside their work goes wrong."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from boatyard.ledger.ledger import Ledger
from boatyard.wiring import service_process
from boatyard.wiring.settings import Settings


async def test_a_process_whose_publisher_dies_ends_instead_of_looking_well(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def die(self: Ledger) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr(Ledger, "run", die)
    with pytest.raises(ExceptionGroup) as found:
        async with service_process.open_ledger(
            Settings(data=str(tmp_path)), database_url, application="test"
        ):
            await asyncio.sleep(60)
    assert found.group_contains(RuntimeError, match="planted")


async def test_a_process_that_ends_well_leaves_no_task_behind(
    database_url: str, tmp_path: Path
) -> None:
    before = asyncio.all_tasks()
    async with service_process.open_ledger(
        Settings(data=str(tmp_path)), database_url, application="test"
    ) as ledger:
        assert await ledger.events.last_seq() == 0
    assert asyncio.all_tasks() == before
