"""`boatyard up`: everything on this machine in one process, with PostgreSQL and the twin as child processes."""

from __future__ import annotations

import asyncio
import os
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path

from boatyard.client.config import clear_current, write_current, write_private_file
from boatyard.ledger.embedded import EmbeddedPostgres
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.schema import migrate
from boatyard.model.caller import SHARED, Role
from boatyard.twin.layout import demo_layout, read_layout
from boatyard.wiring import seed_catalogue, seed_local_catalogue, service_process
from boatyard.wiring.api_server import Doors, check_doors, serve_api
from boatyard.wiring.keeper_process import find_assets, start_keeper
from boatyard.wiring.run_tokens import way_to
from boatyard.wiring.settings import Settings
from boatyard.wiring.template_folders import watched_folders, watching
from boatyard.wiring.twin_process import start_twin
from boatyard.wiring.worker import runs_of_roles, work

_TOKEN_LIFE = timedelta(days=365)


def run(args: Namespace) -> int:
    return service_process.run(args, _up)


async def _up(settings: Settings, stop: asyncio.Event) -> None:
    async with _everything(settings) as (ledger, api, twin, keeper):
        token_file = _write_token(settings, api)
        write_current(
            grpc=api.grpc,
            rest=api.rest,
            token_file=token_file,
            pid=os.getpid(),
            ca_file=api.ca_file,
        )
        try:
            service_process.say(
                f"boatyard: ready, gRPC {api.grpc}, REST {api.rest}, data {settings.data_dir}"
            )
            template = seed_local_catalogue.SMALL if keeper else "small"
            service_process.say(
                f"try: boatyard create cluster web-1 --tenant acme --template {template}   (in another terminal)"
            )
            if not keeper:
                service_process.say(
                    "clusters are simulated; for real ones: boatyard assets install"
                )
            await work(
                ledger,
                settings,
                stop,
                twin_socket=twin,
                keeper_socket=keeper,
                roles=runs_of_roles(ledger, settings, way_to(api, settings)),
            )
        finally:
            clear_current(pid=os.getpid())


@asynccontextmanager
async def _everything(settings: Settings) -> AsyncIterator[tuple[Ledger, Doors, str, str]]:
    """Runs PostgreSQL, twin, keeper and API, with schema and catalogue in place; stops all in reverse order."""
    check_doors(settings)
    service_process.make_data_dir(settings)
    async with AsyncExitStack() as stack:
        url = settings.database_url
        if not url:
            postgres = EmbeddedPostgres(settings.data_dir)
            await stack.enter_async_context(postgres)
            await stack.enter_async_context(
                service_process.ends_with(postgres.ended(), "PostgreSQL")
            )
            url = postgres.url()
        await migrate(url)
        twin = await stack.enter_async_context(start_twin(settings))
        keeper = await stack.enter_async_context(start_keeper(settings, twin_socket=twin))
        ledger = await stack.enter_async_context(
            service_process.open_ledger(settings, url, application="boatyard up")
        )
        if not settings.bare:
            layout = (
                read_layout(Path(settings.twin_layout)) if settings.twin_layout else demo_layout()
            )
            await seed_catalogue.fill(ledger, layout, now=ledger.clock.now())
            await seed_local_catalogue.offer(ledger, find_assets(settings).versions(), twin=twin)
        folders = watched_folders(settings)
        if not settings.templates:
            folders[-1].mkdir(exist_ok=True)
        await stack.enter_async_context(watching(ledger, folders))
        api = await stack.enter_async_context(serve_api(ledger, settings))
        yield ledger, api, twin, keeper


def _write_token(settings: Settings, api: Doors) -> Path:
    """Writes a new operator token into the data directory, where the command line finds it by itself."""
    token = api.issuer.create_token(
        tenant=SHARED,
        user=os.environ.get("USER") or "operator",
        role=Role.OPERATOR,
        ttl=_TOKEN_LIFE,
        now=api.now(),
    )
    path = settings.data_dir / service_process.OPERATOR_TOKEN
    write_private_file(path, token.encode())
    return path
