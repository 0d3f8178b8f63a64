"""`boatyard up`: everything on this machine in one process, with PostgreSQL and the twin as child processes."""

from __future__ import annotations

import asyncio
import os
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path

from boatyard.client.config import record_local_server, remove_local_server, write_private_file
from boatyard.ledger.embedded_postgres import EmbeddedPostgres
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.schema import migrate
from boatyard.model.caller import SHARED, CallerRole
from boatyard.twin.layout import demo_layout, read_layout
from boatyard.wiring import seed_catalogue, seed_local_catalogue, service_process
from boatyard.wiring.api_server import ServedApi, check_api_settings, serve_api
from boatyard.wiring.hub_order_books import HubOrderBooks, open_hub_books
from boatyard.wiring.keeper_process import find_assets, start_keeper
from boatyard.wiring.run_tokens import find_api_endpoint
from boatyard.wiring.settings import Settings
from boatyard.wiring.template_folders import watch_folders, watched_folders
from boatyard.wiring.twin_process import start_twin
from boatyard.wiring.worker import make_role_runner, run_worker

_TOKEN_TTL = timedelta(days=365)


def run(args: Namespace) -> int:
    return service_process.run_service(args, _up)


async def _up(settings: Settings, stop: asyncio.Event) -> None:
    async with _run_services(settings) as (ledger, books, api, twin, keeper):
        token_file = _write_token(settings, api)
        record_local_server(
            grpc=api.grpc,
            rest=api.rest,
            token_file=token_file,
            pid=os.getpid(),
            ca_file=api.ca_file,
        )
        try:
            service_process.print_line(
                f"boatyard: ready, gRPC {api.grpc}, REST {api.rest}, data {settings.data_dir}"
            )
            template = seed_local_catalogue.SMALL_TEMPLATE if keeper else "small"
            service_process.print_line(
                f"try: boatyard create cluster web-1 --tenant acme --template {template}   (in another terminal)"
            )
            if not keeper:
                service_process.print_line(
                    "clusters are simulated; for real ones: boatyard assets install"
                )
            await run_worker(
                ledger,
                settings,
                stop,
                books=books,
                twin_socket=twin,
                keeper_socket=keeper,
                roles=make_role_runner(ledger, settings, find_api_endpoint(api, settings)),
            )
        finally:
            remove_local_server(pid=os.getpid())


@asynccontextmanager
async def _run_services(
    settings: Settings,
) -> AsyncIterator[tuple[Ledger, HubOrderBooks, ServedApi, str, str]]:
    """Runs PostgreSQL, twin, keeper and API, with schema and catalogue in place; stops all in reverse order."""
    check_api_settings(settings)
    service_process.make_data_dir(settings)
    async with AsyncExitStack() as stack:
        url = settings.database_url
        if not url:
            postgres = EmbeddedPostgres(settings.data_dir)
            await stack.enter_async_context(postgres)
            await stack.enter_async_context(
                service_process.end_with_child(postgres.wait_ended(), "PostgreSQL")
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
            await seed_catalogue.fill_catalogue(ledger, layout, now=ledger.clock.now())
            await seed_local_catalogue.add_local_catalogue(
                ledger, find_assets(settings).versions(), twin=twin
            )
        folders = watched_folders(settings)
        if not settings.templates:
            folders[-1].mkdir(exist_ok=True)
        await stack.enter_async_context(watch_folders(ledger, folders))
        books = await stack.enter_async_context(open_hub_books(ledger))
        api = await stack.enter_async_context(serve_api(ledger, settings, books))
        yield ledger, books, api, twin, keeper


def _write_token(settings: Settings, api: ServedApi) -> Path:
    """Writes a new operator token into the data directory, where the command line finds it by itself."""
    token = api.issuer.create_token(
        tenant=SHARED,
        user=os.environ.get("USER") or "operator",
        role=CallerRole.OPERATOR,
        ttl=_TOKEN_TTL,
        now=api.now(),
    )
    path = settings.data_dir / service_process.OPERATOR_TOKEN
    write_private_file(path, token.encode())
    return path
