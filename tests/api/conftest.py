"""A running API on a database of the test's own, with two tenants and a small catalogue."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from boatyard.api.authentication import TokenIssuer
from boatyard.ledger.embedded_postgres import EmbeddedPostgres
from boatyard.ledger.ledger import Ledger
from boatyard.ledger.seal import Seal
from tests.api import samples
from tests.api.doors import ApiEnvironment, Door, running
from tests.api.roles import As
from tests.support.postgres import KEY, migrated


@pytest.fixture(scope="session")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> TokenIssuer:
    path: Path = tmp_path_factory.mktemp("keys") / "tokens.pem"
    return TokenIssuer.load_or_create(path)


@pytest.fixture
async def bare_environment(ledger: Ledger, issuer: TokenIssuer) -> AsyncIterator[ApiEnvironment]:
    """A server of the test's own, with nothing in it."""
    async with running(ledger, issuer) as environment:
        yield environment


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def environment(
    postgres: EmbeddedPostgres, issuer: TokenIssuer
) -> AsyncIterator[ApiEnvironment]:
    """A stocked server that the tests of one file share; their objects have names of their own."""
    async with migrated(postgres) as url:
        ledger = await Ledger.open(url, seal=Seal.from_bytes(KEY), application="test")
        async with running(ledger, issuer) as environment:
            await samples.stock(environment)
            yield environment
        await ledger.close()


@pytest.fixture(params=["grpc", "rest"])
def door(request: pytest.FixtureRequest, environment: ApiEnvironment) -> Door:
    return environment.door(request.param)


@pytest.fixture
def member(environment: ApiEnvironment, door: Door) -> As:
    return As(environment, door, "member")


@pytest.fixture
def operator(environment: ApiEnvironment, door: Door) -> As:
    return As(environment, door, "operator")
