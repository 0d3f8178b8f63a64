"""A running API on a database of the test's own, with two tenants and a small catalogue."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from boatyard.api.callers import Issuer
from boatyard.ledger.embedded import EmbeddedPostgres
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.seal import Seal
from tests.api import samples
from tests.api.doors import Door, Yard, running
from tests.api.roles import As
from tests.support.postgres import KEY, migrated


@pytest.fixture(scope="session")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Issuer:
    path: Path = tmp_path_factory.mktemp("keys") / "tokens.pem"
    return Issuer.load_or_create(path)


@pytest.fixture
async def bare_yard(ledger: Ledger, issuer: Issuer) -> AsyncIterator[Yard]:
    """A server of the test's own, with nothing in it."""
    async with running(ledger, issuer) as yard:
        yield yard


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def yard(postgres: EmbeddedPostgres, issuer: Issuer) -> AsyncIterator[Yard]:
    """A stocked server that the tests of one file share; their objects have names of their own."""
    async with migrated(postgres) as url:
        ledger = await Ledger.open(url, seal=Seal.from_bytes(KEY), application="test")
        async with running(ledger, issuer) as yard:
            await samples.stock(yard)
            yield yard
        await ledger.close()


@pytest.fixture(params=["grpc", "rest"])
def door(request: pytest.FixtureRequest, yard: Yard) -> Door:
    return yard.door(request.param)


@pytest.fixture
def member(yard: Yard, door: Door) -> As:
    return As(yard, door, "member")


@pytest.fixture
def operator(yard: Yard, door: Door) -> As:
    return As(yard, door, "operator")
