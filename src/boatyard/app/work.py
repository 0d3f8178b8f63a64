"""`boatyard work`: a worker alone, beside others on one database."""

from __future__ import annotations

import asyncio
from argparse import Namespace

from boatyard.app import running
from boatyard.app.keepers import keeper_socket
from boatyard.app.run_passes import set_way
from boatyard.app.settings import Settings
from boatyard.app.twins import default_socket
from boatyard.app.working import runs_of_roles, work


def run(args: Namespace) -> int:
    return running.run(args, _work)


async def _work(settings: Settings, stop: asyncio.Event) -> None:
    url = running.require_database(settings)
    way = set_way(settings)
    running.make_data_dir(settings)
    async with running.open_ledger(settings, url, application="boatyard work") as ledger:
        running.say("boatyard: working")
        await work(
            ledger,
            settings,
            stop,
            twin_socket=default_socket(settings),
            keeper_socket=keeper_socket(settings),
            roles=runs_of_roles(ledger, settings, way),
        )
