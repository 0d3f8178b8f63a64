"""Gives every contract suite its benches: a suite names its port in `PORT` and asks for `bench`."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.contracts.bench import Bench, NewBench, benches_of


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "site" in metafunc.fixturenames:
        sites = benches_of(metafunc.module.PORT)
        metafunc.parametrize("site", sites, indirect=True, scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(request: pytest.FixtureRequest) -> AsyncIterator[NewBench]:
    async with request.param() as new_bench:
        yield new_bench


@pytest_asyncio.fixture(loop_scope="module")
async def bench(site: NewBench) -> Bench:
    return await site()
