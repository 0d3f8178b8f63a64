"""`boatyard migrate`: brings a database to this version, or says which step it stands at."""

from __future__ import annotations

import asyncio
from argparse import Namespace

from boatyard.app import running
from boatyard.app.settings import Settings
from boatyard.ledger.embedded import EmbeddedPostgres
from boatyard.ledger.schema import migrate


def run(args: Namespace) -> int:
    return running.run(args, _migrate)


async def _migrate(settings: Settings, stop: asyncio.Event) -> None:
    if settings.database_url:
        await _upgrade(settings.database_url)
        return
    running.make_data_dir(settings)
    postgres = EmbeddedPostgres(settings.data_dir)
    async with postgres:
        await _upgrade(postgres.url())


async def _upgrade(url: str) -> None:
    revision = await migrate(url, on_step=lambda step: running.say(f"boatyard: step {step}"))
    running.say(f"boatyard: the database is at revision {revision}")
