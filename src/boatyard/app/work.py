"""`boatyard work`: only a worker, beside other processes on one database."""

from __future__ import annotations

import asyncio
from argparse import Namespace

from boatyard.wiring import service_process
from boatyard.wiring.hub_order_books import open_hub_books
from boatyard.wiring.keeper_process import keeper_socket
from boatyard.wiring.run_tokens import read_api_endpoint
from boatyard.wiring.settings import Settings
from boatyard.wiring.twin_process import twin_socket_path
from boatyard.wiring.worker import make_role_runner, run_worker


def run(args: Namespace) -> int:
    return service_process.run_service(args, _work)


async def _work(settings: Settings, stop: asyncio.Event) -> None:
    url = service_process.require_database(settings)
    api_address = read_api_endpoint(settings)
    service_process.make_data_dir(settings)
    async with (
        service_process.open_ledger(settings, url, application="boatyard work") as ledger,
        open_hub_books(ledger) as books,
    ):
        service_process.print_line("boatyard: working")
        await run_worker(
            ledger,
            settings,
            stop,
            books=books,
            twin_socket=twin_socket_path(settings),
            keeper_socket=keeper_socket(settings),
            roles=make_role_runner(ledger, settings, api_address),
        )
