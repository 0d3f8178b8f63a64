"""`boatyard migrate`: brings a database to this version and prints its revision."""

from __future__ import annotations

import asyncio
from argparse import Namespace

from boatyard.ledger.embedded_postgres import EmbeddedPostgres
from boatyard.ledger.schema import migrate
from boatyard.wiring import service_process
from boatyard.wiring.settings import Settings


def run(args: Namespace) -> int:
    return service_process.run_service(args, _migrate)


async def _migrate(settings: Settings, stop: asyncio.Event) -> None:
    if settings.database_url:
        await _upgrade(settings.database_url)
        return
    service_process.make_data_dir(settings)
    postgres = EmbeddedPostgres(settings.data_dir)
    async with postgres:
        await _upgrade(postgres.url())


async def _upgrade(url: str) -> None:
    revision = await migrate(
        url, on_step=lambda step: service_process.print_line(f"boatyard: step {step}")
    )
    service_process.print_line(f"boatyard: the database is at revision {revision}")
