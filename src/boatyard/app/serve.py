"""`boatyard serve`: the API alone, beside others on one database."""

from __future__ import annotations

import asyncio
from argparse import Namespace

from boatyard.app import running
from boatyard.app.serving import check_doors, serve_api
from boatyard.app.settings import Settings
from boatyard.app.template_folders import watched_folders, watching


def run(args: Namespace) -> int:
    return running.run(args, _serve)


async def _serve(settings: Settings, stop: asyncio.Event) -> None:
    url = running.require_database(settings)
    check_doors(settings)
    running.make_data_dir(settings)
    async with (
        running.open_ledger(settings, url, application="boatyard serve") as ledger,
        # One server may watch folders; where several do, they watch the same.
        watching(ledger, watched_folders(settings) if settings.templates else ()),
        serve_api(ledger, settings) as doors,
    ):
        running.say(f"boatyard: serving gRPC {doors.grpc} REST {doors.rest}")
        await stop.wait()
