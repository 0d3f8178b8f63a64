"""Starts and stops the whole API. Called by `boatyard serve` and `boatyard up`."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc
from msgspec.structs import replace

from boatyard.api.authentication import Authenticator, TokenChecker, TokenIssuer
from boatyard.api.catalogue_cache import CatalogueCache
from boatyard.api.crud import Crud, Preflight
from boatyard.api.grpc import GrpcServer
from boatyard.api.methods import build_methods
from boatyard.api.rest import RestServer
from boatyard.api.watch import EventWatchers
from boatyard.ledger.changes import EventNote, Insert
from boatyard.ledger.ledger import Ledger
from boatyard.model.caller import SHARED, SYSTEM
from boatyard.model.errors import Exists, Refused
from boatyard.model.generated.osac import Metadata, Tenant, TenantState, TenantStatus
from boatyard.resources.admission_context import SettingChecks
from boatyard.resources.hubs.access import HubAccess
from boatyard.resources.orders.remote_orders import RemoteOrders


@dataclass(frozen=True)
class Tls:
    """The server's certificate and key, as PEM files."""

    certificate: Path
    key: Path


class ApiServer:
    """The gRPC and the REST server on one ledger. The caller runs the ledger's own tasks (`ledger.run`)."""

    def __init__(
        self,
        ledger: Ledger,
        issuer: TokenIssuer,
        *,
        anonymous: bool = False,
        hosts: Sequence[str] = (),
        hub_access: HubAccess | None = None,
        remote_orders: RemoteOrders | None = None,
        setting_checks: SettingChecks | None = None,
        preflight: Preflight | None = None,
    ) -> None:
        self._ledger = ledger
        self._anonymous = anonymous
        self._catalogue = CatalogueCache(ledger.documents)
        self._watches = EventWatchers(ledger)
        self._crud = Crud(ledger, self._catalogue, preflight, setting_checks=setting_checks)
        table = build_methods(self._crud, self._watches, hub_access, remote_orders)
        callers = Authenticator(
            TokenChecker(issuer.public_key(), ledger.clock.now), anonymous=anonymous
        )
        self._grpc = GrpcServer(table, callers)
        self._rest = RestServer(table, callers, hosts=hosts)
        self._reader_task: asyncio.Task[None] | None = None
        self.grpc_port = 0
        self.rest_port = 0

    async def start(
        self, grpc_address: str | None, rest_address: str | None, tls: Tls | None = None
    ) -> None:
        """Listens on each HOST:PORT (None: not at all). Port 0 takes a free port, see `grpc_port` and `rest_port`."""
        for address in (grpc_address, rest_address):
            if self._anonymous and address is not None and not is_loopback(address):
                raise Refused(f"--anonymous is for loopback only, not for {address}")
        await ensure_built_in_tenants(self._ledger)
        # Owned by this object from start to stop; a task group cannot be left open across calls.
        self._reader_task = asyncio.create_task(self._watches.run(), name="event reader")
        if grpc_address is not None:
            self.grpc_port = await self._grpc.start(grpc_address, _make_credentials(tls))
        if rest_address is not None:
            self.rest_port = await self._rest.start(rest_address, tls)

    async def stop(self, grace: float = 5.0) -> None:
        """Refuses new calls, ends watches (clients resume on another server) and lets other calls finish."""
        self._watches.stop()
        await asyncio.gather(self._grpc.stop(grace), self._rest.stop(grace))
        if self._reader_task is not None:
            self._reader_task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader_task


async def ensure_built_in_tenants(ledger: Ledger) -> None:
    """Creates the tenants `shared` and `system` when they do not exist."""
    now = ledger.clock.now()
    for name in (SHARED, SYSTEM):
        if await ledger.documents.get(Tenant, name) is not None:
            continue
        tenant = Tenant(
            id=name,
            metadata=Metadata(
                name=name, tenant=name, creator=SYSTEM, creation_timestamp=now, generation=1
            ),
            status=replace(TenantStatus(), state=TenantState.SYNCED),
        )
        with contextlib.suppress(Exists):
            await ledger.commit([Insert(tenant, EventNote("Created", "Built in"))], now=now)


def is_loopback(address: str) -> bool:
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost" or address.startswith("unix:"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _make_credentials(tls: Tls | None) -> grpc.ServerCredentials | None:
    if tls is None:
        return None
    return grpc.ssl_server_credentials([(tls.key.read_bytes(), tls.certificate.read_bytes())])
