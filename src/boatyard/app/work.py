"""`boatyard work`: only a worker, beside other processes on one database."""

from __future__ import annotations

import asyncio
from argparse import Namespace

from boatyard.wiring import service_process
from boatyard.wiring.keeper_process import keeper_socket
from boatyard.wiring.run_tokens import set_way
from boatyard.wiring.settings import Settings
from boatyard.wiring.twin_process import default_socket
from boatyard.wiring.worker import runs_of_roles, work


def run(args: Namespace) -> int:
    return service_process.run(args, _work)


async def _work(settings: Settings, stop: asyncio.Event) -> None:
    url = service_process.require_database(settings)
    api_address = set_way(settings)
    service_process.make_data_dir(settings)
    async with service_process.open_ledger(settings, url, application="boatyard work") as ledger:
        service_process.say("boatyard: working")
        await work(
            ledger,
            settings,
            stop,
            twin_socket=default_socket(settings),
            keeper_socket=keeper_socket(settings),
            roles=runs_of_roles(ledger, settings, api_address),
        )
