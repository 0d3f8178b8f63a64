"""`boatyard serve`: only the API, beside other processes on one database."""

from __future__ import annotations

import asyncio
from argparse import Namespace

from boatyard.wiring import service_process
from boatyard.wiring.api_server import check_doors, serve_api
from boatyard.wiring.settings import Settings
from boatyard.wiring.template_folders import watched_folders, watching


def run(args: Namespace) -> int:
    return service_process.run(args, _serve)


async def _serve(settings: Settings, stop: asyncio.Event) -> None:
    url = service_process.require_database(settings)
    check_doors(settings)
    service_process.make_data_dir(settings)
    async with (
        service_process.open_ledger(settings, url, application="boatyard serve") as ledger,
        # One server may watch folders; where several do, they watch the same.
        watching(ledger, watched_folders(settings) if settings.templates else ()),
        serve_api(ledger, settings) as api,
    ):
        service_process.say(f"boatyard: serving gRPC {api.grpc} REST {api.rest}")
        await stop.wait()
