"""The API server as a process puts it together."""

from __future__ import annotations

from pathlib import Path

import pytest

from boatyard.ledger.ledger import Ledger
from boatyard.resources.hubs.access import HubAccess
from boatyard.wiring import api_server
from boatyard.wiring.hub_manifests import make_hub_access
from boatyard.wiring.hub_order_books import open_hub_books
from boatyard.wiring.settings import Settings


async def test_a_check_by_hand_is_not_answered_by_the_circuit_breaker_of_the_workers(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accesses: list[HubAccess] = []

    def record(clients: object) -> HubAccess:
        accesses.append(make_hub_access(clients))  # type: ignore[arg-type]
        return accesses[-1]

    monkeypatch.setattr(api_server, "make_hub_access", record)
    settings = Settings(data=str(tmp_path), grpc="127.0.0.1:0", rest="127.0.0.1:0")
    async with open_hub_books(ledger) as books, api_server.serve_api(ledger, settings, books):
        (access,) = accesses
        assert access.clients is not books.clients
