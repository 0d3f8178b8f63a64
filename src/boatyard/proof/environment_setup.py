"""Creates environments of the proof: database, twin, keeper and catalogue. Called by the proof, often."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from boatyard.assets import Assets
from boatyard.ledger import schema
from boatyard.ledger.embedded_postgres import EmbeddedPostgres
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.seal import Seal
from boatyard.proof.environment import ProofEnvironment, ProofTimings
from boatyard.proof.environment_keeper import EnvironmentKeeper
from boatyard.proof.kube_hub import EnvironmentHub
from boatyard.proof.role_runs import EnvironmentRuns, write_roles
from boatyard.proof.tenant_requests import ClusterRequest
from boatyard.proof.worker import WorkerSpec
from boatyard.twin.client import TwinClient
from boatyard.twin.layout import HubLayout, Layout, write_layout
from boatyard.wiring import seed_catalogue, seed_local_catalogue
from boatyard.wiring.api_server import serve_api
from boatyard.wiring.hub_order_books import open_hub_books
from boatyard.wiring.run_tokens import find_api_endpoint
from boatyard.wiring.settings import Settings
from boatyard.wiring.twin_process import start_twin

SEAL_KEY = bytes(range(32))
TEMPLATE_DATABASE = "prove_template"


def make_layout(count: int = 2) -> Layout:
    """Hubs with room for a few small clusters."""
    return Layout(
        hubs={
            f"hub-{number}": HubLayout(
                hosts={"bm-small": 8},
                subnets=f"10.{number}.0.0/16",
                floating=f"198.51.{number}.0/24",
                zone=f"zone-{number}.example",
            )
            for number in range(1, count + 1)
        }
    )


@dataclass(frozen=True)
class RealClusters:
    """Clusters are real ones, made on this machine by a keeper of the environment."""

    assets: Assets
    planted_bug: str = ""  # "module:function", called in the keeper: a bug that the proof must find


@asynccontextmanager
async def open_environment(
    postgres: EmbeddedPostgres,
    directory: Path,
    name: str,
    *,
    timings: ProofTimings,
    request: ClusterRequest,
    real: RealClusters | None = None,
    hub_kubeconfig: bytes = b"",
    plant: str = "",
) -> AsyncIterator[ProofEnvironment]:
    """Yields an environment with a small catalogue and ready hubs; removes it afterwards. Its twin has no delays."""
    await asyncio.to_thread(directory.mkdir, parents=True)
    database = f"lane_{os.getpid()}_{time.monotonic_ns()}_{name}"
    async with AsyncExitStack() as stack:
        await _execute(postgres, f"create database {database} template {TEMPLATE_DATABASE}")
        stack.push_async_callback(_execute, postgres, f"drop database {database} with (force)")
        ledger = await Ledger.open(
            postgres.url(database),
            seal=Seal.from_bytes(SEAL_KEY),
            application="prove parent",
            pool_size=2,
        )
        stack.push_async_callback(ledger.close)
        hubs = make_layout(1 if hub_kubeconfig else 2) if real is None else Layout(hubs={})
        await seed_catalogue.fill_catalogue(ledger, hubs, now=ledger.clock.now())
        (directory / "layout.json").write_bytes(write_layout(hubs))
        settings = Settings(
            data=str(directory),
            grpc="127.0.0.1:0",
            rest="127.0.0.1:0",
            twin_delays="instant",
            twin_layout=str(directory / "layout.json"),
        )
        socket = await stack.enter_async_context(start_twin(settings))
        twin = TwinClient(Path(socket))
        stack.push_async_callback(twin.close)
        keeper = None
        if real is not None:
            await seed_local_catalogue.add_local_catalogue(
                ledger, real.assets.versions(), twin=socket
            )
            keeper = EnvironmentKeeper(
                directory, twin_socket=socket, assets=real.assets, plant=real.planted_bug
            )
            stack.push_async_callback(keeper.close)
            await keeper.start()
        hub = None
        if hub_kubeconfig:
            hub = EnvironmentHub(hub_kubeconfig)
            stack.push_async_callback(hub.close)
            await hub.open(ledger)
        runs, api = None, None
        if request.digest:
            # It outlives every worker, as a `serve` does: a role that decides goes on calling it.
            books = await stack.enter_async_context(open_hub_books(ledger))
            api = find_api_endpoint(
                await stack.enter_async_context(serve_api(ledger, settings, books)), settings
            )
            write_roles(directory)
            runs = EnvironmentRuns(directory)
            stack.push_async_callback(runs.close)
        spec = WorkerSpec(
            url=postgres.url(database),
            key=SEAL_KEY,
            twin_socket=socket,
            keeper_socket=keeper.socket if keeper else "",
            log=str(directory / "workers.log"),
            lease=timings.lease,
            poll=timings.poll,
            hub=hub.access if hub else None,
            runs_directory=str(directory) if runs else "",
            api=api,
            planted_bug=plant,
        )
        connection = await asyncpg.connect(postgres.url(database))
        stack.push_async_callback(connection.close)
        environment = ProofEnvironment(
            spec, ledger, twin, connection, timings, request, keeper, hub, runs
        )
        stack.push_async_callback(environment.kill_all)
        await environment.wait_until_hubs_ready()
        yield environment


async def make_template_database(postgres: EmbeddedPostgres) -> None:
    """Creates the migrated database from which environments are cloned in milliseconds. May be called again."""
    with contextlib.suppress(asyncpg.DuplicateDatabaseError):
        await _execute(postgres, f"create database {TEMPLATE_DATABASE}")
    await schema.migrate(postgres.url(TEMPLATE_DATABASE))


async def _execute(postgres: EmbeddedPostgres, statement: str) -> None:
    connection = await asyncpg.connect(postgres.url("postgres"))
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
