"""`boatyard serve`: only the API, beside other processes on one database."""

from __future__ import annotations

import asyncio
from argparse import Namespace

from boatyard.wiring import service_process
from boatyard.wiring.api_server import check_api_settings, serve_api
from boatyard.wiring.hub_order_books import open_hub_books
from boatyard.wiring.settings import Settings
from boatyard.wiring.template_folders import watch_folders, watched_folders


def run(args: Namespace) -> int:
    return service_process.run_service(args, _serve)


async def _serve(settings: Settings, stop: asyncio.Event) -> None:
    url = service_process.require_database(settings)
    check_api_settings(settings)
    service_process.make_data_dir(settings)
    async with (
        service_process.open_ledger(settings, url, application="boatyard serve") as ledger,
        # One server may watch folders; where several do, they watch the same.
        watch_folders(ledger, watched_folders(settings) if settings.templates else ()),
        open_hub_books(ledger) as books,
        serve_api(ledger, settings, books) as api,
    ):
        service_process.print_line(f"boatyard: serving gRPC {api.grpc} REST {api.rest}")
        await stop.wait()
