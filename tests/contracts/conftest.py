"""Gives every contract suite its harness: a suite names its port in `PORT` and asks for `harness`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.contracts.harness import NewHarness
from tests.contracts.providers import driver_names, providers_of


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--driver",
        action="append",
        choices=driver_names(),
        help="run only what the contract suites ask of this driver; may be repeated",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "new_harness" in metafunc.fixturenames:
        providers = providers_of(metafunc.module.PORT)
        metafunc.parametrize("new_harness", providers, indirect=True, scope="module")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # The option is unknown when the run began above this folder.
    chosen = config.getoption("driver", default=None)
    if not chosen:
        return
    kept = [item for item in items if _driver(item) in chosen]
    config.hook.pytest_deselected(items=[item for item in items if _driver(item) not in chosen])
    items[:] = kept


def _driver(item: pytest.Item) -> str:
    """The driver that a test is run for; empty for a test that is not about one driver."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return parameters["new_harness"][0] if "new_harness" in parameters else ""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def new_harness(request: pytest.FixtureRequest) -> AsyncIterator[NewHarness]:
    _, provider = request.param
    async with provider() as new_harness:
        yield new_harness


@pytest_asyncio.fixture(loop_scope="module")
async def harness(new_harness: NewHarness) -> AsyncIterator[Any]:
    async with new_harness() as harness:
        yield harness
