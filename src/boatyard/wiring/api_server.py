"""Starts the API inside a process. Called by `up` and `serve`."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from boatyard.api.authentication import TokenIssuer
from boatyard.api.server import ApiServer, Tls, is_loopback
from boatyard.ledger.ledger import Ledger
from boatyard.model.errors import Refused
from boatyard.pki.selfsigned import ensure_self_signed
from boatyard.wiring.driver_factory import load_setting_checks
from boatyard.wiring.hub_clients import HubClients
from boatyard.wiring.hub_manifests import make_hub_access
from boatyard.wiring.hub_order_books import HubOrderBooks
from boatyard.wiring.keeper_process import keeper_socket
from boatyard.wiring.real_nodes_preflight import RealNodesPreflight
from boatyard.wiring.service_process import ISSUER_KEY
from boatyard.wiring.settings import Settings

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServedApi:
    """A served API: its addresses as clients should write them, and the issuer of its tokens."""

    grpc: str
    rest: str
    ca_file: str
    issuer: TokenIssuer
    now: Callable[[], datetime]


@asynccontextmanager
async def serve_api(
    ledger: Ledger, settings: Settings, books: HubOrderBooks
) -> AsyncIterator[ServedApi]:
    """Serves gRPC and REST until the context is left."""
    issuer = TokenIssuer.load_or_create(settings.data_dir / ISSUER_KEY)
    tls = _load_tls(settings, ledger)
    # A check asks the hub now: with the workers' clients their circuit breaker would answer for a failing hub.
    check_clients = HubClients()
    server = ApiServer(
        ledger,
        issuer,
        anonymous=settings.anonymous,
        hosts=settings.allowed_hosts,
        hub_access=make_hub_access(check_clients),
        remote_orders=books,
        setting_checks=load_setting_checks(),
        preflight=RealNodesPreflight(Path(keeper_socket(settings))),
    )
    try:
        await server.start(settings.grpc, settings.rest, tls=tls)
        for address in (settings.grpc, settings.rest):
            if tls is None and not is_loopback(address):
                logger.warning("tokens travel unencrypted without TLS", extra={"address": address})
        scheme = "https" if tls else "http"
        yield ServedApi(
            grpc=_with_port(settings.grpc, server.grpc_port),
            rest=f"{scheme}://{_with_port(settings.rest, server.rest_port)}",
            ca_file=str(tls.certificate) if tls and not settings.tls_cert else "",
            issuer=issuer,
            now=ledger.clock.now,
        )
    finally:
        await server.stop()
        await check_clients.close()


def check_api_settings(settings: Settings) -> None:
    """Refuses settings with which the API could not be served, before anything is started."""
    if bool(settings.tls_cert) != bool(settings.tls_key):
        raise Refused("give --tls-cert and --tls-key together")
    for path in (settings.tls_cert, settings.tls_key):
        if path and not Path(path).is_file():
            raise Refused(f"there is no file {path}")
    for address in (settings.grpc, settings.rest):
        if settings.anonymous and not is_loopback(address):
            raise Refused(f"--anonymous is for loopback only, not for {address}")


def _with_port(address: str, port: int) -> str:
    return f"{address.rpartition(':')[0]}:{port}"


def _load_tls(settings: Settings, ledger: Ledger) -> Tls | None:
    if settings.tls_cert:
        return Tls(Path(settings.tls_cert), Path(settings.tls_key))
    if not settings.tls:
        return None
    hosts = {address.rpartition(":")[0].strip("[]") for address in (settings.grpc, settings.rest)}
    host_names = [*settings.allowed_hosts, *sorted(hosts - {"0.0.0.0", "::", ""})]
    pair = ensure_self_signed(settings.data_dir, host_names, now=ledger.clock.now())
    return Tls(pair.certificate, pair.key)
